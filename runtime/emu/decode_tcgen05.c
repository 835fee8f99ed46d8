// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoders of tcgen05.

#include "emu/decode.h"
#include "emu/tmem.h"
#include "emu/umma.h"

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
    take_group(d);
    need_b32(d);
    d->in->run = emu_run_tmem_alloc;
    emu_dec_memory(d, emu_dec_mod(d, "shared::cta") ? EMU_SHARED : EMU_GENERIC);
    d->in->src[1] = emu_dec_src(d, EMU_b32);
}

static void decode_dealloc(struct emu_dec *d)
{
    need_sync(d);
    take_group(d);
    need_b32(d);
    d->in->run = emu_run_tmem_dealloc;
    d->in->src[0] = emu_dec_src(d, EMU_b32);
    d->in->src[1] = emu_dec_src(d, EMU_b32);
}

static void decode_relinquish(struct emu_dec *d)
{
    need_sync(d);
    take_group(d);
    d->in->run = emu_run_tmem_relinquish;
}

// A tensor memory address has 32 bits.
static void take_address(struct emu_dec *d)
{
    emu_dec_memory(d, EMU_GENERIC);
    if (d->in->type2 != EMU_b32)
        emu_dec_bad(d, "operand %u is not a 32-bit address", d->at);
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
    const bool packed = emu_dec_mod(d, is_load ? "pack::16b" : "unpack::16b");
    if (count > 128)
        emu_dec_bad(d, "more than 128 registers");
    need_b32(d);
    d->in->run = is_load ? emu_run_tmem_load : emu_run_tmem_store;
    d->in->op = (uint8_t)(shape | (packed ? EMU_TMEM_PACKED : 0));
    emu_dec_args_begin(d);
    if (is_load)
        emu_dec_registers(d, count, EMU_b32, true);
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

static void decode_product(struct emu_dec *d)
{
    static const char *const kinds[] = {"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8",
                                        NULL};
    static const char *const collectors[] = {"collector::a::fill", "collector::a::use",
                                             "collector::a::lastuse", "collector::a::discard",
                                             NULL};
    struct emu_insn *in = d->in;
    const bool pair = take_group(d);
    const int kind = emu_dec_one_of(d, kinds);
    bool negate = false;
    if (kind < 0)
        emu_dec_bad(d, "unknown kind");
    emu_dec_one_of(d, collectors); // what hardware may keep makes no difference here
    in->run = emu_run_umma;
    in->op = (uint8_t)(kind | (pair ? EMU_UMMA_PAIR : 0));
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
    if (is_next(d, EMU_OPD_VEC))
        emu_dec_registers(d, pair ? 8 : 4, EMU_b32, false);
    in->src[2] = emu_dec_pred(d, emu_dec_next(d), &negate);
    in->op |= negate ? EMU_UMMA_NOT_INPUT_D : 0;
    if (d->at < d->ast->operand_count) {
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
    if (emu_dec_mod(d, "mma")) {
        decode_product(d);
    } else if (emu_dec_mod(d, "ld")) {
        decode_access(d, true);
    } else if (emu_dec_mod(d, "st")) {
        decode_access(d, false);
    } else if (emu_dec_mod(d, "commit")) {
        decode_commit(d);
    } else if (emu_dec_one_of(d, waits) >= 0) {
        need_sync(d);
        d->in->run = emu_run_tmem_wait;
    } else if (emu_dec_one_of(d, fences) >= 0) {
        d->in->run = emu_run_nop;
    } else if (emu_dec_mod(d, "alloc")) {
        decode_alloc(d);
    } else if (emu_dec_mod(d, "dealloc")) {
        decode_dealloc(d);
    } else if (emu_dec_mod(d, "relinquish_alloc_permit")) {
        decode_relinquish(d);
    } else {
        emu_dec_bad(d, "unknown instruction");
    }
}
