// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoders of loads, stores, atomics, fences and asynchronous copies.

#include <string.h>

#include "emu/decode/decode.h"
#include "emu/mem/atom.h"

static const char *const spaces[] = {
    "global",      "shared",          "local",        "param",       "const",
    "shared::cta", "shared::cluster", "param::entry", "param::func", NULL};
static const enum emu_space space_of[] = {EMU_GLOBAL,         EMU_SHARED, EMU_LOCAL,
                                          EMU_PARAM,          EMU_CONST,  EMU_SHARED,
                                          EMU_SHARED_CLUSTER, EMU_PARAM,  EMU_PARAM};

static enum emu_space take_space(struct emu_dec *d)
{
    const int i = emu_dec_one_of(d, spaces);
    return i < 0 ? EMU_GENERIC : space_of[i];
}

void emu_dec_order(struct emu_dec *d, uint32_t order, enum emu_scope scope)
{
    static const char *const orders[] = {"weak",    "volatile", "relaxed", "acquire",
                                         "release", "acq_rel",  NULL};
    static const uint8_t order_of[] = {0,
                                       EMU_STRONG,
                                       EMU_STRONG,
                                       EMU_STRONG | EMU_ACQUIRE,
                                       EMU_STRONG | EMU_RELEASE,
                                       EMU_STRONG | EMU_ACQUIRE | EMU_RELEASE};
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};
    emu_dec_mod(d, "mmio"); // comes with .relaxed
    const int o = emu_dec_one_of(d, orders), s = emu_dec_one_of(d, scopes);
    d->in->order = o < 0 ? (uint8_t)order : order_of[o];
    d->in->scope = (uint8_t)(s < 0 ? (int)scope : s);
}

// Caching says nothing about what is computed.
static void skip_hints(struct emu_dec *d)
{
    static const char *const hints[] = {"ca",
                                        "cg",
                                        "cs",
                                        "lu",
                                        "cv",
                                        "wb",
                                        "wt",
                                        "nc",
                                        "unified",
                                        "L1::no_allocate",
                                        "L1::evict_normal",
                                        "L1::evict_unchanged",
                                        "L1::evict_first",
                                        "L1::evict_last",
                                        "L2::evict_normal",
                                        "L2::evict_first",
                                        "L2::evict_last",
                                        "L2::64B",
                                        "L2::128B",
                                        "L2::256B",
                                        "noftz",
                                        NULL};
    while (emu_dec_one_of(d, hints) >= 0)
        ;
}

static uint32_t take_vector(struct emu_dec *d)
{
    static const char *const names[] = {"v2", "v4", "v8", NULL};
    const int i = emu_dec_one_of(d, names);
    return i < 0 ? 1 : 2u << i;
}

static void take_policy(struct emu_dec *d, bool hinted)
{
    if (hinted)
        emu_dec_src(d, EMU_b64);
}

// The type, and a number of elements whose size together is a legal access.
static enum emu_type access_type(struct emu_dec *d, uint32_t vector)
{
    const enum emu_type type = emu_dec_type(d);
    const uint32_t size = emu_type_size(type);
    if (type == EMU_none || size == 0 || size * vector > 32 ||
        emu_types[type].kind == EMU_KIND_PACKED)
        emu_dec_bad(d, "unknown access type");
    d->in->type = (uint8_t)type;
    d->in->size = (uint8_t)size;
    return type;
}

// Registers of a load or store may be wider than its type.
static void take_elements(struct emu_dec *d, const struct emu_operand *o, uint32_t vector,
                          bool is_dst)
{
    const struct emu_operand *list = o;
    const enum emu_type type = (enum emu_type)d->in->type;
    const uint32_t least = emu_reg_width(type);
    uint32_t width = 0;
    const bool braced = o && o->kind == EMU_OPD_VEC; // a single element may be, too
    if (!o || (braced ? o->count : 1) != vector)
        emu_dec_bad(d, "%u elements expected", vector);
    if (braced)
        list = o->list;
    emu_dec_args_begin(d);
    for (uint32_t i = 0; i < vector; i++) {
        enum emu_type as = type;
        if (list[i].kind == EMU_OPD_REG) {
            as = list[i].type;
            if (emu_reg_width(as) < least || (width && emu_reg_width(as) != width))
                emu_dec_bad(d, "registers are narrower than the type, or of different widths");
            width = emu_reg_width(as);
        }
        // Stores of 256 bits may leave out elements.
        const bool skips = list[i].kind == EMU_OPD_SINK && emu_type_size(type) * vector == 32;
        const uint32_t ref = is_dst  ? emu_dec_dst_operand(d, &list[i], as)
                             : skips ? EMU_NO_REF
                                     : emu_dec_operand(d, &list[i], as);
        d->in->op |= skips && !is_dst;
        *emu_dec_arg(d) = (struct emu_arg){.ref = ref, .width = emu_reg_width(as)};
    }
    d->in->width = (uint8_t)(width ? width : least);
}

// Which bytes of a load are used: those of the pragma before it, without elements that go nowhere.
static uint32_t used_bytes(const struct emu_dec *d, const struct emu_operand *to, uint32_t vector)
{
    const uint32_t size = d->in->size, all = UINT32_MAX >> (32 - size * vector);
    uint32_t used = d->ast->used_bytes ? d->ast->used_bytes & all : all;
    for (uint32_t i = 0; i < vector && to->kind == EMU_OPD_VEC; i++)
        if (to->list[i].kind == EMU_OPD_SINK)
            used &= ~(UINT32_MAX >> (32 - size) << i * size);
    return used == all ? 0 : used;
}

void emu_decode_ld(struct emu_dec *d)
{
    const enum emu_space space = take_space(d);
    emu_dec_order(d, 0, EMU_SCOPE_SYS);
    d->in->flags |= d->in->order ? EMU_INSN_POLL : 0;
    skip_hints(d);
    const bool hinted = emu_dec_mod(d, "L2::cache_hint");
    const uint32_t vector = take_vector(d);
    access_type(d, vector);
    const struct emu_operand *to = emu_dec_next(d);
    const struct emu_operand *mem = emu_dec_memory(d, space);
    if (mem->count != 1)
        emu_dec_bad(d, "one address expected");
    take_policy(d, hinted);
    take_elements(d, to, vector, true);
    d->in->run = emu_run_ld;
    d->in->target = used_bytes(d, to, vector);
    const struct emu_operand *base = &mem->list[0];
    if (base->kind == EMU_OPD_ADDRESS && base->symbol->kind == EMU_SYM_VAR &&
        base->symbol->space == EMU_PARAM) {
        d->in->run = emu_run_ld_param;
        d->in->offset += (int64_t)base->symbol->address;
    }
}

// --- asynchronous stores and reductions, and zeros ---

static bool has_mod(const struct emu_dec *d, const char *name)
{
    for (uint32_t i = 0; i < d->ast->mod_count; i++)
        if (emu_str_is(d->ast->mods[i], name))
            return true;
    return false;
}

// What stands around the value of st.async and red.async that an mbarrier hears of.
static void push_begin(struct emu_dec *d)
{
    static const char *const needed[] = {"mbarrier::complete_tx::bytes", NULL};
    d->in->run = emu_run_push;
    emu_dec_mod(d, "shared::cluster");
    emu_dec_need(d, needed);
}

static void push_end(struct emu_dec *d)
{
    struct emu_arg barrier;
    emu_dec_address(d, EMU_SHARED_CLUSTER, &barrier);
    *emu_dec_arg(d) = barrier;
}

static void decode_push(struct emu_dec *d)
{
    push_begin(d);
    emu_dec_mod(d, "weak");
    const uint32_t vector = take_vector(d);
    const enum emu_type type = access_type(d, vector);
    if (vector > 4 || (emu_type_size(type) != 4 && emu_type_size(type) != 8))
        emu_dec_bad(d, "asynchronous stores are of 1, 2 or 4 values of 32 or 64 bits");
    emu_dec_memory(d, EMU_SHARED_CLUSTER);
    take_elements(d, emu_dec_next(d), vector, false);
    push_end(d);
}

static void decode_push_reduction(struct emu_dec *d)
{
    static const struct {
        const char *op;
        enum emu_type types[3];
    } rows[] = {{"add", {EMU_u32, EMU_s32, EMU_u64}},
                {"min", {EMU_u32, EMU_s32}},
                {"max", {EMU_u32, EMU_s32}},
                {"inc", {EMU_u32}},
                {"dec", {EMU_u32}},
                {"and", {EMU_b32}},
                {"or", {EMU_b32}},
                {"xor", {EMU_b32}}};
    static const char *const needed[] = {"relaxed", "cluster", NULL};
    struct emu_insn *in = d->in;
    push_begin(d);
    emu_dec_need(d, needed);
    const int op = emu_dec_one_of(d, emu_atom_names);
    const enum emu_type type = access_type(d, 1);
    for (size_t i = 0; op >= 0 && i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 3 && rows[i].types[k] != EMU_none; k++)
            if (rows[i].types[k] == type && strcmp(rows[i].op, emu_atom_names[op]) == 0)
                in->atom = emu_atom_find(op, type);
    if (!in->atom)
        emu_dec_bad(d, "unknown reduction");
    emu_dec_memory(d, EMU_SHARED_CLUSTER);
    take_elements(d, emu_dec_next(d), 1, false);
    push_end(d);
}

static void decode_bulk_fill(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    emu_dec_mod(d, "weak");
    const bool shared = emu_dec_mod(d, "shared::cta") || emu_dec_mod(d, "shared");
    in->run = emu_run_bulk_fill;
    emu_dec_memory(d, shared ? EMU_SHARED : EMU_GENERIC);
    const struct emu_operand *size = emu_dec_next(d);
    if (!size)
        emu_dec_bad(d, "too few operands");
    const bool narrow = size->kind == EMU_OPD_REG && emu_reg_width(size->type) == 4;
    in->width = narrow ? 4 : 8;
    in->src[1] = emu_dec_operand(d, size, narrow ? EMU_b32 : EMU_b64);
    if (emu_dec_constant(d) != 0)
        emu_dec_bad(d, "only zeros can be stored");
}

// st.async and red.async to global memory are stores and reductions that release: nothing tells
// when they are done, so it may as well be now.
static bool is_push(struct emu_dec *d)
{
    if (!emu_dec_mod(d, "async"))
        return false;
    const bool pushes = has_mod(d, "mbarrier::complete_tx::bytes");
    if (!pushes && !has_mod(d, "release"))
        emu_dec_bad(d, "'.mbarrier::complete_tx::bytes' or '.release' is missing");
    return pushes;
}

void emu_decode_st(struct emu_dec *d)
{
    if (emu_dec_mod(d, "bulk")) {
        decode_bulk_fill(d);
        return;
    }
    if (is_push(d)) {
        decode_push(d);
        return;
    }
    const enum emu_space space = take_space(d);
    emu_dec_order(d, 0, EMU_SCOPE_SYS);
    skip_hints(d);
    const bool hinted = emu_dec_mod(d, "L2::cache_hint");
    const uint32_t vector = take_vector(d);
    access_type(d, vector);
    if (emu_dec_memory(d, space)->count != 1)
        emu_dec_bad(d, "one address expected");
    take_elements(d, emu_dec_next(d), vector, false);
    take_policy(d, hinted);
    d->in->run = emu_run_st;
}

// --- atomics ---

void emu_decode_atom(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    const bool is_red = emu_str_is(d->ast->opcode, "red");
    if (is_red && is_push(d)) {
        decode_push_reduction(d);
        return;
    }
    const enum emu_space space = take_space(d);
    emu_dec_order(d, EMU_STRONG, EMU_SCOPE_GPU);
    skip_hints(d);
    const bool hinted = emu_dec_mod(d, "L2::cache_hint");
    const int op = emu_dec_one_of(d, emu_atom_names);
    const uint32_t vector = take_vector(d);
    const enum emu_type type = emu_dec_type(d);
    const bool is_cas = op >= 0 && emu_str_is((tir_str){emu_atom_names[op], 3}, "cas");
    const bool is_exch = op >= 0 && emu_str_is((tir_str){emu_atom_names[op], 4}, "exch");
    const bool wide = type == EMU_b128 && vector == 1 && (is_cas || is_exch);
    in->run = wide ? emu_run_atom_wide : emu_run_atom;
    in->atom = op < 0 ? NULL : emu_atom_find(op, type);
    if ((!in->atom && !wide) || (is_red && (is_cas || is_exch)) ||
        vector * emu_type_size(type) > 16)
        emu_dec_bad(d, "unknown atomic operation");
    in->type = (uint8_t)type;
    in->size = (uint8_t)emu_type_size(type);
    in->width = (uint8_t)emu_reg_width(type);
    const struct emu_operand *to = is_red ? NULL : emu_dec_next(d);
    emu_dec_memory(d, space);
    const struct emu_operand *value = emu_dec_next(d);
    if (!value || (!is_red && !to))
        emu_dec_bad(d, "too few operands");
    const bool lists = vector > 1;
    if (lists != (value->kind == EMU_OPD_VEC) || (lists && value->count != vector) ||
        (to && (lists != (to->kind == EMU_OPD_VEC) || (lists && to->count != vector))))
        emu_dec_bad(d, "%u elements expected", vector);
    emu_dec_args_begin(d);
    for (uint32_t i = 0; i < vector; i++) { // a result and a source for each element
        const uint32_t dst =
            to ? emu_dec_dst_operand(d, lists ? &to->list[i] : to, type) : EMU_NO_REF;
        emu_dec_arg(d)->ref = dst;
        const uint32_t src = emu_dec_operand(d, lists ? &value->list[i] : value, type);
        emu_dec_arg(d)->ref = src;
    }
    in->op = is_cas;
    if (is_cas)
        in->src[1] = emu_dec_src(d, type);
    take_policy(d, hinted);
}

// --- fences ---

static enum emu_scope take_scope(struct emu_dec *d)
{
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", "gl", NULL};
    static const enum emu_scope scope_of_name[] = {EMU_SCOPE_CTA, EMU_SCOPE_CLUSTER, EMU_SCOPE_GPU,
                                                   EMU_SCOPE_SYS, EMU_SCOPE_GPU};
    const int i = emu_dec_one_of(d, scopes);
    return i < 0 ? EMU_SCOPE_SYS : scope_of_name[i];
}

static void take_limits(struct emu_dec *d)
{
    static const char *const limits[] = {"sync_restrict::shared::cta",
                                         "sync_restrict::shared::cluster", NULL};
    emu_dec_one_of(d, limits);
}

// fence.proxy.KIND, with an acquire or a release where it has one direction.
static void decode_proxy_fence(struct emu_dec *d)
{
    enum { ASYNC = 1, ONE_WAY };
    static const char *const kinds[] = {"alias", "async", "async::generic", "tensormap::generic",
                                        NULL};
    static const char *const fenced[] = {"global", "shared::cta", "shared::cluster", NULL};
    static const uint8_t planes[] = {0, EMU_FENCE_ASYNC_SHARED | EMU_FENCE_ASYNC_GLOBAL,
                                     EMU_FENCE_ASYNC_SHARED | EMU_FENCE_ASYNC_GLOBAL,
                                     EMU_FENCE_MAP};
    struct emu_insn *in = d->in;
    const int kind = emu_dec_one_of(d, kinds);
    if (kind < 0)
        emu_dec_bad(d, "unknown proxy");
    in->run = emu_run_fence_proxy;
    in->op = planes[kind];
    const int space = kind == ASYNC ? emu_dec_one_of(d, fenced) : -1;
    if (space >= 0)
        in->op = space == 0 ? EMU_FENCE_ASYNC_GLOBAL : EMU_FENCE_ASYNC_SHARED;
    if (kind >= ONE_WAY) {
        const bool acquires = emu_dec_mod(d, "acquire");
        if (!acquires && !emu_dec_mod(d, "release"))
            emu_dec_bad(d, "'.acquire' or '.release' is missing");
        in->order = acquires ? EMU_ACQUIRE : EMU_RELEASE;
        take_limits(d);
        in->scope = (uint8_t)take_scope(d);
    }
    d->at = d->ast->operand_count; // the address of a tensor map, and its size
}

void emu_decode_fence(struct emu_dec *d)
{
    static const char *const orders[] = {"sc", "acq_rel", "acquire", "release", NULL};
    static const uint8_t order_of[] = {EMU_ACQUIRE | EMU_RELEASE, EMU_ACQUIRE | EMU_RELEASE,
                                       EMU_ACQUIRE, EMU_RELEASE};
    if (emu_dec_mod(d, "proxy")) {
        decode_proxy_fence(d);
        return;
    }
    const bool is_init = emu_dec_mod(d, "mbarrier_init");
    const int i = emu_dec_one_of(d, orders);
    d->in->order = i < 0 ? EMU_ACQUIRE | EMU_RELEASE : order_of[i];
    take_limits(d);
    d->in->scope = (uint8_t)take_scope(d);
    d->in->run = is_init ? emu_run_fence_proxy : emu_run_fence;
    d->in->op = is_init ? EMU_FENCE_INIT : 0;
}

// --- what only tells the hardware something ---

// A policy says nothing about what is computed; any value will do.
void emu_decode_createpolicy(struct emu_dec *d)
{
    d->used = (1u << d->ast->mod_count) - 1;
    d->in->run = emu_run_mov;
    d->in->width = 8;
    d->in->dst = emu_dec_dst(d, EMU_b64);
    d->in->src[0] = emu_dec_pool(d->ld, 0, 8);
    d->at = d->ast->operand_count;
}

// Instructions that need several GPUs or a texture unit.
void emu_decode_unsupported(struct emu_dec *d)
{
    emu_dec_bad(d, emu_str_is(d->ast->opcode, "multimem")
                       ? "multicast memory of several GPUs is not emulated"
                       : "textures and surfaces are not emulated");
}

void emu_decode_hint(struct emu_dec *d)
{
    d->used = (1u << d->ast->mod_count) - 1;
    d->at = d->ast->operand_count;
    d->in->run = emu_run_nop;
}
