// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// IR as .tir text: one operation a line, every result with its type. docs/language.md, "IR text".
//
// Operands are written in the order of their row, optional ones after them by name, then the
// attributes by name. A value has its name in the source. A name that is taken, or that means
// something in the language, gets a number appended, and a value without a name is v1, v2, ... All
// names of a kernel differ (except in the two blocks of a while, which use the same names for the
// carried values), so parsing printed text and printing it again gives the same text.

#include "ir/number.h"
#include "ir/walk.h"

struct printer {
    struct tir_text *out;
    struct tir_arena *arena;
    const struct tir_func *f;
    const char **names; // by value id
    struct tir_interner taken;
    struct tir_map used; // interned name -> struct name_use
    uint32_t unnamed;
    uint32_t depth;
};

struct name_use {
    uint32_t next; // number to try after the name
};

static void print_block(struct printer *p, const struct tir_block *block);

// Names.

static bool means_something(const char *name)
{
    static const char *const words[] = {
        "kernel", "fn",      "let",    "var",      "for",      "in",     "range",   "if",
        "else",   "while",   "do",     "yield",    "carry",    "with",   "tiles",   "by",
        "grid",   "threads", "where",  "meta",     "form",     "facts",  "true",    "false",
        "inf",    "nan",     "out",    "inout",    "local",    "break",  "shared",  "step",
        "const",  "import",  "return", "continue", "None",     "unroll", "stages",  "static_assert",
        "role",   "ring",    "put",    "get",      "mbarrier", "stage",  "cluster", "tmem",
        "match",  "struct",  "enum",   "tensor",   "S",        "R",      "T",       "sum",
        "prod",   "any",     "all",    "rowsum",   "rowmax",   "rowmin", "cumsum",  "rows",
        "cols",   "zeros",   "full",   "cdiv",     "bytes",    "size",   "PI",      "LOG2E",
        "LN2",    "INF"};
    for (uint32_t i = 0; i < TIR_COUNT_OF(words); i++)
        if (!strcmp(words[i], name))
            return true;
    for (uint32_t e = 0; e < TIR_ELEM_COUNT; e++)
        if (!strcmp(tir_elems[e].name, name))
            return true;
    return tir_op_by_name(tir_str_of(name)) != TIR_OP_COUNT;
}

// Takes the interned name; false: something has it already.
static bool take(struct printer *p, const char *name)
{
    if (tir_map_get(&p->used, tir_map_key(name)))
        return false;
    struct name_use *use = arena_new(p->arena, struct name_use);
    use->next = 2;
    tir_map_set(&p->used, tir_map_key(name), use);
    return true;
}

// The phase of a stage variable s is called s.phase.
static const char *identifier_of(struct printer *p, const char *hint)
{
    const char *dot = hint ? strchr(hint, '.') : NULL;
    return dot ? tir_str_format(p->arena, "%.*s_%s", (int)(dot - hint), hint, dot + 1).ptr : hint;
}

static const char *unique_name(struct printer *p, const char *hint)
{
    hint = identifier_of(p, hint);
    if (!hint) {
        for (;;) {
            tir_str s = tir_str_format(p->arena, "v%u", ++p->unnamed);
            const char *name = tir_intern(&p->taken, s);
            if (take(p, name))
                return name;
        }
    }
    const char *name = tir_intern_cstr(&p->taken, hint);
    bool plain = !means_something(name);
    if (plain && take(p, name))
        return name;
    if (!plain)
        take(p, name); // so that there is a number to count
    struct name_use *use = tir_map_get(&p->used, tir_map_key(name));
    for (;;) {
        tir_str s = tir_str_format(p->arena, "%s_%u", hint, use->next++);
        const char *numbered = tir_intern(&p->taken, s);
        if (take(p, numbered))
            return numbered;
    }
}

static void name_value(struct printer *p, const struct tir_value *v)
{
    p->names[v->id] = unique_name(p, v->name);
}

static void name_args(struct printer *p, const struct tir_inst *inst)
{
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (uint32_t i = 0; i < inst->regions[r]->arg_count; i++) {
            const struct tir_value *arg = inst->regions[r]->args[i];
            if (inst->op == TIR_OP_WHILE && r == 1 && i < inst->regions[0]->arg_count)
                p->names[arg->id] = p->names[inst->regions[0]->args[i]->id];
            else
                name_value(p, arg);
        }
}

static void name_all(struct printer *p)
{
    const struct tir_func *f = p->f;
    for (uint32_t i = 0; i < f->param_count; i++) {
        p->names[f->params[i].value->id] = f->params[i].name;
        take(p, tir_intern_cstr(&p->taken, f->params[i].name));
    }
    for (uint32_t i = 0; i < f->dim_count; i++) {
        p->names[f->dims[i].value->id] = f->dims[i].name;
        take(p, tir_intern_cstr(&p->taken, f->dims[i].name));
    }
    for (uint32_t i = 0; i < f->scratch_count; i++) {
        p->names[f->scratch[i].value->id] = f->scratch[i].name;
        take(p, tir_intern_cstr(&p->taken, f->scratch[i].name));
    }
    for (uint32_t i = 0; i < f->meta_count; i++)
        take(p, tir_intern_cstr(&p->taken, f->metas[i].name));
    tir_foreach_inst(inst, f) {
        for (uint32_t i = 0; i < inst->result_count; i++)
            name_value(p, inst->results[i]);
        name_args(p, inst);
    }
}

// Pieces.

static void put(struct printer *p, const char *s)
{
    tir_text_add(p->out, tir_str_of(s));
}

static void put_int(struct printer *p, int64_t i)
{
    tir_text_int(p->out, i);
}

static void put_separator(struct printer *p, bool *first)
{
    if (!*first)
        put(p, ", ");
    *first = false;
}

static void newline(struct printer *p)
{
    put(p, "\n");
    for (uint32_t i = 0; i < p->depth; i++)
        put(p, "    ");
}

static void put_constant(struct printer *p, const struct tir_value *v)
{
    const struct tir_type *t = v->type;
    union tir_number x = {.i = v->constant.i};
    bool bare = t->rank == 0 && (t->elem == TIR_I64 || t->elem == TIR_BOOL);
    if (!bare) {
        tir_type_print(p->out, t);
        put(p, "(");
    }
    tir_number_print(p->out, t->elem, x);
    if (!bare)
        put(p, ")");
}

static void put_value(struct printer *p, const struct tir_value *v)
{
    if (!v)
        put(p, "<missing>"); // only in text about a broken program
    else if (v->kind == TIR_VALUE_CONST)
        put_constant(p, v);
    else
        put(p, v->id < p->f->value_count && p->names[v->id] ? p->names[v->id] : "<stray>");
}

static void put_values(struct printer *p, struct tir_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put(p, i ? ", " : "");
        put_value(p, values[i]);
    }
}

static void put_typed(struct printer *p, const struct tir_value *v)
{
    put_value(p, v);
    put(p, ": ");
    tir_type_print(p->out, v->type);
}

static void put_values_typed(struct printer *p, struct tir_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put(p, i ? ", " : "");
        put_typed(p, values[i]);
    }
}

static void put_text(struct printer *p, tir_str s)
{
    put(p, "\"");
    for (size_t i = 0; i < s.len; i++) {
        static const char from[] = "\n\t\"\\", to[] = "nt\"\\";
        const char *at = s.ptr[i] ? strchr(from, s.ptr[i]) : NULL;
        if (at || !s.ptr[i]) {
            tir_text_char(p->out, '\\');
            tir_text_char(p->out, at ? to[at - from] : '0');
        } else {
            tir_text_char(p->out, s.ptr[i]);
        }
    }
    put(p, "\"");
}

static void put_list(struct printer *p, const struct tir_attr *attr)
{
    for (uint32_t i = 0; i < attr->list_count; i++) {
        put(p, i ? ", " : "");
        put_int(p, attr->list[i]);
    }
}

static void put_attr_value(struct printer *p, const struct tir_attr *attr)
{
    switch (tir_attr_infos[attr->key].kind) {
    case TIR_ATTR_INT:
        put_int(p, attr->number);
        break;
    case TIR_ATTR_WORD:
        put(p, tir_words[attr->number].name);
        break;
    case TIR_ATTR_TEXT:
        put_text(p, attr->text);
        break;
    case TIR_ATTR_LIST:
        put(p, "[");
        put_list(p, attr);
        put(p, "]");
        break;
    }
}

static void put_slice(struct printer *p, const struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    uint32_t first = tir_fixed_count(inst) + 1;
    if (inst->operand_count < first)
        return;
    put_value(p, inst->operands[first - 1]);
    put(p, "[");
    for (uint32_t i = first; i < inst->operand_count; i++) {
        put(p, i > first ? ", " : "");
        put_value(p, inst->operands[i]);
        if (box && i - first < box->list_count && box->list[i - first] > 0)
            tir_text_format(p->out, ":+%lld", (long long)box->list[i - first]);
    }
    put(p, "]");
}

// NULL also where a broken program has too few.
static const struct tir_value *operand_at(const struct tir_inst *inst, uint32_t i)
{
    return i < inst->operand_count ? inst->operands[i] : NULL;
}

static void put_operands(struct printer *p, const struct tir_inst *inst, bool *first)
{
    const struct tir_op_info *op = &tir_ops[inst->op];
    uint32_t fixed = 0;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        switch (op->operands[i].kind) {
        case TIR_OPERAND_IN:
        case TIR_OPERAND_BUF:
            put_separator(p, first);
            put_value(p, operand_at(inst, fixed++));
            break;
        case TIR_OPERAND_OPT:
            fixed++;
            break;
        case TIR_OPERAND_REF:
            put_separator(p, first);
            put_slice(p, inst);
            break;
        case TIR_OPERAND_LIST:
            for (uint32_t j = op->fixed_count; j < inst->operand_count; j++) {
                put_separator(p, first);
                put_value(p, inst->operands[j]);
            }
            break;
        }
    }
    fixed = 0;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        enum tir_operand_kind kind = op->operands[i].kind;
        if (kind == TIR_OPERAND_REF || kind == TIR_OPERAND_LIST)
            continue;
        const struct tir_value *v = operand_at(inst, fixed++);
        if (kind != TIR_OPERAND_OPT || !v)
            continue;
        put_separator(p, first);
        tir_text_format(p->out, "%s = ", op->operands[i].name);
        put_value(p, v);
    }
}

static void put_call(struct printer *p, const struct tir_inst *inst)
{
    bool first = true;
    tir_text_format(p->out, "%s(", tir_ops[inst->op].name);
    put_operands(p, inst, &first);
    for (uint32_t i = 0; i < inst->attr_count; i++) {
        const struct tir_attr *attr = &inst->attrs[i];
        if (attr->key == TIR_ATTR_box) // the slice says it
            continue;
        put_separator(p, &first);
        tir_text_format(p->out, "%s = ", tir_attr_infos[attr->key].name);
        put_attr_value(p, attr);
    }
    put(p, ")");
}

// Statements.

static void put_carry(struct printer *p, const struct tir_inst *inst, uint32_t first_arg)
{
    const struct tir_block *block = inst->regions[0];
    uint32_t fixed = tir_carried_at(inst);
    if (inst->operand_count <= fixed)
        return;
    uint32_t count = inst->operand_count - fixed;
    struct tir_value **init = inst->operands + fixed;
    put(p, " carry (");
    for (uint32_t i = 0; i < count && first_arg + i < block->arg_count; i++) {
        put(p, i ? ", " : "");
        put_typed(p, block->args[first_arg + i]);
        put(p, " = ");
        put_value(p, init[i]);
    }
    put(p, ")");
}

static void put_attr_clauses(struct printer *p, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->attr_count; i++) {
        if (inst->attrs[i].key == TIR_ATTR_by || inst->attrs[i].key == TIR_ATTR_name)
            continue; // said before
        tir_text_format(p->out, " %s(", tir_attr_infos[inst->attrs[i].key].name);
        if (inst->attrs[i].key == TIR_ATTR_cluster)
            put_list(p, &inst->attrs[i]);
        else
            put_attr_value(p, &inst->attrs[i]);
        put(p, ")");
    }
}

static void put_for(struct printer *p, const struct tir_inst *inst)
{
    put(p, "for ");
    put_values_typed(p, inst->regions[0]->args, TIR_MIN(inst->regions[0]->arg_count, 1));
    put(p, " in range(");
    put_values(p, inst->operands, TIR_MIN(tir_fixed_count(inst), inst->operand_count));
    put(p, ")");
    put_carry(p, inst, 1);
    put_attr_clauses(p, inst);
    put(p, " ");
    print_block(p, inst->regions[0]);
}

static void put_while(struct printer *p, const struct tir_inst *inst)
{
    put(p, "while");
    put_carry(p, inst, 0);
    put(p, " ");
    print_block(p, inst->regions[0]);
    put(p, " do ");
    print_block(p, inst->regions[1]);
}

static void put_if(struct printer *p, const struct tir_inst *inst)
{
    put(p, "if ");
    put_value(p, inst->operands[0]);
    put(p, " ");
    print_block(p, inst->regions[0]);
    const struct tir_inst *first = inst->regions[1]->first;
    if (!first || (first->op == TIR_OP_YIELD && first->operand_count == 0))
        return;
    put(p, " else ");
    print_block(p, inst->regions[1]);
}

static void put_tiles(struct printer *p, const struct tir_inst *inst)
{
    const struct tir_attr *by = tir_attr_find(inst, TIR_ATTR_by);
    put(p, "tiles (");
    uint32_t extents = TIR_MIN(tir_carried_at(inst), inst->operand_count);
    put_values(p, inst->regions[0]->args, TIR_MIN(extents, inst->regions[0]->arg_count));
    put(p, ") in (");
    for (uint32_t i = 0; i < extents; i++) {
        put(p, i ? ", " : "");
        put_value(p, inst->operands[i]);
        put(p, " by ");
        put_int(p, by ? by->list[i] : 0);
    }
    put(p, ")");
    put_carry(p, inst, extents);
    put_attr_clauses(p, inst);
    put(p, " ");
    print_block(p, inst->regions[0]);
}

static void put_role(struct printer *p, const struct tir_inst *inst)
{
    const struct tir_attr *name = tir_attr_find(inst, TIR_ATTR_name);
    tir_text_format(p->out, "role " STR_FMT, STR_ARG(name ? name->text : STR("")));
    put_attr_clauses(p, inst);
    put(p, " ");
    print_block(p, inst->regions[0]);
}

static void put_scope(struct printer *p, const struct tir_inst *inst)
{
    put(p, "scope");
    put_attr_clauses(p, inst);
    put(p, " ");
    print_block(p, inst->regions[0]);
}

static void put_user_region(struct printer *p, const struct tir_inst *inst)
{
    const struct tir_block *block = inst->regions[0];
    put(p, " with (");
    put_values_typed(p, block->args, block->arg_count);
    put(p, ") ");
    print_block(p, block);
}

// True when the statement ends in a block and so has no semicolon.
static bool put_operation(struct printer *p, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_FOR:
        put_for(p, inst);
        return true;
    case TIR_OP_WHILE:
        put_while(p, inst);
        return true;
    case TIR_OP_IF:
        put_if(p, inst);
        return true;
    case TIR_OP_TILES:
        put_tiles(p, inst);
        return true;
    case TIR_OP_ROLE:
        put_role(p, inst);
        return true;
    case TIR_OP_SCOPE:
        put_scope(p, inst);
        return true;
    case TIR_OP_YIELD:
        put(p, "yield ");
        put_values(p, inst->operands, inst->operand_count);
        return false;
    default:
        put_call(p, inst);
        if (inst->region_count)
            put_user_region(p, inst);
        return inst->region_count > 0;
    }
}

static void print_inst(struct printer *p, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++) {
        put(p, i ? ", " : "let ");
        put_typed(p, inst->results[i]);
    }
    if (inst->result_count)
        put(p, " = ");
    if (!put_operation(p, inst))
        put(p, ";");
}

static void put_expression(struct printer *p, const struct tir_value *v);

static void put_scratch(struct printer *p, uint32_t index)
{
    const struct tir_scratch *scratch = &p->f->scratch[index];
    const struct tir_type *t = scratch->value->type;
    tir_text_format(p->out, "scratch %s: %s", scratch->name, tir_elems[t->elem].name);
    for (uint32_t d = 0; d < t->rank; d++) {
        put(p, d ? ", " : "[");
        put_expression(p, tir_scratch_extent(p->f, index, d));
    }
    put(p, "];");
}

static void print_block(struct printer *p, const struct tir_block *block)
{
    put(p, "{");
    p->depth++;
    for (uint32_t i = 0; block == p->f->body && i < p->f->scratch_count; i++) {
        newline(p);
        put_scratch(p, i);
    }
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_YIELD && inst->operand_count == 0)
            continue; // the end of a block that gives nothing
        newline(p);
        print_inst(p, inst);
    }
    p->depth--;
    newline(p);
    put(p, "}");
}

// The kernel's head.

static void put_param(struct printer *p, const struct tir_param *param)
{
    static const char *const directions[] = {"", "out ", "inout "};
    const struct tir_type *t = param->value->type;
    tir_text_format(p->out, "%s: %s%s", param->name,
                    t->space == TIR_SPACE_GLOBAL ? directions[param->direction] : "",
                    tir_elems[t->elem].name);
    for (uint32_t d = 0; d < t->rank; d++) {
        put(p, d ? ", " : "[");
        if (param->dims[d].dim >= 0)
            put(p, p->f->dims[param->dims[d].dim].name);
        else
            put_int(p, param->dims[d].constant);
    }
    put(p, t->rank ? "]" : "");
}

static void put_expression(struct printer *p, const struct tir_value *v)
{
    if (!v || v->kind != TIR_VALUE_RESULT) {
        put_value(p, v);
        return;
    }
    bool is_cast = v->def->op == TIR_OP_CAST; // its type is its name
    put(p, is_cast ? tir_elems[v->type->elem].name : tir_ops[v->def->op].name);
    put(p, "(");
    for (uint32_t i = 0; i < v->def->operand_count; i++) {
        put(p, i ? ", " : "");
        put_expression(p, v->def->operands[i]);
    }
    put(p, ")");
}

// Both parts of a condition are conditions of their own, as the front end reads them.
static void put_condition(struct printer *p, const struct tir_value *v)
{
    if (v && v->kind == TIR_VALUE_RESULT && v->def->op == TIR_OP_AND) {
        put_condition(p, v->def->operands[0]);
        put_condition(p, v->def->operands[1]);
        return;
    }
    put(p, " where ");
    put_expression(p, v);
}

static void put_host_clauses(struct printer *p)
{
    const struct tir_inst *yield = tir_yield_of(p->f->host);
    if (!yield)
        return;
    for (uint32_t i = 0; i < yield->operand_count; i++) {
        bool grid = i < p->f->grid_count;
        if (!grid && i < tir_conditions_at(p->f))
            continue; // in put_scratch
        if (!grid) {
            put_condition(p, yield->operands[i]);
            continue;
        }
        put(p, i ? ", " : " grid(");
        put_expression(p, yield->operands[i]);
        put(p, i + 1 == p->f->grid_count ? ")" : "");
    }
}

static void put_facts(struct printer *p)
{
    bool first = true;
    if (!p->f->facts)
        return;
    put(p, " facts(");
    for (uint32_t i = 0; i < TIR_FACT_COUNT; i++)
        if (p->f->facts >> i & 1) {
            put_separator(p, &first);
            put(p, tir_fact_names[i]);
        }
    put(p, ")");
}

// aligned(A = 16, ...) begins(B = 16, ...)
static void put_alignments(struct printer *p)
{
    for (uint32_t k = 0; k < 2; k++) {
        bool first = true;
        for (uint32_t i = 0; i < p->f->param_count; i++) {
            const struct tir_param *param = &p->f->params[i];
            const uint32_t bytes = k ? param->begins : param->aligned;
            if (!bytes)
                continue;
            put(p, !first ? "" : k ? " begins(" : " aligned(");
            put_separator(p, &first);
            tir_text_format(p->out, "%s = %u", param->name, bytes);
        }
        put(p, first ? "" : ")");
    }
}

static void put_scratch_params(struct printer *p)
{
    bool first = true;
    for (uint32_t i = 0; i < p->f->param_count; i++) {
        if (!p->f->params[i].is_scratch)
            continue;
        put(p, first ? " scratch(" : "");
        put_separator(p, &first);
        put(p, p->f->params[i].name);
    }
    put(p, first ? "" : ")");
}

static void put_clauses(struct printer *p)
{
    const struct tir_func *f = p->f;
    put_host_clauses(p);
    if (f->threads)
        tir_text_format(p->out, " threads(%u)", f->threads);
    if (f->cluster[0])
        tir_text_format(p->out, " cluster(%u, %u, %u)", f->cluster[0], f->cluster[1],
                        f->cluster[2]);
    if (f->preferred[0])
        tir_text_format(p->out, " preferred(%u, %u, %u)", f->preferred[0], f->preferred[1],
                        f->preferred[2]);
    for (uint32_t i = 0; i < f->meta_count; i++)
        tir_text_format(p->out, "%s%s = " STR_FMT "%s", i ? ", " : " meta(", f->metas[i].name,
                        STR_ARG(f->metas[i].value), i + 1 == f->meta_count ? ")" : "");
    // Always some clause that only IR text has: the parser then computes nothing by itself.
    if (f->form != TIR_FORM_TILE || f->after || (!f->meta_count && !f->facts))
        tir_text_format(p->out, " form(%s%s%s)", tir_form_name(f->form),
                        f->after ? ", after = " : "", f->after ? f->after : "");
    put_facts(p);
    put_alignments(p);
    put_scratch_params(p);
    if (f->step)
        tir_text_format(p->out, f->pace ? " step(%s, %s)" : " step(%s)", tir_step_names[f->step],
                        tir_pace_names[f->pace]);
    if (f->shared_bytes)
        tir_text_format(p->out, " shared(%lld)", (long long)f->shared_bytes);
    if (f->persistent)
        tir_text_format(p->out, " persistent(%u)", f->persistent);
}

static struct printer printer_new(struct tir_text *out, const struct tir_func *f)
{
    struct tir_arena *arena = f->module->arena;
    struct printer p = {.out = out, .arena = arena, .f = f};
    p.names = arena_array(arena, const char *, f->value_count);
    p.taken = (struct tir_interner){.arena = arena};
    tir_map_init(&p.used, arena);
    name_all(&p);
    return p;
}

void tir_print_func(struct tir_text *out, const struct tir_func *f)
{
    struct printer p = printer_new(out, f);
    tir_text_format(out, "kernel %s(", f->name);
    for (uint32_t i = 0; i < f->param_count; i++) {
        put(&p, i ? ", " : "");
        put_param(&p, &f->params[i]);
    }
    put(&p, ")");
    put_clauses(&p);
    put(&p, "\n");
    print_block(&p, f->body);
    put(&p, "\n");
}

void tir_print_module(struct tir_text *out, const struct tir_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        tir_text_add(out, i ? STR("\n") : STR(""));
        tir_print_func(out, m->funcs.at[i]);
    }
}

void tir_print_line(struct tir_text *out, const struct tir_func *f, const struct tir_inst *inst)
{
    struct tir_text whole;
    tir_text_init(&whole, f->module->arena, 0);
    struct printer p = printer_new(&whole, f);
    print_inst(&p, inst);
    tir_str s = tir_text_str(&whole);
    const char *end = memchr(s.ptr, '\n', s.len);
    tir_text_add(out, (tir_str){s.ptr, end ? (size_t)(end - s.ptr) : s.len});
}
