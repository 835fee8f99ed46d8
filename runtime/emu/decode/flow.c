// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoders of moves, comparisons, selections, carries, branches and calls.

#include <string.h>

#include "emu/decode/decode.h"
#include "emu/device.h"

static const char *const bool_ops[] = {"and", "or", "xor", NULL};

// --- comparisons ---

// The comparison suffix and .and/.or/.xor; the row is found with the type that follows.
static const struct emu_cmp_row *take_compare(struct emu_dec *d, enum emu_type type, tir_str cmp)
{
    char text[40];
    const char *name = emu_types[type].name;
    const size_t len = strlen(name);
    if (cmp.len + 1 + len > sizeof text)
        emu_dec_bad(d, "unknown comparison");
    memcpy(text, cmp.ptr, cmp.len);
    text[cmp.len] = '_';
    memcpy(text + cmp.len + 1, name, len);
    const struct emu_cmp_row *row = emu_isa_cmp(d->ld->isa, (tir_str){text, cmp.len + 1 + len});
    if (!row)
        emu_dec_bad(d, "unknown comparison");
    if (emu_dec_mod(d, "ftz")) {
        if (!row->flushes)
            emu_dec_bad(d, "'.ftz' does not apply");
        d->in->flags |= EMU_INSN_FTZ;
    }
    d->in->cmp = row->fn;
    d->in->type = row->type;
    return row;
}

static void compare_sources(struct emu_dec *d, enum emu_type type)
{
    bool negate = false;
    const int op = emu_dec_one_of(d, bool_ops);
    d->in->src[0] = emu_dec_src(d, type);
    d->in->src[1] = emu_dec_src(d, type);
    d->in->op = op < 0 ? EMU_PRED_MOV : (uint8_t)(EMU_PRED_AND + op);
    if (op >= 0)
        d->in->src[2] = emu_dec_pred(d, emu_dec_next(d), &negate);
    d->in->round = negate;
}

// The suffix that names what is asked, wherever it stands: assemblers take suffixes in any order.
static tir_str take_question(struct emu_dec *d)
{
    for (uint32_t i = 0; i < d->ast->mod_count; i++) {
        const tir_str mod = d->ast->mods[i];
        bool other = d->used >> i & 1 || emu_str_is(mod, "ftz");
        for (int k = 0; bool_ops[k]; k++)
            other = other || emu_str_is(mod, bool_ops[k]);
        if (other)
            continue;
        d->used |= 1u << i;
        return mod;
    }
    emu_dec_bad(d, "unknown instruction");
}

void emu_decode_setp(struct emu_dec *d)
{
    const enum emu_type type = emu_dec_type(d);
    take_compare(d, type, take_question(d));
    d->in->run = emu_run_setp;
    emu_dec_pair(d, EMU_pred, &d->in->list);
    compare_sources(d, type);
}

void emu_decode_set(struct emu_dec *d)
{
    const enum emu_type to = emu_dec_type(d), type = emu_dec_type(d);
    take_compare(d, type, take_question(d));
    const bool pair = type == EMU_f16x2 || type == EMU_bf16x2;
    const bool bits = emu_types[to].kind == EMU_KIND_UINT || emu_types[to].kind == EMU_KIND_SINT;
    const bool single = to == EMU_f16 || to == EMU_bf16 || to == EMU_f32;
    if (pair ? to != type && to != EMU_u32 && to != EMU_s32
             : !single && (!bits || to == EMU_u16x2 || to == EMU_s16x2))
        emu_dec_bad(d, "unknown instruction");
    d->in->run = emu_run_set;
    d->in->type2 = (uint8_t)to;
    d->in->width = (uint8_t)emu_reg_width(to);
    if (d->in->width > 4)
        emu_dec_bad(d, "unknown instruction");
    d->in->dst = emu_dec_dst(d, to);
    compare_sources(d, type);
}

// lop3.b32 d, a, b, c, table, or lop3.and.b32 d|p, a, b, c, table, q
void emu_decode_lop3(struct emu_dec *d)
{
    static const char *const ops[] = {"and", "or", NULL};
    static const char row[] = "lop3_b32";
    struct emu_insn *in = d->in;
    bool negate = false;
    const int op = emu_dec_one_of(d, ops);
    if (!emu_dec_mod(d, "b32"))
        emu_dec_bad(d, "unknown instruction");
    in->alu = emu_isa_alu(d->ld->isa, (tir_str){row, sizeof row - 1})->fn;
    in->width = 4;
    emu_dec_pair(d, EMU_b32, &in->list);
    if ((op >= 0) != (in->list != EMU_NO_REF))
        emu_dec_bad(d, "a predicate comes with '.and' or '.or'");
    for (int i = 0; i < 3; i++)
        in->src[i] = emu_dec_src(d, EMU_b32);
    const uint64_t table = emu_dec_constant(d);
    if (table > 255)
        emu_dec_bad(d, "the table is not within 0 to 255");
    in->target = (uint32_t)table;
    in->run = op < 0 ? emu_run_alu : emu_run_lop3;
    if (op < 0) {
        in->src[3] = emu_dec_pool(d->ld, table, 4);
        return;
    }
    in->op = op == 0 ? EMU_PRED_AND : EMU_PRED_OR;
    in->src[3] = emu_dec_pred(d, emu_dec_next(d), &negate);
    in->round = negate;
}

void emu_decode_testp(struct emu_dec *d)
{
    const enum emu_type type = emu_dec_type(d);
    const tir_str what = take_question(d);
    char text[40] = "testp_";
    if (what.len > sizeof text - 6)
        emu_dec_bad(d, "unknown instruction");
    memcpy(text + 6, what.ptr, what.len);
    take_compare(d, type, (tir_str){text, 6 + what.len});
    d->in->run = emu_run_setp;
    d->in->list = EMU_NO_REF;
    d->in->op = EMU_PRED_MOV;
    d->in->dst = emu_dec_dst(d, EMU_pred);
    d->in->src[0] = emu_dec_src(d, type);
}

void emu_decode_selp(struct emu_dec *d)
{
    bool negate;
    const enum emu_type type = emu_dec_type(d);
    d->in->width = (uint8_t)emu_reg_width(type);
    if (type == EMU_none || d->in->width == 0 || d->in->width > 8)
        emu_dec_bad(d, "unknown instruction");
    d->in->run = emu_run_selp;
    d->in->dst = emu_dec_dst(d, type);
    d->in->src[0] = emu_dec_src(d, type);
    d->in->src[1] = emu_dec_src(d, type);
    d->in->src[2] = emu_dec_pred(d, emu_dec_next(d), &negate);
    d->in->round = negate;
}

// --- moves ---

// The parts of a vector operand of `width` bytes, as arguments.
static void take_parts(struct emu_dec *d, const struct emu_operand *o, uint32_t width, bool is_dst)
{
    static const enum emu_type types[] = {EMU_b8,   EMU_b16,  EMU_none, EMU_b32,
                                          EMU_none, EMU_none, EMU_none, EMU_b64};
    const uint32_t size = o->count ? width / o->count : 0;
    if (size == 0 || size > 8 || size * o->count != width || types[size - 1] == EMU_none)
        emu_dec_bad(d, "%u parts do not make %u bytes", o->count, width);
    const enum emu_type type = types[size - 1];
    emu_dec_args_begin(d);
    for (uint32_t i = 0; i < o->count; i++) {
        const uint32_t ref = is_dst ? emu_dec_dst_operand(d, &o->list[i], type)
                                    : emu_dec_operand(d, &o->list[i], type);
        *emu_dec_arg(d) = (struct emu_arg){.ref = ref, .width = size < 2 ? 2 : size, .size = size};
    }
}

static bool is_local_address(const struct emu_operand *o)
{
    return o->kind == EMU_OPD_ADDRESS && o->symbol->kind == EMU_SYM_VAR &&
           o->symbol->space == EMU_LOCAL;
}

// mov.v4.u32 {a, b, c, d}, %tid: each element by itself.
static void decode_mov_vector(struct emu_dec *d, uint32_t count)
{
    const enum emu_type type = emu_dec_type(d);
    const struct emu_operand *to = emu_dec_next(d), *from = emu_dec_next(d);
    if (!from || from->kind != EMU_OPD_VEC || to->kind != EMU_OPD_VEC || from->count != count ||
        to->count != count || emu_types[type].bits < 8)
        emu_dec_bad(d, "%u elements expected", count);
    d->in->run = emu_run_mov_vector;
    d->in->width = (uint8_t)emu_reg_width(type);
    emu_dec_args_begin(d);
    for (uint32_t i = 0; i < count; i++) { // a destination and a source for each
        const uint32_t dst = emu_dec_dst_operand(d, &to->list[i], type);
        emu_dec_arg(d)->ref = dst;
        const uint32_t src = emu_dec_operand(d, &from->list[i], type);
        emu_dec_arg(d)->ref = src;
    }
}

void emu_decode_mov(struct emu_dec *d)
{
    static const char *const vectors[] = {"v2", "v4", NULL};
    const int vector = emu_dec_one_of(d, vectors);
    if (vector >= 0) {
        decode_mov_vector(d, 2u << vector);
        return;
    }
    const enum emu_type type = emu_dec_type(d);
    struct emu_insn *in = d->in;
    const struct emu_operand *to = emu_dec_next(d), *from = emu_dec_next(d);
    bool negate;
    if (!from || (emu_types[type].bits < 8 && type != EMU_pred))
        emu_dec_bad(d, "mov takes a type and two operands");
    in->width = (uint8_t)emu_reg_width(type);
    if (type == EMU_pred) {
        in->run = emu_run_pred;
        in->op = EMU_PRED_MOV;
        in->dst = emu_dec_dst_operand(d, to, type);
        in->src[0] = emu_dec_pred(d, from, &negate);
        in->round = negate;
    } else if (from->kind == EMU_OPD_VEC) {
        in->run = emu_run_pack;
        in->dst = emu_dec_dst_operand(d, to, type);
        take_parts(d, from, in->width, false);
    } else if (to->kind == EMU_OPD_VEC) {
        in->run = emu_run_unpack;
        in->src[0] = emu_dec_operand(d, from, type);
        take_parts(d, to, in->width, true);
    } else if (from->kind == EMU_OPD_SREG && from->ref >= EMU_SREG_clock) {
        in->run = emu_run_clock;
        in->op = (uint8_t)from->ref;
        if (emu_reg_width(from->type) != in->width)
            emu_dec_bad(d, "the clock is '.%s'", emu_types[from->type].name);
        in->dst = emu_dec_dst_operand(d, to, type);
    } else if (from->kind == EMU_OPD_SREG && emu_reg_width(from->type) > in->width) {
        in->run = emu_run_pack; // its lower bits
        in->dst = emu_dec_dst_operand(d, to, type);
        const uint32_t ref = emu_dec_operand(d, from, from->type);
        emu_dec_args_begin(d);
        *emu_dec_arg(d) =
            (struct emu_arg){.ref = ref, .width = emu_reg_width(from->type), .size = in->width};
    } else if (is_local_address(from)) {
        in->run = emu_run_mov_local;
        in->offset = (int64_t)(from->symbol->address + from->bits);
        if (in->width < 4)
            emu_dec_bad(d, "an address needs a register of 32 or 64 bits");
        in->dst = emu_dec_dst_operand(d, to, type);
    } else {
        in->run = emu_run_mov;
        in->dst = emu_dec_dst_operand(d, to, type);
        in->src[0] = emu_dec_operand(d, from, type);
    }
}

static uint64_t window_of(enum emu_space space)
{
    switch (space) {
    case EMU_SHARED:
    case EMU_SHARED_CLUSTER:
        return EMU_SHARED_WINDOW;
    case EMU_LOCAL:
        return EMU_LOCAL_WINDOW;
    case EMU_PARAM:
        return EMU_PARAM_WINDOW;
    default:
        return 0;
    }
}

static enum emu_space take_space(struct emu_dec *d)
{
    static const char *const names[] = {
        "global",      "const",           "shared",       "local",       "param",
        "shared::cta", "shared::cluster", "param::entry", "param::func", NULL};
    static const enum emu_space spaces[] = {EMU_GLOBAL,         EMU_CONST, EMU_SHARED,
                                            EMU_LOCAL,          EMU_PARAM, EMU_SHARED,
                                            EMU_SHARED_CLUSTER, EMU_PARAM, EMU_PARAM};
    const int i = emu_dec_one_of(d, names);
    enum emu_space space = i < 0 ? EMU_GENERIC : spaces[i];
    if (space == EMU_PARAM && !d->ld->func->is_entry)
        space = EMU_LOCAL;
    return space;
}

void emu_decode_cvta(struct emu_dec *d)
{
    const bool to = emu_dec_mod(d, "to");
    const enum emu_space space = take_space(d);
    const enum emu_type type = emu_dec_type(d);
    struct emu_insn *in = d->in;
    if (space == EMU_GENERIC || (type != EMU_u64 && type != EMU_b64))
        emu_dec_bad(d, "cvta takes a space and '.u64'");
    in->width = 8;
    in->dst = emu_dec_dst(d, type);
    const struct emu_operand *from = emu_dec_next(d);
    if (from && is_local_address(from)) {
        in->run = emu_run_mov_local;
        in->offset = (int64_t)(from->symbol->address + from->bits + EMU_LOCAL_WINDOW);
        return;
    }
    in->run = emu_run_add_const;
    in->offset = (int64_t)(to ? 0 - window_of(space) : window_of(space));
    if (!from)
        emu_dec_bad(d, "too few operands");
    in->src[0] = emu_dec_operand(d, from, type);
}

void emu_decode_isspacep(struct emu_dec *d)
{
    d->in->space = (uint8_t)take_space(d);
    d->in->run = emu_run_isspacep;
    d->in->dst = emu_dec_dst(d, EMU_pred);
    const struct emu_operand *address = emu_dec_next(d);
    const bool narrow =
        address && address->kind == EMU_OPD_REG && emu_reg_width(address->type) == 4;
    if (!address)
        emu_dec_bad(d, "too few operands");
    d->in->width = narrow ? 4 : 8;
    d->in->src[0] = emu_dec_operand(d, address, narrow ? EMU_b32 : EMU_b64);
}

// --- add.cc, addc, sub.cc, subc, mad.lo.cc, madc.hi ... ---

void emu_decode_carry(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    const tir_str op = d->ast->opcode;
    const bool is_mad = op.len >= 3 && memcmp(op.ptr, "mad", 3) == 0;
    const bool is_sub = op.len >= 3 && memcmp(op.ptr, "sub", 3) == 0;
    const bool high = is_mad && emu_dec_mod(d, "hi");
    if (is_mad && !high && !emu_dec_mod(d, "lo"))
        emu_dec_bad(d, "unknown instruction");
    if (!is_mad && !is_sub && !(op.len >= 3 && memcmp(op.ptr, "add", 3) == 0))
        emu_dec_bad(d, "unknown instruction");
    const bool out = emu_dec_mod(d, "cc");
    const enum emu_type type = emu_dec_type(d);
    in->width = (uint8_t)emu_reg_width(type);
    if (type == EMU_none || (in->width != 4 && in->width != 8))
        emu_dec_bad(d, "unknown instruction");
    in->run = emu_run_carry;
    in->op = is_mad ? (high ? EMU_CARRY_MAD_HI : EMU_CARRY_MAD_LO)
                    : (is_sub ? EMU_CARRY_SUB : EMU_CARRY_ADD);
    in->op |= op.len == 4 ? EMU_CARRY_IN : 0; // addc, subc, madc
    in->op |= out ? EMU_CARRY_OUT : 0;
    in->op |= emu_types[type].kind == EMU_KIND_SINT ? EMU_CARRY_SIGNED : 0;
    in->dst = emu_dec_dst(d, type);
    for (int i = 0; i < (is_mad ? 3 : 2); i++)
        in->src[i] = emu_dec_src(d, type);
}

// --- control flow ---

static uint32_t label_pc(struct emu_dec *d, const struct emu_operand *o)
{
    if (!o || !o->name)
        emu_dec_bad(d, "a label is missing");
    const uint32_t pc = emu_label_find(d->ld, o->name, d->ast->scope);
    if (pc == EMU_NO_REF)
        emu_dec_bad(d, "label '%.*s' is not defined", (int)o->name->text.len, o->name->text.ptr);
    return d->ld->func->entry + pc;
}

void emu_decode_bra(struct emu_dec *d)
{
    emu_dec_mod(d, "uni");
    d->in->run = emu_run_bra;
    d->in->target = label_pc(d, emu_dec_next(d));
}

void emu_decode_brx(struct emu_dec *d)
{
    struct emu_module *m = d->ld->module;
    emu_dec_mod(d, "uni");
    if (!emu_dec_mod(d, "idx"))
        emu_dec_bad(d, "unknown instruction");
    d->in->run = emu_run_brx;
    d->in->src[0] = emu_dec_src(d, EMU_u32);
    const struct emu_operand *list = emu_dec_next(d);
    const struct emu_symbol *s = list ? list->symbol : NULL;
    if (!s || s->kind != EMU_SYM_TARGETS)
        emu_dec_bad(d, "a list of branch targets is missing");
    d->in->list = m->targets.len;
    d->in->target = s->count;
    for (uint32_t i = 0; i < s->count; i++)
        *emu_push(d->ld->keep, &m->targets) = label_pc(d, &s->targets[i]);
}

static void take_call_args(struct emu_dec *d, const struct emu_operand *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct emu_operand *o = &list->list[i];
        struct emu_arg *arg = emu_dec_arg(d);
        if (is_local_address(o)) {
            arg->offset = (uint32_t)o->symbol->address;
            arg->size = (uint32_t)o->symbol->size;
        } else if (o->kind == EMU_OPD_REG) {
            arg->ref = o->ref;
            arg->width = emu_reg_width(o->type);
        } else {
            emu_dec_bad(d, "a parameter of a call is neither a variable nor a register");
        }
        if (d->in->count == 255)
            emu_dec_bad(d, "more than 254 parameters");
    }
}

void emu_decode_call(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    emu_dec_mod(d, "uni");
    emu_dec_args_begin(d);
    const struct emu_operand *o = emu_dec_next(d);
    uint8_t results = 0;
    if (o && o->kind == EMU_OPD_LIST) {
        take_call_args(d, o);
        results = in->count;
        o = emu_dec_next(d);
    }
    uint32_t callee = EMU_NO_REF;
    if (o && o->kind == EMU_OPD_ADDRESS && o->symbol->kind == EMU_SYM_FUNC) {
        in->run = emu_run_call;
        in->target = callee = o->symbol->func->index;
    } else if (o && o->kind == EMU_OPD_REG) {
        in->run = emu_run_call_indirect;
        in->src[0] = emu_dec_operand(d, o, EMU_b64);
    } else {
        emu_dec_bad(d, "what is called is neither a function nor a register");
    }
    *emu_push(d->ld->keep, &d->ld->module->uses) =
        (struct emu_use){.index = callee, .is_call = true};
    o = emu_dec_next(d);
    if (o && o->kind == EMU_OPD_LIST) {
        take_call_args(d, o);
        o = emu_dec_next(d);
    }
    in->op = results;
    in->count = (uint8_t)(in->count - results);
    if (o && o->kind != EMU_OPD_NAME)
        emu_dec_bad(d, "a prototype or a list of targets is expected at the end");
}

void emu_decode_ret(struct emu_dec *d)
{
    emu_dec_mod(d, "uni");
    d->in->run = emu_run_ret;
}

void emu_decode_exit(struct emu_dec *d)
{
    d->in->run = emu_run_exit;
}

void emu_decode_trap(struct emu_dec *d)
{
    d->in->run = emu_run_trap;
}

void emu_decode_nanosleep(struct emu_dec *d)
{
    if (!emu_dec_mod(d, "u32"))
        emu_dec_bad(d, "unknown instruction");
    d->in->run = emu_run_nanosleep;
    d->in->src[0] = emu_dec_src(d, EMU_u32);
}
