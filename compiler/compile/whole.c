// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The variant for whole tiles: its launch conditions say that each dimension the kernel walks in
// tiles is a multiple of the tile.
//
//     for (m, n) in tiles(M by 128, N by 256) { for k in range(0, K, 64) { ... dot ... } }
// is compiled once more under
//     M % 128 == 0 && N % 256 == 0 && K % 64 == 0
//
// In the main loop of a matrix product the tests for the edges are half of all instructions.
// Kernels without a product are bound by memory and do not gain, so they get no such variant.

#include "compile/whole.h"

#include "ir/walk.h"
#include "pass/pass.h"

static bool is_dim(const struct tir_func *f, const struct tir_value *v)
{
    for (uint32_t i = 0; i < f->dim_count; i++)
        if (f->dims[i].value == v)
            return true;
    return false;
}

struct wholes {
    struct tir_func *f;
    VEC(struct tir_value *) conditions;
    bool never; // the kernel demands a size that is no multiple
};

static void demand(struct wholes *w, struct tir_value *extent, int64_t multiple)
{
    struct tir_func *f = w->f;
    int64_t size;
    if (!is_dim(f, extent) || multiple <= 1)
        return;
    if (tir_demanded_size(f, extent, &size)) {
        w->never |= size % multiple != 0;
        return;
    }
    struct tir_builder b = tir_builder_at_end(f, f->host);
    b.before = tir_yield_of(f->host);
    struct tir_value *rest = tir_binary(&b, TIR_OP_REM, extent, tir_const_index(f, multiple));
    vec_push(f->module->arena, &w->conditions,
             tir_binary(&b, TIR_OP_EQ, rest, tir_const_index(f, 0)));
}

static void demand_of(struct wholes *w, const struct tir_inst *inst)
{
    int64_t begin, step;
    if (inst->op == TIR_OP_TILES) {
        uint32_t count;
        struct tir_value **extents = tir_list(inst, &count);
        const struct tir_attr *by = tir_attr_find(inst, TIR_ATTR_by);
        for (uint32_t i = 0; i < count; i++)
            demand(w, extents[i], by->list[i]);
    } else if (inst->op == TIR_OP_FOR && tir_is_const_int(inst->operands[TIR_FOR_BEGIN], &begin) &&
               begin == 0 && tir_is_const_int(inst->operands[TIR_FOR_STEP], &step)) {
        demand(w, inst->operands[TIR_FOR_END], step);
    }
}

void tir_compile_demand(struct tir_func *f, struct tir_value *const *conditions, uint32_t count)
{
    struct tir_inst *yield = tir_yield_of(f->host);
    const uint32_t before = yield ? yield->operand_count : 0;
    struct tir_value **values = arena_array(f->module->arena, struct tir_value *, before + count);
    if (before)
        memcpy(values, yield->operands, before * sizeof(*values));
    if (count)
        memcpy(values + before, conditions, count * sizeof(*values));
    if (yield)
        tir_remove(yield);
    struct tir_builder b = tir_builder_at_end(f, f->host);
    tir_build_yield(&b, values, before + count);
    f->when_count += count;
}

void tir_compile_whole_tiles(struct tir_func *f)
{
    struct wholes w = {.f = f};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TILES)
            demand_of(&w, inst);
    if (w.never || !w.conditions.len)
        return;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR)
            demand_of(&w, inst);
    if (w.never)
        return;
    tir_compile_demand(f, w.conditions.at, w.conditions.len);
}
