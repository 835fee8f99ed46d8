// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on threads: identities, barriers, shuffles and votes of an explicit kernel.

#include "interp/state.h"

#define WARP 32

static void need_threads(struct interp *in, const struct tir_inst *inst)
{
    if (!in->threads)
        tir_interp_fail(in, inst, TIR_ERR_INVALID,
                        "'%s' needs a kernel with grid(...) and threads(...)",
                        tir_ops[inst->op].name);
}

void tir_interp_thread_id(struct interp *in, const struct tir_inst *inst)
{
    need_threads(in, inst);
    union tir_number *to = tir_interp_write(in, tir_result(inst));
    for (uint32_t i = 0; i < in->lanes; i++)
        switch (inst->op) {
        case TIR_OP_LANEID:
            to[i].i = i % WARP;
            break;
        case TIR_OP_WARPID:
            to[i].i = (in->first_lane + i) / WARP;
            break;
        case TIR_OP_WGID:
            to[i].i = (in->first_lane + i) / (4 * WARP);
            break;
        case TIR_OP_TID_IN_WG:
            to[i].i = (in->first_lane + i) % (4 * WARP);
            break;
        default:
            to[i].i = in->first_lane + i;
            break;
        }
}

void tir_interp_cta(struct interp *in, const struct tir_inst *inst)
{
    int64_t axis = tir_attr_int(inst, TIR_ATTR_axis, 0);
    if (!in->f->grid_count || axis < 0 || axis > 2)
        tir_interp_fail(in, inst, TIR_ERR_INVALID, "'%s' needs a kernel with grid(...)",
                        tir_ops[inst->op].name);
    union tir_number *to = tir_interp_write(in, tir_result(inst));
    for (uint32_t i = 0; i < in->lanes; i++)
        to[i].i = inst->op == TIR_OP_CTA_ID ? in->cta[axis] : in->grid[axis];
}

void tir_interp_num_threads(struct interp *in, const struct tir_inst *inst)
{
    need_threads(in, inst);
    union tir_number *to = tir_interp_write(in, tir_result(inst));
    for (uint32_t i = 0; i < in->lanes; i++)
        to[i].i = in->max_lanes;
}

void tir_interp_bar_sync(struct interp *in, const struct tir_inst *inst)
{
    if (tir_attr_int(inst, TIR_ATTR_threads, in->max_lanes) != in->lanes)
        tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED,
                        "a barrier of other threads than those of the role cannot be interpreted");
    if (in->active_count < in->lanes)
        tir_interp_fail(in, inst, TIR_ERR_INVALID, "only %u of %u threads arrive at this barrier",
                        in->active_count, in->lanes);
}

// Every lane of a warp that takes part at all must: the hardware waits for them.
static void check_warps(struct interp *in, const struct tir_inst *inst)
{
    need_threads(in, inst);
    for (uint32_t i = 0; i < in->lanes; i++)
        if (in->active[i] != in->active[i / WARP * WARP])
            tir_interp_fail(in, inst, TIR_ERR_INVALID,
                            "only some lanes of warp %u arrive at this '%s'", i / WARP,
                            tir_ops[inst->op].name);
}

void tir_interp_warp_sync(struct interp *in, const struct tir_inst *inst)
{
    check_warps(in, inst);
}

// The lane to read from; its own where there is none.
static uint32_t source_lane(enum tir_word mode, uint32_t lane, uint32_t by)
{
    switch (mode) {
    case TIR_WORD_mode_up:
        return by <= lane ? lane - by : lane;
    case TIR_WORD_mode_down:
        return lane + by < WARP ? lane + by : lane;
    case TIR_WORD_mode_bfly:
        return lane ^ by;
    default:
        return by;
    }
}

// The first lane that is there.
void tir_interp_elect(struct interp *in, const struct tir_inst *inst)
{
    need_threads(in, inst);
    union tir_number *to = tir_interp_write(in, tir_result(inst));
    for (uint32_t i = 0; i < in->lanes; i++) {
        uint32_t first = i / WARP * WARP;
        while (first < i && !in->active[first])
            first++;
        to[i].i = first == i;
    }
}

void tir_interp_shuffle(struct interp *in, const struct tir_inst *inst)
{
    check_warps(in, inst);
    const union tir_number *x = tir_interp_read(in, inst->operands[0]);
    const union tir_number *by = tir_interp_read(in, inst->operands[1]);
    enum tir_word mode = tir_attr_word(inst, TIR_ATTR_mode, TIR_WORD_mode_idx);
    union tir_number *to = tir_interp_write(in, tir_result(inst));
    for (uint32_t i = 0; i < in->lanes; i++)
        to[i] = x[i / WARP * WARP + source_lane(mode, i % WARP, (uint32_t)by[i].i % WARP)];
}

void tir_interp_vote(struct interp *in, const struct tir_inst *inst)
{
    check_warps(in, inst);
    const union tir_number *x = tir_interp_read(in, inst->operands[0]);
    enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_kind_any);
    union tir_number *to = tir_interp_write(in, tir_result(inst));
    for (uint32_t warp = 0; warp < in->lanes; warp += WARP) {
        uint32_t ballot = 0;
        for (uint32_t i = 0; i < WARP; i++)
            ballot |= (uint32_t) !!x[warp + i].i << i;
        int64_t result = kind == TIR_WORD_kind_ballot ? (int64_t)ballot
                         : kind == TIR_WORD_kind_all  ? ballot == UINT32_MAX
                                                      : ballot != 0;
        for (uint32_t i = 0; i < WARP; i++)
            to[warp + i].i = result;
    }
}
