// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parser of PTX: instructions, operands, constant expressions.

#include <string.h>

#include "emu/device.h"
#include "emu/parse/parse.h"

enum { MAX_NESTING = 32 };

static const char *const sreg_names[] = {
#define SREG(name, spelling, type) spelling,
#include "emu/run/sregs.def"
};

static const uint8_t sreg_types[] = {
#define SREG(name, spelling, type) EMU_##type,
#include "emu/run/sregs.def"
};

static void enter(struct emu_loader *ld)
{
    if (++ld->depth > MAX_NESTING)
        emu_syntax(ld, ld->token.line, "operands nest deeper than %d", MAX_NESTING);
}

// --- integer constant expressions: C's operators, 64 bits, wrapping ---

static uint64_t parse_primary(struct emu_loader *ld)
{
    enter(ld);
    uint64_t value;
    if (emu_accept(ld, '-')) {
        value = 0 - parse_primary(ld);
    } else if (emu_accept(ld, '~')) {
        value = ~parse_primary(ld);
    } else if (emu_accept(ld, '!')) {
        value = !parse_primary(ld);
    } else if (emu_accept(ld, '+')) {
        value = parse_primary(ld);
    } else if (emu_accept(ld, '(')) {
        if (ld->token.kind == EMU_TOK_DOT) { // a cast
            emu_next(ld);
            emu_expect(ld, ')');
            value = parse_primary(ld);
        } else {
            value = emu_parse_constant(ld);
            emu_expect(ld, ')');
        }
    } else if (ld->token.kind == EMU_TOK_INT) {
        value = ld->token.bits;
        emu_next(ld);
    } else if (ld->token.kind == EMU_TOK_WORD && emu_str_is(ld->token.text, "WARP_SZ")) {
        value = EMU_WARP;
        emu_next(ld);
    } else {
        emu_syntax(ld, ld->token.line, "a constant expected before '%.*s'",
                   (int)(ld->token.text.len < 40 ? ld->token.text.len : 40), ld->token.text.ptr);
    }
    ld->depth--;
    return value;
}

// Binary operators; a higher level binds tighter. Longer spellings come first.
static const struct binary {
    char text[3];
    uint8_t level;
} operators[] = {
    {"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7},
    {"<<", 8}, {">>", 8}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
    {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10},
};

enum { PRODUCT = 10 };

// The operator at the token, of the given level or a tighter one; NULL: none.
static const struct binary *at_operator(const struct emu_loader *ld, uint32_t level)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const struct binary *o = &operators[i];
        const bool percent =
            o->text[0] == '%' && ld->token.kind == EMU_TOK_WORD && emu_str_is(ld->token.text, "%");
        if ((emu_at(ld, o->text[0]) || percent) && (!o->text[1] || *ld->lexer.cursor == o->text[1]))
            return o->level >= level ? o : NULL;
    }
    return NULL;
}

static uint64_t apply(struct emu_loader *ld, const struct binary *o, uint64_t a, uint64_t b)
{
    const int64_t x = (int64_t)a, y = (int64_t)b;
    const bool two = o->text[1] != '\0';
    switch (o->text[0]) {
    case '|':
        return two ? a || b : a | b;
    case '&':
        return two ? a && b : a & b;
    case '=':
        return a == b;
    case '!':
        return a != b;
    case '<':
        return !two ? x < y : o->text[1] == '=' ? x <= y : b > 63 ? 0 : a << b;
    case '>':
        return !two ? x > y : o->text[1] == '=' ? x >= y : (uint64_t)(x >> (b > 63 ? 63 : b));
    case '^':
        return a ^ b;
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    default:
        break;
    }
    if (b == 0)
        emu_syntax(ld, ld->token.line, "division by zero in a constant");
    if (y == -1) // the smallest number wraps
        return o->text[0] == '/' ? 0 - a : 0;
    return (uint64_t)(o->text[0] == '/' ? x / y : x % y);
}

static uint64_t parse_binary(struct emu_loader *ld, uint32_t level)
{
    enter(ld);
    uint64_t value = parse_primary(ld);
    for (const struct binary *o; (o = at_operator(ld, level)) != NULL;) {
        emu_next(ld);
        if (o->text[1])
            emu_next(ld);
        const uint64_t right = parse_binary(ld, o->level + 1u);
        value = apply(ld, o, value, right);
    }
    ld->depth--;
    return value;
}

uint64_t emu_parse_constant(struct emu_loader *ld)
{
    enter(ld);
    uint64_t value = parse_binary(ld, 1);
    if (emu_accept(ld, '?')) {
        const uint64_t yes = emu_parse_constant(ld);
        emu_expect(ld, ':');
        const uint64_t no = emu_parse_constant(ld);
        value = value ? yes : no;
    }
    ld->depth--;
    return value;
}

// --- operands ---

static struct emu_operand *add_operand(struct emu_loader *ld, struct emu_operand *list,
                                       uint32_t count, struct emu_operand operand)
{
    if ((count & (count - 1)) == 0) { // grow at 0, 1, 2, 4, 8 ...
        struct emu_operand *grown =
            emu_arena_array(&ld->scratch, count ? count * 2 : 1, sizeof *grown);
        if (count)
            memcpy(grown, list, count * sizeof *grown);
        list = grown;
    }
    list[count] = operand;
    return list;
}

static struct emu_operand parse_list(struct emu_loader *ld, enum emu_operand_kind kind, char close)
{
    struct emu_operand list = {.kind = kind};
    while (!emu_accept(ld, close)) {
        list.list = add_operand(ld, list.list, list.count, emu_parse_operand(ld));
        list.count++;
        if (!emu_at(ld, close))
            emu_expect(ld, ',');
    }
    return list;
}

// The rest of `symbol + 12`, `symbol[12]`.
static uint64_t parse_addend(struct emu_loader *ld)
{
    uint64_t value = 0;
    while (emu_at(ld, '+') || emu_at(ld, '-')) {
        const bool plus = emu_accept(ld, '+');
        if (!plus)
            emu_next(ld);
        const uint64_t more = parse_binary(ld, PRODUCT);
        value = plus ? value + more : value - more;
    }
    return value;
}

// Special registers that never change here. A `#` stands for digits.
static const struct {
    const char *name;
    uint32_t value;
} constant_sregs[] = {
    {"%tid.w", 0},
    {"%ntid.w", 0},
    {"%ctaid.w", 0},
    {"%nctaid.w", 0},
    {"%clusterid.w", 0},
    {"%nclusterid.w", 0},
    {"%cluster_ctaid.w", 0},
    {"%cluster_nctaid.w", 0},
    {"%pm#", 0},
    {"%pm#_64", 0},
    {"%envreg#", 0},
    {"%current_graph_exec", 0},
    {"%reserved_smem_offset_begin", 0},
    {"%reserved_smem_offset_end", EMU_SHARED_START},
    {"%reserved_smem_offset_cap", EMU_SHARED_START},
    {"%reserved_smem_offset_0", 0},
};

static bool sreg_fits(tir_str name, const char *pattern)
{
    size_t at = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (at == name.len || name.ptr[at++] != *pattern)
                return false;
            continue;
        }
        const size_t first = at;
        while (at < name.len && at < first + 2 && name.ptr[at] >= '0' && name.ptr[at] <= '9')
            at++;
        if (at == first)
            return false;
    }
    return at == name.len;
}

// {%tid.x, %tid.y, %tid.z, 0}, of which `first` is the first.
static struct emu_operand vector_sreg(struct emu_loader *ld, uint32_t first)
{
    struct emu_operand out = {.kind = EMU_OPD_VEC, .count = 4};
    out.list = emu_arena_array(&ld->scratch, 4, sizeof *out.list);
    for (uint32_t i = 0; i < 3; i++)
        out.list[i] = (struct emu_operand){.kind = EMU_OPD_SREG, .type = EMU_u32, .ref = first + i};
    out.list[3] = (struct emu_operand){.kind = EMU_OPD_INT};
    return out;
}

// %reserved_smem_offset_1: shared memory that cooperative groups use for groups of several warps.
// It is a variable of the module, without a line that declares it.
static struct emu_operand reserved_shared(struct emu_loader *ld, tir_str text)
{
    enum { SIZE = 288, ALIGN = 16 }; // cooperative_groups/details/memory.h
    struct emu_symbol *s = emu_arena_alloc(&ld->scratch, sizeof *s);
    *s = (struct emu_symbol){.kind = EMU_SYM_VAR,
                             .name = emu_intern(ld, text),
                             .space = EMU_SHARED,
                             .address = ld->module->shared.len,
                             .size = SIZE,
                             .align = ALIGN};
    s->name->symbols = s;
    *emu_push(ld->keep, &ld->module->shared) =
        (struct emu_shared_var){.size = SIZE, .align = ALIGN, .is_reserved = true};
    return (struct emu_operand){.kind = EMU_OPD_ADDRESS, .name = s->name, .symbol = s};
}

static struct emu_operand parse_sreg(struct emu_loader *ld, tir_str text)
{
    if (emu_str_is(text, "%reserved_smem_offset_1"))
        return reserved_shared(ld, text);
    char name[40];
    size_t len = text.len < sizeof name - 4 ? text.len : sizeof name - 4;
    memcpy(name, text.ptr, len);
    if (ld->token.kind == EMU_TOK_DOT && ld->token.text.len == 1) {
        name[len++] = '.';
        name[len++] = ld->token.text.ptr[0];
        emu_next(ld);
    }
    for (uint32_t i = 0; i < EMU_SREG_COUNT; i++)
        if (emu_str_is((tir_str){name, len}, sreg_names[i]))
            return (struct emu_operand){
                .kind = EMU_OPD_SREG, .type = (enum emu_type)sreg_types[i], .ref = i};
    for (size_t i = 0; i < sizeof constant_sregs / sizeof *constant_sregs; i++)
        if (sreg_fits((tir_str){name, len}, constant_sregs[i].name))
            return (struct emu_operand){.kind = EMU_OPD_INT, .bits = constant_sregs[i].value};
    for (uint32_t i = 0; i < EMU_SREG_COUNT; i++) // %tid, all of it
        if (len + 2 == strlen(sreg_names[i]) && memcmp(name, sreg_names[i], len) == 0 &&
            sreg_names[i][len] == '.')
            return vector_sreg(ld, i);
    emu_syntax(ld, ld->token.line, "unknown register '%.*s'", (int)len, name);
}

// `a` or `a.y` of a vector register.
static struct emu_operand parse_vector(struct emu_loader *ld, const struct emu_operand *all)
{
    static const char names[2][4] = {{'x', 'y', 'z', 'w'}, {'r', 'g', 'b', 'a'}};
    emu_next(ld);
    if (ld->token.kind != EMU_TOK_DOT)
        return *all;
    const tir_str part = ld->token.text;
    for (uint32_t i = 0; i < 2 * all->count; i++)
        if (part.len == 1 && part.ptr[0] == names[i % 2][i / 2]) {
            emu_next(ld);
            return all->list[i / 2];
        }
    emu_syntax(ld, ld->token.line, "the register has no part '.%.*s'", (int)part.len, part.ptr);
}

static struct emu_operand parse_word(struct emu_loader *ld)
{
    const tir_str text = ld->token.text;
    struct emu_operand out = {0};
    if (emu_str_is(text, "_")) {
        emu_next(ld);
        return (struct emu_operand){.kind = EMU_OPD_SINK};
    }
    if (emu_str_is(text, "WARP_SZ"))
        return (struct emu_operand){.kind = EMU_OPD_INT, .bits = emu_parse_constant(ld)};
    if (emu_find_vector(ld, text, &out))
        return parse_vector(ld, &out);
    if (emu_find_register(ld, text, &out)) {
        emu_next(ld);
        if (ld->token.kind == EMU_TOK_DOT) {
            out.selector = ld->token.text;
            emu_next(ld);
        }
        return out;
    }
    struct emu_name *name = emu_intern(ld, text);
    emu_next(ld);
    if (!name->symbols && text.ptr[0] == '%')
        return parse_sreg(ld, text);
    out.name = name;
    out.symbol = name->symbols;
    out.kind = out.symbol && (out.symbol->kind == EMU_SYM_VAR || out.symbol->kind == EMU_SYM_FUNC)
                   ? EMU_OPD_ADDRESS
                   : EMU_OPD_NAME;
    if (out.kind == EMU_OPD_ADDRESS)
        out.bits = parse_addend(ld);
    return out;
}

// [base], [base + offset], [base, {coordinates}, more]
static struct emu_operand parse_memory(struct emu_loader *ld)
{
    struct emu_operand mem = {.kind = EMU_OPD_MEM};
    do {
        struct emu_operand part = emu_parse_operand(ld);
        if (mem.count == 0) {
            mem.bits = parse_addend(ld);
            if (part.kind == EMU_OPD_ADDRESS) {
                mem.bits += part.bits;
                part.bits = 0;
            }
        }
        mem.list = add_operand(ld, mem.list, mem.count, part);
        mem.count++;
    } while (emu_accept(ld, ','));
    emu_expect(ld, ']');
    return mem;
}

struct emu_operand emu_parse_operand(struct emu_loader *ld)
{
    struct emu_operand out = {0};
    enter(ld);
    const bool negate = emu_accept(ld, '!');
    if (emu_accept(ld, '[')) {
        out = parse_memory(ld);
    } else if (emu_accept(ld, '{')) {
        out = parse_list(ld, EMU_OPD_VEC, '}');
    } else if (ld->token.kind == EMU_TOK_WORD) {
        out = parse_word(ld);
    } else {
        const struct emu_lexer before = ld->lexer;
        const struct emu_token token = ld->token;
        const bool negative = emu_accept(ld, '-');
        if (ld->token.kind == EMU_TOK_F32 || ld->token.kind == EMU_TOK_F64) {
            const bool single = ld->token.kind == EMU_TOK_F32;
            out.kind = single ? EMU_OPD_F32 : EMU_OPD_F64;
            out.bits = ld->token.bits ^ (negative ? (uint64_t)1 << (single ? 31 : 63) : 0);
            emu_next(ld);
        } else if (negative && ld->token.kind == EMU_TOK_WORD &&
                   emu_find_register(ld, ld->token.text, &out)) {
            out = parse_word(ld);
            out.minus = true;
        } else {
            ld->lexer = before;
            ld->token = token;
            out.kind = EMU_OPD_INT;
            out.bits = emu_parse_constant(ld);
        }
    }
    out.negate = negate;
    ld->depth--;
    return out;
}

// An operand of an instruction: p|q and (lists) stand only here.
static struct emu_operand parse_top(struct emu_loader *ld, bool is_call)
{
    if (is_call && emu_accept(ld, '('))
        return parse_list(ld, EMU_OPD_LIST, ')');
    struct emu_operand first = emu_parse_operand(ld);
    if (!emu_accept(ld, '|'))
        return first;
    struct emu_operand pair = {.kind = EMU_OPD_PAIR, .count = 2};
    pair.list = emu_arena_array(&ld->scratch, 2, sizeof *pair.list);
    pair.list[0] = first;
    pair.list[1] = emu_parse_operand(ld);
    return pair;
}

void emu_parse_insn(struct emu_loader *ld, struct emu_operand *guard)
{
    const uint32_t line = ld->token.line;
    if (ld->token.kind != EMU_TOK_WORD)
        emu_syntax(ld, line, "an instruction expected");
    struct emu_ast *ast = emu_push(&ld->scratch, &ld->code);
    *ast = (struct emu_ast){.line = line,
                            .loc = ld->loc,
                            .scope = ld->scope,
                            .guard = guard,
                            .used_bytes = ld->used_bytes};
    ld->used_bytes = 0;
    ast->opcode = ld->token.text;
    const bool is_call = emu_str_is(ast->opcode, "call");
    emu_next(ld);
    while (ld->token.kind == EMU_TOK_DOT) {
        if (ast->mod_count == EMU_MAX_MODS)
            emu_syntax(ld, line, "more than %d suffixes", EMU_MAX_MODS);
        ast->mods[ast->mod_count++] = ld->token.text;
        emu_next(ld);
    }
    struct emu_operand operands[EMU_MAX_OPERANDS];
    uint8_t count = 0;
    while (!emu_accept(ld, ';')) {
        if (count == EMU_MAX_OPERANDS)
            emu_syntax(ld, line, "more than %d operands", EMU_MAX_OPERANDS);
        operands[count++] = parse_top(ld, is_call);
        if (!emu_at(ld, ';'))
            emu_expect(ld, ',');
    }
    ast->operands = emu_arena_array(&ld->scratch, count ? count : 1, sizeof *operands);
    memcpy(ast->operands, operands, count * sizeof *operands);
    ast->operand_count = count;
}
