// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoders of barriers and of the instructions by which lanes exchange values.

#include "emu/decode/decode.h"

static void need_mod(struct emu_dec *d, const char *name)
{
    if (!emu_dec_mod(d, name))
        emu_dec_bad(d, "'.%s' is missing", name);
}

static void begin(struct emu_dec *d, emu_run_fn run)
{
    d->in->run = run;
    d->in->flags |= EMU_INSN_SYNC;
    d->in->list = EMU_NO_REF;
}

// barrier.cluster.{arrive,wait}[.aligned]
static void decode_cluster_barrier(struct emu_dec *d)
{
    const bool is_arrive = emu_dec_mod(d, "arrive");
    if (!is_arrive)
        need_mod(d, "wait");
    emu_dec_order(d, is_arrive ? EMU_RELEASE : EMU_ACQUIRE, EMU_SCOPE_CLUSTER);
    begin(d, is_arrive ? emu_run_cluster_arrive : emu_run_cluster_wait);
    d->in->op = emu_dec_mod(d, "aligned") ? EMU_BAR_ALIGNED : 0;
}

// bar[.cta].{sync,arrive,red}[.aligned], barrier..., bar.warp.sync
void emu_decode_bar(struct emu_dec *d)
{
    static const char *const reds[] = {"popc", "and", "or", NULL};
    struct emu_insn *in = d->in;
    bool negate = false;
    emu_dec_mod(d, "cta");
    const bool is_bar = emu_str_is(d->ast->opcode, "bar");
    if (!is_bar && emu_dec_mod(d, "cluster")) {
        decode_cluster_barrier(d);
        return;
    }
    if (is_bar && emu_dec_mod(d, "warp")) {
        need_mod(d, "sync");
        begin(d, emu_run_bar_warp);
        in->src[0] = emu_dec_src(d, EMU_b32);
        return;
    }
    const bool aligned = emu_dec_mod(d, "aligned") || is_bar;
    begin(d, emu_run_bar);
    if (emu_dec_mod(d, "sync")) {
        in->op = EMU_BAR_SYNC;
    } else if (emu_dec_mod(d, "arrive")) {
        in->op = EMU_BAR_ARRIVE;
    } else if (emu_dec_mod(d, "red")) {
        const int i = emu_dec_one_of(d, reds);
        if (i < 0)
            emu_dec_bad(d, "unknown reduction");
        in->op = (uint8_t)(EMU_BAR_POPC + i);
        need_mod(d, i == 0 ? "u32" : "pred");
        in->dst = emu_dec_dst(d, i == 0 ? EMU_u32 : EMU_pred);
    } else {
        emu_dec_bad(d, "unknown instruction");
    }
    const bool red = in->op >= EMU_BAR_POPC;
    in->op |= aligned ? EMU_BAR_ALIGNED : 0;
    in->src[0] = emu_dec_src(d, EMU_b32);
    if (d->ast->operand_count - d->at > (red ? 1u : 0u)) {
        in->src[1] = emu_dec_src(d, EMU_b32);
        in->count = 1;
    }
    if ((in->op & 15) == EMU_BAR_ARRIVE && !in->count)
        emu_dec_bad(d, "a count of threads is missing");
    if (red)
        in->src[2] = emu_dec_pred(d, emu_dec_next(d), &negate);
    in->round = negate;
}

void emu_decode_shfl(struct emu_dec *d)
{
    static const char *const modes[] = {"idx", "up", "down", "bfly", NULL};
    begin(d, emu_run_shfl);
    need_mod(d, "sync");
    const int mode = emu_dec_one_of(d, modes);
    if (mode < 0)
        emu_dec_bad(d, "unknown mode");
    d->in->op = (uint8_t)mode;
    need_mod(d, "b32");
    emu_dec_pair(d, EMU_b32, &d->in->list);
    for (int i = 0; i < 4; i++)
        d->in->src[i] = emu_dec_src(d, EMU_b32);
}

void emu_decode_vote(struct emu_dec *d)
{
    static const char *const modes[] = {"all", "any", "uni", "ballot", NULL};
    bool negate;
    begin(d, emu_run_vote);
    need_mod(d, "sync");
    const int mode = emu_dec_one_of(d, modes);
    if (mode < 0)
        emu_dec_bad(d, "unknown mode");
    d->in->op = (uint8_t)mode;
    need_mod(d, mode == EMU_VOTE_BALLOT ? "b32" : "pred");
    d->in->dst = emu_dec_dst(d, mode == EMU_VOTE_BALLOT ? EMU_b32 : EMU_pred);
    d->in->src[0] = emu_dec_pred(d, emu_dec_next(d), &negate);
    d->in->round = negate;
    d->in->src[1] = emu_dec_src(d, EMU_b32);
}

void emu_decode_match(struct emu_dec *d)
{
    begin(d, emu_run_match);
    d->in->op = emu_dec_mod(d, "all");
    if (!d->in->op)
        need_mod(d, "any");
    need_mod(d, "sync");
    const enum emu_type type = emu_dec_type(d);
    if (type != EMU_b32 && type != EMU_b64)
        emu_dec_bad(d, "unknown type");
    d->in->width = (uint8_t)emu_reg_width(type);
    emu_dec_pair(d, EMU_b32, &d->in->list);
    d->in->src[0] = emu_dec_src(d, type);
    d->in->src[1] = emu_dec_src(d, EMU_b32);
}

void emu_decode_redux(struct emu_dec *d)
{
    static const char *const ops[] = {"add", "min", "max", "and", "or", "xor", NULL};
    begin(d, emu_run_redux);
    need_mod(d, "sync");
    const int op = emu_dec_one_of(d, ops);
    const enum emu_type type = emu_dec_type(d);
    const bool is_bits = op >= EMU_REDUX_AND;
    const bool is_float = type == EMU_f32 && (op == EMU_REDUX_MIN || op == EMU_REDUX_MAX);
    if (op < 0 || (is_bits ? type != EMU_b32 : type != EMU_u32 && type != EMU_s32 && !is_float))
        emu_dec_bad(d, "unknown operation or type");
    if (is_float)
        d->in->round = (emu_dec_mod(d, "abs") ? EMU_REDUX_ABS : 0) |
                       (emu_dec_mod(d, "NaN") ? EMU_REDUX_NAN : 0);
    d->in->op = (uint8_t)op;
    d->in->type = (uint8_t)type;
    d->in->dst = emu_dec_dst(d, type);
    d->in->src[0] = emu_dec_src(d, type);
    d->in->src[1] = emu_dec_src(d, EMU_b32);
}

void emu_decode_activemask(struct emu_dec *d)
{
    d->in->run = emu_run_activemask;
    need_mod(d, "b32");
    d->in->dst = emu_dec_dst(d, EMU_b32);
}

void emu_decode_elect(struct emu_dec *d)
{
    begin(d, emu_run_elect);
    need_mod(d, "sync");
    emu_dec_pair(d, EMU_b32, &d->in->list);
    d->in->src[0] = emu_dec_src(d, EMU_b32);
}
