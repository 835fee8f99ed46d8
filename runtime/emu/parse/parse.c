// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parser of PTX: directives, declarations, functions.
//
// One pass, recursive descent. A function is decoded when its body ends; what it names must have
// been declared before, as PTX demands, except labels.

#include "emu/parse/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/device.h"

void emu_syntax(struct emu_loader *ld, uint32_t line, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    emu_raise(&ld->trap, TIR_ERR_INVALID, "PTX line %u: %s", line, text);
}

void emu_next(struct emu_loader *ld)
{
    ld->token = emu_lex(&ld->lexer);
    if (ld->token.kind == EMU_TOK_BAD)
        emu_syntax(ld, ld->token.line, "'%.*s' is not PTX",
                   (int)(ld->token.text.len < 20 ? ld->token.text.len : 20), ld->token.text.ptr);
}

bool emu_at(const struct emu_loader *ld, char punct)
{
    return ld->token.kind == EMU_TOK_PUNCT && ld->token.punct == punct;
}

bool emu_accept(struct emu_loader *ld, char punct)
{
    if (!emu_at(ld, punct))
        return false;
    emu_next(ld);
    return true;
}

void emu_expect(struct emu_loader *ld, char punct)
{
    if (!emu_accept(ld, punct))
        emu_syntax(ld, ld->token.line, "'%c' expected before '%.*s'", punct,
                   (int)(ld->token.text.len < 40 ? ld->token.text.len : 40), ld->token.text.ptr);
}

bool emu_at_dot(const struct emu_loader *ld, const char *name)
{
    return ld->token.kind == EMU_TOK_DOT && emu_str_is(ld->token.text, name);
}

bool emu_accept_dot(struct emu_loader *ld, const char *name)
{
    if (!emu_at_dot(ld, name))
        return false;
    emu_next(ld);
    return true;
}

struct emu_name *emu_expect_word(struct emu_loader *ld)
{
    if (ld->token.kind != EMU_TOK_WORD)
        emu_syntax(ld, ld->token.line, "a name expected before '%.*s'",
                   (int)(ld->token.text.len < 40 ? ld->token.text.len : 40), ld->token.text.ptr);
    struct emu_name *name = emu_intern(ld, ld->token.text);
    emu_next(ld);
    return name;
}

uint64_t emu_expect_int(struct emu_loader *ld)
{
    if (ld->token.kind != EMU_TOK_INT)
        emu_syntax(ld, ld->token.line, "a number expected");
    const uint64_t value = ld->token.bits;
    emu_next(ld);
    return value;
}

static const char *keep_text(struct emu_loader *ld, tir_str s)
{
    char *text = emu_arena_alloc(ld->keep, s.len + 1);
    memcpy(text, s.ptr, s.len);
    return text;
}

// Drops tokens up to and including the matching close of what is open.
static void skip_braces(struct emu_loader *ld)
{
    emu_expect(ld, '{');
    for (uint32_t depth = 1; depth; emu_next(ld)) {
        if (ld->token.kind == EMU_TOK_END)
            emu_syntax(ld, ld->token.line, "'}' expected at the end");
        depth += emu_at(ld, '{');
        depth -= emu_at(ld, '}');
    }
}

void emu_skip_parens(struct emu_loader *ld)
{
    if (!emu_accept(ld, '('))
        return;
    for (uint32_t depth = 1; depth; emu_next(ld)) {
        if (ld->token.kind == EMU_TOK_END)
            emu_syntax(ld, ld->token.line, "')' expected at the end");
        depth += emu_at(ld, '(');
        depth -= emu_at(ld, ')');
    }
}

static void skip_statement(struct emu_loader *ld)
{
    while (!emu_accept(ld, ';')) {
        if (ld->token.kind == EMU_TOK_END)
            emu_syntax(ld, ld->token.line, "';' expected at the end");
        emu_next(ld);
    }
}

// --- functions ---

static void add_param(struct emu_loader *ld, struct emu_param **list, uint32_t *count)
{
    const uint32_t max_params = 4096;
    bool is_reg = emu_accept_dot(ld, "reg");
    if (!is_reg && !emu_accept_dot(ld, "param"))
        emu_syntax(ld, ld->token.line, "'.param' expected");
    struct emu_func *f = ld->func;
    struct emu_decl d = emu_parse_decl(ld, EMU_PARAM, is_reg, true);
    struct emu_name *name = emu_expect_word(ld);
    const uint64_t elements = emu_parse_dims(ld);
    struct emu_param p = {.ref = EMU_NO_REF};
    struct emu_symbol *s;
    if (is_reg) {
        s = emu_declare(ld, name, EMU_SYM_REG);
        s->type = d.type;
        s->refs = emu_arena_alloc(&ld->scratch, sizeof *s->refs);
        p.ref = *s->refs = emu_func_register(ld, d.type);
        p.width = d.type == EMU_pred ? 0 : emu_types[d.type].bits <= 16 ? 2 : emu_type_size(d.type);
    } else {
        s = emu_declare(ld, name, EMU_SYM_VAR);
        s->type = d.type;
        s->size = elements * emu_type_size(d.type) * d.vector;
        s->align = d.align ? d.align : emu_type_size(d.type) * d.vector;
        if (s->size > 65536 || s->align == 0)
            emu_syntax(ld, s->line, "parameter is too large");
        s->space = f->is_entry ? EMU_PARAM : EMU_LOCAL;
        if (f->is_entry) {
            s->address = emu_align_up(f->params_size, s->align);
            f->params_size = (uint32_t)(s->address + s->size);
        } else {
            s->address = emu_func_local(ld, s->size, s->align);
        }
        p.offset = (uint32_t)s->address;
        p.size = (uint32_t)s->size;
    }
    if (*count >= max_params)
        emu_syntax(ld, s->line, "more than %u parameters", max_params);
    if ((*count & (*count - 1)) == 0) { // grow at 0, 1, 2, 4, 8 ...
        struct emu_param *grown = emu_arena_array(ld->keep, *count ? *count * 2 : 1, sizeof *grown);
        if (*count)
            memcpy(grown, *list, *count * sizeof *grown);
        *list = grown;
    }
    (*list)[(*count)++] = p;
}

static void parse_params(struct emu_loader *ld, struct emu_param **list, uint32_t *count)
{
    emu_expect(ld, '(');
    while (!emu_accept(ld, ')')) {
        add_param(ld, list, count);
        if (!emu_at(ld, ')'))
            emu_expect(ld, ',');
    }
}

// Directives between a function's parameters and its body.
static void parse_bounds(struct emu_loader *ld, struct emu_func *f)
{
    while (ld->token.kind == EMU_TOK_DOT) {
        const bool threads = emu_at_dot(ld, "maxntid") || emu_at_dot(ld, "reqntid");
        const bool exact = emu_at_dot(ld, "reqntid"), cluster = emu_at_dot(ld, "reqnctapercluster");
        if (emu_at_dot(ld, "pragma")) {
            emu_next(ld);
            emu_next(ld);
            emu_expect(ld, ';');
            continue;
        }
        emu_next(ld);
        uint64_t product = 1;
        for (uint32_t i = 0; ld->token.kind == EMU_TOK_INT; i++) {
            const uint64_t n = emu_expect_int(ld);
            if (cluster && i < 3)
                f->cluster[i] = n > 65536 ? 65536 : (uint32_t)n;
            for (uint32_t k = i; exact && k < 3; k++) // what is not stated is 1
                f->block[k] = k > i ? 1 : n > 65536 ? 65536 : (uint32_t)n;
            product = n > 65536 || product > 65536 ? 65537 : product * n;
            if (!emu_accept(ld, ','))
                break;
        }
        if (threads)
            f->max_threads = (uint32_t)product;
        emu_skip_parens(ld); // .abi_preserve and the like
    }
}

static void parse_body(struct emu_loader *ld);

static struct emu_func *new_func(struct emu_loader *ld, bool is_entry)
{
    struct emu_func *f = emu_arena_alloc(ld->keep, sizeof *f);
    f->is_entry = is_entry;
    f->name = "";
    f->index = ld->module->funcs.len;
    *emu_push(ld->keep, &ld->module->funcs) = f;
    return f;
}

static void parse_function(struct emu_loader *ld, bool is_entry)
{
    struct emu_func *f = new_func(ld, is_entry);
    const uint32_t line = ld->token.line;
    ld->func = f;
    ld->code.len = 0;
    emu_scope_open(ld);
    if (!is_entry && emu_at(ld, '('))
        parse_params(ld, &f->rets, &f->ret_count);
    struct emu_name *name = emu_expect_word(ld);
    f->name = keep_text(ld, name->text);
    if (emu_at(ld, '('))
        parse_params(ld, &f->params, &f->param_count);
    parse_bounds(ld, f);

    // A function is a symbol of the module; the scope of its body is already open.
    struct emu_symbol *s = name->symbols;
    if (s && s->kind != EMU_SYM_FUNC)
        emu_syntax(ld, line, "'%s' is already something else", f->name);
    const bool is_body = emu_at(ld, '{');
    if (s && is_body && s->func->is_defined)
        emu_syntax(ld, line, "function '%s' is defined twice", f->name);
    if (s && (s->func->param_count != f->param_count || s->func->ret_count != f->ret_count))
        emu_syntax(ld, line, "function '%s' was declared with other parameters", f->name);
    if (!s) {
        s = emu_arena_alloc(&ld->scratch, sizeof *s);
        *s = (struct emu_symbol){.kind = EMU_SYM_FUNC, .name = name, .line = line, .func = f};
        name->symbols = s;
    } else { // its index is already in use: it takes the place of what was declared
        ld->module->funcs.len--;
        f->index = s->func->index;
        if (is_body) {
            *s->func = *f;
            ld->func = f = s->func;
        }
    }
    if (is_body) {
        f->is_defined = true;
        emu_next(ld);
        parse_body(ld);
        emu_decode(ld);
        emu_labels_drop(ld);
    } else {
        emu_accept(ld, ';');
    }
    emu_scope_close(ld);
    ld->func = NULL;
}

// --- statements ---

static void parse_loc(struct emu_loader *ld)
{
    const uint64_t file = emu_expect_int(ld), line = emu_expect_int(ld);
    if (ld->token.kind == EMU_TOK_INT)
        emu_next(ld);
    ld->loc = ld->module->locs.len;
    *emu_push(ld->keep, &ld->module->locs) =
        (struct emu_loc){.file = (uint32_t)file, .line = (uint32_t)line};
    while (emu_accept(ld, ',')) { // function_name label [+ n], inlined_at file line column
        emu_expect_word(ld);
        if (ld->token.kind == EMU_TOK_WORD)
            emu_next(ld);
        while (ld->token.kind == EMU_TOK_INT || emu_at(ld, '+'))
            emu_next(ld);
    }
}

static void parse_file(struct emu_loader *ld)
{
    const uint64_t id = emu_expect_int(ld);
    if (ld->token.kind != EMU_TOK_STRING)
        emu_syntax(ld, ld->token.line, "a file name expected");
    *emu_push(ld->keep, &ld->module->files) =
        (struct emu_file){.id = (uint32_t)id, .name = keep_text(ld, ld->token.text)};
    emu_next(ld);
    while (emu_accept(ld, ','))
        emu_expect_int(ld);
}

// `.branchtargets a, b;` and its relatives, after their label.
static bool parse_targets(struct emu_loader *ld, struct emu_name *name)
{
    const bool proto = emu_at_dot(ld, "callprototype");
    if (!proto && !emu_at_dot(ld, "branchtargets") && !emu_at_dot(ld, "calltargets"))
        return false;
    const bool branch = emu_at_dot(ld, "branchtargets");
    emu_next(ld);
    struct emu_symbol *s = emu_declare(ld, name, branch ? EMU_SYM_TARGETS : EMU_SYM_PROTO);
    if (proto) { // its parameters mean nothing
        skip_statement(ld);
        return true;
    }
    EMU_VEC(struct emu_operand) targets = {0};
    do {
        struct emu_name *target = emu_expect_word(ld);
        *emu_push(&ld->scratch, &targets) =
            (struct emu_operand){.kind = EMU_OPD_NAME, .name = target};
    } while (emu_accept(ld, ','));
    emu_expect(ld, ';');
    s->targets = targets.at;
    s->count = targets.len;
    return true;
}

// A directive that may stand inside and outside of functions. False when it is another one.
// `.alias name, function;`: both are declared, and the function has its body already.
static void parse_alias(struct emu_loader *ld)
{
    const uint32_t line = ld->token.line;
    const struct emu_symbol *alias = emu_expect_word(ld)->symbols;
    emu_expect(ld, ',');
    const struct emu_symbol *target = emu_expect_word(ld)->symbols;
    emu_expect(ld, ';');
    if (!alias || !target || alias->kind != EMU_SYM_FUNC || target->kind != EMU_SYM_FUNC ||
        !target->func->is_defined || alias->func->is_defined)
        emu_syntax(ld, line, "an alias is a function without a body for one that has it");
    struct emu_func *f = alias->func;
    const struct emu_func declared = *f;
    if (declared.param_count != target->func->param_count ||
        declared.ret_count != target->func->ret_count)
        emu_syntax(ld, line, "an alias has the parameters of its function");
    *f = *target->func;
    f->name = declared.name;
    f->index = declared.index;
}

// "used_bytes_mask 0xfff": the compiler has widened the next load, and drops its other bytes. No
// other pragma matters here.
static void parse_pragma(struct emu_loader *ld)
{
    static const char used[] = "used_bytes_mask ";
    const size_t len = sizeof used - 1;
    do {
        const tir_str text = ld->token.text;
        if (ld->token.kind != EMU_TOK_STRING)
            emu_syntax(ld, ld->token.line, "a string expected");
        if (text.len > len && memcmp(text.ptr, used, len) == 0)
            ld->used_bytes = (uint32_t)strtoul(text.ptr + len, NULL, 0); // the quote ends it
        emu_next(ld);
    } while (emu_accept(ld, ','));
    emu_expect(ld, ';');
}

static bool parse_directive(struct emu_loader *ld, bool is_extern)
{
    if (emu_accept_dot(ld, "global")) {
        // Textures and surfaces can be declared; their names mean nothing.
        if (emu_at_dot(ld, "texref") || emu_at_dot(ld, "samplerref") || emu_at_dot(ld, "surfref"))
            skip_statement(ld);
        else
            emu_parse_variables(ld, EMU_GLOBAL, is_extern);
    } else if (emu_accept_dot(ld, "const"))
        emu_parse_variables(ld, EMU_CONST, is_extern);
    else if (emu_accept_dot(ld, "shared"))
        emu_parse_variables(ld, EMU_SHARED, is_extern);
    else if (emu_accept_dot(ld, "loc"))
        parse_loc(ld);
    else if (emu_accept_dot(ld, "file"))
        parse_file(ld);
    else if (emu_accept_dot(ld, "section")) {
        if (ld->token.kind != EMU_TOK_DOT && ld->token.kind != EMU_TOK_WORD)
            emu_syntax(ld, ld->token.line, "a section name expected");
        emu_next(ld);
        skip_braces(ld);
    } else if (emu_accept_dot(ld, "pragma")) {
        parse_pragma(ld);
    } else if (emu_accept_dot(ld, "tex")) {
        skip_statement(ld);
    } else if (emu_accept_dot(ld, "alias")) {
        parse_alias(ld);
    } else {
        return false;
    }
    return true;
}

static void parse_local_directive(struct emu_loader *ld)
{
    if (parse_directive(ld, false))
        return;
    if (emu_accept_dot(ld, "reg")) {
        struct emu_decl d = emu_parse_decl(ld, EMU_GENERIC, true, false);
        emu_declare_registers(ld, &d);
        emu_expect(ld, ';');
    } else if (emu_accept_dot(ld, "local") || emu_accept_dot(ld, "param")) {
        emu_parse_variables(ld, EMU_LOCAL, false); // a .param in a body is memory of the frame
    } else {
        emu_syntax(ld, ld->token.line, "unknown directive '.%.*s'", (int)ld->token.text.len,
                   ld->token.text.ptr);
    }
}

static void parse_statement(struct emu_loader *ld)
{
    if (ld->token.kind == EMU_TOK_DOT) {
        parse_local_directive(ld);
        return;
    }
    if (emu_accept(ld, '@')) {
        struct emu_operand *guard = emu_arena_alloc(&ld->scratch, sizeof *guard);
        const bool negate = emu_accept(ld, '!');
        *guard = emu_parse_operand(ld);
        guard->negate = negate;
        emu_parse_insn(ld, guard);
        return;
    }
    if (ld->token.kind == EMU_TOK_WORD) {
        const struct emu_lexer before = ld->lexer;
        const struct emu_token word = ld->token;
        emu_next(ld);
        if (emu_accept(ld, ':')) {
            struct emu_name *name = emu_intern(ld, word.text);
            if (!parse_targets(ld, name))
                emu_label(ld, name);
            return;
        }
        ld->lexer = before;
        ld->token = word;
        emu_parse_insn(ld, NULL);
        return;
    }
    if (!emu_accept(ld, ';'))
        emu_syntax(ld, ld->token.line, "an instruction expected before '%.*s'",
                   (int)(ld->token.text.len < 40 ? ld->token.text.len : 40), ld->token.text.ptr);
}

static void parse_body(struct emu_loader *ld)
{
    for (uint32_t depth = 1; depth;) {
        if (ld->token.kind == EMU_TOK_END)
            emu_syntax(ld, ld->token.line, "'}' expected at the end");
        if (emu_accept(ld, '{')) {
            depth++;
            emu_scope_open(ld);
        } else if (emu_accept(ld, '}')) {
            if (--depth)
                emu_scope_close(ld);
        } else {
            parse_statement(ld);
        }
    }
}

// The first three lines of every module; what they say does not matter here.
static bool parse_header(struct emu_loader *ld)
{
    if (!emu_at_dot(ld, "version") && !emu_at_dot(ld, "target") && !emu_at_dot(ld, "address_size"))
        return false;
    const bool is_size = emu_at_dot(ld, "address_size");
    emu_next(ld);
    if (is_size && (ld->token.kind != EMU_TOK_INT || ld->token.bits != 64))
        emu_syntax(ld, ld->token.line, "only 64-bit addresses are supported");
    do
        emu_next(ld);
    while (emu_accept(ld, ','));
    return true;
}

void emu_parse(struct emu_loader *ld)
{
    *emu_push(&ld->scratch, &ld->scope_parent) = 0;
    *emu_push(&ld->scratch, &ld->scope_symbols) = NULL;
    *emu_push(ld->keep, &ld->module->locs) = (struct emu_loc){0}; // before any .loc
    emu_push(ld->keep, &ld->module->args)->ref = EMU_NO_REF; // so that empty lists have an address
    emu_next(ld);
    while (ld->token.kind != EMU_TOK_END) {
        bool is_extern = false;
        if (parse_header(ld))
            continue;
        while (emu_at_dot(ld, "extern") || emu_at_dot(ld, "visible") || emu_at_dot(ld, "weak") ||
               emu_at_dot(ld, "common")) {
            is_extern |= emu_at_dot(ld, "extern");
            emu_next(ld);
        }
        if (emu_accept_dot(ld, "entry"))
            parse_function(ld, true);
        else if (emu_accept_dot(ld, "func"))
            parse_function(ld, false);
        else if (!parse_directive(ld, is_extern) && !emu_accept(ld, ';'))
            emu_syntax(ld, ld->token.line, "'%.*s' is not a directive",
                       (int)(ld->token.text.len < 40 ? ld->token.text.len : 40),
                       ld->token.text.ptr);
    }
}
