// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor copies: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, and their prefetch.
//
// The map is read and the box is walked at the issue; the bytes move when the schedule lets the
// operation go (bulk.c).

#include "emu/async/tensor_copy.h"

#include <inttypes.h>
#include <string.h>

#include "emu/async/bulk.h"
#include "emu/async/cp_async.h"
#include "emu/async/tensor_map.h"
#include "emu/mem/atom.h"
#include "emu/tensor/matrix.h"
#include "tensor_bits.h"

enum { MAP_ALIGN = 64 };

static void check_align(struct emu_warp *w, uint32_t lane, uint64_t address)
{
    if (address % MAP_ALIGN)
        emu_fault(w, lane, "misaligned tensor map at 0x%" PRIx64 ": %d bytes are wanted", address,
                  MAP_ALIGN);
}

// Reading a map for a copy is an access of the tensormap proxy.
static void read_map(struct emu_warp *w, uint32_t lane, uint64_t address, tir_tensor_map *out)
{
    tir_error error;
    uint8_t bytes[TIR_TENSOR_MAP_BYTES];
    check_align(w, lane, address);
    for (uint32_t i = 0; i < sizeof bytes; i += 16) {
        const struct emu_cell cell = emu_locate(w, lane, EMU_GENERIC, address + i, 16, EMU_LOAD);
        memcpy(bytes + i, cell.bytes, 16);
        if (!cell.map || !w->agent)
            continue;
        const struct emu_who who = emu_who_agent(w->agent);
        const uint32_t pc = (uint32_t)(w->in - w->launch->module->code.at);
        emu_race_access(&w->launch->race, &who, 1u << lane, cell.map, cell.at, 16, false,
                        emu_record_what(pc, EMU_PROXY_MAP, 0, EMU_SCOPE_CTA));
    }
    if (tir_tensor_map_read(bytes, out, &error) != TIR_OK)
        emu_fault(w, lane, "tensor map at 0x%" PRIx64 ": %s", address, error.message);
}

// --- reductions ---

static const enum emu_type type_of[TIR_TENSOR_MAP_TYPE_COUNT] = {
    [TIR_TENSOR_MAP_U8] = EMU_u8,         [TIR_TENSOR_MAP_U16] = EMU_u16,
    [TIR_TENSOR_MAP_U32] = EMU_u32,       [TIR_TENSOR_MAP_S32] = EMU_s32,
    [TIR_TENSOR_MAP_U64] = EMU_u64,       [TIR_TENSOR_MAP_S64] = EMU_s64,
    [TIR_TENSOR_MAP_F16] = EMU_f16,       [TIR_TENSOR_MAP_F32] = EMU_f32,
    [TIR_TENSOR_MAP_F64] = EMU_f64,       [TIR_TENSOR_MAP_BF16] = EMU_bf16,
    [TIR_TENSOR_MAP_F32_FTZ] = EMU_f32,   [TIR_TENSOR_MAP_TF32] = EMU_none,
    [TIR_TENSOR_MAP_TF32_FTZ] = EMU_none,
};

static emu_combine_fn combine_of(struct emu_warp *w, uint32_t lane, const tir_tensor_map *m, int op)
{
    const char *name = emu_atom_names[op];
    enum emu_type type = type_of[m->type];
    const bool is_bitwise =
        strcmp(name, "and") == 0 || strcmp(name, "or") == 0 || strcmp(name, "xor") == 0;
    if (is_bitwise && emu_types[type].kind != EMU_KIND_FLOAT)
        type = emu_type_size(type) == 8 ? EMU_b64 : emu_type_size(type) == 4 ? EMU_b32 : EMU_none;
    emu_combine_fn combine = type == EMU_none ? NULL : emu_atom_find(op, type);
    if (!combine)
        emu_fault(w, lane, "tensor copy: elements of type %d have no .%s", (int)m->type, name);
    return combine;
}

// --- copies ---

struct job {
    struct emu_bulk *bulk;
    struct emu_cta *cta; // whose shared memory it is
    struct emu_tensor_copy copy;
};

static void add_run(void *user, struct emu_tensor_run r)
{
    const struct job *j = user;
    struct emu_op *op = &j->bulk->op;
    const uint32_t at = r.shared - EMU_SHARED_START;
    const bool is_load = j->copy.is_load;
    struct emu_cell global = {.bytes = NULL};
    if (r.global && !r.is_tail)
        global = emu_global_range(op->warp, op->lane, r.global, r.size, !is_load);
    uint8_t *bytes = j->cta->shared + at, *shadow = j->cta->shared_shadow + at;
    if (is_load)
        emu_bulk_run(j->bulk, (struct emu_run){bytes, shadow, global.bytes, global.shadow, r.size});
    else if (r.global && !r.is_tail) // no store touches what is outside of its tensor
        emu_bulk_run(j->bulk, (struct emu_run){global.bytes, global.shadow, bytes, shadow, r.size});
}

static void drop_run(void *user, struct emu_tensor_run r)
{
    (void)user;
    (void)r;
}

static void walk(struct emu_warp *w, uint32_t lane, const struct emu_tensor_copy *c,
                 emu_tensor_run_fn emit, void *user)
{
    const char *why = emu_tensor_walk(c, emit, user);
    if (why)
        emu_fault(w, lane, "tensor copy: %s", why);
}

// The barrier that a load into the CTA of a rank signals: at the same place as the one that was
// named; with cta_group::2 in the CTA of its pair that the named one is in.
static struct emu_mbarrier *barrier_of(struct emu_warp *w, uint32_t lane, uint32_t rank,
                                       const struct emu_mbarrier *named, bool pairs)
{
    const uint32_t other = pairs ? (rank & ~1u) | (named->cta->rank & 1) : rank;
    return emu_mbarrier_of_copy(w, lane, EMU_SHARED_CLUSTER,
                                named->offset + EMU_SHARED_START + emu_rank_bits(other));
}

// Which CTAs of the cluster a load goes to.
static uint32_t targets(struct emu_warp *w, uint32_t lane, const struct emu_arg *args,
                        const struct emu_cta *to)
{
    if (args[EMU_TENSOR_CTAS].ref == EMU_NO_REF)
        return 1u << to->rank;
    const uint32_t ctas = ((const uint16_t *)emu_at_ref(w, args[EMU_TENSOR_CTAS].ref))[lane];
    if (ctas == 0 || ctas >> w->cta->cluster->size)
        emu_fault(w, lane, "multicast to CTAs 0x%x of a cluster of %u", ctas,
                  w->cta->cluster->size);
    return ctas;
}

static void load(struct emu_warp *w, const struct emu_insn *in, uint32_t lane, struct job *j,
                 uint64_t address)
{
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const tir_tensor_map *m = j->copy.map;
    const struct emu_mbarrier *named = emu_mbarrier_of_copy(w, lane, EMU_SHARED_CLUSTER, address);
    struct emu_cta *to = j->cta;
    const uint32_t ctas = targets(w, lane, args, to);
    const bool pairs = in->round == 2;
    if (named->cta != to && !(pairs && (named->cta->rank ^ to->rank) == 1) &&
        args[EMU_TENSOR_CTAS].ref == EMU_NO_REF)
        emu_fault(w, lane, "tensor copy: the mbarrier and the tile are in different CTAs");
    struct emu_bulk *b = j->bulk;
    b->bytes = emu_tensor_bytes(&j->copy);
    b->element = tir_tensor_map_type_bytes(m->type);
    b->fill = emu_tensor_fill(m);
    b->convert = emu_tensor_convert(m);
    for (uint32_t rank = 0; rank < w->cta->cluster->size; rank++) {
        if (!(ctas >> rank & 1))
            continue;
        j->cta = &w->cta->cluster->ctas[rank];
        b->barriers[b->barrier_count++] = barrier_of(w, lane, rank, named, pairs);
        walk(w, lane, &j->copy, add_run, j);
    }
}

static void start(struct emu_warp *w, const struct emu_insn *in, uint32_t lane,
                  struct emu_tensor_copy copy, uint64_t shared, uint64_t barrier)
{
    const enum emu_tensor_action action = (enum emu_tensor_action)in->op;
    struct job j = {.copy = copy};
    uint32_t offset;
    j.cta = emu_shared_at(w, lane, (enum emu_space)in->space, shared, emu_tensor_extent(&j.copy),
                          &offset);
    j.copy.shared = offset + EMU_SHARED_START;
    j.bulk = emu_bulk_new(w, lane);
    if (action == EMU_TENSOR_LOAD) {
        load(w, in, lane, &j, barrier);
    } else {
        if (action == EMU_TENSOR_REDUCE) {
            j.bulk->combine = combine_of(w, lane, copy.map, in->size);
            j.bulk->element = tir_tensor_map_type_bytes(copy.map->type);
        }
        walk(w, lane, &j.copy, add_run, &j);
    }
    emu_bulk_issue(j.bulk);
}

// list: EMU_TENSOR_*; op: enum emu_tensor_action; type: enum emu_tensor_mode; width: dimensions;
// size: the operation of a reduction; space: of the shared memory; round: the cta_group, or 0
EMU_RUN(tensor_copy)
{
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    uint64_t map[EMU_WARP], shared[EMU_WARP] = {0}, barrier[EMU_WARP] = {0};
    emu_arg_addresses(w, &args[EMU_TENSOR_MAP], map);
    if (args[EMU_TENSOR_SHARED].ref != EMU_NO_REF)
        emu_arg_addresses(w, &args[EMU_TENSOR_SHARED], shared);
    if (args[EMU_TENSOR_BARRIER].ref != EMU_NO_REF)
        emu_arg_addresses(w, &args[EMU_TENSOR_BARRIER], barrier);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        tir_tensor_map m;
        read_map(w, i, map[i], &m);
        if (m.rank != in->width)
            emu_fault(w, i, "tensor copy of %u dimensions with a map of %u", in->width, m.rank);
        struct emu_tensor_copy c = {.map = &m,
                                    .mode = (enum emu_tensor_mode)in->type,
                                    .is_load =
                                        in->op == EMU_TENSOR_LOAD || in->op == EMU_TENSOR_PREFETCH};
        for (uint32_t k = 0; k < 5; k++)
            if (args[EMU_TENSOR_AT + k].ref != EMU_NO_REF)
                c.at[k] = ((const int32_t *)emu_at_ref(w, args[EMU_TENSOR_AT + k].ref))[i];
        for (uint32_t k = 0; k < 3; k++)
            if (args[EMU_TENSOR_OFFSET + k].ref != EMU_NO_REF)
                c.offset[k] = ((const uint16_t *)emu_at_ref(w, args[EMU_TENSOR_OFFSET + k].ref))[i];
        if (in->op == EMU_TENSOR_PREFETCH)
            walk(w, i, &c, drop_run, NULL);
        else
            start(w, in, i, c, shared[i], barrier[i]);
    }
}

// --- tensor maps ---

static void get_bytes(struct emu_warp *w, uint32_t lane, enum emu_space space, uint64_t address,
                      uint8_t *bytes)
{
    check_align(w, lane, address);
    for (uint32_t i = 0; i < TIR_TENSOR_MAP_BYTES; i += 16)
        memcpy(bytes + i, emu_resolve(w, lane, space, address + i, 16, EMU_LOAD).bytes, 16);
}

static void put_bytes(struct emu_warp *w, uint32_t lane, enum emu_space space, uint64_t address,
                      const uint8_t *bytes)
{
    check_align(w, lane, address);
    for (uint32_t i = 0; i < TIR_TENSOR_MAP_BYTES; i += 16) {
        const struct emu_cell cell = emu_resolve(w, lane, space, address + i, 16, EMU_STORE);
        memcpy(cell.bytes, bytes + i, 16);
        memset(cell.shadow, EMU_SET, 16);
    }
}

// Types as tensormap.replace numbers them.
static const tir_tensor_map_type replaced_types[] = {
    TIR_TENSOR_MAP_U8,        TIR_TENSOR_MAP_U16,  TIR_TENSOR_MAP_U32,
    TIR_TENSOR_MAP_S32,       TIR_TENSOR_MAP_U64,  TIR_TENSOR_MAP_S64,
    TIR_TENSOR_MAP_F16,       TIR_TENSOR_MAP_F32,  TIR_TENSOR_MAP_F32_FTZ,
    TIR_TENSOR_MAP_F64,       TIR_TENSOR_MAP_BF16, TIR_TENSOR_MAP_TF32,
    TIR_TENSOR_MAP_TF32_FTZ,  TIR_TENSOR_MAP_U8,   TIR_TENSOR_MAP_U4_ALIGN16,
    TIR_TENSOR_MAP_U6_ALIGN16};

// Makes an operand what tir_tensor_map_set takes. False: the field cannot have this value.
static bool is_possible(enum tir_map_field field, uint64_t *value)
{
    switch (field) {
    case TIR_MAP_ADDRESS:
        return *value >> 57 == 0;
    case TIR_MAP_RANK: // of one less
        return ++*value <= TIR_TENSOR_MAP_RANK;
    case TIR_MAP_BOX:
        return *value >= 1 && *value <= 256;
    case TIR_MAP_DIM:
        return *value >= 1;
    case TIR_MAP_STRIDE:
        return *value >> 40 == 0 && *value % 16 == 0;
    case TIR_MAP_STEP:
        return *value >= 1 && *value <= 8;
    case TIR_MAP_TYPE:
        if (*value >= TIR_TENSOR_MAP_TYPE_COUNT)
            return false;
        *value = replaced_types[*value];
        return true;
    case TIR_MAP_INTERLEAVE:
        return *value <= TIR_TENSOR_MAP_INTERLEAVE_32;
    case TIR_MAP_SWIZZLE:
        return *value <= TIR_TENSOR_MAP_SWIZZLE_128;
    case TIR_MAP_ATOMICITY:
        return *value == 0;
    case TIR_MAP_FILL:
        return *value <= TIR_TENSOR_MAP_FILL_NAN;
    }
    return false;
}

// src[0] + offset: the map; src[1]: the value; op: enum tir_map_field; round: which of several
EMU_RUN(tensormap_replace)
{
    uint64_t address[EMU_WARP];
    emu_addresses(w, in, address);
    const bool is_wide = in->op == TIR_MAP_ADDRESS || in->op == TIR_MAP_STRIDE;
    const uint8_t *values = emu_at_ref(w, in->src[1]);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        uint8_t bytes[TIR_TENSOR_MAP_BYTES];
        uint64_t value = 0;
        if (!(mask >> i & 1))
            continue;
        memcpy(&value, values + (is_wide ? 8 : 4) * i, is_wide ? 8 : 4);
        get_bytes(w, i, (enum emu_space)in->space, address[i], bytes);
        const uint64_t given = value;
        if (tir_tensor_map_is_im2col(bytes))
            emu_fault(w, i, "tensor map at 0x%" PRIx64 ": not a tiled one", address[i]);
        if (!is_possible((enum tir_map_field)in->op, &value))
            emu_fault(w, i, "tensor map: the field cannot be %" PRIu64, given);
        tir_tensor_map_set(bytes, (enum tir_map_field)in->op, in->round, value);
        put_bytes(w, i, (enum emu_space)in->space, address[i], bytes);
    }
}

// list: destination in global, source in shared memory; scope
EMU_RUN(tensormap_copy)
{
    if (!emu_whole_warp(w, mask))
        return;
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t lane = emu_first_lane(mask);
    uint64_t to[EMU_WARP], from[EMU_WARP];
    uint8_t bytes[TIR_TENSOR_MAP_BYTES];
    emu_arg_addresses(w, &args[0], to);
    emu_arg_addresses(w, &args[1], from);
    get_bytes(w, lane, EMU_SHARED, from[lane], bytes);
    put_bytes(w, lane, EMU_GLOBAL, to[lane], bytes);
    if (w->agent)
        emu_order_fence_memory(w->agent, EMU_RELEASE, (enum emu_scope)in->scope);
}
