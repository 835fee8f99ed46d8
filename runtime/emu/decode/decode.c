// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoding: from parsed instructions to the program that runs.
//
// Each parsed instruction becomes exactly one decoded one, so labels are pcs as they stand.
// Suffixes are consumed one by one; a suffix left over is an error, so nothing is silently ignored.

#include "emu/decode/decode.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emu/device.h"
#include "emu/run/trace.h"

struct emu_constant {
    struct emu_constant *next;
    uint64_t value;
    uint32_t width;
    uint32_t shared; // 1 + the variable whose address is added, or 0
    uint32_t ref;
};

void emu_dec_bad(struct emu_dec *d, const char *format, ...)
{
    char text[160], name[120];
    size_t at =
        (size_t)snprintf(name, sizeof name, "%.*s", (int)d->ast->opcode.len, d->ast->opcode.ptr);
    for (uint32_t i = 0; i < d->ast->mod_count && at < sizeof name; i++)
        at += (size_t)snprintf(name + at, sizeof name - at, ".%.*s", (int)d->ast->mods[i].len,
                               d->ast->mods[i].ptr);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    emu_syntax(d->ld, d->ast->line, "%s: %s", name, text);
}

// --- suffixes ---

bool emu_dec_mod(struct emu_dec *d, const char *name)
{
    for (uint32_t i = 0; i < d->ast->mod_count; i++)
        if (!(d->used >> i & 1) && emu_str_is(d->ast->mods[i], name)) {
            d->used |= 1u << i;
            return true;
        }
    return false;
}

int emu_dec_one_of(struct emu_dec *d, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (emu_dec_mod(d, names[i]))
            return i;
    return -1;
}

enum emu_type emu_dec_type(struct emu_dec *d)
{
    for (uint32_t i = 0; i < d->ast->mod_count; i++) {
        const enum emu_type type = d->used >> i & 1 ? EMU_none : emu_type_find(d->ast->mods[i]);
        if (type != EMU_none) {
            d->used |= 1u << i;
            return type;
        }
    }
    return EMU_none;
}

enum emu_round emu_dec_round(struct emu_dec *d)
{
    static const char *const names[] = {"rn", "rz", "rm", "rp", "rna", "rs", NULL};
    const int i = emu_dec_one_of(d, names);
    return i < 0 ? EMU_RN : (enum emu_round)i;
}

// --- constants ---

uint32_t emu_reg_width(enum emu_type type)
{
    if (type == EMU_pred)
        return 0;
    return emu_types[type].bits <= 16 ? 2 : emu_types[type].bits / 8u;
}

static uint32_t pool_room(struct emu_loader *ld, uint32_t size)
{
    struct emu_module *m = ld->module;
    const uint32_t limit = 1u << 29;
    if (m->pool_cap - m->pool_len < size) {
        const uint32_t cap = m->pool_cap ? m->pool_cap * 2 : 16384;
        if (cap > limit)
            emu_syntax(ld, ld->token.line, "too many constants");
        uint8_t *grown = emu_resize(&ld->emu->allocator, m->pool, m->pool_cap, cap);
        if (!grown)
            emu_raise(&ld->trap, TIR_ERR_NO_MEMORY, "out of memory");
        m->pool = grown;
        m->pool_cap = cap;
    }
    const uint32_t at = m->pool_len;
    m->pool_len += size;
    return at;
}

static uint32_t pool_add(struct emu_loader *ld, uint64_t value, uint32_t width, uint32_t shared)
{
    const uint64_t mixed = (value + width * 0x100u + shared * 0x10001u) * 0x9e3779b97f4a7c15u;
    struct emu_constant **bucket = &ld->constants[mixed >> 32 & (EMU_NAME_BUCKETS - 1)];
    for (const struct emu_constant *c = *bucket; c; c = c->next)
        if (c->value == value && c->width == width && c->shared == shared)
            return c->ref;
    const uint32_t at = pool_room(ld, width ? width * EMU_WARP : 16);
    uint8_t *to = ld->module->pool + at;
    const uint32_t mask = value ? EMU_FULL : 0;
    if (width == 0)
        memcpy(to, &mask, sizeof mask);
    for (uint32_t i = 0; i < EMU_WARP && width; i++) {
        memset(to + i * width, 0, width);
        memcpy(to + i * width, &value, width < 8 ? width : 8); // little endian
    }
    struct emu_constant *c = emu_arena_alloc(&ld->scratch, sizeof *c);
    *c = (struct emu_constant){*bucket, value, width, shared, emu_ref(EMU_BASE_POOL, at)};
    *bucket = c;
    if (shared)
        *emu_push(ld->keep, &ld->module->fixups) =
            (struct emu_fixup){.pool = at, .width = width, .shared = shared - 1, .addend = value};
    return c->ref;
}

uint32_t emu_dec_pool(struct emu_loader *ld, uint64_t value, uint32_t width)
{
    if (width && width < 8)
        value &= ((uint64_t)1 << 8 * width) - 1;
    return pool_add(ld, value, width, 0);
}

static uint32_t shared_address(struct emu_dec *d, const struct emu_symbol *s, uint64_t addend,
                               uint32_t width)
{
    *emu_push(d->ld->keep, &d->ld->module->uses) = (struct emu_use){.index = (uint32_t)s->address};
    return pool_add(d->ld, addend, width, (uint32_t)s->address + 1);
}

static uint32_t address_operand(struct emu_dec *d, const struct emu_operand *o, uint32_t width)
{
    const struct emu_symbol *s = o->symbol;
    if (width != 4 && width != 8)
        emu_dec_bad(d, "an address needs a register of 32 or 64 bits");
    if (s->kind == EMU_SYM_FUNC)
        return emu_dec_pool(d->ld, emu_func_address(s->func->index), width);
    if (s->is_extern)
        emu_dec_bad(d, "'%.*s' is declared but not defined", (int)s->name->text.len,
                    s->name->text.ptr);
    if (s->space == EMU_LOCAL)
        emu_dec_bad(d, "the address of a local variable can only be moved");
    if (s->space == EMU_SHARED)
        return shared_address(d, s, o->bits, width);
    return emu_dec_pool(d->ld, s->address + o->bits, width);
}

static uint64_t float_constant(struct emu_dec *d, const struct emu_operand *o, enum emu_type type)
{
    const uint32_t width = emu_reg_width(type);
    float narrow;
    double value;
    uint32_t bits32 = (uint32_t)o->bits;
    uint64_t bits = o->bits;
    if (width != 4 && width != 8)
        emu_dec_bad(d, "a floating-point constant where '.%s' is wanted", emu_types[type].name);
    if (o->kind == EMU_OPD_F32) {
        if (width == 4)
            return bits32;
        memcpy(&narrow, &bits32, sizeof narrow);
        value = narrow;
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    if (width == 8)
        return bits;
    memcpy(&value, &bits, sizeof value);
    narrow = (float)value;
    memcpy(&bits32, &narrow, sizeof bits32);
    return bits32;
}

// --- operands ---

struct emu_operand *emu_dec_next(struct emu_dec *d)
{
    return d->at < d->ast->operand_count ? &d->ast->operands[d->at++] : NULL;
}

static struct emu_operand *need(struct emu_dec *d)
{
    struct emu_operand *o = emu_dec_next(d);
    if (!o)
        emu_dec_bad(d, "too few operands");
    return o;
}

uint32_t emu_dec_operand(struct emu_dec *d, const struct emu_operand *o, enum emu_type type)
{
    const uint32_t width = emu_reg_width(type);
    if (o->negate && type != EMU_pred)
        emu_dec_bad(d, "'!' before something that is no predicate");
    if (o->minus || o->selector.len)
        emu_dec_bad(d, "operand %u is negated, or a part of a register", d->at);
    switch (o->kind) {
    case EMU_OPD_REG:
        if (emu_reg_width(o->type) != width)
            emu_dec_bad(d, "operand %u is a '.%s' register where '.%s' is wanted", d->at,
                        emu_types[o->type].name, emu_types[type].name);
        *emu_push(d->ld->keep, &d->ld->module->touches) =
            (struct emu_touch){.ref = o->ref, .width = (uint8_t)width};
        return o->ref;
    case EMU_OPD_INT:
        if (type == EMU_f32 || type == EMU_f64)
            emu_dec_bad(d, "an integer where '.%s' is wanted", emu_types[type].name);
        return emu_dec_pool(d->ld, o->bits, width);
    case EMU_OPD_F32:
    case EMU_OPD_F64:
        return emu_dec_pool(d->ld, float_constant(d, o, type), width);
    case EMU_OPD_SREG:
        if (o->ref >= EMU_SREG_clock)
            emu_dec_bad(d, "a clock can only be moved");
        if (emu_reg_width(o->type) != width)
            emu_dec_bad(d, "a '.%s' special register where '.%s' is wanted",
                        emu_types[o->type].name, emu_types[type].name);
        return emu_ref(EMU_BASE_SREG, o->ref * 8 * EMU_WARP);
    case EMU_OPD_ADDRESS:
        return address_operand(d, o, width);
    case EMU_OPD_NAME:
        emu_dec_bad(d, "'%.*s' is not declared", (int)o->name->text.len, o->name->text.ptr);
    default:
        emu_dec_bad(d, "operand %u is of the wrong kind", d->at);
    }
}

uint32_t emu_dec_src(struct emu_dec *d, enum emu_type type)
{
    return emu_dec_operand(d, need(d), type);
}

uint32_t emu_dec_dst_operand(struct emu_dec *d, const struct emu_operand *o, enum emu_type type)
{
    if (o->kind == EMU_OPD_SINK)
        return EMU_NO_REF;
    if (o->kind != EMU_OPD_REG || o->negate)
        emu_dec_bad(d, "the destination is not a register");
    const uint32_t ref = emu_dec_operand(d, o, type);
    d->ld->module->touches.at[d->ld->module->touches.len - 1].is_write = true;
    return ref;
}

uint32_t emu_dec_dst(struct emu_dec *d, enum emu_type type)
{
    return emu_dec_dst_operand(d, need(d), type);
}

uint32_t emu_dec_pred(struct emu_dec *d, const struct emu_operand *o, bool *negate)
{
    if (!o)
        emu_dec_bad(d, "a predicate is missing");
    *negate = o->negate;
    return emu_dec_operand(d, o, EMU_pred);
}

void emu_dec_pair(struct emu_dec *d, enum emu_type first, uint32_t *second)
{
    const struct emu_operand *o = need(d);
    *second = EMU_NO_REF;
    if (o->kind == EMU_OPD_PAIR) {
        d->in->dst = emu_dec_dst_operand(d, &o->list[0], first);
        *second = emu_dec_dst_operand(d, &o->list[1], EMU_pred);
    } else {
        d->in->dst = emu_dec_dst_operand(d, o, first);
    }
}

uint64_t emu_dec_constant(struct emu_dec *d)
{
    const struct emu_operand *o = need(d);
    if (o->kind != EMU_OPD_INT)
        emu_dec_bad(d, "operand %u is not a constant", d->at);
    return o->bits;
}

const struct emu_operand *emu_dec_memory(struct emu_dec *d, enum emu_space space)
{
    const struct emu_operand *o = need(d);
    struct emu_insn *in = d->in;
    if (o->kind != EMU_OPD_MEM)
        emu_dec_bad(d, "operand %u is not an address in brackets", d->at);
    const struct emu_operand *base = &o->list[0];
    const struct emu_symbol *s = base->symbol;
    in->offset = (int64_t)o->bits;
    in->space = (uint8_t)space;
    in->type2 = EMU_b64;
    if (base->kind == EMU_OPD_REG) {
        in->type2 = emu_reg_width(base->type) == 4 ? EMU_b32 : EMU_b64;
        in->src[0] = emu_dec_operand(d, base, (enum emu_type)in->type2);
        if (space == EMU_PARAM && !d->ld->func->is_entry)
            in->space = EMU_LOCAL; // a function's parameters are memory of its frame
    } else if (base->kind == EMU_OPD_ADDRESS && s->kind == EMU_SYM_VAR && s->space == EMU_LOCAL) {
        in->space = EMU_LOCAL;
        in->type2 = EMU_none;
        in->offset += (int64_t)s->address;
    } else if (base->kind == EMU_OPD_ADDRESS && s->kind == EMU_SYM_VAR) {
        in->src[0] = emu_dec_operand(d, base, EMU_b64);
        in->space = (uint8_t)s->space;
    } else if (base->kind == EMU_OPD_INT) {
        in->src[0] = emu_dec_pool(d->ld, base->bits, 8);
    } else {
        emu_dec_bad(d, "operand %u is not an address", d->at);
    }
    return o;
}

const struct emu_operand *emu_dec_address(struct emu_dec *d, enum emu_space space,
                                          struct emu_arg *out)
{
    const struct emu_insn before = *d->in;
    const struct emu_operand *o = emu_dec_memory(d, space);
    const struct emu_insn found = *d->in;
    *d->in = before;
    if (found.type2 == EMU_none || found.offset != (int32_t)found.offset)
        emu_dec_bad(d, "operand %u is not a register and an offset of 32 bits", d->at);
    *out = (struct emu_arg){.ref = found.src[0],
                            .width = found.type2 == EMU_b32 ? 4 : 8,
                            .offset = (uint32_t)found.offset};
    return o;
}

void emu_dec_args_begin(struct emu_dec *d)
{
    d->in->list = d->ld->module->args.len;
    d->in->count = 0;
}

struct emu_arg *emu_dec_arg(struct emu_dec *d)
{
    struct emu_arg *arg = emu_push(d->ld->keep, &d->ld->module->args);
    *arg = (struct emu_arg){.ref = EMU_NO_REF};
    d->in->count++;
    return arg;
}

void emu_dec_need(struct emu_dec *d, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (!emu_dec_mod(d, names[i]))
            emu_dec_bad(d, "'.%s' is missing", names[i]);
}

void emu_dec_registers(struct emu_dec *d, uint32_t count, enum emu_type type, bool is_dst)
{
    const struct emu_operand *o = emu_dec_next(d);
    if (!o || (o->kind == EMU_OPD_VEC ? o->count != count : count != 1))
        emu_dec_bad(d, "operand %u is not %u registers", d->at, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct emu_operand *part = o->kind == EMU_OPD_VEC ? &o->list[i] : o;
        const uint32_t ref =
            is_dst ? emu_dec_dst_operand(d, part, type) : emu_dec_operand(d, part, type);
        emu_dec_arg(d)->ref = ref;
    }
}

// --- rows of the tables ---

// min and max of three numbers (sm_100) are spelled as those of two; the tables have them as min3,
// max3.
static bool of_three(const struct emu_dec *d)
{
    return d->ast->operand_count == 4 &&
           (emu_str_is(d->ast->opcode, "min") || emu_str_is(d->ast->opcode, "max"));
}

// The suffixes that are types.
static uint32_t types_of(const struct emu_dec *d)
{
    uint32_t types = 0;
    for (uint32_t i = 0; i < d->ast->mod_count; i++)
        types |= (uint32_t)(emu_type_find(d->ast->mods[i]) != EMU_none) << i;
    return types;
}

// The spelling as the tables have it: "mul_lo_u32". Suffixes with a bit in `without` are left out,
// those with a bit in `last` come last.
static tir_str spelling(struct emu_dec *d, uint32_t without, uint32_t last, char *text, size_t size)
{
    const uint32_t count = d->ast->mod_count;
    size_t at = 0;
    for (uint32_t n = 0; n <= 2 * count; n++) {
        const uint32_t i = n > count ? n - count : n;
        const tir_str part = i ? d->ast->mods[i - 1] : d->ast->opcode;
        if (i && (without >> (i - 1) & 1 || (last >> (i - 1) & 1) != (n > count)))
            continue;
        if (part.len + 2 > size - at)
            emu_dec_bad(d, "unknown instruction");
        if (i)
            text[at++] = '_';
        memcpy(text + at, part.ptr, part.len);
        at += part.len;
        if (!i && of_three(d))
            text[at++] = '3';
    }
    return (tir_str){text, at};
}

static uint8_t mask_of_type(const struct emu_alu_row *row, enum emu_type type)
{
    uint8_t mask = row->dst == type ? 1 << 4 : 0;
    for (int i = 0; i < 4; i++)
        mask |= (uint8_t)((row->src[i] == type) << i);
    return mask;
}

// Suffixes may come in any order; the tables have the usual one, mostly with the types last.
static const struct emu_alu_row *find_row(struct emu_dec *d, uint32_t without)
{
    char text[80];
    const struct emu_alu_row *row =
        emu_isa_alu(d->ld->isa, spelling(d, without, 0, text, sizeof text));
    return row ? row
               : emu_isa_alu(d->ld->isa, spelling(d, without, types_of(d), text, sizeof text));
}

static void decode_row(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    const struct emu_alu_row *row = find_row(d, 0);
    uint8_t flags = 0;
    enum emu_round round = EMU_RN;
    if (!row) {
        static const char *const rounds[] = {"rn", "rz", "rm", "rp", NULL};
        const int r = emu_dec_one_of(d, rounds);
        round = r < 0 ? EMU_RN : (enum emu_round)r;
        flags |= r >= 0 ? EMU_ROW_R : 0;
        flags |= emu_dec_mod(d, "ftz") ? EMU_ROW_F : 0;
        flags |= emu_dec_mod(d, "sat") ? EMU_ROW_S : 0;
        flags |= emu_dec_mod(d, "relu") ? EMU_ROW_L : 0;
        row = find_row(d, d->used);
        if (!row || flags & ~row->flags)
            emu_dec_bad(d, "unknown instruction");
    }
    d->used = (1u << d->ast->mod_count) - 1;
    in->run = emu_run_alu;
    in->alu = row->fn;
    in->dst = emu_dec_dst(d, (enum emu_type)row->dst);
    in->width = (uint8_t)emu_reg_width((enum emu_type)row->dst);
    for (int i = 0; i < 4 && row->src[i] != EMU_none; i++)
        in->src[i] = emu_dec_src(d, (enum emu_type)row->src[i]);
    in->flags |= (flags & EMU_ROW_F ? EMU_INSN_FTZ : 0) | (flags & EMU_ROW_S ? EMU_INSN_SAT : 0) |
                 (flags & EMU_ROW_L ? EMU_INSN_RELU : 0) |
                 (row->flags & EMU_ROW_M ? EMU_INSN_BITS : 0);
    in->round = (uint8_t)round;
    if (in->flags & EMU_INSN_FIX || round != EMU_RN) {
        in->run = emu_run_alu_fix;
        // .ftz works on the sources and the result of the last type spelled.
        in->type = row->src[2] == EMU_f32 && row->dst != EMU_f32 ? EMU_f32 : row->dst;
        in->op = mask_of_type(row, (enum emu_type)in->type);
    }
}

// and.pred, or.pred, xor.pred, not.pred
static bool decode_pred(struct emu_dec *d)
{
    static const char *const names[] = {"and", "or", "xor", "not", NULL};
    bool na = false, nb = false;
    if (d->ast->mod_count != 1 || !emu_str_is(d->ast->mods[0], "pred"))
        return false;
    for (int i = 0; names[i]; i++)
        if (emu_str_is(d->ast->opcode, names[i])) {
            d->used = 1;
            d->in->run = emu_run_pred;
            d->in->op = (uint8_t)(EMU_PRED_AND + i);
            d->in->dst = emu_dec_dst(d, EMU_pred);
            d->in->src[0] = emu_dec_pred(d, emu_dec_next(d), &na);
            if (i < 3)
                d->in->src[1] = emu_dec_pred(d, emu_dec_next(d), &nb);
            d->in->round = (uint8_t)(na | nb << 1);
            return true;
        }
    return false;
}

// --- functions ---

static const struct decoder {
    const char *opcode;
    emu_decode_fn fn;
} decoders[] = {
#define DECODER(opcode, name) {opcode, emu_decode_##name},
#include "emu/decode/opcodes.def"
};

static void decode_insn(struct emu_dec *d)
{
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++)
        if (emu_str_is(d->ast->opcode, decoders[i].opcode)) {
            decoders[i].fn(d);
            return;
        }
    if (decode_pred(d))
        return;
    for (uint32_t i = 0; i < d->ast->mod_count; i++)
        if (emu_str_is(d->ast->mods[i], "cc")) {
            emu_decode_carry(d);
            return;
        }
    decode_row(d);
}

static void decode_guard(struct emu_dec *d)
{
    bool negate = false;
    if (!d->ast->guard)
        return;
    d->in->guard = emu_dec_pred(d, d->ast->guard, &negate);
    d->in->flags |= negate ? EMU_INSN_GUARD_NOT : 0;
}

static struct emu_insn *new_insn(struct emu_loader *ld, const struct emu_ast *ast)
{
    struct emu_insn *in = emu_push(ld->keep, &ld->module->code);
    const uint32_t zero = emu_ref(EMU_BASE_POOL, 0);
    *in = (struct emu_insn){.guard = EMU_NO_REF,
                            .dst = EMU_NO_REF,
                            .src = {zero, zero, zero, zero},
                            .line = ast->line,
                            .loc = ast->loc,
                            .touches = ld->module->touches.len};
    return in;
}

void emu_decode(struct emu_loader *ld)
{
    struct emu_module *m = ld->module;
    struct emu_func *f = ld->func;
    if (!m->pool) { // zeros at offset 0, for operands that are not there
        const uint32_t zero = pool_room(ld, 16 * EMU_WARP);
        memset(m->pool + zero, 0, 16 * EMU_WARP);
    }
    f->entry = m->code.len;
    f->uses_at = m->uses.len;
    for (uint32_t i = 0; i < ld->code.len; i++) {
        struct emu_dec d = {.ld = ld, .ast = &ld->code.at[i]};
        d.in = new_insn(ld, d.ast);
        decode_guard(&d);
        decode_insn(&d);
        for (uint32_t k = 0; k < d.ast->mod_count; k++)
            if (!(d.used >> k & 1))
                emu_dec_bad(&d, "unknown suffix '.%.*s'", (int)d.ast->mods[k].len,
                            d.ast->mods[k].ptr);
        if (d.at < d.ast->operand_count)
            emu_dec_bad(&d, "too many operands");
        d.in->cost = emu_trace_cost(d.in);
    }
    // Running off the end of a function returns.
    const struct emu_ast end = {.line = ld->token.line, .loc = ld->loc};
    new_insn(ld, &end)->run = emu_run_ret;
    f->end = m->code.len;
    f->uses_count = m->uses.len - f->uses_at;
}
