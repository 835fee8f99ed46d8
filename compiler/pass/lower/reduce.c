// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, reductions: within the thread, then over lanes, then over warps.
//
//     let s: f32[1, 1] in L = reduce(x, axis = 1, kind = sum);  // over registers, lanes, warps
// becomes
//     let t: f32 = add(add(x0, x1), add(x2, x3));
//     let u: f32 = add(t, shuffle(t, 16, mode = bfly));   ...       // 16, 8, 4, 2, 1
//     st(scratch, mul(warp, 4), u, pred = first lane);   bar_sync();
//     let s: f32 = add(ld(scratch), ld(scratch, offset = 4)) ...
//
// Elements narrower than 32 bits are combined as f32 or i32 and rounded once at the end, unless the
// program gives its own function. The built-in operations commute, so what is nearest is combined
// first; a program's own function is only associative and keeps the order of the axis (scan.c). The
// layout alone fixes the order, so results repeat from run to run.

#include "pass/lower/combine.h"
#include "pass/lower/tmem.h"

// A register of the operand, or of all that one load has the largest or smallest. False: it is in
// that of another register.
static bool part_of(struct combine *c, const struct lower_reduced *reduced, uint32_t r,
                    struct tuple *out)
{
    if (!reduced)
        *out = tir_combine_register(c, r);
    else
        *out = (struct tuple){{reduced->of[r]}};
    return out->of[0];
}

void tir_lower_reduce(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[TIR_REDUCE_X], *result = inst->results[0];
    struct combine c = tir_combine_open(lo, inst);
    const struct tir_layout *l = c.layout, *own = result->type->layout;
    if (!l) { // a constant tile: give it the layout of the result, one register a line
        tir_lower_unsupported(lo, inst, "a reduction of a constant tile");
        return;
    }
    if (c.kind == TIR_WORD_kind_user) {
        tir_lower_ordered_reduce(&c);
        return;
    }
    const struct lower_reduced *reduced = tir_map_get(&lo->reduced, tir_map_key(x));
    if (reduced && (reduced->kind != c.kind || c.axis != 1))
        reduced = NULL;
    uint32_t count = tir_lower_register_count(x->type),
             out_count = tir_layout_size(own, TIR_AXIS_REG);
    struct tuple *out = tir_combine_tuples(&c, out_count);
    struct tuple *parts = tir_combine_tuples(&c, count);
    for (uint32_t o = 0; o < out_count; o++) {
        uint32_t n = 0;
        for (uint32_t r = 0; r < count; r++)
            if (tir_lower_same_register(l, r, own) == o && part_of(&c, reduced, r, &parts[n]))
                n++;
        out[o] = tir_combine_tree(&c, parts, n);
        for (uint32_t i = l->first[c.axis]; i < l->first[c.axis + 1]; i++) {
            const struct tir_iter *it = &l->iters[i];
            for (uint32_t s = it->extent / 2; it->axis == TIR_AXIS_LANE && s > 0; s /= 2)
                out[o] = tir_combine_apply(
                    &c, out[o],
                    tir_combine_shuffle(&c, out[o], TIR_WORD_mode_bfly,
                                        tir_lower_i32(lo, (int64_t)s * it->stride)));
        }
    }
    if (inst->operands[TIR_REDUCE_SCRATCH]) {
        struct combine_lines lines = tir_combine_lines(&c);
        uint32_t begin = l->first[c.axis], end = l->first[c.axis + 1], warps, lanes;
        struct tir_value *warp = tir_combine_part(&c, TIR_AXIS_WARP, begin, end, &warps);
        struct tir_value *lane = tir_combine_part(&c, TIR_AXIS_LANE, begin, end, &lanes);
        struct tir_value *writer = tir_lower_and(
            lo, lanes > 1 ? tir_combine_is_zero(lo, lane) : NULL, tir_lower_is_owner(lo, l));
        for (uint32_t o = 0; o < out_count; o++)
            tir_combine_write(
                &c, tir_combine_entry(&c, &lines, warp, 0, tir_combine_line(&c, &lines, own, o)),
                out[o], writer);
        tir_lower_barrier(lo);
        struct tuple *all = tir_combine_tuples(&c, warps);
        for (uint32_t o = 0; o < out_count; o++) {
            for (uint32_t w = 0; w < warps; w++)
                all[w] =
                    tir_combine_read(&c, tir_combine_entry(&c, &lines, NULL, w,
                                                           tir_combine_line(&c, &lines, own, o)));
            out[o] = tir_combine_tree(&c, all, warps);
        }
    }
    tir_combine_set_results(&c, out);
}
