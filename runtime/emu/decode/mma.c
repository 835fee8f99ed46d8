// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoder of mma.sync, dense and sparse.

#include "emu/tensor/mma.h"
#include "emu/decode/decode.h"

struct types {
    enum emu_type d, a, b, c;
};

// The type whose row of the table an operand's type belongs to, for a kind.
static enum emu_type family(enum emu_type type, uint8_t kind)
{
    switch (type) {
    case EMU_u8:
        return EMU_s8;
    case EMU_u4:
        return EMU_s4;
    case EMU_e5m2:
        return EMU_e4m3;
    case EMU_e3m2:
    case EMU_e2m3:
    case EMU_e2m1:
        return kind == EMU_MMA_F8F6F4 || kind == EMU_MMA_MXF8F6F4 ? EMU_e4m3 : type;
    default:
        return type;
    }
}

static const struct emu_mma_shape *find_shape(struct emu_dec *d, const struct types *t,
                                              uint8_t sparse, uint8_t kind)
{
    for (uint32_t i = 0; i < emu_mma_shape_count; i++) {
        const struct emu_mma_shape *s = &emu_mma_shapes[i];
        if (s->sparse == sparse && s->kind == kind && s->a == family(t->a, kind) &&
            s->a == family(t->b, kind) && s->c == t->c && s->c == t->d && emu_dec_mod(d, s->name))
            return s;
    }
    return NULL;
}

// How many scales A and B have along k: the type and number must be ones that the kind knows.
static uint8_t scales(struct emu_dec *d, uint8_t kind, enum emu_type type)
{
    static const char *const names[] = {"scale_vec::1X", "scale_vec::2X", "scale_vec::4X", NULL};
    const int i = emu_dec_one_of(d, names);
    const uint8_t count = i >= 0 ? (uint8_t)(1 << i) : kind == EMU_MMA_MXF8F6F4 ? 1 : 2;
    bool ok = emu_dec_mod(d, "block_scale") && type == EMU_ue8m0;
    switch (kind) {
    case EMU_MMA_MXF8F6F4:
        ok &= count == 1;
        break;
    case EMU_MMA_MXF4:
        ok &= count == 2;
        break;
    default: // mxf4nvf4
        ok = i > 0 && (ok || (type == EMU_ue4m3 && count == 4));
    }
    if (!ok)
        emu_dec_bad(d, "unknown kind of scales");
    return count;
}

static void take_half(struct emu_dec *d, const struct emu_operand *o)
{
    const uint32_t ref = emu_dec_operand(d, o, EMU_b16);
    emu_dec_arg(d)->ref = ref;
}

static void take_scales(struct emu_dec *d)
{
    for (uint32_t side = 0; side < 2; side++) {
        emu_dec_registers(d, 1, EMU_b32, false);
        const struct emu_operand *o = emu_dec_next(d);
        if (!o || o->kind != EMU_OPD_VEC || o->count != 2)
            emu_dec_bad(d, "operand %u is not {byte, thread}", d->at);
        take_half(d, &o->list[0]);
        take_half(d, &o->list[1]);
    }
}

// The next layout from the left: 0 is row, 1 is col, -1 none.
static int next_layout(struct emu_dec *d)
{
    static const char *const names[] = {"row", "col", NULL};
    for (uint32_t i = 0; i < d->ast->mod_count; i++)
        for (int n = 0; names[n]; n++)
            if (!(d->used >> i & 1) && emu_str_is(d->ast->mods[i], names[n])) {
                d->used |= 1u << i;
                return n;
            }
    return -1;
}

// m8n8k4 of f16: layouts and the types of C and D are free.
static void decode_quads(struct emu_dec *d, const struct types *t)
{
    const int a = next_layout(d), b = next_layout(d);
    const bool narrow = t->d == EMU_f16 && t->c == EMU_f16;
    if (a < 0 || b < 0 || t->a != EMU_f16 || t->b != EMU_f16 ||
        !(narrow || (t->d == EMU_f32 && (t->c == EMU_f16 || t->c == EMU_f32))))
        emu_dec_bad(d, "unknown shape or types");
    d->in->run = emu_run_mma_quads;
    d->in->op = (a == 1 ? EMU_MMA_A_BY_COLUMNS : 0) | (b == 0 ? EMU_MMA_B_BY_ROWS : 0);
    d->in->type = (uint8_t)t->d;
    d->in->type2 = (uint8_t)t->c;
    emu_dec_registers(d, emu_mma_registers(8, emu_types[t->d].bits), EMU_b32, true);
    emu_dec_registers(d, 2, EMU_b32, false);
    emu_dec_registers(d, 2, EMU_b32, false);
    emu_dec_registers(d, emu_mma_registers(8, emu_types[t->c].bits), EMU_b32, false);
}

static uint8_t take_flags(struct emu_dec *d, const struct types *t, bool ordered)
{
    static const char *const bits[] = {"and", "xor", NULL};
    uint8_t flags = ordered ? EMU_MMA_ORDERED : 0;
    if (t->d == EMU_s32 && t->a != EMU_b1 && emu_dec_mod(d, "satfinite"))
        flags |= EMU_MMA_SATFINITE;
    if (t->a == EMU_b1) {
        const int i = emu_dec_one_of(d, bits);
        if (i < 0 || !emu_dec_mod(d, "popc"))
            emu_dec_bad(d, "'.xor.popc' or '.and.popc' is missing");
        flags |= i ? EMU_MMA_XOR : 0;
    }
    return flags;
}

static void take_operands(struct emu_dec *d, const struct emu_mma_shape *s)
{
    const struct emu_insn *in = d->in;
    const struct emu_element a = emu_mma_element(s, (enum emu_type)in->type);
    const struct emu_element b = emu_mma_element(s, (enum emu_type)in->type2);
    const enum emu_type reg = s->c == EMU_f64 ? EMU_b64 : EMU_b32;
    const uint32_t cs = emu_mma_registers(s->m / 4u, emu_types[s->c].bits);
    emu_dec_registers(d, cs, reg, true);
    emu_dec_registers(d, emu_mma_registers(s->m * emu_mma_stored(s) / EMU_WARP, a.bits), reg,
                      false);
    emu_dec_registers(d, emu_mma_registers(s->k * 8u / EMU_WARP, b.bits), reg, false);
    emu_dec_registers(d, cs, reg, false);
}

// The selector of a sparse product: how many values it has depends on the bits of metadata.
static void take_metadata(struct emu_dec *d, const struct emu_mma_shape *s)
{
    const struct emu_element a = emu_mma_element(s, (enum emu_type)d->in->type);
    const uint32_t per_row = emu_sparse_bits(a, s->k);
    emu_dec_registers(d, 1, EMU_b32, false);
    const uint64_t selector = emu_dec_constant(d);
    if (selector >= 64 / per_row)
        emu_dec_bad(d, "the sparsity selector is above %u", 64 / per_row - 1);
    d->in->offset = (int64_t)selector;
}

void emu_decode_mma(struct emu_dec *d)
{
    static const char *const must[] = {"sync", "aligned", NULL};
    static const char *const layout[] = {"row", "col", NULL};
    static const char *const sparse[] = {"sp", "sp::ordered_metadata", NULL};
    static const char *const kinds[] = {"kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4",
                                        "kind::mxf4nvf4", NULL};
    struct types t;
    emu_dec_need(d, must);
    const int sp = emu_dec_one_of(d, sparse);
    const uint8_t kind = (uint8_t)(emu_dec_one_of(d, kinds) + 1);
    t.d = emu_dec_type(d);
    t.a = emu_dec_type(d);
    t.b = emu_dec_type(d);
    t.c = emu_dec_type(d);
    d->in->flags |= EMU_INSN_SYNC;
    emu_dec_args_begin(d);
    if (t.a == EMU_f16 && emu_dec_mod(d, "m8n8k4")) {
        decode_quads(d, &t);
        return;
    }
    emu_dec_need(d, layout);
    const struct emu_mma_shape *s = find_shape(d, &t, sp >= 0, kind);
    if (!s)
        emu_dec_bad(d, "unknown shape or types");
    d->in->run = emu_run_mma;
    d->in->op = take_flags(d, &t, sp == 1);
    d->in->round = t.d == EMU_f64 ? (uint8_t)emu_dec_round(d) : 0;
    d->in->size = (uint8_t)(s - emu_mma_shapes);
    d->in->type = (uint8_t)t.a;
    d->in->type2 = (uint8_t)t.b;
    if (kind >= EMU_MMA_MXF8F6F4) {
        d->in->space = (uint8_t)emu_dec_type(d);
        d->in->width = scales(d, kind, (enum emu_type)d->in->space);
    }
    take_operands(d, s);
    if (s->sparse)
        take_metadata(d, s);
    if (d->in->width)
        take_scales(d);
}
