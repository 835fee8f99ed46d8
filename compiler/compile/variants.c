// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The variants of a kernel: what each may rely on, best first. The runtime takes the first whose
// facts and conditions hold.
//
// The speed of a matrix product depends on how its operands reach shared memory, so that is
// where the variants differ: whole tiles of aligned tensors; operands copied 16 bytes at a time,
// with tests for edges and an output of any alignment; operands copied 4 bytes at a time;
// anything. Only the first two are unrolled in full (pass/async/chunk.c), so the others compile
// quickly. Tensors of 2 GiB and more are copied as the first two copy theirs, with 64-bit
// offsets. If products run on warpgroups, tensor copies handle edges, so the first variant does
// not need whole tiles. A kernel without a product is bound by memory; it has vectors or single
// elements, each with offsets of 32 bits and of 64. Between them is one for tensors of one
// dimension and any length: vectors but in the last tiles (edges.c); or one for whole rows that
// begin anywhere: vectors but at their ends (askew.c).
//
// Variants share the blocks of their configuration as far as they can. Passes change copies.
//
// Alignment is asked of each tensor by how it is read and written, not of all: one that is read
// an element at a time, or a short vector beside a matrix, may lie anywhere.

#include "compile/variants.h"

#include "base/bitset.h"
#include "compile/askew.h"
#include "compile/edges.h"
#include "compile/whole.h"
#include "ir/walk.h"
#include "machine/cost.h"
#include "pass/layout/warpgroup.h"

#define ALL_FACTS   (TIR_FACT_INDEX32 | TIR_FACT_VECTOR16 | TIR_FACT_UNIT_INNER)
#define DENSE_FACTS (TIR_FACT_INDEX32 | TIR_FACT_UNIT_INNER)

static bool has_tensor(const struct tir_func *f)
{
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i].value->type->space == TIR_SPACE_GLOBAL)
            return true;
    return false;
}

bool tir_compile_has_dot(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT)
            return true;
    return false;
}

// The cost, combined with a number.
static tir_formula with(struct tir_context *cx, tir_formula cost, int64_t number,
                        tir_formula_code code)
{
    if (!cost.count || cost.count + 2 > TIR_MAX_FORMULA)
        return cost;
    tir_formula_op *ops = arena_array(&cx->arena, tir_formula_op, cost.count + 2);
    memcpy(ops, cost.ops, cost.count * sizeof(*ops));
    ops[cost.count] = (tir_formula_op){TIR_FORMULA_CONST, number};
    ops[cost.count + 1] = (tir_formula_op){code, 0};
    return (tir_formula){ops, cost.count + 2};
}

// What a configuration costs, as many times as long.
static tir_formula times(struct tir_context *cx, tir_formula cost, int64_t factor)
{
    return factor == 1 ? cost : with(cx, cost, factor, TIR_FORMULA_MUL);
}

static tir_formula per_cent(struct tir_context *cx, tir_formula cost, int64_t percent)
{
    if (cost.count + 4 > TIR_MAX_FORMULA)
        return cost;
    return with(cx, with(cx, cost, percent, TIR_FORMULA_MUL), 100, TIR_FORMULA_DIV);
}

static void add(struct tir_context *cx, struct tir_kernel_code *kernel, struct tir_func *f,
                uint32_t facts, const char *suffix, tir_formula cost)
{
    assert(kernel->count < TIR_COUNT_OF(kernel->variants));
    kernel->costs[kernel->count] = cost;
    f->facts = facts;
    f->name = tir_intern(&cx->names, tir_str_format(&cx->arena, "%s%s", f->name, suffix));
    kernel->variants[kernel->count++] = f;
}

// Rows that are moved element by element take this per cent of the time (docs/decisions/098).
#define BY_ELEMENTS 150
// Tiles of several rows that begin anywhere, which lie apart, this (decision 105).
#define ROWS_APART  130
#define DEEPEST     8 // operations between a load and the product, above which no more is asked of it
// Vectors of scales and the like: an access of that part of the largest one, or of less, costs
// little if it goes element by element. So nothing is asked of its tensor.
#define SMALL_PART  16

// How many bits of rows a load or a store moves; 0: it takes one element of each row.
static int64_t row_bits(const struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    const int64_t inner = box && box->list_count ? box->list[box->list_count - 1] : 0;
    if (inner == 0 || inner == 1)
        return 0;
    int64_t bits = tir_elems[tir_ref_base(inst)->type->elem].bits;
    if (inst->op == TIR_OP_LOAD) // index tiles count too
        return tir_type_count(tir_result(inst)->type) * bits;
    if ((inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC) && inner > 0)
        return tir_type_count(inst->operands[TIR_STORE_VALUE]->type) * bits; // those of rows
    if (inst->op == TIR_OP_COPY_ASYNC)
        return tir_type_count(inst->operands[TIR_COPY_TO]->type) * bits;
    for (uint32_t d = 0; d < box->list_count; d++)
        bits *= TIR_MAX(box->list[d], 1);
    return bits;
}

static bool is_small(int64_t bits, int64_t largest)
{
    return bits * SMALL_PART <= largest;
}

struct source {
    const struct tir_value *v;
    uint32_t depth; // operations between it and the product
};

struct sources { // of an operand
    struct tir_arena *arena;
    struct bitset seen;
    VEC(struct source) work; // the nearest first
};

static void add_source(struct sources *s, const struct tir_value *v, uint32_t depth)
{
    if (v && v->kind == TIR_VALUE_RESULT && depth < DEEPEST && bitset_insert(&s->seen, v->id))
        vec_push(s->arena, &s->work, ((struct source){v, depth}));
}

// Every tensor whose rows v is computed from is aligned to 16 bytes, but for small ones beside
// the operand, and those of which a load takes one element a row; nor what is only read after
// the product. What is read from a buffer, where elements change places, is what is stored there.
static void align_sources(struct tir_arena *arena, struct tir_func *f, const struct tir_value *v)
{
    const int64_t operand = 8 * tir_type_bytes(v->type);
    struct sources s = {.arena = arena, .seen = bitset_new(arena, f->value_count)};
    add_source(&s, v, 0);
    for (size_t at = 0; at < s.work.len; at++) {
        const struct tir_inst *inst = s.work.at[at].v->def;
        const uint32_t depth = s.work.at[at].depth;
        for (uint32_t i = 0; tir_has_trait(inst, TIR_PURE) && i < inst->operand_count; i++)
            add_source(&s, inst->operands[i], depth + 1);
        if (inst->op != TIR_OP_LOAD || is_small(row_bits(inst), operand))
            continue;
        const struct tir_value *base = tir_ref_base(inst);
        if (base->type->space == TIR_SPACE_SHARED)
            tir_foreach_inst(store, f)
                if (store->op == TIR_OP_STORE && tir_ref_base(store) == base)
                    add_source(&s, store->operands[TIR_STORE_VALUE], depth);
        for (uint32_t i = 0; i < f->param_count; i++)
            if (f->params[i].value == base && base->type->space == TIR_SPACE_GLOBAL &&
                f->params[i].direction != TIR_OUT)
                f->params[i].aligned = 16;
    }
}

static void align_inputs(struct tir_arena *arena, struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT)
            for (uint32_t i = TIR_DOT_A; i <= TIR_DOT_B; i++)
                align_sources(arena, f, inst->operands[i]);
}

static bool is_tensor(const struct tir_param *param)
{
    return param->value->type->space == TIR_SPACE_GLOBAL;
}

// The rows of p are aligned wherever those of q are: they are as long, or their length is known.
static bool is_aligned_with(const struct tir_param *p, const struct tir_param *q)
{
    const struct tir_type *type = p->value->type;
    uint32_t bits = tir_elems[type->elem].bits;
    const struct tir_param_dim *inner = &p->dims[type->rank - 1];
    if (inner->dim < 0)
        return inner->constant * bits % 128 == 0;
    const struct tir_type *other = q->value->type;
    return inner->dim == q->dims[other->rank - 1].dim && bits >= tir_elems[other->elem].bits;
}

// Every tensor that has rows is aligned to 16 bytes, unless they are small and their length is no
// other tensor's: a batch of 5 labels takes no vectors from the matrix beside it.
static void align_rows(struct tir_context *cx, struct tir_func *f)
{
    int64_t largest = 0, *size = arena_array(&cx->scratch, int64_t, f->param_count);
    tir_foreach_inst(inst, f)
        for (uint32_t i = 0; tir_ops[inst->op].has_ref && i < f->param_count; i++)
            if (f->params[i].value == tir_ref_base(inst)) {
                size[i] = TIR_MAX(size[i], row_bits(inst));
                largest = TIR_MAX(largest, size[i]);
            }
    align_inputs(&cx->scratch, f);
    for (uint32_t i = 0; i < f->param_count; i++)
        if (size[i] && !is_small(size[i], largest))
            f->params[i].aligned = 16;
    for (uint32_t i = 0; i < f->param_count; i++) {
        struct tir_param *p = &f->params[i];
        for (uint32_t k = 0; is_tensor(p) && size[i] && !p->aligned && k < f->param_count; k++)
            if (f->params[k].aligned == 16 && size[k] && is_aligned_with(p, &f->params[k]))
                p->aligned = 16;
    }
}

// VECTOR16 in place of what each tensor is aligned to, where that says it all.
static uint32_t take_vector16(struct tir_func *f)
{
    for (uint32_t i = 0; i < f->param_count; i++)
        if (is_tensor(&f->params[i]) && !f->params[i].aligned)
            return 0;
    for (uint32_t i = 0; i < f->param_count; i++)
        f->params[i].aligned = 0;
    return TIR_FACT_VECTOR16;
}

// The tensors that the operand v of a dot was loaded from are aligned to 4 bytes, which is what one
// asynchronous copy moves at least, and four scales. Packed scales lie in rows of 16 bytes, which
// tensor copies bring.
static bool align_loaded(struct tir_func *f, const struct tir_value *v)
{
    const struct tir_value *tensor =
        v->def && v->def->op == TIR_OP_LOAD ? tir_ref_base(v->def) : NULL;
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i].value == tensor && f->params[i].direction == TIR_IN) {
            uint32_t word = tir_scales_are_packed(v->type)
                                ? TIR_PACKED_SCALES
                                : TIR_MAX(4, tir_elems[tensor->type->elem].bits / 8);
            f->params[i].aligned = TIR_MAX(f->params[i].aligned, word);
            return true;
        }
    return false;
}

// The same where the elements are put together in a buffer that the operand is read from.
static bool align_operand(struct tir_func *f, const struct tir_value *v)
{
    while (v && v->def && (v->def->op == TIR_OP_PERMUTE || v->def->op == TIR_OP_RESHAPE))
        v = v->def->operands[0];
    bool any = v && align_loaded(f, v);
    const struct tir_inst *load = v && !any ? v->def : NULL;
    if (load && load->op == TIR_OP_LOAD && tir_ref_base(load)->type->space == TIR_SPACE_SHARED)
        tir_foreach_inst(inst, f)
            if (inst->op == TIR_OP_STORE && tir_ref_base(inst) == tir_ref_base(load))
                any |= align_loaded(f, inst->operands[TIR_STORE_VALUE]);
    return any;
}

// Of every dot, from operand `first` on two of them.
static bool align_operands(struct tir_func *f, uint32_t first)
{
    bool any = false;
    tir_foreach_inst(inst, f)
        for (uint32_t i = first; inst->op == TIR_OP_DOT && i < first + 2; i++)
            any |= align_operand(f, inst->operands[i]);
    return any;
}

// Of packed scales alone, whose rows have 16 bytes: only where the tensor begins is in question.
static void align_packed(struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        for (uint32_t i = TIR_DOT_SA; tir_is_scaled_dot(inst) && i <= TIR_DOT_SB; i++)
            if (tir_scales_are_packed(inst->operands[i]->type))
                align_operand(f, inst->operands[i]);
}

// Bulk copies that the program asks for need their tensors aligned, whatever else is known.
static void align_bulk(struct tir_func *f)
{
    tir_foreach_inst(inst, f) {
        bool copies = inst->op == TIR_OP_COPY_ASYNC || inst->op == TIR_OP_STORE_ASYNC;
        if (!copies || tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) != TIR_WORD_engine_bulk)
            continue;
        for (uint32_t i = 0; i < f->param_count; i++)
            if (f->params[i].value == tir_ref_base(inst))
                f->params[i].aligned = 16;
    }
}

// Scratch tensors lie densely from a multiple of 256 bytes on, so rows of a known length that is a
// multiple of 16 bytes are aligned whatever the launch gives.
static void align_scratch(struct tir_func *f)
{
    for (uint32_t i = 0; i < f->param_count; i++) {
        struct tir_param *p = &f->params[i];
        const struct tir_type *t = p->value->type;
        const struct tir_param_dim *inner = &p->dims[p->is_scratch ? t->rank - 1 : 0];
        if (p->is_scratch && inner->dim < 0 && inner->constant * tir_elems[t->elem].bits % 128 == 0)
            p->aligned = TIR_MAX(p->aligned, 16);
    }
}

// Would the products of f run on warpgroups, if every tensor were aligned?
static bool may_use_warpgroups(struct tir_context *cx, const struct tir_request *request,
                               struct tir_func *f)
{
    struct tir_pass_cx pass = {
        .scratch = &cx->scratch, .diags = &cx->diags, .target = &request->target};
    f->facts = ALL_FACTS;
    if (tir_may_use_warpgroups(f, &pass))
        return true;
    struct tir_func *padded = tir_func_clone(f); // as the layout pass will see it
    return tir_pass_pad(padded, &pass) == TIR_CHANGED && tir_may_use_warpgroups(padded, &pass);
}

static void add_product(struct tir_context *cx, const struct tir_request *request,
                        struct tir_kernel_code *kernel, struct tir_func *f, tir_formula cost)
{
    const struct tir_cost *card = &tir_costs[request->target.card];
    // The first configuration takes what no other does.
    const bool is_one_of_many = f->config > 1 && !f->own_count;
    const bool warpgroups = may_use_warpgroups(cx, request, f);
    // Known sizes leave nothing to ask at launch.
    const bool asks_tiles = !warpgroups && !request->options.dim_count;
    struct tir_func *edges = asks_tiles ? tir_func_clone(f) : tir_func_share(f);
    struct tir_func *words = NULL, *any = NULL, *wide = NULL;
    if (!is_one_of_many) {
        words = tir_func_share(edges);
        any = tir_func_share(edges);
    }
    align_inputs(&cx->scratch, edges);
    align_rows(cx, f);
    const uint32_t vectors = take_vector16(f);
    align_packed(edges);
    if (!is_one_of_many)
        wide = tir_func_share(warpgroups ? f : edges);
    align_operands(edges, TIR_DOT_SA); // wide takes scales that are not
    if (!vectors)
        align_operands(f, TIR_DOT_SA);
    if (asks_tiles)
        tir_compile_whole_tiles(f);
    add(cx, kernel, f, DENSE_FACTS | vectors, "", cost);
    add(cx, kernel, edges, DENSE_FACTS, "__edges", cost);
    if (is_one_of_many)
        return;
    add(cx, kernel, wide, TIR_FACT_UNIT_INNER | (warpgroups ? vectors : 0), "__wide", cost);
    if (align_operands(words, TIR_DOT_A))
        add(cx, kernel, words, DENSE_FACTS, "__words", times(cx, cost, card->by_words));
    add(cx, kernel, any, 0, "__any", times(cx, cost, card->by_elements));
}

// Have its tiles several rows?
static bool has_rows(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        for (uint32_t d = 0;
             inst->op == TIR_OP_TILES && d < tir_attr_find(inst, TIR_ATTR_by)->list_count; d++)
            if (tir_attr_find(inst, TIR_ATTR_by)->list[d] > 1)
                return true;
    return false;
}

static void add_others(struct tir_context *cx, const struct tir_request *request,
                       struct tir_kernel_code *kernel, struct tir_func *f, tir_formula cost)
{
    const bool is_one_of_many = f->config > 1 && !f->own_count;
    struct tir_func *narrow = NULL, *any = NULL, *wide = NULL;
    if (!is_one_of_many || kernel->is_step)
        narrow = tir_func_share(f);
    if (!is_one_of_many)
        any = tir_func_share(f);
    align_rows(cx, f);
    struct tir_func *edges = NULL, *askew = NULL;
    if (!is_one_of_many && !request->options.dim_count) {
        edges = tir_compile_edges(f);
        askew = edges ? NULL : tir_compile_askew(any);
    }
    const uint32_t vectors = take_vector16(f);
    const tir_formula by_elements = per_cent(cx, cost, BY_ELEMENTS);
    if (!is_one_of_many)
        wide = tir_func_share(f);
    add(cx, kernel, f, DENSE_FACTS | vectors, "", cost);
    if (edges)
        add(cx, kernel, edges, DENSE_FACTS, "__edges", cost);
    if (askew)
        add(cx, kernel, askew, DENSE_FACTS, "__askew",
            has_rows(askew) ? per_cent(cx, cost, ROWS_APART) : cost);
    if (narrow) // beside a product's __edges
        add(cx, kernel, narrow, TIR_FACT_INDEX32, "__narrow", by_elements);
    if (is_one_of_many)
        return;
    add(cx, kernel, wide, TIR_FACT_UNIT_INNER | vectors, "__wide", cost);
    add(cx, kernel, any, 0, "__any", by_elements);
}

void tir_compile_variants(struct tir_context *cx, const struct tir_request *request,
                          struct tir_kernel_code *kernel, struct tir_func *f, tir_formula cost)
{
    // A kernel that was written in a later form states its facts itself; a pass that is run alone
    // takes the program as it is.
    if (f->form != TIR_FORM_TILE || f->facts || request->options.run_pass.len || !has_tensor(f)) {
        // Of a program between passes the first configuration.
        if (!kernel->count && !kernel->sequences.len)
            kernel->variants[kernel->count++] = f;
        return;
    }
    align_bulk(f);
    align_scratch(f);
    if (tir_compile_has_dot(f))
        add_product(cx, request, kernel, f, cost);
    else
        add_others(cx, request, kernel, f, cost);
}

// What the sizes must be for which a kernel has one more variant.
static const char *sizes_of(const struct tir_func *f)
{
    const char *sizes = "tiles are whole";
    tir_foreach_inst(inst, f) {
        if (!tir_attr_find(inst, TIR_ATTR_begins)) // its tiles do not turn (askew.c)
            continue;
        if (!tir_attr_find(inst, TIR_ATTR_wraps))
            return "rows end a vector before their tiles and are an eighth of them";
        sizes = "rows are an eighth of their tiles";
    }
    return sizes;
}

void tir_compile_variant_describe(struct tir_text *out, const struct tir_func *f)
{
    static const struct {
        uint32_t fact;
        const char *text;
    } facts[] = {{TIR_FACT_INDEX32, "32-bit offsets suffice"},
                 {TIR_FACT_VECTOR16, "every tensor is aligned to 16 bytes"},
                 {TIR_FACT_UNIT_INNER, "every innermost stride is 1"}};
    const char *separator = "";
    if (f->own_count) {
        tir_text_add(out, STR("the conditions of the configuration hold"));
        separator = ", ";
    }
    if (f->when_count > f->own_count) {
        tir_text_format(out, "%s%s", separator, sizes_of(f));
        separator = ", ";
    }
    for (size_t i = 0; i < TIR_COUNT_OF(facts); i++)
        if (f->facts & facts[i].fact) {
            tir_text_format(out, "%s%s", separator, facts[i].text);
            separator = ", ";
        }
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct tir_param *p = &f->params[i];
        if (p->aligned)
            tir_text_format(out, "%s%s is aligned to %u bytes", separator, p->name, p->aligned);
        else if (p->begins)
            tir_text_format(out, "%s%s begins at %u bytes", separator, p->name, p->begins);
        separator = p->aligned || p->begins ? ", " : separator;
    }
}
