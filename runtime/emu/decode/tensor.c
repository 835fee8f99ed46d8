// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoders of tensor copies and of the instructions over tensor maps.

#include <string.h>

#include "emu/async/tensor_copy.h"
#include "emu/async/tensor_map.h"
#include "emu/check/order.h"
#include "emu/device.h"
#include "emu/mem/atom.h"
#include "tensor_bits.h"

// --- copies ---

static enum emu_tensor_mode take_mode(struct emu_dec *d, enum emu_tensor_action action)
{
    static const char *const modes[] = {
        "tile",           "tile::gather4", "tile::scatter4", "im2col",
        "im2col_no_offs", "im2col::w",     "im2col::w::128", NULL};
    enum { TILE, GATHER, SCATTER, IM2COL, NO_OFFSETS };
    const int mode = emu_dec_one_of(d, modes);
    const bool loads = action == EMU_TENSOR_LOAD || action == EMU_TENSOR_PREFETCH;
    if (mode > NO_OFFSETS)
        emu_dec_bad(d, "'.im2col::w' is not modelled");
    if ((mode == GATHER || mode == IM2COL) && !loads)
        emu_dec_bad(d, "'.%s' is for loads", modes[mode]);
    if ((mode == SCATTER && action != EMU_TENSOR_STORE) || (mode == NO_OFFSETS && loads))
        emu_dec_bad(d, "'.%s' is for stores", modes[mode]);
    return mode <= TILE                        ? EMU_TENSOR_TILE
           : mode == GATHER || mode == SCATTER ? EMU_TENSOR_ROWS
                                               : EMU_TENSOR_IM2COL;
}

static uint8_t take_rank(struct emu_dec *d, enum emu_tensor_mode mode)
{
    static const char *const ranks[] = {"1d", "2d", "3d", "4d", "5d", NULL};
    const int rank = 1 + emu_dec_one_of(d, ranks);
    if (rank == 0)
        emu_dec_bad(d, "the number of dimensions is missing");
    if ((mode == EMU_TENSOR_IM2COL && rank < 3) || (mode == EMU_TENSOR_ROWS && rank != 2))
        emu_dec_bad(d, "this mode is not for %d dimensions", rank);
    return (uint8_t)rank;
}

// The action, the spaces, and how it completes.
static enum emu_tensor_action take_action(struct emu_dec *d, bool reduces, bool prefetches)
{
    static const char *const clusters[] = {"shared::cluster", "shared::cta", NULL};
    struct emu_insn *in = d->in;
    if (prefetches) {
        if (!emu_dec_mod(d, "L2") || !emu_dec_mod(d, "global"))
            emu_dec_bad(d, "'.L2.global' is missing");
        return EMU_TENSOR_PREFETCH;
    }
    const int space = emu_dec_one_of(d, clusters);
    if (space < 0 || !emu_dec_mod(d, "global"))
        emu_dec_bad(d, "two spaces are wanted, shared and global");
    in->space = space == 0 ? EMU_SHARED_CLUSTER : EMU_SHARED;
    if (emu_dec_mod(d, "mbarrier::complete_tx::bytes")) {
        if (reduces)
            emu_dec_bad(d, "a reduction is part of a bulk group");
        return EMU_TENSOR_LOAD;
    }
    if (!emu_dec_mod(d, "bulk_group"))
        emu_dec_bad(d, "either an mbarrier or a bulk group is wanted");
    if (space == 0)
        emu_dec_bad(d, "the source is of '.shared::cta'");
    return reduces ? EMU_TENSOR_REDUCE : EMU_TENSOR_STORE;
}

static void take_combine(struct emu_dec *d)
{
    static const char *const names[] = {"add", "min", "max", "inc", "dec",
                                        "and", "or",  "xor", NULL};
    const int op = emu_dec_one_of(d, names);
    for (uint8_t i = 0; op >= 0 && emu_atom_names[i]; i++)
        if (strcmp(emu_atom_names[i], names[op]) == 0) {
            d->in->size = i;
            return;
        }
    emu_dec_bad(d, "unknown reduction");
}

// [map, {coordinates}]
static void take_map(struct emu_dec *d, struct emu_arg *args, uint32_t coordinates)
{
    const struct emu_operand *o = emu_dec_address(d, EMU_GENERIC, &args[EMU_TENSOR_MAP]);
    const struct emu_operand *base = &o->list[0];
    if (base->kind == EMU_OPD_ADDRESS && base->symbol->kind == EMU_SYM_VAR &&
        base->symbol->space == EMU_PARAM)
        args[EMU_TENSOR_MAP] = (struct emu_arg){
            .ref = emu_dec_pool(d->ld, EMU_PARAM_WINDOW + base->symbol->address + o->bits, 8),
            .width = 8};
    if (o->count != 2 || o->list[1].kind != EMU_OPD_VEC || o->list[1].count != coordinates)
        emu_dec_bad(d, "%u coordinates are wanted after the tensor map", coordinates);
    for (uint32_t i = 0; i < coordinates; i++)
        args[EMU_TENSOR_AT + i].ref = emu_dec_operand(d, &o->list[1].list[i], EMU_b32);
}

static void take_offsets(struct emu_dec *d, struct emu_arg *args, uint32_t count)
{
    const struct emu_operand *o = emu_dec_next(d);
    if (!o || o->kind != EMU_OPD_VEC || o->count != count)
        emu_dec_bad(d, "%u offsets in braces are wanted", count);
    for (uint32_t i = 0; i < count; i++)
        args[EMU_TENSOR_OFFSET + i].ref = emu_dec_operand(d, &o->list[i], EMU_b16);
}

void emu_decode_tensor_copy(struct emu_dec *d, bool reduces, bool prefetches)
{
    struct emu_insn *in = d->in;
    struct emu_arg args[EMU_TENSOR_ARGS];
    for (uint32_t i = 0; i < EMU_TENSOR_ARGS; i++)
        args[i] = (struct emu_arg){.ref = EMU_NO_REF};
    const enum emu_tensor_action action = take_action(d, reduces, prefetches);
    const enum emu_tensor_mode mode = take_mode(d, action);
    in->run = emu_run_tensor_copy;
    in->op = (uint8_t)action;
    in->type = (uint8_t)mode;
    const uint32_t rank = take_rank(d, mode);
    in->width = (uint8_t)rank;
    const bool multicast = emu_dec_mod(d, "multicast::cluster");
    const bool hinted = emu_dec_mod(d, "L2::cache_hint");
    in->round = emu_dec_mod(d, "cta_group::1") ? 1 : emu_dec_mod(d, "cta_group::2") ? 2 : 0;
    if (multicast && (action != EMU_TENSOR_LOAD || in->space != EMU_SHARED_CLUSTER))
        emu_dec_bad(d, "a multicast goes to '.shared::cluster'");
    if (in->round && action != EMU_TENSOR_LOAD)
        emu_dec_bad(d, "'.cta_group' is for loads");
    if (reduces)
        take_combine(d);
    const uint32_t coordinates = mode == EMU_TENSOR_ROWS ? 5 : rank;
    if (action == EMU_TENSOR_LOAD)
        emu_dec_address(d, (enum emu_space)in->space, &args[EMU_TENSOR_SHARED]);
    take_map(d, args, coordinates);
    if (action == EMU_TENSOR_LOAD)
        emu_dec_address(d, EMU_SHARED_CLUSTER, &args[EMU_TENSOR_BARRIER]);
    else if (action != EMU_TENSOR_PREFETCH)
        emu_dec_address(d, EMU_SHARED, &args[EMU_TENSOR_SHARED]);
    if (mode == EMU_TENSOR_IM2COL && (action == EMU_TENSOR_LOAD || prefetches))
        take_offsets(d, args, rank - 2);
    if (multicast)
        args[EMU_TENSOR_CTAS].ref = emu_dec_src(d, EMU_b16);
    if (hinted)
        emu_dec_src(d, EMU_b64);
    emu_dec_args_begin(d);
    for (uint32_t i = 0; i < EMU_TENSOR_ARGS; i++)
        *emu_dec_arg(d) = args[i];
}

// --- tensor maps ---

// The fields, their suffixes, and whether the instruction names one of several and in 64 bits.
static const struct {
    const char *name;
    enum tir_map_field field;
    bool is_indexed, is_wide, is_constant;
} fields[] = {
    {"global_address", TIR_MAP_ADDRESS, false, true, false},
    {"rank", TIR_MAP_RANK, false, false, false},
    {"box_dim", TIR_MAP_BOX, true, false, false},
    {"global_dim", TIR_MAP_DIM, true, false, false},
    {"global_stride", TIR_MAP_STRIDE, true, true, false},
    {"element_stride", TIR_MAP_STEP, true, false, false},
    {"elemtype", TIR_MAP_TYPE, false, false, true},
    {"interleave_layout", TIR_MAP_INTERLEAVE, false, false, true},
    {"swizzle_mode", TIR_MAP_SWIZZLE, false, false, true},
    {"swizzle_atomicity", TIR_MAP_ATOMICITY, false, false, true},
    {"fill_mode", TIR_MAP_FILL, false, false, true},
};

static enum emu_space take_space(struct emu_dec *d)
{
    if (emu_dec_mod(d, "global"))
        return EMU_GLOBAL;
    return emu_dec_mod(d, "shared::cta") ? EMU_SHARED : EMU_GENERIC;
}

// tensormap.replace.tile.FIELD{.space}.b1024.b32|b64 [map], {ord,} value
static void decode_replace(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    if (!emu_dec_mod(d, "tile"))
        emu_dec_bad(d, "'.tile' is missing");
    size_t i = 0;
    while (i < sizeof fields / sizeof *fields && !emu_dec_mod(d, fields[i].name))
        i++;
    if (i == sizeof fields / sizeof *fields)
        emu_dec_bad(d, "unknown field of a tensor map");
    const enum emu_space space = take_space(d);
    if (!emu_dec_mod(d, "b1024") || !emu_dec_mod(d, fields[i].is_wide ? "b64" : "b32"))
        emu_dec_bad(d, "'.b1024.%s' is missing", fields[i].is_wide ? "b64" : "b32");
    in->run = emu_run_tensormap_replace;
    in->op = (uint8_t)fields[i].field;
    emu_dec_memory(d, space);
    const uint64_t index = fields[i].is_indexed ? emu_dec_constant(d) : 0;
    if (index >= TIR_TENSOR_MAP_RANK - (fields[i].field == TIR_MAP_STRIDE ? 1u : 0u))
        emu_dec_bad(d, "a tensor map has no dimension %u here", (unsigned)index);
    in->round = (uint8_t)index;
    const uint64_t value = fields[i].is_constant ? emu_dec_constant(d) : 0;
    in->src[1] = fields[i].is_constant ? emu_dec_pool(d->ld, value, 4)
                                       : emu_dec_src(d, fields[i].is_wide ? EMU_b64 : EMU_b32);
}

// tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.SCOPE.sync.aligned
static void decode_cp_fenceproxy(struct emu_dec *d)
{
    static const char *const needed[] = {
        "global", "shared::cta", "tensormap::generic", "release", "sync", "aligned", NULL};
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};
    static const enum emu_scope scope_of[] = {EMU_SCOPE_CTA, EMU_SCOPE_CLUSTER, EMU_SCOPE_GPU,
                                              EMU_SCOPE_SYS};
    struct emu_insn *in = d->in;
    for (int i = 0; needed[i]; i++)
        if (!emu_dec_mod(d, needed[i]))
            emu_dec_bad(d, "'.%s' is missing", needed[i]);
    const int scope = emu_dec_one_of(d, scopes);
    if (scope < 0)
        emu_dec_bad(d, "the scope is missing");
    in->scope = (uint8_t)scope_of[scope];
    in->run = emu_run_tensormap_copy;
    in->flags |= EMU_INSN_SYNC;
    struct emu_arg to, from;
    emu_dec_address(d, EMU_GLOBAL, &to);
    emu_dec_address(d, EMU_SHARED, &from);
    if (emu_dec_constant(d) != TIR_TENSOR_MAP_BYTES)
        emu_dec_bad(d, "a tensor map has 128 bytes");
    emu_dec_args_begin(d);
    *emu_dec_arg(d) = to;
    *emu_dec_arg(d) = from;
}

void emu_decode_tensormap(struct emu_dec *d)
{
    if (emu_dec_mod(d, "replace"))
        decode_replace(d);
    else if (emu_dec_mod(d, "cp_fenceproxy"))
        decode_cp_fenceproxy(d);
    else
        emu_dec_bad(d, "unknown instruction");
}
