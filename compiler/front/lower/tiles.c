// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tiles loops: the parallel outermost loop of a kernel.
#include "front/lower/flow.h"

#include "ir/follow.h"

struct tiles {
    struct tir_value *extents[TIR_MAX_RANK];
    int64_t by[TIR_MAX_RANK];
    enum tir_word order;
    int64_t group, persistent, next, store_role; // next: -1 if absent
    int64_t cluster[TIR_MAX_RANK], ctas;         // ctas: of a cluster; 1: none is asked for
};

static bool lower_extents(struct lower *l, const struct ast_stmt *s, struct tiles *t)
{
    const struct tir_type *index = tir_type_scalar(l->cx->types, TIR_I64);
    if (s->extents.len < 1 || s->extents.len > TIR_MAX_RANK) {
        lower_error(l, s->head, TIR_E_GRID, "a tiles loop has 1 to %d extents, not %u",
                    TIR_MAX_RANK, s->extents.len);
        return false;
    }
    if (s->vars.len != s->extents.len) {
        lower_error(l, s->head, TIR_E_GRID, "%u variables for %u extents", s->vars.len,
                    s->extents.len);
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < s->extents.len; i++) {
        const struct ast_extent *e = &s->extents.at[i];
        t->extents[i] = convert_to(l, e->extent->span, lower_expr(l, e->extent), index);
        ok &= t->extents[i] != NULL;
        t->by[i] = 1;
        if (e->by && !const_int(l, e->by, "the size of a tile", &t->by[i])) {
            lower_note(l, e->by->span, "a meta is one: `kernel k<BM = 64>(...)`, and `-D BM=128`");
            ok = false;
        } else if (t->by[i] < 1) {
            lower_error(l, e->by->span, TIR_E_GRID,
                        "the size of a tile must be at least 1, not %lld", (long long)t->by[i]);
            ok = false;
        }
    }
    return ok;
}

// order = grouped(8), order = row_major, order = heavy_first; in IR text order(grouped) group(8)
static bool lower_order(struct lower *l, const struct ast_arg *option, struct tiles *t)
{
    if (!option)
        return true;
    const struct ast_expr *e = option->value, *name = e;
    const bool has_group = e && e->kind == AST_CALL && e->args.len == 1 && !e->args.at[0].name;
    if (has_group) {
        name = e->base;
        if (!const_int(l, e->args.at[0].value, "the group", &t->group))
            return false;
    }
    if (name && name->kind == AST_NAME)
        t->order = tir_word_by_name(TIR_ATTR_order, tir_str_of(name->name));
    if (t->order == TIR_WORD_NONE) {
        lower_error(
            l, option->span, TIR_E_GRID,
            "an order is row_major, column_major, grouped(g), heavy_first or heavy_first(g)");
        return false;
    }
    const bool is_grouped = t->order == TIR_WORD_order_grouped;
    if (has_group && !is_grouped && t->order != TIR_WORD_order_heavy_first) {
        lower_error(l, option->span, TIR_E_GRID, "only `grouped` and `heavy_first` have a group");
        return false;
    }
    if ((is_grouped || has_group) && t->group < 1) {
        lower_error(l, option->span, TIR_E_GRID, "`%s(g)` needs a group of at least 1",
                    is_grouped ? "grouped" : "heavy_first");
        return false;
    }
    return true;
}

// cluster = (2, 1); in IR text cluster([2, 1])
static bool lower_cluster(struct lower *l, const struct ast_stmt *s, const struct ast_arg *option,
                          struct tiles *t)
{
    t->ctas = 1;
    if (!option)
        return true;
    struct ast_expr *e = option->value, *const *sizes = &e;
    uint32_t count = e ? 1 : 0;
    if (e && e->kind == AST_LIST) {
        sizes = e->items.at;
        count = e->items.len;
    }
    if (count != s->extents.len) {
        lower_error(l, option->span, TIR_E_GRID,
                    "a cluster is how many tiles walk together along each extent, here %u",
                    s->extents.len);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!const_int(l, sizes[i], "the size of a cluster", &t->cluster[i]))
            return false;
        if (t->cluster[i] < 1 || !tir_mul_checked(t->ctas, t->cluster[i], &t->ctas) ||
            t->ctas > MAX_CLUSTER) {
            lower_error(l, sizes[i]->span, TIR_E_GRID, "a cluster has 1 to %d CTAs", MAX_CLUSTER);
            return false;
        }
    }
    return true;
}

// In a role or the kernel itself. What all tiles read may be got around the loop, once.
static bool check_place(struct lower *l, const struct ast_stmt *s)
{
    const struct tir_inst *around = l->b.block->owner;
    const bool in_get = around && around->op == TIR_OP_GET;
    const char *why = NULL;
    while (around && around->op == TIR_OP_GET)
        around = around->block->owner;
    if (around && around->op != TIR_OP_ROLE)
        why = around->op == TIR_OP_TILES ? "tiles loops do not nest"
                                         : "a tiles loop is not inside another statement";
    else if (l->f->grid_count)
        why = "a kernel with `grid` has no tiles loop";
    else if (l->role && l->role->tiles_loops++)
        why = "a role has one tiles loop";
    else if (!l->role && (in_get ? l->tiles_loops > 1 : l->tiles != NULL))
        why = "a kernel has no tiles loop beside those inside its roles or a `get`";
    if (why)
        lower_error(l, s->head, TIR_E_GRID, "%s", why);
    return !why;
}

static struct tir_inst *build_tiles(struct lower *l, const struct flow *f, const struct tiles *t)
{
    uint32_t n = f->s->extents.len;
    struct tir_value **operands = arena_array(l->arena, struct tir_value *, n + f->count);
    for (uint32_t i = 0; i < n + f->count; i++)
        operands[i] = i < n ? t->extents[i] : f->values[i - n];
    struct tir_inst *inst =
        tir_build(&l->b, TIR_OP_TILES, operands, n + f->count, f->types, f->count, 1);
    tir_set_list(l->f, inst, TIR_ATTR_by, t->by, n);
    if (t->order != TIR_WORD_NONE)
        tir_set_word(l->f, inst, TIR_ATTR_order, t->order);
    if (t->group)
        tir_set_int(l->f, inst, TIR_ATTR_group, t->group);
    if (t->persistent)
        tir_set_int(l->f, inst, TIR_ATTR_persistent, t->persistent);
    if (t->next >= 0)
        tir_set_int(l->f, inst, TIR_ATTR_next, t->next);
    if (t->store_role)
        tir_set_int(l->f, inst, TIR_ATTR_store_role, 1);
    if (t->ctas > 1)
        tir_set_list(l->f, inst, TIR_ATTR_cluster, t->cluster, n);
    return inst;
}

static bool lower_head(struct lower *l, const struct ast_stmt *s, struct tiles *t)
{
    struct options o;
    if (!check_place(l, s) || !lower_options(l, s, &o))
        return false;
    t->group = o.value[AST_OPTION_TILES_group];
    t->persistent = o.value[AST_OPTION_TILES_persistent];
    t->next = o.arg[AST_OPTION_TILES_next] ? o.value[AST_OPTION_TILES_next] : -1;
    t->store_role = o.value[AST_OPTION_TILES_store_role];
    if (t->next >= 0 && (t->persistent != TIR_DYNAMIC || t->next >= s->carry.len)) {
        lower_error(l, o.arg[AST_OPTION_TILES_next]->span, TIR_E_ARGUMENTS,
                    "`next` is the number of a value that a dynamic tiles loop carries");
        return false;
    }
    return lower_extents(l, s, t) && lower_order(l, o.arg[AST_OPTION_TILES_order], t) &&
           lower_cluster(l, s, o.arg[AST_OPTION_TILES_cluster], t);
}

static bool same_attr(const struct tir_inst *a, const struct tir_inst *b, enum tir_attr_key key)
{
    return tir_attr_int(a, key, 0) == tir_attr_int(b, key, 0);
}

static bool same_cluster(const struct tir_inst *a, const struct tir_inst *b)
{
    const struct tir_attr *x = tir_attr_find(a, TIR_ATTR_cluster),
                          *y = tir_attr_find(b, TIR_ATTR_cluster);
    if (!x || !y)
        return x == y;
    return x->list_count == y->list_count &&
           memcmp(x->list, y->list, x->list_count * sizeof(*x->list)) == 0;
}

// Roles work on the same tile at a time, so each walks the tiles as the others do.
static bool same_tiles(struct lower *l, const struct tir_inst *inst)
{
    const struct tir_inst *first = l->tiles;
    if (!first) {
        l->tiles = inst;
        return true;
    }
    uint32_t count = tir_carried_at(inst);
    bool same = count == tir_carried_at(first) && same_attr(inst, first, TIR_ATTR_order) &&
                same_attr(inst, first, TIR_ATTR_group) &&
                same_attr(inst, first, TIR_ATTR_persistent) &&
                same_attr(inst, first, TIR_ATTR_store_role) && same_cluster(inst, first);
    const int64_t *by = tir_attr_find(inst, TIR_ATTR_by)->list;
    const int64_t *first_by = tir_attr_find(first, TIR_ATTR_by)->list;
    for (uint32_t i = 0; same && i < count; i++)
        same =
            by[i] == first_by[i] && tir_same_value(l->arena, inst->operands[i], first->operands[i]);
    return same;
}

// In a role a CTA walks its tiles one after the other, so that what the role assigns outside of the
// loop goes from tile to tile. The tiles of a kernel are run in any order, by any CTA.
void lower_tiles(struct lower *l, const struct ast_stmt *s)
{
    struct tiles t = {.order = TIR_WORD_NONE};
    struct flow f = {.s = s, .carried = s->carry.len};
    bool in_role = l->b.block != l->f->body;
    l->tiles_loops += !l->role;
    struct loop *loop = l->loop;
    l->loop = NULL;
    bool ok = lower_head(l, s, &t);
    if (ok && in_role)
        assigned_in(l, s->body, NULL, &f.vars);
    flow_drop_poison(&f);
    flow_room(l, &f);
    if (!ok || !flow_carry(l, &f)) {
        flow_failed(l, s);
        l->loop = loop;
        return;
    }
    struct tir_inst *inst = build_tiles(l, &f, &t);
    if (in_role && !same_tiles(l, inst))
        lower_error(l, s->head, TIR_E_GRID, "the tiles loops of all roles must be the same");
    struct region r = region_enter(l, &f, inst->regions[0]);
    l->level += !in_role;
    vec_foreach(const struct ast_binding, it, &s->vars) {
        struct tir_value *arg = tir_block_add_arg(l->f, inst->regions[0],
                                                  tir_type_scalar(l->cx->types, TIR_I64), it->name);
        scope_declare(l, it->name, it->span, val_ir(arg));
    }
    region_args(l, &f, inst->regions[0]);
    ok = lower_yielding(l, s->body, s->head, f.types, f.carried, f.values);
    l->level -= !in_role;
    region_leave(l, &f, &r, ok);
    flow_results(l, &f, inst);
    l->loop = loop;
}
