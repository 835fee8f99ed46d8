// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Built-ins that say what a kernel does: print, assert and trap.
//
//     print("x", x)                   in a tiles loop (m, n), line 7 of a.tir
// is
//     print(m, n, x, text = "a.tir:7, tile ({}, {}): x {}")
//
// A tile is printed element by element, in order: it goes through shared memory, and a loop prints.
#include "base/unicode.h"
#include "front/lower/builtin.h"
#include "ir/crew.h"

enum { MOST_VALUES = 20 }; // of one line; a device prints at most 32

struct line {
    struct lower *l;
    struct tir_text text;
    struct tir_value *values[2 * MOST_VALUES];
    uint32_t count;
};

// Text of the source or the name of a file: it has no places for values, and nothing that ends a
// line or that a terminal obeys.
static void add_plain(struct tir_text *to, tir_str s)
{
    char last = 0;
    for (size_t at = 0, begin = 0; at < s.len; begin = at) {
        const uint32_t point = tir_utf8_next(s, &at);
        const bool shown = point != TIR_REPLACEMENT && tir_unicode_printable(point);
        const char c = shown ? s.ptr[begin] : ' ';
        if (c == ' ' && last == ' ')
            continue;
        if (c == '}' && last == '{')
            tir_text_char(to, ' ');
        tir_text_add(to, shown ? (tir_str){s.ptr + begin, at - begin} : STR(" "));
        last = c;
    }
}

static void add_value(struct line *line, struct tir_value *v)
{
    tir_text_format(&line->text, "{}");
    line->values[line->count++] = v;
}

// begin {}, {} end
static void add_values(struct line *line, const char *begin, struct tir_value *const *values,
                       uint32_t count, const char *end)
{
    for (uint32_t i = 0; i < count; i++) {
        tir_text_format(&line->text, "%s", i ? ", " : begin);
        add_value(line, values[i]);
    }
    tir_text_format(&line->text, "%s", end);
}

static struct tir_value *cta_id(struct lower *l, int64_t axis)
{
    struct tir_value *v =
        build_one(l, TIR_OP_CTA_ID, tir_type_scalar(l->cx->types, TIR_I32), NULL, 0);
    tir_set_int(l->f, v->def, TIR_ATTR_axis, axis);
    return v;
}

// Where the program is: the tile, or the CTA and, where each thread prints, the thread.
static void add_place(struct line *line, struct tir_span span, bool by_thread)
{
    struct lower *l = line->l;
    struct tir_position at = tir_source_locate(l->cx->diags.sources, span.begin);
    const char *slash = at.file ? strrchr(at.file->name.ptr, '/') : NULL;
    if (at.file) {
        add_plain(&line->text, tir_str_of(slash ? slash + 1 : at.file->name.ptr));
        tir_text_format(&line->text, ":%u", at.line);
    }
    for (const struct tir_inst *up = l->b.block->owner; up; up = up->block->owner)
        if (up->op == TIR_OP_TILES)
            add_values(line, ", tile (", up->regions[0]->args, tir_carried_at(up), ")");
    if (l->f->grid_count) {
        struct tir_value *ctas[3];
        for (uint32_t i = 0; i < l->f->grid_count; i++)
            ctas[i] = cta_id(l, i);
        add_values(line, ", CTA (", ctas, l->f->grid_count, ")");
    }
    if (by_thread) {
        tir_text_format(&line->text, ", thread ");
        add_value(line, build_one(l, TIR_OP_TID, tir_type_scalar(l->cx->types, TIR_I32), NULL, 0));
    }
    tir_text_format(&line->text, ": ");
}

// The places for values in a text.
static uint32_t count_places(tir_str text)
{
    uint32_t places = 0;
    for (size_t i = 0; i + 1 < text.len; i++)
        places += text.ptr[i] == '{' && text.ptr[i + 1] == '}';
    return places;
}

// The text with the values that it has places for.
static void add_text(struct line *line, tir_str text, struct tir_value *const *values)
{
    tir_text_add(&line->text, text);
    for (uint32_t places = count_places(text), i = 0; i < places; i++)
        line->values[line->count++] = values[i];
}

// The others behind it.
static void add_rest(struct line *line, tir_str text, struct tir_value *const *values,
                     uint32_t count)
{
    for (uint32_t i = count_places(text); i < count; i++) {
        tir_text_format(&line->text, " ");
        add_value(line, values[i]);
    }
}

static void build_print(struct line *line)
{
    struct lower *l = line->l;
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_PRINT, line->values, line->count, NULL, 0, 0);
    tir_set_text(l->f, inst, TIR_ATTR_text, tir_text_str(&line->text));
}

// for i in range(count) { the body that is built next }; gives i.
static struct tir_value *open_loop(struct lower *l, int64_t count)
{
    const struct tir_type *index = tir_type_scalar(l->cx->types, TIR_I64);
    struct tir_value *bounds[] = {[TIR_FOR_BEGIN] = tir_const_index(l->f, 0),
                                  [TIR_FOR_END] = tir_const_index(l->f, count),
                                  [TIR_FOR_STEP] = tir_const_index(l->f, 1)};
    struct tir_inst *loop = tir_build(&l->b, TIR_OP_FOR, bounds, 3, NULL, 0, 1);
    l->b.block = loop->regions[0];
    l->b.before = NULL;
    return tir_block_add_arg(l->f, loop->regions[0], index, "i");
}

static void close_blocks(struct lower *l, const struct tir_builder *outer)
{
    while (l->b.block != outer->block) {
        tir_build_yield(&l->b, NULL, 0);
        struct tir_inst *owner = l->b.block->owner;
        if (owner->op == TIR_OP_IF) {
            struct tir_builder other = tir_builder_at_end(l->f, owner->regions[1]);
            tir_build_yield(&other, NULL, 0);
        }
        l->b.block = owner->block;
    }
    l->b = *outer;
}

// One thread of each group prints the elements of tiles of one shape, which are in shared buffers.
static void print_tiles(struct lower *l, const struct call *c, tir_str text,
                        struct tir_value **values, uint32_t count)
{
    const struct tir_type *t = NULL;
    struct tir_value *buffers[MOST_VALUES];
    for (uint32_t i = 0; i < count; i++)
        if (tir_type_is_tile(values[i]->type)) {
            t = values[i]->type;
            buffers[i] = lower_staged(l, values[i]);
        }
    const struct tir_builder outer = l->b;
    const struct tir_crew crew = tir_crew_of_block(l->f, l->b.block);
    if (l->f->grid_count) {
        struct tir_value *first = tir_build_is_leader(&l->b, &crew);
        l->b.block = tir_build(&l->b, TIR_OP_IF, &first, 1, NULL, 0, 2)->regions[0];
        l->b.before = NULL;
    }
    struct tir_value *at[TIR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        at[d] = open_loop(l, t->shape[d]);
    struct tir_value *elements[MOST_VALUES];
    for (uint32_t i = 0; i < count; i++) {
        elements[i] = values[i];
        if (tir_type_is_tile(values[i]->type)) {
            struct slice s = {.span = c->e->span, .base = buffers[i]};
            memcpy(s.indices, at, t->rank * sizeof *at);
            s.type = s.shown = tir_type_scalar(l->cx->types, values[i]->type->elem);
            elements[i] = build_load(l, &s, NULL, NULL);
        }
    }
    struct line line = {.l = l};
    tir_text_init(&line.text, l->arena, 0);
    add_place(&line, c->e->span, crew.groups > 1);
    if (count_places(text)) { // behind the text, the index would look like that of its last value
        add_values(&line, "[", at, t->rank, "] ");
        add_text(&line, text, elements);
    } else {
        add_text(&line, text, elements);
        add_values(&line, "[", at, t->rank, "]");
    }
    add_rest(&line, text, elements, count);
    build_print(&line);
    close_blocks(l, &outer);
}

// The values of print, tiles among them of one shape. False: reported.
static bool lower_printed(struct lower *l, const struct call *c, uint32_t first,
                          struct tir_value **values, uint32_t count, bool *tiles)
{
    struct val vals[MOST_VALUES];
    *tiles = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct ast_expr *e = call_arg(c, first + i);
        struct val v = lower_expr(l, e);
        if (!convert_is_value(l, e->span, v) || !(values[i] = convert_default(l, e->span, v)))
            return false;
        vals[i] = val_ir(values[i]);
        *tiles |= tir_type_is_tile(values[i]->type);
    }
    struct unify u = {"`print`", c->e->span, TIR_CLASS_ANY, TIR_NONE, NULL};
    if (*tiles && !convert_unify_shapes(l, &u, vals, count))
        return false;
    for (uint32_t i = 0; i < count && *tiles; i++)
        values[i] = vals[i].ir;
    return true;
}

static bool lower_text(struct lower *l, const struct ast_expr *e, tir_str *out)
{
    if (e->kind != AST_STRING) {
        lower_error(l, e->span, TIR_E_ARGUMENTS, "the text must be a string");
        return false;
    }
    if (memchr(e->text.ptr, 0, e->text.len)) { // of a string for a device, this is the end
        lower_error(l, e->span, TIR_E_ARGUMENTS, "a text that is printed has no `\\0`");
        return false;
    }
    *out = e->text;
    return true;
}

// Without a text the line has that of the values.
static tir_str text_of_values(struct lower *l, const struct call *c)
{
    struct tir_text text;
    tir_text_init(&text, l->arena, 0);
    for (uint32_t i = 0; i < c->positional; i++) {
        tir_text_format(&text, "%s", i ? ", " : "");
        add_plain(&text, tir_source_text(&l->cx->sources, call_arg(c, i)->span));
    }
    return tir_text_str(&text);
}

// print("text {}", x, ...), print(x, ...)
bool builtin_print(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which, (void)out;
    struct tir_value *values[MOST_VALUES];
    const bool has_text = call_arg(c, 0)->kind == AST_STRING;
    const uint32_t count = c->positional - has_text;
    tir_str text;
    bool tiles;
    if (count > MOST_VALUES) {
        lower_error(l, c->e->span, TIR_E_ARGUMENTS, "`print` takes up to %u values, not %u",
                    MOST_VALUES, count);
        return false;
    }
    if (!has_text)
        text = text_of_values(l, c);
    else if (!lower_text(l, call_arg(c, 0), &text))
        return false;
    if (count_places(text) > count) {
        lower_error(l, c->e->span, TIR_E_ARGUMENTS,
                    "the text of `print` has %u `{}` for %u value%s", count_places(text), count,
                    count == 1 ? "" : "s");
        return false;
    }
    if (!lower_printed(l, c, has_text, values, count, &tiles))
        return false;
    if (tiles) {
        print_tiles(l, c, text, values, count);
        return true;
    }
    struct line line = {.l = l};
    tir_text_init(&line.text, l->arena, 0);
    add_place(&line, c->e->span, l->f->grid_count);
    add_text(&line, text, values);
    add_rest(&line, text, values, count);
    build_print(&line);
    return true;
}

// assert(c), assert(c, "text")
bool builtin_assert(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which, (void)out;
    const struct ast_expr *e = call_arg(c, 0), *message = call_arg(c, 1);
    struct tir_text condition;
    tir_text_init(&condition, l->arena, 0);
    add_plain(&condition, tir_source_text(&l->cx->sources, e->span));
    tir_str text = tir_text_str(&condition);
    if (message && !lower_text(l, message, &text))
        return false;
    struct tir_value *cond = convert_elem(l, e->span, lower_expr(l, e), TIR_BOOL);
    if (!cond)
        return false;
    if (cond->type->rank)
        cond = builtin_reduce_all(l, cond, TIR_WORD_kind_and);
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_ASSERT, &cond, 1, NULL, 0, 0);
    tir_set_text(l->f, inst, TIR_ATTR_text, text);
    return true;
}
