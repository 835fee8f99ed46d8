// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoders of asynchronous copies of plain bytes: cp.async, cp.async.bulk, cp.reduce.async.bulk.

#include <string.h>

#include "emu/async/tensor_copy.h"
#include "emu/decode/decode.h"
#include "emu/mem/atom.h"

static const char *const combine_names[] = {"add", "min", "max", "inc", "dec",
                                            "and", "or",  "xor", NULL};

static void add_arg(struct emu_dec *d, uint32_t ref)
{
    emu_dec_arg(d)->ref = ref;
}

// --- cp.async ---

static void decode_copy(struct emu_dec *d)
{
    static const char *const caches[] = {"ca", "cg", NULL};
    static const char *const prefetch[] = {"L2::64B", "L2::128B", "L2::256B", NULL};
    struct emu_insn *in = d->in;
    const int cache = emu_dec_one_of(d, caches);
    const bool shared = emu_dec_mod(d, "shared") || emu_dec_mod(d, "shared::cta");
    const bool hinted = emu_dec_mod(d, "L2::cache_hint");
    emu_dec_one_of(d, prefetch);
    if (cache < 0 || !shared || !emu_dec_mod(d, "global"))
        emu_dec_bad(d, "unknown instruction");
    in->run = emu_run_cp_async;
    struct emu_arg source;
    emu_dec_memory(d, EMU_SHARED);
    emu_dec_address(d, EMU_GLOBAL, &source);
    if (source.width != 8)
        emu_dec_bad(d, "the source is not a 64-bit address");
    emu_dec_args_begin(d);
    *emu_dec_arg(d) = source;
    in->count = 0;
    const uint64_t size = emu_dec_constant(d);
    if ((size != 4 && size != 8 && size != 16) || (cache == 1 && size != 16))
        emu_dec_bad(d, "copies are of 4, 8 or 16 bytes, with .cg of 16");
    in->size = (uint8_t)size;
    if (d->at + (hinted ? 1u : 0u) < d->ast->operand_count) {
        const struct emu_operand *o = emu_dec_next(d);
        bool negate = false;
        if (o->kind == EMU_OPD_REG && o->type == EMU_pred) {
            in->src[3] = emu_dec_pred(d, o, &negate);
            if (negate)
                emu_dec_bad(d, "a negated ignore-src is not supported");
        } else {
            in->src[2] = emu_dec_operand(d, o, EMU_b32);
            in->count = 1;
        }
    }
    if (hinted)
        emu_dec_src(d, EMU_b64);
}

static void decode_mbarrier_arrive(struct emu_dec *d)
{
    if (!emu_dec_mod(d, "arrive"))
        emu_dec_bad(d, "unknown instruction");
    d->in->op = emu_dec_mod(d, "noinc");
    const bool shared = emu_dec_mod(d, "shared") || emu_dec_mod(d, "shared::cta");
    if (!emu_dec_mod(d, "b64"))
        emu_dec_bad(d, "'.b64' is missing");
    d->in->run = emu_run_cp_mbarrier_arrive;
    emu_dec_memory(d, shared ? EMU_SHARED : EMU_GENERIC);
}

// --- cp.async.bulk ---

// The operation and type of a reduction. `.noftz` is the only behaviour there is.
static void take_reduction(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    emu_dec_mod(d, "noftz");
    const int op = emu_dec_one_of(d, combine_names);
    const enum emu_type type = emu_dec_type(d);
    int index = -1;
    for (int i = 0; op >= 0 && emu_atom_names[i]; i++)
        if (strcmp(emu_atom_names[i], combine_names[op]) == 0)
            index = i;
    in->atom = index < 0 ? NULL : emu_atom_find(index, type);
    if (!in->atom)
        emu_dec_bad(d, "unknown reduction");
    in->size = (uint8_t)emu_type_size(type);
}

static void decode_bulk_copy(struct emu_dec *d, bool reduces)
{
    static const char *const spaces[] = {"shared::cluster", "shared::cta", "global", NULL};
    static const enum emu_space space_of[] = {EMU_SHARED_CLUSTER, EMU_SHARED, EMU_GLOBAL};
    struct emu_insn *in = d->in;
    // The first space is the destination's, in whatever order emu_dec_one_of has the names.
    int order[2] = {-1, -1};
    for (uint32_t i = 0, n = 0; i < d->ast->mod_count && n < 2; i++)
        for (int k = 0; spaces[k]; k++)
            if (emu_str_is(d->ast->mods[i], spaces[k])) {
                order[n++] = k;
                d->used |= 1u << i;
                break;
            }
    if (order[0] < 0 || order[1] < 0 || (order[0] == 2 && order[1] == 2))
        emu_dec_bad(d, "two spaces are wanted, and one of them shared");
    in->space = (uint8_t)space_of[order[0]];
    in->type2 = (uint8_t)space_of[order[1]];
    const bool signals = emu_dec_mod(d, "mbarrier::complete_tx::bytes");
    const bool multicast = emu_dec_mod(d, "multicast::cluster");
    const bool hinted = emu_dec_mod(d, "L2::cache_hint");
    if (signals == emu_dec_mod(d, "bulk_group"))
        emu_dec_bad(d, "either an mbarrier or a bulk group is wanted");
    if (signals == (in->space == EMU_GLOBAL) || (multicast && !signals))
        emu_dec_bad(d, "this completion does not go with this destination");
    const bool masked = emu_dec_mod(d, "cp_mask");
    if (masked && (signals || reduces))
        emu_dec_bad(d, "only a copy to global memory has a mask of bytes");
    if (reduces)
        take_reduction(d);
    in->run = emu_run_bulk_copy;
    struct emu_arg to, from, barrier = {.ref = EMU_NO_REF};
    emu_dec_address(d, (enum emu_space)in->space, &to);
    emu_dec_address(d, (enum emu_space)in->type2, &from);
    const uint32_t bytes = emu_dec_src(d, EMU_b32);
    if (signals)
        emu_dec_address(d, EMU_SHARED_CLUSTER, &barrier);
    const uint32_t ctas = multicast ? emu_dec_src(d, EMU_b16) : EMU_NO_REF;
    if (hinted)
        emu_dec_src(d, EMU_b64);
    const uint32_t mask = masked ? emu_dec_src(d, EMU_b16) : EMU_NO_REF;
    emu_dec_args_begin(d);
    *emu_dec_arg(d) = to;
    *emu_dec_arg(d) = from;
    add_arg(d, bytes);
    *emu_dec_arg(d) = barrier;
    add_arg(d, ctas);
    add_arg(d, mask);
}

static void decode_bulk(struct emu_dec *d, bool reduces)
{
    struct emu_insn *in = d->in;
    if (emu_dec_mod(d, "commit_group")) {
        in->run = emu_run_bulk_commit;
    } else if (emu_dec_mod(d, "wait_group")) {
        in->run = emu_run_bulk_wait;
        in->op = emu_dec_mod(d, "read");
        in->offset = (int64_t)(emu_dec_constant(d) & INT32_MAX);
    } else if (emu_dec_mod(d, "tensor")) {
        emu_decode_tensor_copy(d, reduces, emu_dec_mod(d, "prefetch"));
    } else if (emu_dec_mod(d, "prefetch")) {
        emu_decode_hint(d);
    } else {
        decode_bulk_copy(d, reduces);
    }
}

void emu_decode_cp(struct emu_dec *d)
{
    const bool reduces = emu_dec_mod(d, "reduce");
    if (!emu_dec_mod(d, "async"))
        emu_dec_bad(d, "unknown instruction");
    if (emu_dec_mod(d, "bulk")) {
        decode_bulk(d, reduces);
    } else if (emu_dec_mod(d, "mbarrier")) {
        decode_mbarrier_arrive(d);
    } else if (emu_dec_mod(d, "commit_group")) {
        d->in->run = emu_run_cp_commit;
    } else if (emu_dec_mod(d, "wait_group")) {
        d->in->run = emu_run_cp_wait;
        d->in->offset = (int64_t)(emu_dec_constant(d) & INT32_MAX);
    } else if (emu_dec_mod(d, "wait_all")) {
        d->in->run = emu_run_cp_wait;
        d->in->op = 1;
    } else {
        decode_copy(d);
    }
}
