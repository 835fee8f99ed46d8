// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The explicit level: buffers in tensor memory, and products that accumulate there.
//
// A kernel has one allocation. The first declaration makes it, before which nothing can be in
// tensor memory, and each declaration makes it larger; lower_tile frees it at the end:
//
//     tmem acc: f32[128, 256];
// becomes
//     let slot: shared i32[1] = alloc();
//     if eq(warpid(), i32(0)) { tmem_alloc(slot, columns = 256); }
//     bar_sync();
//     let base: i32 = load(slot[0]);
//     let acc: tmem f32[128, 256] = tmem_buffer(base, column = 0);
//
// With cta_group(2) the pair of CTAs allocates together, and the barrier is the cluster's: the
// tensor core writes to both CTAs.
#include "front/lower/builtin.h"

static const struct tir_type *i32_type(struct lower *l)
{
    return tir_type_scalar(l->cx->types, TIR_I32);
}

static struct tir_value *address_in(struct lower *l, struct tir_value *slot)
{
    struct tir_value *operands[] = {
        [TIR_LOAD_PAD] = NULL, [TIR_LOAD_MASK] = NULL, slot, tir_const_index(l->f, 0)};
    const struct tir_type *type = i32_type(l);
    struct tir_inst *load = tir_build(&l->b, TIR_OP_LOAD, operands, 4, &type, 1, 0);
    tir_set_list(l->f, load, TIR_ATTR_box, (int64_t[]){0}, 1);
    return tir_result(load);
}

static void allocate(struct lower *l, bool is_pair)
{
    struct tir_type t = {.elem = TIR_I32, .space = TIR_SPACE_SHARED, .rank = 1, .shape = {1}};
    struct tir_value *slot = build_one(l, TIR_OP_ALLOC, tir_type_get(l->cx->types, &t), NULL, 0);
    struct tir_value *warp = build_one(l, TIR_OP_WARPID, i32_type(l), NULL, 0);
    struct tir_value *first = tir_binary(&l->b, TIR_OP_EQ, warp, tir_const_i32(l->f, 0));
    struct tir_inst *branch = tir_build(&l->b, TIR_OP_IF, &first, 1, NULL, 0, 2);
    struct tir_builder outer = l->b;
    l->b = tir_builder_at_end(l->f, branch->regions[0]);
    l->b.span = outer.span;
    l->tmem_alloc = tir_build(&l->b, TIR_OP_TMEM_ALLOC, &slot, 1, NULL, 0, 0);
    if (is_pair)
        tir_set_int(l->f, l->tmem_alloc, TIR_ATTR_cta_group, 2);
    tir_build_yield(&l->b, NULL, 0);
    l->b = tir_builder_at_end(l->f, branch->regions[1]);
    tir_build_yield(&l->b, NULL, 0);
    l->b = outer;
    if (is_pair) {
        tir_build(&l->b, TIR_OP_CLUSTER_ARRIVE, NULL, 0, NULL, 0, 0);
        tir_build(&l->b, TIR_OP_CLUSTER_WAIT, NULL, 0, NULL, 0, 0);
    } else {
        tir_build(&l->b, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
    }
    l->tmem_base = address_in(l, slot);
}

// Whether a buffer may be of a pair, or of one CTA.
static bool may_group(struct lower *l, const struct ast_stmt *s, bool is_pair)
{
    const uint32_t *cluster = l->f->cluster;
    const struct tir_span span = s->names.at[0].span;
    if (l->tmem_alloc && is_pair != (tir_attr_find(l->tmem_alloc, TIR_ATTR_cta_group) != NULL)) {
        lower_error(l, span, TIR_E_ROLE,
                    "all buffers of a kernel in tensor memory are of pairs of CTAs, or none");
        return false;
    }
    if (is_pair && (!cluster[0] || cluster[0] * cluster[1] * cluster[2] % 2)) {
        lower_error(l, span, TIR_E_ROLE,
                    "`cta_group(2)` takes clusters of an even number of CTAs: `cluster(2)`");
        return false;
    }
    return true;
}

static bool is_in_order(struct lower *l, const struct ast_stmt *s, const struct tir_type *t,
                        bool is_pair)
{
    const struct tir_span span = s->names.at[0].type->span;
    if (l->b.block != l->f->body || l->calls) {
        lower_error(l, s->names.at[0].span, TIR_E_ROLE,
                    "buffers in tensor memory are declared at the top level of their kernel, which "
                    "allocates it");
        return false;
    }
    if (t->rank < 2 || t->shape[t->rank - 2] < 1 || !tir_tmem_block(t->shape[t->rank - 2])) {
        lower_error(l, span, TIR_E_TYPE,
                    "tensor memory has %d lanes, so a buffer there has rows in blocks of as many, "
                    "or of half as many: %s[%d, n], or several of them",
                    TIR_TMEM_LANES, tir_elems[t->elem].name, TIR_TMEM_LANES);
        return false;
    }
    if (tir_tmem_is_scales(t) && !tir_tmem_columns(t, is_pair)) {
        lower_error(
            l, span, TIR_E_TYPE,
            "a buffer of scales in tensor memory has blocks of %d rows and %d scales, in %d "
            "columns at most: %s[%d, %d], or several of them",
            TIR_TMEM_LANES, TIR_TMEM_SCALES, TIR_TMEM_COLUMNS, tir_elems[t->elem].name,
            TIR_TMEM_LANES, TIR_TMEM_SCALES);
        return false;
    }
    if (!tir_tmem_columns(t, is_pair)) {
        lower_error(l, span, TIR_E_TYPE,
                    "the rows of a buffer in tensor memory have whole columns of 32 bits, %d at "
                    "most",
                    TIR_TMEM_COLUMNS);
        return false;
    }
    const int64_t columns = tir_tmem_columns(t, is_pair);
    if (l->tmem_columns + columns > TIR_TMEM_COLUMNS) {
        lower_error(l, span, TIR_E_TYPE,
                    "tensor memory has %d columns; this buffer takes %lld, those before it %lld",
                    TIR_TMEM_COLUMNS, (long long)columns, (long long)l->tmem_columns);
        return false;
    }
    return true;
}

// Where the elements of a buffer are (pass/lower/tmem.c), as addresses from its first column on.
// NULL: they have none of their own, or no layout has them.
static const struct tir_layout *layout_of(struct lower *l, const struct tir_type *t, bool is_pair)
{
    enum { LANE = 1 << TMEM_LANE_SHIFT };
    const uint32_t rank = t->rank, rows = (uint32_t)t->shape[rank - 2];
    const uint32_t n = (uint32_t)t->shape[rank - 1], block = (uint32_t)tir_tmem_block(rows);
    const bool folds = tir_tmem_folds(rows, is_pair), half = block != TIR_TMEM_LANES && !folds;
    struct tir_layout out = {.rank = rank};
    uint32_t i = 0;
    if (tir_elems[t->elem].bits != 32 || (half && rows != block))
        return NULL;
    memcpy(out.shape, t->shape, sizeof out.shape);
    for (uint32_t d = 0; d + 2 < rank; d++) {
        struct tir_type part = *t;
        for (uint32_t k = 0; k <= d; k++)
            part.shape[k] = 1;
        out.first[d] = i;
        out.iters[i++] = (struct tir_iter){
            (uint32_t)t->shape[d], (uint32_t)tir_tmem_columns(&part, is_pair), TIR_AXIS_REG};
    }
    out.first[rank - 2] = i;
    out.iters[i++] = half ? (struct tir_iter){4, 32 * LANE, TIR_AXIS_REG}
                          : (struct tir_iter){rows / block, folds ? n / 2 : n, TIR_AXIS_REG};
    out.iters[i++] = (struct tir_iter){half ? 16 : block, LANE, TIR_AXIS_REG};
    out.first[rank - 1] = i;
    if (folds)
        out.iters[i++] = (struct tir_iter){2, TIR_TMEM_LANES / 2 * LANE, TIR_AXIS_REG};
    out.iters[i++] = (struct tir_iter){folds ? n / 2 : n, 1, TIR_AXIS_REG};
    out.first[rank] = out.iter_count = i;
    return tir_layout_get(l->cx->types, &out);
}

// S[(128, 64) : (1@TLane, 1@TCol)] + 32@TCol
static const char *layout_text(struct lower *l, const struct tir_layout *layout)
{
    struct tir_text text;
    tir_text_init(&text, l->arena, 0);
    tir_text_add(&text, STR("S[("));
    for (uint32_t i = 0; i < layout->iter_count; i++)
        tir_text_format(&text, "%s%u", i ? ", " : "", layout->iters[i].extent);
    tir_text_add(&text, STR(") : ("));
    for (uint32_t i = 0; i < layout->iter_count; i++) {
        const uint32_t stride = layout->iters[i].stride, lanes = stride >> TMEM_LANE_SHIFT;
        tir_text_format(&text, "%s%u@%s", i ? ", " : "", lanes ? lanes : stride,
                        lanes ? "TLane" : "TCol");
    }
    tir_text_format(&text, ")] + %lld@TCol", (long long)l->tmem_columns);
    return text.ptr;
}

// A layout that the type states is a claim about where the buffer lies.
static bool is_where_stated(struct lower *l, const struct ast_stmt *s, const struct tir_type *t,
                            const struct tir_layout *stated, bool is_pair)
{
    const struct ast_layout *from = s->names.at[0].type->layout;
    const struct tir_layout *is = layout_of(l, t, is_pair);
    int64_t offset = l->tmem_columns;
    if (!stated || (from->offset && !const_int(l, from->offset, "a column", &offset)))
        return !stated;
    if (is == stated && offset == l->tmem_columns)
        return true;
    if (is)
        lower_error(l, from->span, TIR_E_TYPE, "this buffer lies in %s", layout_text(l, is));
    else
        lower_error(l, from->span, TIR_E_TYPE,
                    "%s has no layout to state: elements of 32 bits have one, in 64 rows or blocks "
                    "of 128",
                    lower_type_name(l, t));
    return false;
}

struct tir_value *lower_tmem(struct lower *l, const struct ast_stmt *s, const struct tir_type *type)
{
    enum { LEAST = 32 };
    struct options o;
    if (!lower_options(l, s, &o))
        return NULL;
    const bool is_pair = o.value[AST_OPTION_BUFFER_cta_group] == 2;
    const struct tir_layout *stated = type->layout;
    type = stated ? tir_type_with_layout(l->cx->types, type, NULL) : type;
    if (!is_in_order(l, s, type, is_pair) || !may_group(l, s, is_pair) ||
        !is_where_stated(l, s, type, stated, is_pair))
        return NULL;
    if (!l->tmem_alloc)
        allocate(l, is_pair);
    struct tir_value *v = build_one(l, TIR_OP_TMEM_BUFFER, type, &l->tmem_base, 1);
    tir_set_int(l->f, v->def, TIR_ATTR_column, l->tmem_columns);
    if (is_pair)
        tir_set_int(l->f, v->def, TIR_ATTR_cta_group, 2);
    l->tmem_columns += tir_tmem_columns(type, is_pair);
    int64_t columns = LEAST;
    while (columns < l->tmem_columns)
        columns *= 2;
    tir_set_int(l->f, l->tmem_alloc, TIR_ATTR_columns, columns);
    return v;
}

bool lower_is_tmem(struct lower *l, const struct ast_expr *e)
{
    if (!lower_is_buffer_expr(l, e))
        return false;
    const struct ast_expr *name = e->kind == AST_INDEX ? e->base : e;
    return scope_find(l, name->name)->val.ir->type->space == TIR_SPACE_TMEM;
}

// copy_async(t, s), from shared to tensor memory
bool lower_copy_tmem(struct lower *l, const struct call *c)
{
    struct tir_value *operands[2];
    if (c->positional != 2 || c->e->args.len != 2) {
        lower_error(
            l, c->e->span, TIR_E_ARGUMENTS,
            "a copy to tensor memory is `copy_async(t, s)` and no more: a `commit` after it "
            "tells when it is done");
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct val v = lower_part(l, call_arg(c, i));
        if (v.kind != VAL_IR) {
            if (v.kind != VAL_POISON)
                lower_error(l, call_arg(c, i)->span, TIR_E_TYPE,
                            "what is copied to tensor memory is a shared buffer, not %s",
                            lower_val_name(l, v));
            return false;
        }
        operands[i ? TIR_TMEM_FROM : TIR_TMEM_TO] = v.ir;
    }
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_TMEM_COPY, operands, 2, NULL, 0, 0);
    tir_str why = STR("");
    if (tir_infer(l->m, inst, NULL, &why))
        return true;
    lower_error(l, c->e->span, TIR_E_TYPE, "`copy_async`: " STR_FMT, STR_ARG(why));
    tir_remove(inst);
    return false;
}

// An operand that is a buffer or a part of one.
static struct tir_value *buffer_operand(struct lower *l, const struct ast_expr *e)
{
    struct val v = lower_part(l, e);
    if (v.kind == VAL_IR && tir_type_is_buffer(v.ir->type))
        return v.ir;
    if (v.kind != VAL_POISON)
        lower_error(l, e->span, TIR_E_DOT,
                    "`gemm_async` into tensor memory takes buffers in shared memory, or the first "
                    "factor and scales from tensor memory, not %s",
                    lower_val_name(l, v));
    return NULL;
}

bool lower_gemm_tmem(struct lower *l, const struct call *c)
{
    const struct ast_expr *accumulate = builtin_named(c, NAMED_accumulate);
    static const uint32_t places[] = {TIR_DOT_ACC, TIR_DOT_A, TIR_DOT_B, TIR_GEMM_SA, TIR_GEMM_SB};
    struct tir_value *operands[TIR_GEMM_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < c->positional; i++)
        if (!(operands[places[i]] = buffer_operand(l, call_arg(c, i))))
            return false;
    if (accumulate) {
        operands[TIR_GEMM_ACCUMULATE] =
            convert_elem(l, accumulate->span, lower_expr(l, accumulate), TIR_BOOL);
        if (!operands[TIR_GEMM_ACCUMULATE])
            return false;
    }
    struct tir_inst *inst =
        tir_build(&l->b, TIR_OP_GEMM_TMEM, operands, TIR_GEMM_OPERANDS, NULL, 0, 0);
    tir_str why = STR("");
    if (tir_infer(l->m, inst, NULL, &why))
        return true;
    lower_error(l, c->e->span, TIR_E_DOT, "`gemm_async`: " STR_FMT, STR_ARG(why));
    tir_remove(inst);
    return false;
}
