// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, sums of 16 bits in flight: two of a row share a register while products compute them.
//
//     let d: f16[64, 128] in L = gemm_async(a, b, acc);
//     let r: f16[64, 128] in L = await(d);
// becomes
//     let p: i32[64, 64] in L2 = bitcast(acc);
//     let d: i32[64, 64] in L2 = gemm_async(a, b, p);
//     let q: i32[64, 64] in L2 = await(d);
//     let r: f16[64, 128] in L = bitcast(q);
//
// where L2 is L without its innermost pair of registers. Nothing may touch the registers between a
// product and its wait, so what a loop carries in flight goes round it packed.

#include "ir/walk.h"
#include "pass/lower/lower.h"

struct packed {
    struct tir_value *v;
    const struct tir_type *halves; // its type before
};

struct packer {
    struct tir_func *f;
    struct tir_arena *scratch;
    struct tir_map all;           // value -> struct packed
    VEC(struct tir_value *) work; // packed, and what follows from it is still to be done
};

static bool is_packed(const struct packer *p, const struct tir_value *v)
{
    return tir_map_get(&p->all, tir_map_key(v));
}

static bool ends_in_pairs(const struct tir_layout *l)
{
    if (!l || l->rank != 2 || l->first[2] == l->first[1])
        return false;
    const struct tir_iter *last = &l->iters[l->iter_count - 1];
    return last->axis == TIR_AXIS_REG && last->extent == 2 && last->stride == 1;
}

const struct tir_layout *tir_lower_packed_layout(struct tir_types *types,
                                                 const struct tir_layout *l)
{
    struct tir_layout packed = *l;
    packed.iter_count--;
    packed.first[2]--;
    packed.shape[1] /= 2;
    for (uint32_t i = 0; i < packed.iter_count; i++)
        if (packed.iters[i].axis == TIR_AXIS_REG)
            packed.iters[i].stride /= 2;
    return tir_layout_get(types, &packed);
}

static const struct tir_type *packed_type(struct packer *p, const struct tir_type *t)
{
    struct tir_types *types = p->f->module->types;
    struct tir_type to = {.elem = TIR_I32, .rank = 2, .shape = {t->shape[0], t->shape[1] / 2}};
    return tir_type_with_layout(types, tir_type_get(types, &to),
                                tir_lower_packed_layout(types, t->layout));
}

static void pack(struct packer *p, struct tir_value *v)
{
    if (is_packed(p, v) || !ends_in_pairs(v->type->layout))
        return;
    struct packed *packed = arena_new(p->scratch, struct packed);
    *packed = (struct packed){v, v->type};
    v->type = packed_type(p, v->type);
    tir_map_set(&p->all, tir_map_key(v), packed);
    vec_push(p->scratch, &p->work, v);
}

// The value that operand i of inst becomes under another name; NULL: none.
static struct tir_value *joins(const struct tir_inst *inst, uint32_t i)
{
    const struct tir_inst *owner = inst->block->owner;
    switch (inst->op) {
    case TIR_OP_GEMM_ASYNC:
        return i == TIR_DOT_ACC ? inst->results[0] : NULL;
    case TIR_OP_AWAIT:
        return inst->results[i];
    case TIR_OP_FOR:
    case TIR_OP_TILES:
    case TIR_OP_WHILE:
        return i < tir_carried_at(inst) ? NULL : inst->results[i - tir_carried_at(inst)];
    case TIR_OP_YIELD:
        if (!owner || i >= owner->result_count ||
            (owner->op == TIR_OP_WHILE && inst->block == owner->regions[0]))
            return NULL;
        return owner->results[i];
    default:
        return NULL;
    }
}

// Computed where products are in flight, or handed on: not by an operation of its own.
static bool may_fly(const struct tir_value *v)
{
    return v->kind == TIR_VALUE_ARG ||
           (v->def && (tir_carries(v->def) || v->def->op == TIR_OP_IF ||
                       v->def->op == TIR_OP_AWAIT || v->def->op == TIR_OP_GEMM_ASYNC));
}

// Packs what v is by other names.
static void follow(struct packer *p, struct tir_value *v)
{
    struct tir_inst *owner = v->def ? v->def : v->block->owner;
    if (tir_carries(owner)) {
        uint32_t i = v->index;
        if (!v->def)
            i -= v->block->arg_count - owner->result_count;
        pack(p, owner->results[i]);
        for (uint32_t r = 0; r < owner->region_count; r++) {
            struct tir_block *block = owner->regions[r];
            pack(p, block->args[block->arg_count - owner->result_count + i]);
        }
    }
    tir_foreach_inst(inst, p->f)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            struct tir_value *x = inst->operands[i], *name = x ? joins(inst, i) : NULL;
            if (name && x == v)
                pack(p, name);
            else if (name == v && may_fly(x))
                pack(p, x);
        }
}

static struct tir_value *build_bitcast(struct packer *p, struct tir_builder *b, struct tir_value *v,
                                       const struct tir_type *type)
{
    if (v->kind == TIR_VALUE_CONST && v->constant.i == 0) // the bits of either kind
        return tir_const_int(p->f, type, 0);
    return tir_build1(b, TIR_OP_BITCAST, type, &v, 1);
}

// Other instructions use a packed value as two halves.
static void unpack_uses(struct packer *p, struct tir_value *v, const struct tir_type *halves)
{
    struct tir_value *unpacked = NULL;
    tir_foreach_inst(inst, p->f)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            if (inst->operands[i] != v || joins(inst, i) || inst->op == TIR_OP_BITCAST)
                continue;
            if (!unpacked) {
                struct tir_inst *next = v->def ? v->def->next : v->block->first;
                struct tir_builder b = tir_builder_before(p->f, next);
                unpacked = tir_build1(&b, TIR_OP_BITCAST, halves, &v, 1);
            }
            inst->operands[i] = unpacked;
        }
}

// What a packed value is made of, packed.
static void pack_operands(struct packer *p)
{
    tir_foreach_inst(inst, p->f)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            const struct tir_value *name = inst->operands[i] ? joins(inst, i) : NULL;
            if (!name || !is_packed(p, name) || is_packed(p, inst->operands[i]))
                continue;
            struct tir_builder b = tir_builder_before(p->f, inst);
            inst->operands[i] = build_bitcast(p, &b, inst->operands[i], name->type);
        }
}

void tir_lower_pack_sums(struct tir_func *f, struct tir_arena *scratch)
{
    struct packer p = {.f = f, .scratch = scratch};
    tir_map_init(&p.all, scratch);
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_GEMM_ASYNC && inst->results[0]->type->elem == TIR_F16)
            pack(&p, inst->results[0]);
    while (p.work.len)
        follow(&p, vec_pop(&p.work));
    pack_operands(&p);
    for (uint32_t i = 0; i < p.all.count; i++) {
        const struct packed *packed = p.all.entries[i].value;
        unpack_uses(&p, packed->v, packed->halves);
    }
}

bool tir_lower_pack(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[0], *result = inst->results[0];
    const bool packs = result->type->elem == TIR_I32 && x->type->elem == TIR_F16;
    if (!packs && (result->type->elem != TIR_F16 || x->type->elem != TIR_I32))
        return false;
    const struct tir_type *half = tir_type_scalar(lo->types, TIR_F16);
    const uint32_t count = tir_lower_register_count(packs ? result->type : x->type);
    struct tir_value **out = tir_lower_new_registers(lo, packs ? count : 2 * count);
    for (uint32_t r = 0; r < count; r++) {
        struct tir_value *pair[] = {NULL, NULL};
        if (packs) {
            pair[0] = tir_lower_register(lo, x, 2 * r);
            pair[1] = tir_lower_register(lo, x, 2 * r + 1);
            out[r] = tir_build1(&lo->b, TIR_OP_PACK, lo->i32, pair, 2);
        } else {
            pair[0] = tir_lower_register(lo, x, r);
            struct tir_inst *unpack = tir_build(&lo->b, TIR_OP_UNPACK, pair, 1,
                                                (const struct tir_type *[]){half, half}, 2, 0);
            memcpy(out + 2 * r, unpack->results, 2 * sizeof(*out));
        }
    }
    tir_lower_set_registers(lo, result, out);
    if (packs) {
        struct tir_inst *fence = tir_build(&lo->b, TIR_OP_FENCE, NULL, 0, NULL, 0, 0);
        tir_set_word(lo->f, fence, TIR_ATTR_of, TIR_WORD_of_wgmma);
    }
    return true;
}
