// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: scales of products with block_scale.
//
// tcgen05.cp copies blocks of 128 rows and 4 scales, which lie in shared memory as rows of 16
// bytes: scales s to s + 3 of the rows r, r + 32, r + 64 and r + 96 (tir_tmem_is_scales). A tensor
// copy does not make such rows of a tensor [rows, scales], whose scales of a row are 4 bytes or so.
// A warp or two do: they load them and store them in the blocks' layout.
//
//     role scale warps(1)      wait(empty[i]); store(slots[i], load(SA[m:+128, k / 32:+4]));
//                              fence(async_shared); arrive(full[i]);
//     role multiply warps(1)   wait(full[i]); tmem_copy(slots[i], scales[i]);
//                              gemm_tmem(a, b, sums, sa = scales[i], ...); commit(empty[i]);
//
// Packed scales lie in such blocks already. Tensor copies bring them with the factors, to the same
// slots, and no role arranges them.
//
// A slot has scales of its own in tensor memory, since a copy may overtake a product before it. The
// commit that frees a slot frees both. Products with scales in common have copies of their own.

#include "pass/role/tensor_memory.h"

#include "ir/walk.h"
#include "pass/receipt.h"

// Taking.

static const char *take_load(const struct tmem_plan *p, const struct tir_inst *load)
{
    const struct tir_value *tensor = tir_ref_base(load);
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    if (tmem_has_mask_or_pad(load))
        return "its scales have a mask or a pad";
    if (!tir_is_only_read(p->f, tensor))
        return "its scales are in no tensor that the kernel only reads";
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] < 0 || !tir_tmem_is_computable(p, tir_ref_indices(load)[d]))
            return "where its scales are depends on more than scalars";
    return NULL;
}

static const char *take_one(struct tmem_plan *p, uint32_t product, struct tir_value *v,
                            uint32_t which, uint32_t *at)
{
    bool is_turned = which == TIR_DOT_B; // a column of b has scales as a row of a has
    if (v->kind == TIR_VALUE_RESULT && v->def->op == TIR_OP_PERMUTE) {
        v = v->def->operands[0];
        is_turned = !is_turned;
    }
    if (v->kind != TIR_VALUE_RESULT || v->def->op != TIR_OP_LOAD)
        return "its scales are computed, not loaded";
    const bool is_packed = tir_scales_are_packed(v->type);
    const char *why = is_packed ? tir_tmem_take_load(p, v->def) : take_load(p, v->def);
    if (why)
        return why;
    is_turned &= !is_packed;
    struct tmem_operand *o = tir_tmem_operand_for(p, v);
    if (!o)
        return "it has too many operands";
    if (o->products && (!o->is_scales || o->is_turned != is_turned))
        return "its scales are operands in another way, too";
    o->is_scales = true;
    o->is_arranged = !is_packed;
    o->is_turned = is_turned;
    o->in_tmem = false;
    o->is_per_tile =
        !tir_is_made_in(p->loop, v) || (p->has_one_round && tir_tmem_is_invariant(p, v->def));
    o->products |= 1u << product;
    *at = (uint32_t)(o - p->operands);
    p->scale_warps |= !is_packed;
    return o->is_per_tile && !p->has_one_round ? "its scales are the same in all rounds" : NULL;
}

const char *tir_tmem_take_scales(struct tmem_plan *p, uint32_t product, struct tmem_term *term)
{
    const char *why = NULL;
    for (uint32_t which = TIR_DOT_A; !why && which <= TIR_DOT_B; which++)
        why = take_one(p, product, term->dot->operands[which ? TIR_DOT_SB : TIR_DOT_SA], which,
                       &term->scales[which]);
    return why;
}

// Slots.

struct tir_type tir_tmem_scales_type(const struct tmem_operand *o)
{
    const struct tir_type *t = o->tile->type;
    const int64_t rows = tir_scales_rows(t, !o->is_turned);
    const int64_t scales = tir_scales_count(t, !o->is_turned);
    return (struct tir_type){.elem = t->elem,
                             .rank = 2,
                             .shape = {tir_ceil_div(rows, TIR_TMEM_LANES) * TIR_TMEM_LANES,
                                       tir_ceil_div(scales, TIR_TMEM_SCALES) * TIR_TMEM_SCALES}};
}

static struct tir_type slots_type(const struct tmem_operand *o, enum tir_space space)
{
    const struct tir_type t = tir_tmem_scales_type(o);
    return (struct tir_type){.elem = t.elem,
                             .space = space,
                             .rank = 3,
                             .shape = {o->group->channel.slots, t.shape[0], t.shape[1]}};
}

void tir_tmem_build_scale_slots(struct tmem_plan *p, struct tir_builder *b, struct tmem_operand *o)
{
    enum { BLOCK = TIR_TMEM_LANES * TIR_TMEM_SCALES };
    struct tir_type t = slots_type(o, TIR_SPACE_SHARED);
    const uint32_t slots = (uint32_t)t.shape[0], rows = (uint32_t)t.shape[1],
                   words = (uint32_t)t.shape[2] / TIR_TMEM_SCALES;
    const struct tir_iter iters[] = {
        {slots, rows * words * TIR_TMEM_SCALES, TIR_AXIS_REG},
        {rows / TIR_TMEM_LANES, words * BLOCK, TIR_AXIS_REG},
        {TIR_TMEM_LANES / TIR_TMEM_SCALE_LANES, TIR_TMEM_SCALES, TIR_AXIS_REG},
        {TIR_TMEM_SCALE_LANES, BLOCK / TIR_TMEM_SCALE_LANES, TIR_AXIS_REG},
        {words, BLOCK, TIR_AXIS_REG},
        {TIR_TMEM_SCALES, 1, TIR_AXIS_REG},
    };
    const uint32_t first = slots == 1; // a dimension of 1 has no iterator
    t.layout = tir_layout_from_iters(p->types, t.rank, t.shape, iters + first,
                                     TIR_COUNT_OF(iters) - first, NULL, 0, 0);
    o->buffer = tir_tmem_alloc(p, b, tir_type_get(p->types, &t), "scale_slots");
}

// Does the product with this number read the scales?
static bool is_read(const struct tmem_operand *o, uint32_t product)
{
    return o->is_scales && (o->products >> product & 1);
}

int64_t tir_tmem_scale_columns(const struct tmem_plan *p)
{
    int64_t columns = 0;
    for (uint32_t i = 0; i < p->operand_count; i++)
        for (uint32_t k = 0; k < p->product_count; k++)
            if (is_read(&p->operands[i], k)) {
                const struct tir_type t = slots_type(&p->operands[i], TIR_SPACE_TMEM);
                columns += tir_tmem_columns(&t, false);
            }
    return columns;
}

void tir_tmem_build_scale_columns(struct tmem_plan *p, struct tir_builder *b,
                                  struct tir_value *base, int64_t *column)
{
    for (uint32_t i = 0; i < p->operand_count; i++)
        for (uint32_t k = 0; k < p->product_count; k++) {
            struct tmem_operand *o = &p->operands[i];
            if (!is_read(o, k))
                continue;
            const struct tir_type t = slots_type(o, TIR_SPACE_TMEM);
            struct tir_value *v =
                tir_build1(b, TIR_OP_TMEM_BUFFER, tir_type_get(p->types, &t), &base, 1);
            v->name = tir_intern_cstr(p->f->module->names, "scales");
            tir_set_int(p->f, v->def, TIR_ATTR_column, *column);
            tir_tmem_set_group(p, v->def);
            *column += tir_tmem_columns(&t, false);
            o->scales[k] = v;
        }
}

// The role that loads them.

static struct tir_value *sum(struct tir_builder *b, struct tir_value *x, struct tir_value *y)
{
    if (y->type != x->type)
        y = tir_build1(b, TIR_OP_CAST, x->type, &y, 1);
    return tmem_is_zero(y) ? x : tir_binary(b, TIR_OP_ADD, x, y);
}

// The block of scales from a row and a scale on, with the scales of a row in a row. It may reach
// beyond the tile, where nobody reads.
static struct tir_value *load_block(struct tmem_role *r, struct tir_builder *b,
                                    const struct tmem_operand *o, struct tir_value *const *from)
{
    const struct tmem_plan *p = r->p;
    const struct tir_inst *load = o->tile->def;
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    struct tir_type t = {.elem = o->tile->type->elem, .rank = 2};
    t.shape[o->is_turned] = TIR_TMEM_LANES;
    t.shape[!o->is_turned] = TIR_TMEM_SCALES;
    struct tir_value *operands[TIR_LOAD_MASK + 2 + TIR_MAX_RANK] = {NULL};
    struct tir_value **ref = operands + tir_fixed_count(load);
    int64_t list[TIR_MAX_RANK];
    ref[0] = tir_ref_base(load);
    for (uint32_t d = 0, of = 0; d < box->list_count; d++) {
        ref[1 + d] = tir_tmem_of(r, tir_ref_indices(load)[d]);
        list[d] = 0;
        if (!box->list[d])
            continue;
        ref[1 + d] = sum(b, ref[1 + d], from[of ^ o->is_turned]);
        list[d] = t.shape[of++];
    }
    struct tir_value *v =
        tir_build1(b, TIR_OP_LOAD, tir_type_get(p->types, &t), operands, load->operand_count);
    tir_set_list(p->f, v->def, TIR_ATTR_box, list, box->list_count);
    tir_copy_attr(p->f, v->def, load, TIR_ATTR_cache);
    return o->is_turned ? tir_transpose(b, v) : v;
}

static void move_block(struct tmem_role *r, struct tir_builder *b, const struct tmem_operand *o,
                       struct tir_value *slot, struct tir_value *row, struct tir_value *scale)
{
    struct tir_value *const from[] = {row, scale};
    struct tir_value *operands[] = {[TIR_STORE_VALUE] = load_block(r, b, o, from),
                                    [TIR_STORE_MASK] = NULL,
                                    o->buffer,
                                    slot,
                                    row,
                                    scale};
    struct tir_inst *store = tir_tmem_plain(b, TIR_OP_STORE, operands, TIR_COUNT_OF(operands));
    tir_set_list(b->f, store, TIR_ATTR_box, (int64_t[]){0, TIR_TMEM_LANES, TIR_TMEM_SCALES}, 3);
}

// A loop over multiples of step; its block is open. Of one round: none.
static struct tir_builder begin_blocks(struct tir_builder *b, int64_t end, int64_t step,
                                       struct tir_value **at)
{
    struct tir_func *f = b->f;
    *at = tir_const_index(f, 0);
    if (end == step)
        return *b;
    struct tir_value *bounds[] = {*at, tir_const_index(f, end), tir_const_index(f, step)};
    struct tir_inst *loop = tir_build(b, TIR_OP_FOR, bounds, TIR_FOR_INIT, NULL, 0, 1);
    tir_set_int(f, loop, TIR_ATTR_unroll, 1);
    *at = tir_block_add_arg(f, loop->regions[0], bounds[0]->type, NULL);
    struct tir_builder in = tir_builder_at_end(f, loop->regions[0]);
    in.span = b->span;
    return in;
}

static void end_blocks(struct tir_builder *in, const struct tir_builder *b)
{
    if (in->block != b->block)
        tir_build_yield(in, NULL, 0);
}

// Blocks are moved one after the other where each scale is loaded by itself, which takes many
// registers; else the assembler loads as many at a time as it has registers for.
static void arrange(struct tmem_role *r, struct tir_builder *b, const struct tmem_operand *o,
                    struct tir_value *slot)
{
    const struct tir_type t = tir_tmem_scales_type(o);
    const bool has_words =
        !o->is_turned && tir_tensor_alignment(b->f, tir_ref_base(o->tile->def)) >= TIR_TMEM_SCALES;
    b->span = o->tile->def->span;
    for (int64_t row = 0; has_words && row < t.shape[0]; row += TIR_TMEM_LANES)
        for (int64_t scale = 0; scale < t.shape[1]; scale += TIR_TMEM_SCALES)
            move_block(r, b, o, slot, tir_const_index(b->f, row), tir_const_index(b->f, scale));
    if (has_words)
        return;
    struct tir_value *row, *scale;
    struct tir_builder rows = begin_blocks(b, t.shape[0], TIR_TMEM_LANES, &row);
    struct tir_builder scales = begin_blocks(&rows, t.shape[1], TIR_TMEM_SCALES, &scale);
    move_block(r, &scales, o, slot, row, scale);
    end_blocks(&scales, &rows);
    end_blocks(&rows, b);
}

static bool is_arranged(const struct tmem_group *group)
{
    return group->is_arranged;
}

static void arrange_slot(struct tmem_role *r, struct tir_builder *b, const struct tmem_group *group,
                         const struct tmem_end *end)
{
    for (uint32_t i = 0; i < r->p->operand_count; i++)
        if (r->p->operands[i].group == group)
            arrange(r, b, &r->p->operands[i], end->at[0]);
    tir_tmem_fence(b, TIR_WORD_of_async_shared);
    tir_tmem_plain(b, TIR_OP_WARP_SYNC, NULL, 0); // a lane arrives for its warp
    tir_tmem_arrive(b, group->channel.full, end);
}

void tir_tmem_build_scale_role(struct tmem_plan *p, struct tir_builder *b)
{
    const struct tmem_producer scale = {"scale", p->compute_warps + 1 + p->product_count,
                                        p->scale_warps, is_arranged, arrange_slot};
    tir_tmem_build_producer(p, b, &scale);
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const struct tmem_operand *o = &p->operands[i];
        const struct tir_type t = tir_tmem_scales_type(o);
        if (o->is_arranged)
            tir_receipt_add(p->cx, TIR_TOPIC_COPY, o->tile->def->span,
                            "load of %s: scales, ahead, %lld bytes through registers, and "
                            "from shared to tensor memory by tcgen05.cp; %lld slots",
                            tir_ref_base(o->tile->def)->name, (long long)tir_type_bytes(&t),
                            (long long)o->group->channel.slots);
    }
}

// The role of a product.

void tir_tmem_copy_scales(struct tmem_role *r, struct tir_builder *b, const struct tmem_product *t)
{
    const struct tmem_plan *p = r->p;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const struct tmem_operand *o = &p->operands[i];
        const uint32_t product = (uint32_t)(t - p->products);
        if (!is_read(o, product))
            continue;
        struct tir_value *slot = tir_tmem_end(r, &o->group->channel)->at[0];
        struct tir_value *operands[] = {[TIR_TMEM_FROM] = tir_tmem_slot(b, o->buffer, slot),
                                        [TIR_TMEM_TO] = tir_tmem_slot(b, o->scales[product], slot)};
        tir_tmem_plain(b, TIR_OP_TMEM_COPY, operands, 2);
    }
}

struct tir_value *tir_tmem_scales_of(struct tmem_role *r, struct tir_builder *b,
                                     const struct tmem_product *t, const struct tmem_term *term,
                                     uint32_t which)
{
    const struct tmem_operand *o = &r->p->operands[term->scales[which]];
    const struct tir_type *tile = o->tile->type;
    struct tir_value *zero = tir_const_index(b->f, 0);
    struct tir_value *operands[] = {o->scales[t - r->p->products],
                                    tir_tmem_end(r, &o->group->channel)->at[0], zero, zero};
    struct tir_type type = {
        .elem = tile->elem,
        .space = TIR_SPACE_TMEM,
        .rank = 2,
        .shape = {tir_scales_rows(tile, !o->is_turned), tir_scales_count(tile, !o->is_turned)}};
    const int64_t box[] = {0, type.shape[0], type.shape[1]};
    struct tir_value *v = tir_build1(b, TIR_OP_VIEW, tir_type_get(r->p->types, &type), operands, 4);
    tir_set_list(b->f, v->def, TIR_ATTR_box, box, 3);
    return which == TIR_DOT_A ? v : tir_transpose(b, v);
}
