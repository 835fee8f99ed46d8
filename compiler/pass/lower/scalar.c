// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile: arithmetic on scalars that folds as it is built, and the numbers of a thread.

#include "pass/lower/lower.h"

#include "pass/sync/crew.h"

struct tir_value *tir_lower_add(struct lower *lo, struct tir_builder *b, struct tir_value *x,
                                struct tir_value *y)
{
    int64_t cx, cy;
    if (!x || !y)
        return x ? x : y;
    bool kx = tir_is_const_int(x, &cx), ky = tir_is_const_int(y, &cy);
    if (kx && ky)
        return tir_const_int(lo->f, x->type, cx + cy);
    if (kx && cx == 0)
        return y;
    if (ky && cy == 0)
        return x;
    return tir_binary(b, TIR_OP_ADD, x, y);
}

struct tir_value *tir_lower_mul(struct lower *lo, struct tir_builder *b, struct tir_value *x,
                                struct tir_value *y)
{
    int64_t cx, cy;
    bool kx = tir_is_const_int(x, &cx), ky = tir_is_const_int(y, &cy);
    if (kx && ky)
        return tir_const_int(lo->f, x->type, cx * cy);
    if ((kx && cx == 1) || (ky && cy == 0))
        return y;
    if ((ky && cy == 1) || (kx && cx == 0))
        return x;
    return tir_binary(b, TIR_OP_MUL, x, y);
}

struct tir_value *tir_lower_mul_const(struct lower *lo, struct tir_builder *b, struct tir_value *x,
                                      int64_t y)
{
    return x ? tir_lower_mul(lo, b, x, tir_const_int(lo->f, x->type, y)) : NULL;
}

static uint32_t log2_of(uint32_t v)
{
    uint32_t n = 0;
    while (v >>= 1)
        n++;
    return n;
}

struct tir_value *tir_lower_digit(struct lower *lo, struct tir_builder *b, struct tir_value *x,
                                  uint32_t stride, uint32_t extent, bool top_digit)
{
    if (stride > 1)
        x = tir_is_pow2(stride)
                ? tir_binary(b, TIR_OP_SHR, x, tir_const_int(lo->f, x->type, log2_of(stride)))
                : tir_binary(b, TIR_OP_DIV, x, tir_const_int(lo->f, x->type, stride));
    if (top_digit)
        return x;
    return tir_is_pow2(extent)
               ? tir_binary(b, TIR_OP_AND, x, tir_const_int(lo->f, x->type, extent - 1))
               : tir_binary(b, TIR_OP_REM, x, tir_const_int(lo->f, x->type, extent));
}

struct tir_value *tir_lower_cast(struct lower *lo, struct tir_builder *b, struct tir_value *x,
                                 const struct tir_type *to)
{
    int64_t c;
    if (!x || x->type == to)
        return x;
    if (tir_elem_is_int(to->elem) && tir_elem_is_int(x->type->elem) && tir_is_const_int(x, &c))
        return tir_const_int(lo->f, to, c);
    return tir_build1(b, TIR_OP_CAST, to, &x, 1);
}

struct tir_value *tir_lower_and(struct lower *lo, struct tir_value *x, struct tir_value *y)
{
    if (!x || !y || x == y)
        return x ? x : y;
    return tir_binary(&lo->b, TIR_OP_AND, x, y);
}

struct tir_value *tir_lower_thread(struct lower *lo, enum tir_axis axis)
{
    bool is_lane = axis == TIR_AXIS_LANE;
    struct tir_value **v = is_lane ? &lo->lane : &lo->warp;
    if (!*v) {
        *v = tir_build1(&lo->top, is_lane ? TIR_OP_LANEID : TIR_OP_WARPID, lo->i32, NULL, 0);
        if (!is_lane && lo->first_warp)
            *v = tir_binary(&lo->top, TIR_OP_SUB, *v, tir_lower_i32(lo, lo->first_warp));
    }
    return *v;
}

struct tir_value *tir_lower_tid(struct lower *lo)
{
    if (!lo->tid) {
        lo->tid = tir_build1(&lo->top, TIR_OP_TID, lo->i32, NULL, 0);
        if (lo->first_warp)
            lo->tid =
                tir_binary(&lo->top, TIR_OP_SUB, lo->tid, tir_lower_i32(lo, 32 * lo->first_warp));
    }
    return lo->tid;
}

void tir_lower_barrier(struct lower *lo)
{
    if (lo->scope) {
        const struct tir_crew crew = tir_crew_of(lo->f, lo->scope);
        tir_build_crew_barrier(&lo->b, &crew);
        return;
    }
    struct tir_inst *sync = tir_build(&lo->b, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
    if (!lo->barrier)
        return;
    tir_set_int(lo->f, sync, TIR_ATTR_id, lo->barrier);
    tir_set_int(lo->f, sync, TIR_ATTR_threads, lo->threads);
}
