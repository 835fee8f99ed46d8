// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoders of wgmma: products, fence, groups.

#include <stdio.h>

#include "emu/decode/decode.h"
#include "emu/tensor/wgmma.h"

// m64nNkK, with the k that the types of A and sparsity have.
static void take_shape(struct emu_dec *d, uint32_t k)
{
    char name[24];
    for (uint32_t n = 8; n <= 256; n += 8) {
        snprintf(name, sizeof name, "m64n%uk%u", n, k);
        if (emu_dec_mod(d, name)) {
            d->in->size = (uint8_t)(n / 8);
            return;
        }
    }
    emu_dec_bad(d, "unknown shape: m64nNk%u with N from 8 to 256 in steps of 8", k);
}

static bool types_match(enum emu_type d, enum emu_type a, enum emu_type b)
{
    switch (a) {
    case EMU_f16:
        return b == a && (d == EMU_f16 || d == EMU_f32);
    case EMU_bf16:
    case EMU_tf32:
        return b == a && d == EMU_f32;
    case EMU_e4m3:
    case EMU_e5m2:
        return (b == EMU_e4m3 || b == EMU_e5m2) && (d == EMU_f16 || d == EMU_f32);
    case EMU_s8:
    case EMU_u8:
        return (b == EMU_s8 || b == EMU_u8) && d == EMU_s32;
    case EMU_b1:
        return b == a && d == EMU_s32;
    default:
        return false;
    }
}

static void take_types(struct emu_dec *d, bool sparse)
{
    const enum emu_type to = emu_dec_type(d), a = emu_dec_type(d), b = emu_dec_type(d);
    if (!types_match(to, a, b) || (sparse && a == EMU_b1))
        emu_dec_bad(d, "unknown types");
    take_shape(d, (sparse ? 512u : 256u) / emu_types[a].bits);
    const uint32_t n = 8u * d->in->size;
    if (to == EMU_s32 && n > 32 && n % 16)
        emu_dec_bad(d, "integers need an N of 8, 16, 24, 32, 48 and on in steps of 16");
    if (a == EMU_b1 && !(emu_dec_mod(d, "and") && emu_dec_mod(d, "popc")))
        emu_dec_bad(d, "'.and.popc' is missing");
    if (to == EMU_s32 && a != EMU_b1 && emu_dec_mod(d, "satfinite"))
        d->in->op |= EMU_WGMMA_SATFINITE;
    d->in->type = (uint8_t)a;
    d->in->type2 = (uint8_t)b;
    d->in->width = (uint8_t)to;
}

// A constant that is one of two: 1 when it is the second.
static bool one_of_two(struct emu_dec *d, int64_t first, int64_t second)
{
    const int64_t value = (int64_t)emu_dec_constant(d);
    if (value != first && value != second)
        emu_dec_bad(d, "operand %u is neither %d nor %d", d->at, (int)first, (int)second);
    return value == second;
}

static void take_tail(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    const struct emu_operand *o = emu_dec_next(d);
    bool negate = false;
    if (o && o->kind == EMU_OPD_INT)
        in->src[2] = emu_dec_pool(d->ld, o->bits ? 1 : 0, 0);
    else
        in->src[2] = emu_dec_pred(d, o, &negate);
    in->op |= negate ? EMU_WGMMA_NOT_SCALE_D : 0;
    if (in->width == EMU_s32)
        return;
    in->op |= one_of_two(d, 1, -1) ? EMU_WGMMA_NEGATE_A : 0;
    in->op |= one_of_two(d, 1, -1) ? EMU_WGMMA_NEGATE_B : 0;
    if (in->type != EMU_f16 && in->type != EMU_bf16)
        return;
    if (!(in->op & EMU_WGMMA_A_IN_REGISTERS))
        in->op |= one_of_two(d, 0, 1) ? EMU_WGMMA_TRANS_A : 0;
    in->op |= one_of_two(d, 0, 1) ? EMU_WGMMA_TRANS_B : 0;
}

static void decode_product(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    const bool sparse = emu_dec_mod(d, "sp");
    in->run = emu_run_wgmma;
    in->op = sparse ? EMU_WGMMA_SPARSE : 0;
    take_types(d, sparse);
    emu_dec_args_begin(d);
    emu_dec_registers(d, 8u * in->size / (in->width == EMU_f16 ? 4 : 2), EMU_b32, true);
    for (uint32_t i = 0; i < in->count; i++)
        if (d->ld->module->args.at[in->list + i].ref == EMU_NO_REF)
            emu_dec_bad(d, "an accumulator is '_'");
    if (d->at < d->ast->operand_count && d->ast->operands[d->at].kind == EMU_OPD_VEC) {
        in->op |= EMU_WGMMA_A_IN_REGISTERS;
        emu_dec_registers(d, EMU_WGMMA_A_REGISTERS, EMU_b32, false);
    } else {
        in->src[0] = emu_dec_src(d, EMU_b64);
    }
    in->src[1] = emu_dec_src(d, EMU_b64);
    if (sparse) {
        in->src[3] = emu_dec_src(d, EMU_b32);
        const uint64_t selector = emu_dec_constant(d);
        if (selector >= (emu_types[in->type].bits >= 16 ? 2u : 1u))
            emu_dec_bad(d, "unknown sparsity selector");
        in->offset = (int64_t)selector;
    }
    take_tail(d);
}

void emu_decode_wgmma(struct emu_dec *d)
{
    static const char *const must[] = {"sync", "aligned", NULL};
    emu_dec_need(d, must);
    d->in->flags |= EMU_INSN_SYNC;
    if (emu_dec_mod(d, "fence")) {
        d->in->run = emu_run_wgmma_fence;
    } else if (emu_dec_mod(d, "commit_group")) {
        d->in->run = emu_run_wgmma_commit;
    } else if (emu_dec_mod(d, "wait_group")) {
        d->in->run = emu_run_wgmma_wait;
        d->in->offset = (int64_t)(emu_dec_constant(d) & INT32_MAX);
    } else if (emu_dec_mod(d, "mma_async")) {
        decode_product(d);
    } else {
        emu_dec_bad(d, "unknown instruction");
    }
}
