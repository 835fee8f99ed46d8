// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Identifiers of a PTX module: interning, scopes, registers, labels.
//
// Blocks nest, and inline assembly repeats its names in every block it opens. Symbols of the open
// blocks hang on their name, innermost first, and leave it when the block closes. Labels may be
// used before they are seen, so they stay until the function ends and carry their block's number.

#include <string.h>

#include "emu/parse/parse.h"

enum { MAX_REG_BYTES = 1 << 26, MAX_LOCAL = 1 << 19, MAX_DEPTH = 64 };

struct emu_name *emu_intern(struct emu_loader *ld, tir_str text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (uint8_t)text.ptr[i]) * 16777619u;
    struct emu_name **bucket = &ld->buckets[hash % EMU_NAME_BUCKETS];
    for (struct emu_name *n = *bucket; n; n = n->next)
        if (n->text.len == text.len && memcmp(n->text.ptr, text.ptr, text.len) == 0)
            return n;
    struct emu_name *n = emu_arena_alloc(&ld->scratch, sizeof *n);
    n->text = text;
    n->next = *bucket;
    *bucket = n;
    return n;
}

// Where the symbols of a kind hang on their name.
static struct emu_symbol **symbols_of(struct emu_name *name, enum emu_symbol_kind kind)
{
    return kind == EMU_SYM_RANGE ? &name->ranges : &name->symbols;
}

struct emu_symbol *emu_declare(struct emu_loader *ld, struct emu_name *name,
                               enum emu_symbol_kind kind)
{
    struct emu_symbol *s = emu_arena_alloc(&ld->scratch, sizeof *s);
    s->kind = kind;
    s->name = name;
    s->line = ld->token.line;
    struct emu_symbol **head = symbols_of(name, kind);
    s->next = *head;
    *head = s;
    struct emu_symbol **open = &ld->scope_symbols.at[ld->scope_symbols.len - 1];
    s->sibling = *open;
    *open = s;
    return s;
}

void emu_scope_open(struct emu_loader *ld)
{
    if (ld->scope_stack.len >= MAX_DEPTH)
        emu_syntax(ld, ld->token.line, "blocks nest deeper than %d", MAX_DEPTH);
    *emu_push(&ld->scratch, &ld->scope_stack) = ld->scope;
    *emu_push(&ld->scratch, &ld->scope_symbols) = NULL;
    *emu_push(&ld->scratch, &ld->scope_parent) = ld->scope;
    ld->scope = ld->scope_parent.len - 1;
}

void emu_scope_close(struct emu_loader *ld)
{
    for (struct emu_symbol *s = ld->scope_symbols.at[--ld->scope_symbols.len]; s; s = s->sibling)
        *symbols_of(s->name, s->kind) = s->next; // newest first, so each is its name's head
    ld->scope = ld->scope_stack.at[--ld->scope_stack.len];
}

static uint32_t label_bucket(const struct emu_name *name, uint32_t scope)
{
    return (uint32_t)(((uintptr_t)name / 16 + scope * 40503u) & (EMU_NAME_BUCKETS - 1));
}

static const struct emu_label *label_in(const struct emu_loader *ld, const struct emu_name *name,
                                        uint32_t scope)
{
    const struct emu_label *l = ld->labels[label_bucket(name, scope)];
    while (l && (l->name != name || l->scope != scope))
        l = l->next;
    return l;
}

void emu_label(struct emu_loader *ld, const struct emu_name *name)
{
    if (label_in(ld, name, ld->scope))
        emu_syntax(ld, ld->token.line, "label '%.*s' is defined twice", (int)name->text.len,
                   name->text.ptr);
    struct emu_label **bucket = &ld->labels[label_bucket(name, ld->scope)];
    struct emu_label *l = emu_arena_alloc(&ld->scratch, sizeof *l);
    *l = (struct emu_label){*bucket, name, ld->scope, ld->code.len};
    *bucket = l;
    ld->label_count++;
}

void emu_labels_drop(struct emu_loader *ld)
{
    if (ld->label_count)
        memset(ld->labels, 0, sizeof ld->labels);
    ld->label_count = 0;
}

uint32_t emu_label_find(const struct emu_loader *ld, const struct emu_name *name, uint32_t scope)
{
    for (;;) {
        const struct emu_label *l = label_in(ld, name, scope);
        if (l)
            return l->pc;
        if (scope == 0)
            return EMU_NO_REF;
        scope = ld->scope_parent.at[scope];
    }
}

uint32_t emu_func_local(struct emu_loader *ld, uint64_t size, uint64_t align)
{
    const uint64_t at = emu_align_up(ld->func->local_bytes, align);
    if (size > MAX_LOCAL || at + size > MAX_LOCAL)
        emu_syntax(ld, ld->token.line, "more than %d bytes of local memory a thread", MAX_LOCAL);
    ld->func->local_bytes = (uint32_t)(at + size);
    return (uint32_t)at;
}

uint32_t emu_func_register(struct emu_loader *ld, enum emu_type type)
{
    const uint32_t element = emu_types[type].bits <= 16 ? 2 : emu_types[type].bits / 8u;
    const uint32_t size = type == EMU_pred ? EMU_REG_SLOT : element * EMU_WARP;
    if (ld->func->reg_bytes > MAX_REG_BYTES - size)
        emu_syntax(ld, ld->token.line, "function '%s' has too many registers", ld->func->name);
    const uint32_t at = ld->func->reg_bytes;
    ld->func->reg_bytes += size;
    return emu_ref(EMU_BASE_REG, at);
}

// A register gets its place when it is first named: `%r<1000>` costs nothing by itself.
static void place(struct emu_loader *ld, struct emu_symbol *s, uint32_t i, struct emu_operand *out)
{
    if (s->refs[i] == EMU_NO_REF)
        s->refs[i] = emu_func_register(ld, s->type);
    *out = (struct emu_operand){.kind = EMU_OPD_REG, .type = s->type, .ref = s->refs[i]};
}

bool emu_find_register(struct emu_loader *ld, tir_str text, struct emu_operand *out)
{
    const struct emu_name *name = emu_intern(ld, text);
    if (name->symbols) {
        if (name->symbols->kind != EMU_SYM_REG || name->symbols->count)
            return false;
        place(ld, name->symbols, 0, out);
        return true;
    }
    // %r12 of the range %r<n>. A prefix may itself end in digits, so every split is tried.
    size_t digits = 0;
    uint64_t index = 0, scale = 1;
    while (digits < text.len && digits < 7) {
        const char c = text.ptr[text.len - 1 - digits];
        if (c < '0' || c > '9')
            return false;
        index += (uint64_t)(c - '0') * scale;
        scale *= 10;
        digits++;
        name = emu_intern(ld, (tir_str){text.ptr, text.len - digits});
        struct emu_symbol *s = name->ranges;
        if (s && index < s->count && (c != '0' || digits == 1)) {
            place(ld, s, (uint32_t)index, out);
            return true;
        }
    }
    return false;
}

bool emu_find_vector(struct emu_loader *ld, tir_str text, struct emu_operand *out)
{
    struct emu_symbol *s = emu_intern(ld, text)->symbols;
    if (!s || !s->is_vector)
        return false;
    *out = (struct emu_operand){.kind = EMU_OPD_VEC, .count = s->count};
    out->list = emu_arena_array(&ld->scratch, s->count, sizeof *out->list);
    for (uint32_t i = 0; i < s->count; i++)
        place(ld, s, i, &out->list[i]);
    return true;
}
