// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Aliases: the bytes of a buffer, or of a part of one, as a buffer of another type.
//
//     let v: shared u32[128, 32] = alias(As[s]);       // As: bf16[4, 128, 64] in swizzle(128)
// becomes an alias of all of As, of which v is a part:
//     let a: shared u32[4, 128, 32] in S[(4, 128, 32) : (4096, 32, 1)] swizzle(128) = alias(As);
//     let v: shared u32[128, 32] = view(a[s, 0:+128, 0:+32]);
//
// So indices that are known at run time choose a slot, and the bytes of each alias are known.
// Without a stated layout the elements of the part are a sequence, row by row, which is cut anew;
// with one, it says where in the bytes of the part an element is.
#include "front/lower/lower.h"

struct chosen { // of one dimension of the buffer: an element, or `box` elements
    struct tir_value *start;
    int64_t box; // 0: an element, and the part has no such dimension
};

struct part {
    struct tir_span span;
    struct tir_value *buffer; // allocated, or an alias
    const struct tir_layout *memory;
    uint32_t bytes; // of an element
    struct chosen dims[TIR_MAX_RANK];
    uint32_t slots;                  // dimensions in front, of which an index chooses
    int64_t first;                   // element of a slot
    const struct tir_layout *layout; // of what is taken of a slot
};

static const char *name_of(const struct tir_value *v)
{
    return v->name ? v->name : "the buffer";
}

// Of two starts, one of which is mostly 0.
static struct tir_value *sum_of(struct lower *l, struct tir_value *a, struct tir_value *b)
{
    int64_t x, y;
    const bool a_known = tir_is_const_int(a, &x), b_known = tir_is_const_int(b, &y);
    if (a_known && b_known)
        return tir_const_index(l->f, x + y);
    if (a_known && x == 0)
        return b;
    if (b_known && y == 0)
        return a;
    return tir_binary(&l->b, TIR_OP_ADD, convert_elem(l, l->b.span, val_ir(a), TIR_I64),
                      convert_elem(l, l->b.span, val_ir(b), TIR_I64));
}

// Through the parts that it is of. NULL: not of a buffer with an address of its own.
static bool find_buffer(struct lower *l, struct tir_value *v, struct part *p)
{
    for (uint32_t d = 0; d < v->type->rank; d++)
        p->dims[d] = (struct chosen){tir_const_index(l->f, 0), v->type->shape[d]};
    for (; v->def && v->def->op == TIR_OP_VIEW; v = tir_ref_base(v->def)) {
        const struct tir_attr *box = tir_attr_find(v->def, TIR_ATTR_box);
        struct chosen inner[TIR_MAX_RANK];
        memcpy(inner, p->dims, sizeof(inner));
        for (uint32_t d = 0, at = 0; d < box->list_count; d++) {
            struct tir_value *start = tir_ref_indices(v->def)[d];
            p->dims[d] = box->list[d] ? inner[at++] : (struct chosen){start, 0};
            if (box->list[d])
                p->dims[d].start = sum_of(l, start, p->dims[d].start);
        }
    }
    const bool in_tmem = v->def && v->def->op == TIR_OP_TMEM_BUFFER;
    if (in_tmem || (v->def && tir_is_allocated(v->def) && v->type->elem != TIR_MBARRIER)) {
        p->buffer = v;
        return true;
    }
    lower_error(l, p->span, TIR_E_TYPE,
                "`alias` is of a buffer that the kernel declares, or of a part of one, not of %s",
                lower_type_name(l, v->type));
    return false;
}

// Dimension d of what is taken of each slot: its iterators, and where it begins.
static bool take_dim(struct lower *l, struct part *p, uint32_t d, struct tir_layout *out)
{
    const struct tir_layout *m = p->memory;
    const uint32_t count = m->first[d + 1] - m->first[d];
    const int64_t box = p->dims[d].box, size = TIR_MAX(box, 1);
    int64_t start;
    if (!tir_is_const_int(p->dims[d].start, &start)) {
        lower_error(
            l, p->span, TIR_E_SLICE,
            "an alias begins where the compiler knows; only an index in front of all slices "
            "chooses at run time, as in As[s]");
        return false;
    }
    if (start < 0 || start + size > m->shape[d]) {
        lower_error(l, p->span, TIR_E_SLICE,
                    "elements %lld to %lld of dimension %u of %s, which has size %lld",
                    (long long)start, (long long)(start + size - 1), d, name_of(p->buffer),
                    (long long)m->shape[d]);
        return false;
    }
    if (box && size != m->shape[d] && count > 1) {
        lower_error(l, p->span, TIR_E_SLICE,
                    "dimension %u of %s lies in several pieces; an alias has all of it, of which "
                    "parts may be taken",
                    d, name_of(p->buffer));
        return false;
    }
    int64_t coord[TIR_MAX_RANK] = {0};
    coord[d] = start;
    p->first += tir_layout_find(m, coord).at[TIR_AXIS_REG];
    if (!box)
        return true;
    out->shape[out->rank++] = box;
    for (uint32_t i = m->first[d]; i < m->first[d + 1]; i++) {
        out->iters[out->iter_count] = m->iters[i];
        if (size != m->shape[d])
            out->iters[out->iter_count].extent = (uint32_t)box;
        out->iter_count++;
    }
    out->first[out->rank] = out->iter_count;
    return true;
}

static bool find_part(struct lower *l, struct part *p)
{
    const struct tir_type *t = p->buffer->type;
    int64_t known;
    p->bytes = tir_elems[t->elem].bits / 8;
    p->memory =
        t->layout ? t->layout : tir_layout_memory(l->cx->types, t->rank, t->shape, p->bytes * 8, 0);
    for (uint32_t d = 0; d < t->rank; d++)
        if (!p->dims[d].box && !tir_is_const_int(p->dims[d].start, &known))
            p->slots = d + 1;
    for (uint32_t d = 0; d < p->slots; d++)
        if (p->dims[d].box)
            p->slots = 0; // and take_dim says that an index is not known
    struct tir_layout out = {.swizzle = p->memory->swizzle};
    for (uint32_t d = p->slots; d < t->rank; d++)
        if (!take_dim(l, p, d, &out))
            return false;
    p->layout = tir_layout_get(l->cx->types, &out);
    return p->layout != NULL;
}

// The layout of the alias of one slot, in its own elements.
static const struct tir_layout *layout_in(struct lower *l, const struct part *p,
                                          const struct tir_type *t)
{
    const uint32_t bytes = tir_elems[t->elem].bits / 8;
    const int64_t all = tir_buffer_bytes(t), of = (int64_t)p->bytes;
    const int64_t count = tir_layout_size(p->layout, TIR_AXIS_REG);
    struct tir_type part = {.elem = p->buffer->type->elem, .rank = p->layout->rank};
    memcpy(part.shape, p->layout->shape, sizeof part.shape);
    if (tir_type_bytes(&part) != (t->layout ? all : tir_type_bytes(t))) {
        lower_error(l, p->span, TIR_E_SHAPE_MISMATCH, "%s has %lld bytes, and %s has %lld",
                    lower_type_name(l, t), (long long)(t->layout ? all : tir_type_bytes(t)),
                    lower_type_name(l, tir_type_get(l->cx->types, &part)),
                    (long long)tir_type_bytes(&part));
        return NULL;
    }
    if (!t->layout) {
        const struct tir_layout *derived =
            tir_layout_recast(l->cx->types, p->layout, p->bytes, t->rank, t->shape, bytes);
        if (!derived) {
            lower_error(l, p->span, TIR_E_TYPE,
                        "the layout of %s has no elements of %u bytes in rows of %lld: they lie in "
                        "several pieces",
                        name_of(p->buffer), bytes, (long long)t->shape[t->rank - 1]);
            lower_note(l, p->span,
                       "a layout after the type says where in the bytes of the part an element "
                       "is: `%s in row_major`",
                       lower_type_name(l, t));
        }
        return derived;
    }
    // A swizzle moves what lies in 128 bytes.
    const int64_t unit = p->memory->swizzle ? 128 : 1;
    if (count * of != all || p->first * of % unit || all % unit) {
        lower_error(l, p->span, TIR_E_TYPE,
                    "this part of %s is not %lld bytes in one piece, in which a layout could say "
                    "where an element is",
                    name_of(p->buffer), (long long)all);
        return NULL;
    }
    return t->layout;
}

// The same in each slot.
static const struct tir_type *type_with_slots(struct lower *l, const struct part *p,
                                              const struct tir_type *t,
                                              const struct tir_layout *slot)
{
    const uint32_t bytes = tir_elems[t->elem].bits / 8;
    const uint32_t alignment = tir_layout_alignment(slot);
    struct tir_layout out = {.rank = p->slots + t->rank, .swizzle = slot->swizzle};
    if (out.rank > TIR_MAX_RANK) {
        lower_error(l, p->span, TIR_E_RANK, "the alias has more than %d dimensions with its slots",
                    TIR_MAX_RANK);
        return NULL;
    }
    bool fits = true;
    for (uint32_t d = 0; d < p->slots; d++) {
        out.shape[d] = p->memory->shape[d];
        for (uint32_t i = p->memory->first[d]; i < p->memory->first[d + 1]; i++) {
            struct tir_iter it = p->memory->iters[i];
            const uint64_t step = (uint64_t)it.stride * p->bytes;
            fits = fits && step % alignment == 0 && step % bytes == 0 &&
                   out.iter_count < TIR_MAX_ITERS;
            it.stride = (uint32_t)(step / bytes);
            if (fits)
                out.iters[out.iter_count++] = it;
        }
        out.first[d + 1] = out.iter_count;
    }
    fits = fits && out.iter_count + slot->iter_count <= TIR_MAX_ITERS;
    for (uint32_t d = 0; fits && d < t->rank; d++) {
        out.shape[p->slots + d] = t->shape[d];
        for (uint32_t i = slot->first[d]; i < slot->first[d + 1]; i++)
            out.iters[out.iter_count++] = slot->iters[i];
        out.first[p->slots + d + 1] = out.iter_count;
    }
    const struct tir_layout *layout = fits ? tir_layout_get(l->cx->types, &out) : NULL;
    if (!layout) {
        lower_error(l, p->span, TIR_E_TYPE,
                    "%s begins at a multiple of %u bytes, as not every slot of %s does",
                    lower_type_name(l, t), alignment, name_of(p->buffer));
        return NULL;
    }
    struct tir_type all = {.elem = t->elem, .space = t->space, .rank = out.rank, .layout = layout};
    memcpy(all.shape, out.shape, sizeof all.shape);
    return tir_type_get(l->cx->types, &all);
}

static struct tir_value *slot_of(struct lower *l, const struct part *p, struct tir_value *alias,
                                 const struct tir_type *t, const struct tir_layout *slot)
{
    struct tir_value *operands[1 + TIR_MAX_RANK] = {alias};
    int64_t box[TIR_MAX_RANK] = {0};
    if (!p->slots)
        return alias;
    for (uint32_t d = 0; d < alias->type->rank; d++) {
        operands[1 + d] = d < p->slots ? p->dims[d].start : tir_const_index(l->f, 0);
        box[d] = d < p->slots ? 0 : alias->type->shape[d];
    }
    const struct tir_type *type = tir_type_with_layout(l->cx->types, t, slot);
    struct tir_inst *view =
        tir_build(&l->b, TIR_OP_VIEW, operands, 1 + alias->type->rank, &type, 1, 0);
    tir_set_list(l->f, view, TIR_ATTR_box, box, alias->type->rank);
    return tir_result(view);
}

static struct tir_value *build_alias(struct lower *l, struct part *p, const struct tir_type *t)
{
    const struct tir_layout *slot = layout_in(l, p, t);
    const struct tir_type *all = slot ? type_with_slots(l, p, t, slot) : NULL;
    if (!all)
        return NULL;
    struct tir_value *alloc = p->buffer;
    int64_t offset = p->first * p->bytes;
    if (alloc->def->op == TIR_OP_ALIAS) {
        offset += tir_attr_int(alloc->def, TIR_ATTR_offset, 0);
        alloc = alloc->def->operands[0];
    }
    if (offset % tir_layout_alignment(slot)) {
        lower_error(l, p->span, TIR_E_TYPE,
                    "%s begins at a multiple of %u bytes, and this part of %s at byte %lld",
                    lower_type_name(l, t), tir_layout_alignment(slot), name_of(p->buffer),
                    (long long)offset);
        return NULL;
    }
    if (t->space == TIR_SPACE_LOCAL && tir_buffer_bytes(t) != tir_buffer_bytes(alloc->type)) {
        lower_error(l, p->span, TIR_E_TYPE, "an alias of a local buffer has all of its bytes");
        return NULL;
    }
    struct tir_value *v = build_one(l, TIR_OP_ALIAS, all, &alloc, 1);
    if (p->slots)
        v->name = alloc->name; // the part of it has a name of its own
    if (offset)
        tir_set_int(l->f, v->def, TIR_ATTR_offset, offset);
    return slot_of(l, p, v, t, slot);
}

// Tensor memory has one layout: rows are lanes, and the bytes of a row lie in its columns. So the
// alias is another buffer in the same columns, as large as the declared one, and a part of it.

static bool same_rows(const struct tir_type *a, const struct tir_type *b)
{
    bool same = a->rank == b->rank && a->rank >= 2;
    for (uint32_t d = 0; same && d + 1 < a->rank; d++)
        same = a->shape[d] == b->shape[d];
    return same && !tir_tmem_is_scales(a) && !tir_tmem_is_scales(b);
}

// The column of the alias at which column `start` of the buffer is; NULL: none begins there.
static struct tir_value *column_at(struct lower *l, struct tir_value *start, uint32_t from,
                                   uint32_t to)
{
    int64_t known;
    if (tir_is_const_int(start, &known))
        return known * from % to ? NULL : tir_const_index(l->f, known * from / to);
    if (from % to)
        return NULL;
    return tir_binary(&l->b, TIR_OP_MUL, convert_elem(l, l->b.span, val_ir(start), TIR_I64),
                      tir_const_index(l->f, from / to));
}

static struct tir_value *alias_of_columns(struct lower *l, const struct part *p,
                                          const struct tir_type *of, const struct tir_type *t)
{
    const struct tir_type *whole = p->buffer->type;
    const uint32_t from = tir_elems[whole->elem].bits, to = tir_elems[t->elem].bits;
    const uint32_t last = whole->rank - 1;
    struct tir_type all = *whole;
    all.elem = t->elem;
    all.shape[last] = whole->shape[last] * from / to;
    struct tir_value *start = column_at(l, p->dims[last].start, from, to);
    const bool is_pair = tir_tmem_is_pair(p->buffer);
    if (!same_rows(of, t) || of->shape[of->rank - 1] * from != t->shape[t->rank - 1] * to ||
        whole->shape[last] * from % to || !start || !tir_tmem_columns(&all, is_pair)) {
        lower_error(l, p->span, TIR_E_SHAPE_MISMATCH,
                    "an alias in tensor memory has the rows of its buffer, and as many bytes in "
                    "each, from a whole element on: %s is none of %s",
                    lower_type_name(l, t), lower_type_name(l, of));
        return NULL;
    }
    struct tir_inst *declared = p->buffer->def;
    struct tir_value *v =
        build_one(l, TIR_OP_TMEM_BUFFER, tir_type_get(l->cx->types, &all), declared->operands, 1);
    tir_set_int(l->f, v->def, TIR_ATTR_column, tir_attr_int(declared, TIR_ATTR_column, 0));
    if (is_pair)
        tir_set_int(l->f, v->def, TIR_ATTR_cta_group, 2);
    v->name = p->buffer->name;
    struct tir_value *operands[1 + TIR_MAX_RANK] = {v};
    int64_t box[TIR_MAX_RANK];
    for (uint32_t d = 0; d <= last; d++) {
        operands[1 + d] = d == last ? start : p->dims[d].start;
        box[d] = d == last ? t->shape[t->rank - 1] : p->dims[d].box;
    }
    struct tir_inst *view = tir_build(&l->b, TIR_OP_VIEW, operands, 2 + last, &t, 1, 0);
    tir_set_list(l->f, view, TIR_ATTR_box, box, 1 + last);
    return tir_result(view);
}

bool lower_alias(struct lower *l, const struct call *c, val_list *out)
{
    const struct tir_span span = c->e->span;
    const struct tir_type *t = c->stated_count == 1 ? c->stated[0] : NULL;
    if (!t) {
        lower_error(l, span, TIR_E_TYPE,
                    "an alias has the type that its `let` states: `let v: shared u32[128, 32] = "
                    "alias(As);`");
        return false;
    }
    if (c->positional != 1 || c->e->args.len != 1) {
        lower_error(l, span, TIR_E_ARGUMENTS, "`alias` takes one buffer, or a part of one");
        return false;
    }
    const struct ast_expr *e = c->e->args.at[0].value;
    const struct val v = lower_part(l, e);
    if (v.kind == VAL_POISON)
        return false;
    if (v.kind != VAL_IR || !tir_type_is_buffer(v.ir->type) || v.ir->type->space != t->space ||
        t->elem == TIR_MBARRIER || !t->rank) {
        lower_error(l, e->span, TIR_E_TYPE, "%s is no alias of %s", lower_type_name(l, t),
                    lower_val_name(l, v));
        return false;
    }
    struct part p = {.span = span};
    struct tir_value *alias = NULL;
    if (t->space == TIR_SPACE_TMEM && t->layout) {
        lower_error(l, span, TIR_E_TYPE,
                    "an alias in tensor memory lies where its buffer does, and states no layout");
        return false;
    }
    if (find_buffer(l, v.ir, &p) && t->space == TIR_SPACE_TMEM)
        alias = alias_of_columns(l, &p, v.ir->type, t);
    else if (p.buffer && find_part(l, &p))
        alias = build_alias(l, &p, t);
    if (alias)
        vec_push(l->arena, out, val_ir(alias));
    return alias;
}
