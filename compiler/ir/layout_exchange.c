// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The digits that two layouts have in common, and what each of them makes of a digit.
#include "ir/layout_exchange.h"

#include "base/base.h"

struct digit { // of a coordinate
    uint32_t extent;
    struct tir_iter from, to; // axis and stride
};

struct digits {
    struct digit at[2 * TIR_MAX_ITERS * TIR_LANE_BITS];
    uint32_t count;
};

// The digits of both from the innermost one on. An even extent gives a digit of extent 2.
static bool split_dimension(const struct tir_layout *from, const struct tir_layout *to, uint32_t d,
                            struct digits *out)
{
    uint32_t i = from->first[d + 1], j = to->first[d + 1];
    struct tir_iter a = {1, 0, TIR_AXIS_REG}, b = a;
    for (;;) {
        if (a.extent == 1 && i > from->first[d])
            a = from->iters[--i];
        if (b.extent == 1 && j > to->first[d])
            b = to->iters[--j];
        if (a.extent == 1 && b.extent == 1)
            return true;
        uint32_t extent = (uint32_t)tir_gcd(a.extent, b.extent);
        if (extent == 1 || out->count == TIR_COUNT_OF(out->at))
            return false;
        extent = extent % 2 ? extent : 2;
        out->at[out->count++] = (struct digit){extent, a, b};
        a.extent /= extent, a.stride *= extent;
        b.extent /= extent, b.stride *= extent;
    }
}

static bool has_copies_in_lanes(const struct tir_layout *l)
{
    for (uint32_t i = 0; i < l->replica_count; i++)
        if (l->replicas[i].axis == TIR_AXIS_LANE)
            return true;
    return false;
}

static void keep(struct tir_exchange *x, const struct digit *d)
{
    uint32_t at = x->kept_count++;
    for (; at > 0 && x->kept[at - 1].from + x->kept[at - 1].to > d->from.stride + d->to.stride;
         at--)
        x->kept[at] = x->kept[at - 1];
    x->kept[at].extent = d->extent;
    x->kept[at].from = d->from.stride;
    x->kept[at].to = d->to.stride;
}

bool tir_layout_exchange(const struct tir_layout *from, const struct tir_layout *to,
                         struct tir_exchange *x)
{
    struct digits digits = {.count = 0};
    uint32_t leave = 0, come = 0;
    *x = (struct tir_exchange){.kept_count = 0};
    if (has_copies_in_lanes(from) || has_copies_in_lanes(to))
        return false;
    for (uint32_t d = 0; d < from->rank; d++)
        if (!split_dimension(from, to, d, &digits))
            return false;
    for (uint32_t i = 0; i < digits.count; i++) {
        const struct digit *d = &digits.at[i];
        enum tir_axis a = d->from.axis, b = d->to.axis;
        if (a == TIR_AXIS_WARP || b == TIR_AXIS_WARP) {
            if (a != b || d->from.stride != d->to.stride)
                return false;
        } else if (a == TIR_AXIS_REG && b == TIR_AXIS_REG) {
            if (x->kept_count == TIR_COUNT_OF(x->kept))
                return false;
            keep(x, d);
        } else if (d->extent != 2) {
            return false;
        } else if (a == b) {
            x->lanes[x->lane_count].from = d->from.stride;
            x->lanes[x->lane_count++].to = d->to.stride;
        } else if (a == TIR_AXIS_REG) {
            if (leave == TIR_EXCHANGE_SWAPS)
                return false;
            x->swaps[leave].from_register = d->from.stride;
            x->swaps[leave++].to_lane = d->to.stride;
        } else {
            if (come == TIR_EXCHANGE_SWAPS)
                return false;
            x->swaps[come].from_lane = d->from.stride;
            x->swaps[come++].to_register = d->to.stride;
        }
    }
    x->swap_count = leave;
    return leave == come && x->lane_count + leave == TIR_LANE_BITS;
}

bool tir_layout_keeps_threads(const struct tir_layout *from, const struct tir_layout *to)
{
    struct tir_exchange x;
    if (!tir_layout_exchange(from, to, &x) || x.swap_count)
        return false;
    for (uint32_t i = 0; i < x.lane_count; i++)
        if (x.lanes[i].from != x.lanes[i].to)
            return false;
    return true;
}
