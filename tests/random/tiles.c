// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stands at the top of a kernel: tiles loops, pairs of rules, roles.
#include "rules.h"

static void tile_variable(struct program *p, struct tir_text *names, struct tir_text *extents,
                          int64_t *elements)
{
    const int64_t most = chance(p->c, 15) ? MOST_ELEMENTS : MOST_ELEMENTS / 4;
    int64_t size = pick_size(p);
    while (size > 1 && size * *elements > most)
        size = size / 3 + 1;
    *elements *= size;
    struct variable v = {.name = fresh_name(p, "m"),
                         .form = form_scalar(TIR_I64),
                         .walks = size,
                         .trips = 1,
                         .dim = UINT32_MAX};
    v.range = (struct value){.text = v.name, .most = 1 << 20};
    uint32_t how = choose(p->c, 8);
    const char *comma = names->len ? ", " : "";
    tir_text_format(names, "%s%s", comma, v.name);
    if (how == 7) { // of constant size
        v.trips = 1 + choose(p->c, 3);
        v.walks = 1;
        tir_text_format(extents, "%s%u", comma, (uint32_t)v.trips);
    } else {
        bool is_old = p->step > 0 && p->dims.len && choose(p->c, 2);
        v.dim = is_old ? choose(p->c, p->dims.len) : new_dim(p, v.walks);
        struct dim *d = &p->dims.at[v.dim];
        const char *name = d->name;
        d->walk = d->walk ? TIR_MIN(d->walk, v.walks) : v.walks;
        if (how == 6) {
            v.walks = 1;
            p->dims.at[v.dim].is_single = true;
        }
        if (v.walks == 1)
            tir_text_format(extents, "%s%s", comma, name);
        else
            tir_text_format(extents, "%s%s by %s", comma, name, size_text(p, v.walks));
    }
    vec_push(p->arena, &p->tile, p->vars.len);
    vec_push(p->arena, &p->vars, v);
}

// The head of a tiles loop, whose variables are in scope from here on.
static const char *tiles_head(struct program *p, uint32_t most)
{
    static const char *const orders[] = {
        "", "", "", ", order = column_major", ", order = row_major", ", order = heavy_first"};
    static const char *const walks[] = {"",
                                        "",
                                        "",
                                        "",
                                        ", persistent",
                                        ", persistent",
                                        ", persistent, store_role",
                                        ", persistent = dynamic",
                                        ", cluster = (2, 1)",
                                        ", persistent = dynamic, cluster = (2, 1)"};
    static const char *const of_roles[] = {"", ", persistent", ", persistent = dynamic"};
    struct tir_text names, extents;
    const uint32_t count = 1 + choose(p->c, most);
    tir_text_init(&names, p->arena, 0);
    tir_text_init(&extents, p->arena, 0);
    int64_t elements = 1;
    p->tile.len = 0;
    p->cost = 0;
    for (uint32_t i = 0; i < count; i++)
        tile_variable(p, &names, &extents, &elements);
    const char *order = choose_from(p->c, orders);
    if (count > 1 && choose(p->c, 6) == 5)
        order = ", order = grouped(2)";
    const char *walk =
        p->has_roles ? choose_from(p->c, of_roles) : walks[choose(p->c, count > 1 ? 10 : 8)];
    if (count == 3 && strstr(walk, "cluster"))
        walk = strstr(walk, "dynamic") ? ", persistent = dynamic, cluster = (1, 2, 1)"
                                       : ", cluster = (1, 2, 1)";
    return say(p, count > 1 ? "for (%s) in tiles(%s%s%s) {" : "for %s in tiles(%s%s%s) {",
               names.ptr, extents.ptr, order, walk);
}

void tiles_loop(struct program *p, uint32_t statements)
{
    const uint32_t vars = p->vars.len;
    line(p, "%s", tiles_head(p, 3));
    p->indent++;
    grow_block(p, statements);
    grow_stores(p);
    p->indent--;
    line(p, "}");
    p->vars.len = vars;
}

// ---- pairs

static struct form form_for(struct program *p, const struct grow_rule *rule)
{
    struct form f;
    uint32_t tries = 0;
    do
        f = pick_form(p);
    while (!rule->fits(p, &f) && tries++ < 30);
    return f;
}

// A value of one rule out of a value of another one, and one of each side by side: what one leaves
// in the threads must suit the other.
void pair_loop(struct program *p, const struct grow_rule *outer, const struct grow_rule *inner)
{
    const uint32_t vars = p->vars.len;
    line(p, "%s", tiles_head(p, 2));
    p->indent++;
    const struct form f = form_for(p, outer);
    p->outer = outer;
    p->inner = inner;
    const struct value a = let(p, &f, grow(p, f));
    p->outer = inner;
    p->inner = outer;
    const struct value b = let(p, &f, grow(p, f));
    p->outer = p->inner = NULL;
    if (f.elem == TIR_BOOL)
        let(p, &f, (struct value){.text = say(p, "(%s ^ %s)", a.text, b.text)});
    else
        let(p, &f,
            (struct value){
                say(p, "(%s + %s)", a.text, b.text), a.most + b.most, TIR_MIN(a.lsb, b.lsb),
                a.err + b.err + (a.err + b.err > 0 ? unit(f.elem, a.most + b.most) : 0)});
    const uint32_t last = p->vars.len;
    for (uint32_t i = last; i-- > vars + p->tile.len && i + 3 >= last;)
        keep_variable(p, i);
    grow_stores(p);
    p->indent--;
    line(p, "}");
    p->vars.len = vars;
}

// ---- roles

struct ring {
    const char *name, *head, *index, *rounds; // its name; the loops of both roles
    uint32_t slots, dim, count;               // walked by the rounds; buffers
    struct variable buffers[2];
};

static void new_ring(struct program *p, struct ring *r)
{
    static const char *const layouts[] = {"", "", " in row_major", " in swizzle(64)",
                                          " in swizzle(32)"};
    r->slots = 1 + choose(p->c, 4);
    r->name = fresh_name(p, "ring");
    r->count = 1 + choose(p->c, 2);
    line(p, "ring %s[%u] {", r->name, r->slots);
    for (uint32_t i = 0; i < r->count; i++) {
        struct variable *b = &r->buffers[i];
        *b = (struct variable){.name = fresh_name(p, "slot")};
        b->form = (struct form){.elem = pick_elem(p), .rank = 2};
        b->form.shape[0] = pick_size(p);
        b->form.shape[1] = pick_size(p);
        const bool has_rows = b->form.shape[1] * tir_elems[b->form.elem].bits % 512 == 0;
        line(p, "    %s: %s%s;", b->name, form_text(p, &b->form),
             layouts[choose(p->c, has_rows ? 5 : 3)]);
    }
    line(p, "}");
    r->head = tiles_head(p, 2);
    r->dim = new_dim(p, pick_size(p));
    struct dim *d = &p->dims.at[r->dim];
    d->is_deep = true;
    d->walk = d->step;
    r->index = fresh_name(p, "k");
    r->rounds = say(p, "for %s in range(0, %s, %s) {", r->index, d->name, size_text(p, d->step));
}

static void open_block(struct program *p, const char *text)
{
    line(p, "%s", text);
    p->indent++;
}

static void close_blocks(struct program *p, uint32_t count)
{
    while (count-- > 0) {
        p->indent--;
        line(p, "}");
    }
}

static void fill_role(struct program *p, struct ring *r)
{
    const uint32_t vars = p->vars.len;
    open_block(p, "role fill warps(1) {");
    open_block(p, r->head);
    open_block(p, r->rounds);
    loop_enter(p, r->index, p->dims.at[r->dim].walk, r->dim);
    open_block(p, say(p, "put %s {", r->name));
    for (uint32_t i = 0; i < r->count; i++) {
        struct variable *b = &r->buffers[i];
        const bool computes = choose(p->c, 4) == 3;
        b->range = computes ? grow_firm(p, b->form) : grow_load(p, &b->form);
        line(p, "%s = %s;", b->name, b->range.text);
    }
    loop_leave(p, vars, 1);
    close_blocks(p, 4);
}

static void work_role(struct program *p, const struct ring *r)
{
    static const char *const sizes[] = {"warpgroups(1)", "warpgroups(2)", "warps(4)", "warps(1)"};
    const uint32_t sums = choose(p->c, 2);
    open_block(p, say(p, "role work %s {", choose_from(p->c, sizes)));
    open_block(p, r->head);
    for (uint32_t i = 0; i < sums; i++)
        var_statement(p);
    uint32_t totals[2]; // of each buffer
    for (uint32_t i = 0; i < r->count; i++)
        totals[i] = sum_variable(p, r->buffers[i].form);
    open_block(p, r->rounds);
    const uint32_t vars = p->vars.len;
    loop_enter(p, r->index, p->dims.at[r->dim].walk, r->dim);
    open_block(
        p, say(p, r->slots > 1 && choose(p->c, 4) == 3 ? "get %s lag(1) {" : "get %s {", r->name));
    for (uint32_t i = 0; i < r->count; i++) {
        struct variable b = r->buffers[i];
        b.range.text = b.name = say(p, "load(%s)", b.name);
        b.depth = p->loops;
        b.trips = p->trips;
        vec_push(p->arena, &p->vars, b);
        if (i == 0 || choose(p->c, 2))
            add_to_sum(p, totals[i], b.range);
    }
    for (uint32_t i = 0; i <= sums; i++)
        assign_statement(p);
    loop_leave(p, vars, 1);
    close_blocks(p, 2);
    grow_stores(p);
    close_blocks(p, 2);
}

// One role fills the slots of a ring, another one computes with what is in them.
void roles(struct program *p)
{
    struct ring ring;
    new_ring(p, &ring);
    fill_role(p, &ring);
    work_role(p, &ring);
}
