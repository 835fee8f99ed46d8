// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reference pages made from ops.def, attrs.def, passes.def and diag.def.
#include "driver/tables.h"

#include "ir/ir.h"
#include "pass/pass.h"

static const char *const form_names[TIR_FORM_COUNT] = {
    [TIR_FORM_TILE] = "tile",     [TIR_FORM_LAID_OUT] = "laid_out",
    [TIR_FORM_ASYNC] = "async",   [TIR_FORM_SPECIALIZED] = "specialized",
    [TIR_FORM_SYNCED] = "synced", [TIR_FORM_LOWERED] = "lowered",
};

// A cell of a table: `|` would end it.
static void cell(struct tir_text *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            tir_text_char(out, '\\');
        tir_text_char(out, *text);
    }
}

static void operand(struct tir_text *out, const struct tir_operand_info *info)
{
    switch (info->kind) {
    case TIR_OPERAND_IN:
    case TIR_OPERAND_BUF:
        tir_text_format(out, "%s", info->name);
        return;
    case TIR_OPERAND_OPT:
        tir_text_format(out, "[%s]", info->name);
        return;
    case TIR_OPERAND_LIST:
        tir_text_format(out, "%s...", info->name);
        return;
    case TIR_OPERAND_REF:
        tir_text_format(out, "%s[...]", info->name);
        return;
    }
    tir_unreachable();
}

// The operation as a call: operands in order, then attributes; what may be absent in brackets.
static void signature(struct tir_text *out, const struct tir_op_info *op)
{
    const char *comma = "";
    tir_text_format(out, "%s(", op->name);
    for (uint32_t i = 0; i < op->operand_count; i++, comma = ", ") {
        tir_text_format(out, "%s", comma);
        operand(out, &op->operands[i]);
    }
    for (uint32_t i = 0; i < op->attr_count; i++, comma = ", ") {
        bool required = op->attrs[i].required;
        tir_text_format(out, "%s%s%s =%s", comma, required ? "" : "[",
                        tir_attr_infos[op->attrs[i].key].name, required ? "" : "]");
    }
    tir_text_char(out, ')');
}

void tir_tables_ops(struct tir_text *out)
{
    tir_text_add(out, STR("# Operations\n\nPrinted by `tirc --help-ops`. Arguments in brackets may "
                          "be left out; `x[...]` is a slice of a buffer. The form is the last one "
                          "the operation may appear in.\n\n"
                          "| operation | form | meaning |\n|---|---|---|\n"));
    for (uint32_t i = 0; i < TIR_OP_COUNT; i++) {
        tir_text_add(out, STR("| `"));
        signature(out, &tir_ops[i]);
        tir_text_format(out, "` | %s | ", form_names[tir_ops[i].last_form]);
        cell(out, tir_ops[i].meaning);
        tir_text_add(out, STR(" |\n"));
    }
    tir_text_add(out, STR("\n## Attributes\n\n| attribute | values | meaning |\n|---|---|---|\n"));
    for (uint32_t key = 0; key < TIR_ATTR_COUNT; key++) {
        const char *comma = "";
        static const char *const kinds[] = {[TIR_ATTR_INT] = "integer",
                                            [TIR_ATTR_LIST] = "integers",
                                            [TIR_ATTR_WORD] = "",
                                            [TIR_ATTR_TEXT] = "text"};
        tir_text_format(out, "| `%s` | %s", tir_attr_infos[key].name,
                        kinds[tir_attr_infos[key].kind]);
        for (uint32_t w = TIR_WORD_NONE + 1; w < TIR_WORD_COUNT; w++)
            if (tir_words[w].key == (enum tir_attr_key)key) {
                tir_text_format(out, "%s`%s`", comma, tir_words[w].name);
                comma = " ";
            }
        tir_text_format(out, " | %s |\n", tir_attr_infos[key].meaning);
    }
}

void tir_tables_passes(struct tir_text *out)
{
    tir_text_add(out,
                 STR("# Passes\n\nPrinted by `tirc --help-passes`: the pipeline in order, then "
                     "the clean-ups that run within it.\n\n"
                     "| pass | takes | gives | what it does |\n|---|---|---|---|\n"));
    for (uint32_t i = 0; i < tir_pass_count; i++)
        tir_text_format(out, "| `%s` | %s | %s | %s |\n", tir_passes[i].name,
                        i < tir_pipeline_count ? form_names[tir_passes[i].in] : "any",
                        i < tir_pipeline_count ? form_names[tir_passes[i].out] : "the same",
                        tir_passes[i].meaning);
}

void tir_tables_diagnostics(struct tir_text *out)
{
    static const char *const severities[] = {
        [TIR_ERROR] = "error", [TIR_WARNING] = "warning", [TIR_REMARK] = "remark"};
    tir_text_add(out,
                 STR("# Diagnostic codes\n\nPrinted by `tirc --help-diagnostics`. A code never "
                     "changes its meaning. Examples of each are in `docs/diagnostics.md`.\n\n"
                     "| code | severity | meaning |\n|---|---|---|\n"));
    for (uint32_t i = 0; i < TIR_DIAG_COUNT; i++)
        tir_text_format(out, "| %s | %s | %s |\n", tir_diag_infos[i].code,
                        severities[tir_diag_infos[i].severity], tir_diag_infos[i].title);
}
