// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parser of PTX: declarations of registers and variables, and what variables begin with.

#include <string.h>

#include "emu/device.h"
#include "emu/parse/parse.h"

static bool decl_attribute(struct emu_loader *ld, struct emu_decl *d)
{
    static const char *const ignored[] = {"ptr", "global", "shared", "const", "local", "generic"};
    if (emu_accept_dot(ld, "align")) {
        d->align = emu_expect_int(ld);
        if (d->align == 0 || d->align > 65536 || (d->align & (d->align - 1)))
            emu_syntax(ld, ld->token.line, "alignment is not a power of two up to 65536");
        return true;
    }
    if (emu_accept_dot(ld, "attribute") || emu_accept_dot(ld, "unified")) {
        emu_skip_parens(ld);
        return true;
    }
    if (emu_accept_dot(ld, "v2")) {
        d->vector = 2;
        return true;
    }
    if (emu_accept_dot(ld, "v4")) {
        d->vector = 4;
        return true;
    }
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (emu_accept_dot(ld, ignored[i]))
            return true;
    return false;
}

struct emu_decl emu_parse_decl(struct emu_loader *ld, enum emu_space space, bool is_reg,
                               bool is_param)
{
    struct emu_decl d = {.space = space, .is_reg = is_reg, .is_param = is_param, .vector = 1};
    // `.param .u64 .ptr .align 16 p`: the alignment after .ptr is the pointee's, not the
    // parameter's.
    while (ld->token.kind == EMU_TOK_DOT) {
        if (d.type != EMU_none && is_param) {
            const uint64_t own = d.align;
            if (!decl_attribute(ld, &d))
                break;
            d.align = own;
            continue;
        }
        if (decl_attribute(ld, &d))
            continue;
        const enum emu_type type = emu_type_find(ld->token.text);
        const bool has_size = type == EMU_pred || emu_types[type].bits >= 8;
        if (!has_size || d.type != EMU_none)
            emu_syntax(ld, ld->token.line, "'.%.*s' does not belong in a declaration",
                       (int)ld->token.text.len, ld->token.text.ptr);
        d.type = type;
        emu_next(ld);
    }
    if (d.type == EMU_none)
        emu_syntax(ld, ld->token.line, "a type expected");
    return d;
}

// The `[n][m]` after a name: elements, 0 for `[]`.
uint64_t emu_parse_dims(struct emu_loader *ld)
{
    uint64_t count = 1;
    while (emu_accept(ld, '[')) {
        const uint64_t n = emu_at(ld, ']') ? 0 : emu_parse_constant(ld);
        emu_expect(ld, ']');
        if (n && count > ((uint64_t)1 << 40) / n)
            emu_syntax(ld, ld->token.line, "array is too large");
        count *= n;
    }
    return count;
}

void emu_declare_registers(struct emu_loader *ld, const struct emu_decl *d)
{
    const uint32_t limit = 1 << 22; // of the module: even a small text could ask for any number
    if (!ld->func)
        emu_syntax(ld, ld->token.line, "a register outside of a function");
    do {
        struct emu_name *name = emu_expect_word(ld);
        uint64_t count = 0;
        const bool is_range = emu_accept(ld, '<');
        if (is_range) {
            count = emu_expect_int(ld);
            emu_expect(ld, '>');
            if (d->vector != 1)
                emu_syntax(ld, ld->token.line, "a range of vector registers");
        } else if (d->vector != 1) {
            count = d->vector;
        }
        if (count > limit || ld->registers + count > limit)
            emu_syntax(ld, ld->token.line, "more than %u registers", limit);
        ld->registers += count;
        struct emu_symbol *s = emu_declare(ld, name, is_range ? EMU_SYM_RANGE : EMU_SYM_REG);
        s->type = d->type;
        s->count = (uint32_t)count;
        s->is_vector = d->vector != 1;
        s->refs = emu_arena_array(&ld->scratch, count ? count : 1, sizeof *s->refs);
        memset(s->refs, 0xff, (count ? count : 1) * sizeof *s->refs);
    } while (emu_accept(ld, ','));
}

// --- initialisers ---

struct init {
    uint8_t *bytes;
    uint64_t at, size;
    enum emu_type type;
};

static uint64_t float_bits(struct emu_loader *ld, enum emu_type type, bool negative)
{
    const bool is_double = type == EMU_f64 || type == EMU_b64;
    double value;
    float narrow;
    uint32_t bits32 = (uint32_t)ld->token.bits;
    uint64_t bits = ld->token.bits;
    if (ld->token.kind == EMU_TOK_F32) {
        memcpy(&narrow, &bits32, sizeof narrow);
        value = narrow;
    } else {
        memcpy(&value, &bits, sizeof value);
        narrow = (float)value;
    }
    emu_next(ld);
    if (negative) {
        value = -value;
        narrow = -narrow;
    }
    memcpy(&bits, &value, sizeof bits);
    memcpy(&bits32, &narrow, sizeof bits32);
    return is_double ? bits : bits32;
}

static uint64_t symbol_address(struct emu_loader *ld, const struct emu_symbol *s)
{
    if (s && s->kind == EMU_SYM_FUNC)
        return emu_func_address(s->func->index);
    if (!s || s->kind != EMU_SYM_VAR || (s->space != EMU_GLOBAL && s->space != EMU_CONST) ||
        s->is_extern)
        emu_syntax(ld, ld->token.line, "this address is not known when the module is loaded");
    return s->address;
}

static uint64_t parse_init_address(struct emu_loader *ld)
{
    const bool is_generic = emu_str_is(ld->token.text, "generic");
    if (is_generic) {
        emu_next(ld);
        emu_expect(ld, '(');
    }
    uint64_t address = symbol_address(ld, emu_expect_word(ld)->symbols);
    if (is_generic)
        emu_expect(ld, ')');
    if (emu_accept(ld, '+'))
        address += emu_parse_constant(ld);
    else if (emu_accept(ld, '-'))
        address -= emu_parse_constant(ld);
    return address;
}

static void parse_init_value(struct emu_loader *ld, struct init *init)
{
    const uint32_t size = emu_type_size(init->type);
    const uint32_t line = ld->token.line;
    uint64_t bits;
    if (ld->token.kind == EMU_TOK_STRING) {
        const tir_str text = ld->token.text;
        if (size != 1 || text.len > init->size - init->at)
            emu_syntax(ld, line, "this string does not fit");
        memcpy(init->bytes + init->at, text.ptr, text.len);
        init->at += text.len;
        emu_next(ld);
        return;
    }
    if (ld->token.kind == EMU_TOK_WORD) {
        bits = parse_init_address(ld);
    } else if (ld->token.kind == EMU_TOK_INT && *ld->lexer.cursor == '(') { // a byte: 0xff00(name)
        uint64_t mask = ld->token.bits;
        emu_next(ld);
        emu_expect(ld, '(');
        bits = parse_init_address(ld) & mask;
        emu_expect(ld, ')');
        for (; mask && !(mask & 1); mask >>= 1)
            bits >>= 1;
    } else {
        const struct emu_lexer before = ld->lexer;
        const struct emu_token token = ld->token;
        const bool negative = emu_accept(ld, '-');
        if (ld->token.kind == EMU_TOK_F32 || ld->token.kind == EMU_TOK_F64) {
            bits = float_bits(ld, init->type, negative);
        } else {
            ld->lexer = before;
            ld->token = token;
            bits = emu_parse_constant(ld);
        }
    }
    if (size == 0 || size > 8 || init->size - init->at < size)
        emu_syntax(ld, line, "too many initial values");
    for (uint32_t i = 0; i < size; i++)
        init->bytes[init->at + i] = (uint8_t)(bits >> 8 * i);
    init->at += size;
}

static void parse_init(struct emu_loader *ld, struct init *init)
{
    if (++ld->depth > 16)
        emu_syntax(ld, ld->token.line, "initial values nest too deeply");
    if (emu_accept(ld, '{')) {
        while (!emu_accept(ld, '}')) {
            parse_init(ld, init);
            if (!emu_at(ld, '}'))
                emu_expect(ld, ',');
        }
    } else {
        parse_init_value(ld, init);
    }
    ld->depth--;
}

// --- variables ---

static void place_variable(struct emu_loader *ld, const struct emu_decl *d, struct emu_symbol *s,
                           bool is_extern, bool open_array)
{
    const uint32_t limit = 1u << 28; // of the module: even a small text could ask for any number
    struct emu_module *m = ld->module;
    switch (d->space) {
    case EMU_GLOBAL:
    case EMU_CONST:
        s->is_extern = is_extern;
        if (!is_extern) {
            ld->variables += s->size;
            if (s->size > limit || ld->variables > limit)
                emu_syntax(ld, s->line, "more than %u bytes of variables", limit);
            s->address = emu_object_new(ld->emu, s->size, s->align, &ld->trap);
            *emu_push(ld->keep, &m->objects) = s->address;
        }
        break;
    case EMU_SHARED:
        s->address = m->shared.len;
        *emu_push(ld->keep, &m->shared) = (struct emu_shared_var){
            .size = s->size, .align = s->align, .is_dynamic = is_extern || open_array};
        break;
    case EMU_LOCAL:
        if (!ld->func)
            emu_syntax(ld, s->line, "a local variable outside of a function");
        s->address = emu_func_local(ld, s->size, s->align);
        break;
    case EMU_GENERIC:
    case EMU_PARAM:
    case EMU_SHARED_CLUSTER:
        break;
    }
}

static void declare_variable(struct emu_loader *ld, const struct emu_decl *d, bool is_extern)
{
    struct emu_name *name = emu_expect_word(ld);
    const bool is_array = emu_at(ld, '[');
    const uint64_t count = emu_parse_dims(ld);
    const uint32_t element = emu_type_size(d->type);
    if (element == 0)
        emu_syntax(ld, ld->token.line, "a predicate has no address");
    struct emu_symbol *s = name->symbols;
    if (!s || s->kind != EMU_SYM_VAR || !s->is_extern) // else: the definition of a declaration
        s = emu_declare(ld, name, EMU_SYM_VAR);
    s->type = d->type;
    s->space = d->space;
    s->size = count * element * d->vector;
    s->align = d->align ? d->align : element * d->vector;
    struct init init = {.type = d->type, .size = s->size};
    if (emu_at(ld, '=')) {
        if (d->space != EMU_GLOBAL && d->space != EMU_CONST)
            emu_syntax(ld, ld->token.line,
                       "only global and constant variables have initial values");
        emu_next(ld);
        if (init.size == 0 || init.size > (uint64_t)1 << 30)
            emu_syntax(ld, ld->token.line, "an initialised array needs its size");
        init.bytes = emu_arena_alloc(&ld->scratch, init.size);
        parse_init(ld, &init);
    }
    place_variable(ld, d, s, is_extern, is_array && count == 0);
    if (s->space == EMU_GLOBAL || s->space == EMU_CONST)
        if (!s->is_extern)
            emu_object_init(ld->emu, s->address, init.bytes, s->size, s->space == EMU_CONST);
}

void emu_parse_variables(struct emu_loader *ld, enum emu_space space, bool is_extern)
{
    struct emu_decl d = emu_parse_decl(ld, space, false, false);
    do
        declare_variable(ld, &d, is_extern);
    while (emu_accept(ld, ','));
    emu_expect(ld, ';');
}
