// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions about the cluster and the launch: mapa, getctarank, griddepcontrol,
// clusterlaunchcontrol.

#include <string.h>

#include "emu/async/bulk.h"
#include "emu/decode/decode.h"
#include "emu/run/schedule.h"

// --- addresses of other CTAs ---

// dst; src: address, rank; width; op: 1 for generic addresses
EMU_RUN(mapa)
{
    const uint32_t *rank = emu_at_ref(w, in->src[1]);
    uint64_t out[EMU_WARP];
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        const uint64_t a = emu_lane_value(w, in->src[0], in->width, i);
        if (mask >> i & 1 && rank[i] >= w->cta->cluster->size)
            emu_fault(w, i, "mapa: rank %u in a cluster of %u", rank[i], w->cta->cluster->size);
        if (mask >> i & 1 && in->op && (a & EMU_WINDOW_MASK) != EMU_SHARED_WINDOW)
            emu_fault(w, i, "mapa: 0x%llx is no address of shared memory", (unsigned long long)a);
        const uint64_t at =
            (a & EMU_RANK_MASK) | emu_rank_bits(rank[i]) | (in->op ? EMU_SHARED_WINDOW : 0);
        memcpy((uint8_t *)out + (size_t)i * in->width, &at, in->width); // little endian
    }
    emu_commit(w, in->dst, out, in->width, mask);
}

// dst; src: address; width: of the address
EMU_RUN(getctarank)
{
    uint32_t out[EMU_WARP];
    for (uint32_t i = 0; i < EMU_WARP; i++)
        out[i] = (uint32_t)(emu_lane_value(w, in->src[0], in->width, i) >> EMU_RANK_SHIFT & 0xff);
    emu_commit(w, in->dst, out, 4, mask);
}

void emu_decode_mapa(struct emu_dec *d)
{
    d->in->run = emu_run_mapa;
    d->in->op = !emu_dec_mod(d, "shared::cluster");
    const enum emu_type type = emu_dec_type(d);
    if (type != EMU_u32 && type != EMU_u64)
        emu_dec_bad(d, "unknown type");
    if (type == EMU_u32 && d->in->op)
        emu_dec_bad(d, "generic addresses have 64 bits");
    d->in->width = (uint8_t)emu_reg_width(type);
    d->in->dst = emu_dec_dst(d, type);
    d->in->src[0] = emu_dec_src(d, type);
    d->in->src[1] = emu_dec_src(d, EMU_u32);
}

void emu_decode_getctarank(struct emu_dec *d)
{
    d->in->run = emu_run_getctarank;
    emu_dec_mod(d, "shared::cluster");
    const enum emu_type type = emu_dec_type(d);
    if (type != EMU_u32 && type != EMU_u64)
        emu_dec_bad(d, "unknown type");
    d->in->width = (uint8_t)emu_reg_width(type);
    d->in->dst = emu_dec_dst(d, EMU_u32);
    d->in->src[0] = emu_dec_src(d, type);
}

// --- dependent launches: one launch runs at a time, so there is nothing to wait for ---

void emu_decode_griddepcontrol(struct emu_dec *d)
{
    d->in->run = emu_run_nop;
    if (!emu_dec_mod(d, "launch_dependents") && !emu_dec_mod(d, "wait"))
        emu_dec_bad(d, "unknown instruction");
}

// --- clusterlaunchcontrol: a cluster takes the place of one that has not started ---

enum { RESPONSE = 16, CANCELED = 1 };

// The answer is opaque: here the ids of the first CTA, and whether there is one. A request may fail
// although clusters have not started, since another launch may need the multiprocessors.
static void response(struct emu_warp *w, uint8_t *out)
{
    struct emu_grid *l = w->launch;
    uint32_t words[4] = {0};
    if (l->next_cluster < l->cluster_count && !emu_schedule_gives_up(l)) {
        const uint64_t linear = l->next_cluster++;
        const uint32_t *size = l->shape.cluster, *grid = l->shape.grid;
        const uint32_t x = grid[0] / size[0], y = grid[1] / size[1];
        words[0] = (uint32_t)(linear % x) * size[0];
        words[1] = (uint32_t)(linear / x % y) * size[1];
        words[2] = (uint32_t)(linear / x / y) * size[2];
        words[3] = CANCELED;
    }
    memcpy(out, words, RESPONSE);
}

struct cancel {
    struct emu_op op;
    struct emu_cta *cta[EMU_MAX_CLUSTER];
    struct emu_mbarrier *barriers[EMU_MAX_CLUSTER];
    uint32_t count, offset;
};

static void cancel_finish(struct emu_op *op)
{
    struct cancel *c = (struct cancel *)op;
    uint8_t answer[RESPONSE];
    const struct emu_by by = emu_by_op(op);
    response(op->warp, answer);
    for (uint32_t i = 0; i < c->count; i++) {
        emu_op_access(op, c->cta[i]->shared + c->offset, RESPONSE, EMU_STORE, false);
        memcpy(c->cta[i]->shared + c->offset, answer, RESPONSE);
        memset(c->cta[i]->shared_shadow + c->offset, EMU_SET, RESPONSE);
        emu_op_signal(op, &c->barriers[i]->view);
        emu_mbarrier_complete(c->barriers[i], &by, RESPONSE);
    }
}

static void cancel_describe(const struct emu_op *op, char *text, size_t size)
{
    emu_mbarrier_describe(((const struct cancel *)op)->barriers[0], text, size);
}

static const struct emu_engine cancel_engine = {.name = "clusterlaunchcontrol.try_cancel",
                                                .finish = cancel_finish,
                                                .describe = cancel_describe};

// src[0] + offset: where the answer goes; list: the mbarrier; op: 1 for multicast
EMU_RUN(try_cancel)
{
    uint64_t address[EMU_WARP];
    const uint32_t lane = emu_first_lane(mask);
    emu_addresses(w, in, address);
    if (mask & (mask - 1))
        emu_fault(w, lane, "clusterlaunchcontrol.try_cancel by more than one thread of a warp");
    if (w->cta->refused)
        emu_fault(w, lane,
                  "clusterlaunchcontrol.try_cancel after a request of the CTA was seen to fail, at "
                  "PTX line %u",
                  w->cta->refused->line);
    struct cancel *c = emu_op_new(w, &cancel_engine, lane, sizeof *c);
    struct emu_cta *cta =
        emu_shared_at(w, lane, (enum emu_space)in->space, address[lane], RESPONSE, &c->offset);
    const struct emu_arg *bar = &w->launch->module->args.at[in->list];
    const struct emu_mbarrier *b =
        emu_mbarrier_at(w, lane, (enum emu_space)in->space,
                        emu_lane_value(w, bar->ref, bar->width, lane) + bar->offset);
    if (address[lane] % RESPONSE)
        emu_fault(w, lane, "misaligned answer of clusterlaunchcontrol.try_cancel");
    for (uint32_t i = 0; i < w->cta->cluster->size; i++) {
        struct emu_cta *to = &w->cta->cluster->ctas[i];
        if (to != cta && !in->op)
            continue;
        if (!to->alive)
            emu_fault(w, lane,
                      "shared memory of a CTA that has exited: clusterlaunchcontrol.try_cancel "
                      "answers CTA (%u,%u,%u)",
                      to->id[0], to->id[1], to->id[2]);
        c->barriers[c->count] = emu_mbarrier_at(w, lane, EMU_SHARED_CLUSTER,
                                                b->offset + EMU_SHARED_START + emu_rank_bits(i));
        memset(to->shared_shadow + c->offset, EMU_IN_FLIGHT, RESPONSE);
        c->cta[c->count++] = to;
    }
    c->op.barriers = c->barriers;
    c->op.barrier_count = c->count;
    emu_op_track(&c->op, 1u << lane, false);
    emu_op_issued(&c->op);
}

// dst (or list: four of them); src: the answer; op: which word, 3 for whether there is one
EMU_RUN(query_cancel)
{
    uint32_t words[EMU_WARP][4], out[EMU_WARP], yes = 0;
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    memcpy(words, emu_at_ref(w, in->src[0]), sizeof words);
    for (uint32_t i = 0; i < EMU_WARP; i++)
        yes |= (uint32_t)(words[i][3] == CANCELED) << i;
    if (in->count && mask & ~yes)
        emu_fault(w, emu_first_lane(mask & ~yes),
                  "clusterlaunchcontrol.query_cancel.get_first_ctaid of a request that failed");
    if (mask & ~yes && !w->cta->refused)
        w->cta->refused = in;
    for (uint32_t k = 0; k < in->count; k++) {
        for (uint32_t i = 0; i < EMU_WARP; i++)
            out[i] = in->count == 1 ? words[i][in->op] : words[i][k] & (k < 3 ? EMU_FULL : 0);
        emu_commit(w, args[k].ref, out, 4, mask);
    }
    if (!in->count)
        emu_commit_pred(w, in->dst, yes, mask);
}

static void decode_query(struct emu_dec *d)
{
    static const char *const dims[] = {"get_first_ctaid::x", "get_first_ctaid::y",
                                       "get_first_ctaid::z", NULL};
    struct emu_insn *in = d->in;
    in->run = emu_run_query_cancel;
    emu_dec_args_begin(d);
    if (emu_dec_mod(d, "is_canceled")) {
        if (!emu_dec_mod(d, "pred") || !emu_dec_mod(d, "b128"))
            emu_dec_bad(d, "'.pred.b128' is missing");
        in->dst = emu_dec_dst(d, EMU_pred);
    } else if (emu_dec_mod(d, "get_first_ctaid")) {
        const struct emu_operand *to = emu_dec_next(d);
        if (!emu_dec_mod(d, "v4") || !emu_dec_mod(d, "b32") || !emu_dec_mod(d, "b128") || !to ||
            to->kind != EMU_OPD_VEC || to->count != 4)
            emu_dec_bad(d, "'.v4.b32.b128' and four registers are wanted");
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t ref = emu_dec_dst_operand(d, &to->list[i], EMU_b32);
            emu_dec_arg(d)->ref = ref;
        }
    } else {
        const int dim = emu_dec_one_of(d, dims);
        if (dim < 0 || !emu_dec_mod(d, "b32") || !emu_dec_mod(d, "b128"))
            emu_dec_bad(d, "unknown instruction");
        in->op = (uint8_t)dim;
        const uint32_t ref = emu_dec_dst(d, EMU_b32);
        emu_dec_arg(d)->ref = ref;
    }
    in->src[0] = emu_dec_src(d, EMU_b128);
}

void emu_decode_clusterlaunchcontrol(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    if (emu_dec_mod(d, "query_cancel")) {
        decode_query(d);
        return;
    }
    if (!emu_dec_mod(d, "try_cancel") || !emu_dec_mod(d, "async") ||
        !emu_dec_mod(d, "mbarrier::complete_tx::bytes"))
        emu_dec_bad(d, "unknown instruction");
    const bool shared = emu_dec_mod(d, "shared::cta");
    in->op = emu_dec_mod(d, "multicast::cluster::all");
    if (!emu_dec_mod(d, "b128"))
        emu_dec_bad(d, "'.b128' is missing");
    in->run = emu_run_try_cancel;
    struct emu_arg barrier;
    emu_dec_memory(d, shared ? EMU_SHARED : EMU_GENERIC);
    emu_dec_address(d, shared ? EMU_SHARED : EMU_GENERIC, &barrier);
    emu_dec_args_begin(d);
    *emu_dec_arg(d) = barrier;
}
