// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations, attributes and passes as Markdown.

#include "pass/help.h"

#include "pass/pass.h"

static const struct {
    uint32_t trait;
    const char *name;
} traits[] = {{TIR_PURE, "pure"},         {TIR_READS, "reads"},    {TIR_WRITES, "writes"},
              {TIR_ASYNC, "async"},       {TIR_SYNC, "sync"},      {TIR_THREAD, "thread"},
              {TIR_COMMUTES, "commutes"}, {TIR_REGIONS, "blocks"}, {TIR_END, "end"}};

static const char *class_name(enum tir_elem_class elems)
{
    static const char *const names[] = {"any", "num", "float", "int", "bits"}; // ORDER CLASS
    return names[elems];
}

static void add_separator(struct tir_text *out, bool *first)
{
    tir_text_add(out, *first ? STR("") : STR(", "));
    *first = false;
}

static void add_operands(struct tir_text *out, const struct tir_op_info *op)
{
    bool first = true;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        enum tir_operand_kind kind = op->operands[i].kind;
        add_separator(out, &first);
        tir_text_format(out, "%s%s%s", kind == TIR_OPERAND_OPT ? "[" : "", op->operands[i].name,
                        kind == TIR_OPERAND_REF    ? "[slice]"
                        : kind == TIR_OPERAND_LIST ? "..."
                        : kind == TIR_OPERAND_OPT  ? "]"
                                                   : "");
    }
    for (uint32_t i = 0; i < op->attr_count; i++) {
        add_separator(out, &first);
        tir_text_format(out, op->attrs[i].required ? "%s =" : "[%s =]",
                        tir_attr_infos[op->attrs[i].key].name);
    }
}

static void add_op(struct tir_text *out, const struct tir_op_info *op)
{
    bool first = true;
    tir_text_format(out, "| `%s(", op->name);
    add_operands(out, op);
    tir_text_format(out, ")` | %s | ", class_name(op->elems));
    for (uint32_t i = 0; i < TIR_COUNT_OF(traits); i++)
        if (op->traits & traits[i].trait) {
            add_separator(out, &first);
            tir_text_add(out, tir_str_of(traits[i].name));
        }
    tir_text_format(out, " | %s | ", tir_form_name(op->last_form));
    for (const char *c = op->meaning; *c; c++) { // a bar would end the cell
        tir_text_add(out, *c == '|' ? STR("\\") : STR(""));
        tir_text_char(out, *c);
    }
    tir_text_add(out, STR(" |\n"));
}

static void add_words(struct tir_text *out, enum tir_attr_key key)
{
    bool first = true;
    for (uint32_t w = 1; w < TIR_WORD_COUNT; w++)
        if (tir_words[w].key == key) {
            tir_text_add(out, first ? STR(": ") : STR(" "));
            first = false;
            tir_text_format(out, "`%s`", tir_words[w].name);
        }
}

void tir_help_ops(struct tir_text *out)
{
    tir_text_add(out, STR("# Operations\n\n"
                          "Operands first, optional ones in brackets and written by name; then "
                          "attributes. Elements: what the\noperands may be (`num`: integer or "
                          "float, `bits`: integer or bool). Until: the last form the operation\n"
                          "may appear in.\n\n"
                          "| operation | elements | traits | until | meaning |\n"
                          "|---|---|---|---|---|\n"));
    for (uint32_t op = 0; op < TIR_OP_COUNT; op++)
        add_op(out, &tir_ops[op]);
    tir_text_add(out, STR("\n# Attributes\n\n| attribute | value | meaning |\n|---|---|---|\n"));
    static const char *const kinds[] = {"integer", "integers", "word", "text"}; // tir_attr_kind
    for (uint32_t key = 0; key < TIR_ATTR_COUNT; key++) {
        const struct tir_attr_info *info = &tir_attr_infos[key];
        tir_text_format(out, "| `%s` | %s", info->name, kinds[info->kind]);
        add_words(out, (enum tir_attr_key)key);
        tir_text_format(out, " | %s |\n", info->meaning);
    }
}

void tir_help_passes(struct tir_text *out)
{
    tir_text_add(out,
                 STR("# Passes\n\nIn the order they run.\n\n"
                     "| pass | takes form | gives form | what it does |\n|---|---|---|---|\n"));
    for (uint32_t i = 0; i < tir_pipeline_count; i++)
        tir_text_format(out, "| `%s` | %s | %s | %s |\n", tir_passes[i].name,
                        tir_form_name(tir_passes[i].in), tir_form_name(tir_passes[i].out),
                        tir_passes[i].meaning);
    tir_text_add(out, STR("\nGeneral passes take any form and keep it; `clean` and `finish` run "
                          "them.\n\n| pass | what it does |\n|---|---|\n"));
    for (uint32_t i = tir_pipeline_count; i < tir_pass_count; i++)
        tir_text_format(out, "| `%s` | %s |\n", tir_passes[i].name, tir_passes[i].meaning);
}
