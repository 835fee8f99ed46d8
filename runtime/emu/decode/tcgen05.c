// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoders of tcgen05.

#include <stdio.h>

#include "emu/decode/decode.h"
#include "emu/tensor/tmem.h"
#include "emu/tensor/umma.h"

// 0: cta_group::1, 1: cta_group::2.
static bool take_group(struct emu_dec *d)
{
    static const char *const groups[] = {"cta_group::1", "cta_group::2", NULL};
    const int i = emu_dec_one_of(d, groups);
    if (i < 0)
        emu_dec_bad(d, "'.cta_group::1' or '.cta_group::2' is missing");
    return i;
}

static void need_sync(struct emu_dec *d)
{
    static const char *const must[] = {"sync", "aligned", NULL};
    emu_dec_need(d, must);
    d->in->flags |= EMU_INSN_SYNC;
}

static void need_b32(struct emu_dec *d)
{
    static const char *const must[] = {"b32", NULL};
    emu_dec_need(d, must);
}

static void decode_alloc(struct emu_dec *d)
{
    need_sync(d);
    d->in->op = take_group(d) ? EMU_UMMA_PAIR : 0;
    need_b32(d);
    d->in->run = emu_run_tmem_alloc;
    emu_dec_memory(d, emu_dec_mod(d, "shared::cta") ? EMU_SHARED : EMU_GENERIC);
    d->in->src[1] = emu_dec_src(d, EMU_b32);
}

static void decode_dealloc(struct emu_dec *d)
{
    need_sync(d);
    d->in->op = take_group(d) ? EMU_UMMA_PAIR : 0;
    need_b32(d);
    d->in->run = emu_run_tmem_dealloc;
    d->in->src[0] = emu_dec_src(d, EMU_b32);
    d->in->src[1] = emu_dec_src(d, EMU_b32);
}

static void decode_relinquish(struct emu_dec *d)
{
    need_sync(d);
    d->in->op = take_group(d) ? EMU_UMMA_PAIR : 0;
    d->in->run = emu_run_tmem_relinquish;
}

// A tensor memory address has 32 bits.
static void take_address(struct emu_dec *d)
{
    emu_dec_memory(d, EMU_GENERIC);
    if (d->in->type2 != EMU_b32)
        emu_dec_bad(d, "operand %u is not a 32-bit address", d->at);
}

// How .ld.red reduces; its columns are of one of three types.
static void take_reduction(struct emu_dec *d, int shape, int log)
{
    static const char *const ops[] = {"min", "max", NULL};
    const int op = emu_dec_one_of(d, ops);
    const enum emu_type type = emu_dec_type(d);
    if (op < 0 || (type != EMU_f32 && type != EMU_u32 && type != EMU_s32))
        emu_dec_bad(d, "unknown operation or type");
    if ((shape != EMU_TMEM_32X32B && shape != EMU_TMEM_16X32BX2) || log == 0)
        emu_dec_bad(d, "the shape has no reduction");
    if (type == EMU_f32)
        d->in->round = (emu_dec_mod(d, "abs") ? EMU_REDUX_ABS : 0) |
                       (emu_dec_mod(d, "NaN") ? EMU_REDUX_NAN : 0);
    d->in->type = (uint8_t)type;
    d->in->op |= op ? EMU_TMEM_MAX : EMU_TMEM_MIN;
}

static void decode_access(struct emu_dec *d, bool is_load)
{
    static const char *const shapes[] = {"32x32b",  "16x64b",   "16x128b",
                                         "16x256b", "16x32bx2", NULL};
    static const char *const counts[] = {"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128", NULL};
    static const uint8_t registers[] = {1, 1, 2, 4, 1};
    need_sync(d);
    const int shape = emu_dec_one_of(d, shapes), log = emu_dec_one_of(d, counts);
    if (shape < 0 || log < 0)
        emu_dec_bad(d, "the shape or its number is missing");
    const uint32_t count = registers[shape] << log;
    const bool reduces = is_load && emu_dec_mod(d, "red");
    const bool packed = !reduces && emu_dec_mod(d, is_load ? "pack::16b" : "unpack::16b");
    if (count > 128)
        emu_dec_bad(d, "more than 128 registers");
    d->in->run = is_load ? emu_run_tmem_load : emu_run_tmem_store;
    d->in->op = (uint8_t)(shape | (packed ? EMU_TMEM_PACKED : 0));
    d->in->dst = EMU_NO_REF;
    if (reduces)
        take_reduction(d, shape, log);
    else
        need_b32(d);
    emu_dec_args_begin(d);
    if (is_load)
        emu_dec_registers(d, count, EMU_b32, true);
    if (reduces)
        d->in->dst = emu_dec_dst(d, EMU_b32);
    take_address(d);
    if (shape == EMU_TMEM_16X32BX2)
        d->in->target = (uint32_t)emu_dec_constant(d);
    if (!is_load)
        emu_dec_registers(d, count, EMU_b32, false);
}

static void decode_commit(struct emu_dec *d)
{
    static const char *const must[] = {"mbarrier::arrive::one", "b64", NULL};
    d->in->op = take_group(d) ? EMU_UMMA_PAIR : 0;
    emu_dec_need(d, must);
    d->in->run = emu_run_umma_commit;
    d->ld->module->commits_tensors = true;
    const bool multicast = emu_dec_mod(d, "multicast::cluster");
    emu_dec_memory(d, emu_dec_mod(d, "shared::cluster") ? EMU_SHARED_CLUSTER : EMU_GENERIC);
    if (multicast) {
        d->in->op |= EMU_UMMA_MULTICAST;
        d->in->src[1] = emu_dec_src(d, EMU_b16);
    }
}

static void take_value(struct emu_dec *d, enum emu_type type)
{
    const uint32_t ref = emu_dec_src(d, type);
    *emu_dec_arg(d) = (struct emu_arg){.ref = ref, .width = emu_reg_width(type)};
}

static void take_tensor(struct emu_dec *d)
{
    struct emu_arg arg;
    emu_dec_address(d, EMU_GENERIC, &arg);
    if (arg.width != 4)
        emu_dec_bad(d, "operand %u is not a 32-bit address", d->at);
    *emu_dec_arg(d) = arg;
}

static bool is_next(const struct emu_dec *d, enum emu_operand_kind kind)
{
    return d->at < d->ast->operand_count && d->ast->operands[d->at].kind == kind;
}

// How many scales a row has: what the kind or a suffix says.
static uint8_t take_scales(struct emu_dec *d, int kind)
{
    static const char *const names[] = {"scale_vec::1X", "scale_vec::2X", "scale_vec::4X",
                                        "block32",       "block16",       NULL};
    static const uint8_t counts[] = {1, 2, 4, 2, 4};
    const int i = emu_dec_one_of(d, names);
    const uint8_t own = kind == EMU_UMMA_MXF8F6F4 ? 1 : 2;
    const uint8_t count = i < 0 || (i == 3 && own == 1) ? own : counts[i];
    const bool ok = kind == EMU_UMMA_MXF4NVF4 ? i >= 0 && count >= 2 : count == own;
    if (!emu_dec_mod(d, "block_scale") || !ok)
        emu_dec_bad(d, "unknown kind of scales");
    return count;
}

static void decode_copy(struct emu_dec *d)
{
    static const char *const shapes[] = {"128x256b", "128x128b", "4x256b",
                                         "64x128b",  "32x128b",  NULL};
    static const char *const formats[] = {"b4x16_p64", "b6x16_p32", NULL};
    struct emu_insn *in = d->in;
    in->op = take_group(d) ? EMU_UMMA_PAIR : 0;
    const int shape = emu_dec_one_of(d, shapes);
    in->run = emu_run_umma_copy;
    in->size = (uint8_t)shape;
    if (shape == 3 && emu_dec_mod(d, "warpx2::02_13"))
        in->size = EMU_UMMA_64X128B_02_13;
    else if (shape == 3 && emu_dec_mod(d, "warpx2::01_23"))
        in->size = EMU_UMMA_64X128B_01_23;
    else if (shape == 4 && emu_dec_mod(d, "warpx4"))
        in->size = EMU_UMMA_32X128B_X4;
    else if (shape < 0 || shape > 2)
        emu_dec_bad(d, "unknown shape, or which warps is missing");
    if (emu_dec_mod(d, "b8x16")) {
        const int format = emu_dec_one_of(d, formats);
        if (format < 0)
            emu_dec_bad(d, "the format of the source is missing");
        in->width = format ? 6 : 4;
    }
    take_address(d);
    in->src[1] = emu_dec_src(d, EMU_b64);
}

// The parts of A or B that hardware may keep make no difference here.
static void skip_collector(struct emu_dec *d, bool ws)
{
    for (uint32_t i = 0; i < d->ast->mod_count; i++) {
        const tir_str mod = d->ast->mods[i];
        static const char *const uses[] = {"fill", "use", "lastuse", "discard", NULL};
        static const char *const buffers[] = {"a", "b0", "b1", "b2", "b3", NULL};
        char name[40];
        for (int b = ws ? 1 : 0; buffers[b] && (ws || b == 0); b++)
            for (int u = 0; uses[u]; u++) {
                snprintf(name, sizeof name, "collector::%s::%s", buffers[b], uses[u]);
                if (emu_str_is(mod, name))
                    emu_dec_mod(d, name);
            }
    }
}

static void decode_product(struct emu_dec *d)
{
    static const char *const kinds[] = {
        "kind::f16",      "kind::tf32", "kind::f8f6f4",   "kind::i8",
        "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4", NULL};
    struct emu_insn *in = d->in;
    const bool ws = emu_dec_mod(d, "ws"), pair = take_group(d);
    const int kind = emu_dec_one_of(d, kinds);
    bool negate = false;
    if (kind < 0)
        emu_dec_bad(d, "unknown kind");
    if (emu_dec_mod(d, "sp") || emu_dec_mod(d, "ashift"))
        emu_dec_bad(d, "sparse A and shifted rows of A are not emulated");
    if (ws && (pair || kind > EMU_UMMA_I8))
        emu_dec_bad(d, "'.ws' is of one CTA and without scales");
    skip_collector(d, ws);
    in->run = emu_run_umma;
    in->op = (uint8_t)(kind | (pair ? EMU_UMMA_PAIR : 0) | (ws ? EMU_UMMA_WS : 0));
    in->width = kind >= EMU_UMMA_MXF8F6F4 ? take_scales(d, kind) : 0;
    emu_dec_args_begin(d);
    take_tensor(d);
    if (is_next(d, EMU_OPD_MEM)) {
        in->op |= EMU_UMMA_A_IN_TMEM;
        take_tensor(d);
    } else {
        take_value(d, EMU_b64);
    }
    take_value(d, EMU_b64);
    take_value(d, EMU_b32);
    if (in->width) {
        take_tensor(d);
        take_tensor(d);
    } else if (!ws && is_next(d, EMU_OPD_VEC)) {
        emu_dec_registers(d, pair ? 8 : 4, EMU_b32, false);
    }
    in->src[2] = emu_dec_pred(d, emu_dec_next(d), &negate);
    in->op |= negate ? EMU_UMMA_NOT_INPUT_D : 0;
    if (ws && d->at < d->ast->operand_count) {
        take_value(d, EMU_b64);
    } else if (d->at < d->ast->operand_count) {
        const uint64_t scale = emu_dec_constant(d);
        if (scale > 15 || kind > EMU_UMMA_TF32)
            emu_dec_bad(d, "no scale of the accumulator, or above 15");
        in->offset = (int64_t)scale;
    }
}

void emu_decode_tcgen05(struct emu_dec *d)
{
    static const char *const fences[] = {"fence::before_thread_sync", "fence::after_thread_sync",
                                         NULL};
    static const char *const waits[] = {"wait::ld", "wait::st", NULL};
    int which;
    if (emu_dec_mod(d, "mma")) {
        decode_product(d);
    } else if (emu_dec_mod(d, "ld")) {
        decode_access(d, true);
    } else if (emu_dec_mod(d, "st")) {
        decode_access(d, false);
    } else if (emu_dec_mod(d, "cp")) {
        decode_copy(d);
    } else if (emu_dec_mod(d, "commit")) {
        decode_commit(d);
    } else if ((which = emu_dec_one_of(d, waits)) >= 0) {
        need_sync(d);
        d->in->op = (uint8_t)which;
        d->in->run = emu_run_tmem_wait;
    } else if ((which = emu_dec_one_of(d, fences)) >= 0) {
        d->in->run = emu_run_tmem_fence;
        d->ld->module->fences_tensors = true;
        d->in->op = (uint8_t)which;
    } else if (emu_dec_mod(d, "alloc")) {
        decode_alloc(d);
    } else if (emu_dec_mod(d, "dealloc")) {
        decode_dealloc(d);
    } else if (emu_dec_mod(d, "relinquish_alloc_permit")) {
        decode_relinquish(d);
    } else if (emu_dec_mod(d, "shift")) {
        emu_dec_bad(d, "a shift of rows is not emulated");
    } else {
        emu_dec_bad(d, "unknown instruction");
    }
}
