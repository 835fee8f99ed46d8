// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Roles: blocks that warps of a CTA run side by side, and where those warps are. Scopes: blocks
// that groups of these warps run by themselves.
#include "front/lower/lower.h"
#include "ir/crew.h"
#include "ir/walk.h"

enum { MAX_WARPS = 32 };

// Exactly one of warps and warpgroups says how many there are. 0: reported.
static int64_t stated_warps(struct lower *l, const struct ast_stmt *s, const char *what,
                            int64_t warps, int64_t groups)
{
    if ((warps == 0) == (groups == 0)) {
        lower_error(l, s->head, TIR_E_ROLE,
                    "a %s says how many warps run it: `warps(n)`, or `warpgroups(n)` of 4 warps",
                    what);
        return 0;
    }
    return groups ? groups * TIR_WARPGROUP : warps;
}

static bool role_options(struct lower *l, const struct ast_stmt *s, struct role *r)
{
    struct options o;
    if (!lower_options(l, s, &o))
        return false;
    r->warps = stated_warps(l, s, "role", o.value[AST_OPTION_ROLE_warps],
                            o.value[AST_OPTION_ROLE_warpgroups]);
    r->regs = o.value[AST_OPTION_ROLE_regs];
    if (o.arg[AST_OPTION_ROLE_first])
        r->first = o.value[AST_OPTION_ROLE_first];
    return r->warps;
}

static bool check_place(struct lower *l, const struct ast_stmt *s)
{
    if (l->b.block != l->f->body || l->calls) {
        lower_error(l, s->head, TIR_E_ROLE,
                    "a role stands at the top level of its kernel, not inside another statement");
        return false;
    }
    vec_foreach(struct role *, it, &l->roles)
        if ((*it)->name == s->name) { // interned
            lower_error(l, s->name_span, TIR_E_REDEFINED, "there are two roles `%.64s`", s->name);
            lower_note(l, (*it)->span, "it is declared here too");
            return false;
        }
    return true;
}

static struct tir_inst *build_role(struct lower *l, const struct role *r)
{
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_ROLE, NULL, 0, NULL, 0, 1);
    tir_set_text(l->f, inst, TIR_ATTR_name, tir_str_of(r->name));
    tir_set_int(l->f, inst, TIR_ATTR_warps, r->warps);
    if (r->first >= 0)
        tir_set_int(l->f, inst, TIR_ATTR_first, r->first);
    if (r->regs)
        tir_set_int(l->f, inst, TIR_ATTR_regs, r->regs);
    return inst;
}

void lower_role(struct lower *l, const struct ast_stmt *s)
{
    struct role *r = arena_new(l->arena, struct role);
    *r = (struct role){.name = s->name, .span = s->head, .first = -1};
    if (!check_place(l, s) || !role_options(l, s, r))
        return;
    vec_push(l->arena, &l->roles, r);
    r->inst = build_role(l, r);
    struct tir_builder outer = l->b;
    l->b = tir_builder_at_end(l->f, r->inst->regions[0]);
    l->b.span = s->span;
    l->role = r;
    l->level++;
    lower_block(l, s->body);
    tir_build_yield(&l->b, NULL, 0);
    l->level--;
    l->role = NULL;
    l->b = outer;
}

// A scope: each so many warps of the role or CTA run the block by themselves.
void lower_scope(struct lower *l, const struct ast_stmt *s)
{
    struct options o;
    int64_t warps = !lower_options(l, s, &o)
                        ? 0
                        : stated_warps(l, s, "scope", o.value[AST_OPTION_SCOPE_warps],
                                       o.value[AST_OPTION_SCOPE_warpgroups]);
    const uint32_t outer_warps = l->scope_warps;
    struct loop *loop = l->loop;
    if (!warps)
        return;
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_SCOPE, NULL, 0, NULL, 0, 1);
    tir_set_int(l->f, inst, TIR_ATTR_warps, warps);
    struct tir_builder outer = l->b;
    l->b = tir_builder_at_end(l->f, inst->regions[0]);
    l->b.span = s->span;
    l->scope_warps = (uint32_t)warps;
    l->loop = NULL;
    l->level++;
    lower_block(l, s->body);
    tir_build_yield(&l->b, NULL, 0);
    l->level--;
    l->loop = loop;
    l->scope_warps = outer_warps;
    l->b = outer;
}

uint32_t lower_threads(const struct lower *l)
{
    if (l->scope_warps)
        return 32 * l->scope_warps;
    return l->role ? 32 * (uint32_t)l->role->warps : l->f->threads;
}

// Where the warps are.

static int64_t group_of(int64_t warp)
{
    return warp / TIR_WARPGROUP;
}

static bool check_pair(struct lower *l, const struct role *a, const struct role *b)
{
    bool overlap = a->first < b->first + b->warps && b->first < a->first + a->warps;
    bool share = group_of(a->first) <= group_of(b->first + b->warps - 1) &&
                 group_of(b->first) <= group_of(a->first + a->warps - 1);
    if (overlap)
        lower_error(l, b->span, TIR_E_ROLE, "roles `%s` and `%s` run on the same warps", a->name,
                    b->name);
    else if (share && a->regs != b->regs)
        lower_error(l, b->span, TIR_E_ROLE,
                    "roles `%s` and `%s` share a warpgroup, whose warps all have the same `regs`",
                    a->name, b->name);
    else
        return true;
    lower_note(l, a->span, "`%s` is here", a->name);
    return false;
}

// A CTA starts with the same registers for each thread; what some give back others may take.
static void check_registers(struct lower *l)
{
    uint32_t threads = l->f->threads;
    int64_t had = (int64_t)tir_launch_registers(threads) * threads, wanted = 0, group = -1;
    bool all = true;
    vec_foreach(struct role *, it, &l->roles) {
        const struct role *r = *it;
        for (int64_t g = group_of(r->first); g <= group_of(r->first + r->warps - 1); g++)
            if (g != group) {
                wanted += r->regs * TIR_WARPGROUP * 32;
                group = g;
            }
        all &= r->regs > 0;
    }
    if (all && wanted > had)
        lower_error(l, l->roles.at[0]->span, TIR_E_REGISTERS,
                    "the roles ask for %lld registers; %u threads have %lld", (long long)wanted,
                    threads, (long long)had);
}

void lower_place_roles(struct lower *l)
{
    int64_t warps = 0;
    bool regs = false;
    for (uint32_t i = 0; i < l->roles.len; i++) {
        struct role *r = l->roles.at[i];
        r->first = tir_crew_of(l->f, r->inst).first;
        tir_set_int(l->f, r->inst, TIR_ATTR_first, r->first);
        for (uint32_t j = 0; j < i; j++)
            if (!check_pair(l, l->roles.at[j], r))
                return;
        warps = TIR_MAX(warps, r->first + r->warps);
        regs |= r->regs > 0;
    }
    if (!l->roles.len)
        return;
    if (regs)
        warps = tir_ceil_div(warps, TIR_WARPGROUP) * TIR_WARPGROUP;
    if (!l->f->threads)
        l->f->threads = 32 * (uint32_t)warps;
    if (warps > MAX_WARPS || l->f->threads < 32 * warps) {
        lower_error(l, vec_last(&l->roles)->span, TIR_E_THREADS,
                    "the roles have %lld warps; the CTA has %u threads", (long long)warps,
                    warps > MAX_WARPS ? 32 * MAX_WARPS : l->f->threads);
        return;
    }
    check_registers(l);
}

// A group is whole, and begins with a multiple of so many warps: values that are the same in it are
// found by what divides the number of the thread.
static bool check_scope(struct lower *l, const struct tir_inst *scope)
{
    const int64_t warps = tir_attr_int(scope, TIR_ATTR_warps, 0);
    const struct tir_crew around = tir_crew_of_block(l->f, scope->block);
    const char *what = around.scope ? "scope" : around.role ? "role" : "CTA";
    if (!l->f->grid_count)
        lower_error(l, scope->span, TIR_E_ROLE,
                    "a scope stands in a kernel with `grid(...)`; elsewhere roles have tiles");
    else if (!l->f->threads)
        lower_error(l, scope->span, TIR_E_ROLE,
                    "a scope stands in a kernel that says how many `threads(...)` it has");
    else if (!tir_is_pow2((uint64_t)warps))
        lower_error(l, scope->span, TIR_E_ROLE, "a scope has 1, 2, 4, 8, 16 or 32 warps, not %lld",
                    (long long)warps);
    else if (around.warps % warps)
        lower_error(l, scope->span, TIR_E_ROLE,
                    "a scope of %lld warps in a %s of %u: it divides them", (long long)warps, what,
                    around.warps);
    else if (around.first % warps)
        lower_error(
            l, scope->span, TIR_E_ROLE,
            "a scope of %lld warps in a role that begins at warp %u: it begins at a multiple",
            (long long)warps, around.first);
    else
        return true;
    return false;
}

// Groups of several warps meet at named barriers, which the program has others of.
static bool check_barriers(struct lower *l, const struct tir_inst *scope)
{
    const struct tir_crew crew = tir_crew_of(l->f, scope);
    const int64_t last = tir_crew_barrier(l->f, &crew), first = last - crew.groups + 1;
    if (crew.warps == 1)
        return true;
    tir_foreach_inst(inst, l->f) {
        if (inst->op != TIR_OP_BAR_SYNC && inst->op != TIR_OP_BAR_ARRIVE)
            continue;
        const int64_t id = tir_attr_int(inst, TIR_ATTR_id, 0);
        if (!id || id < first || id > last)
            continue;
        lower_error(l, inst->span, TIR_E_ROLE,
                    "barrier %lld is one of a scope of %u warps, which has %lld to %lld",
                    (long long)id, crew.warps, (long long)first, (long long)last);
        lower_note(l, scope->span, "the scope is here");
        return false;
    }
    return true;
}

void lower_check_scopes(struct lower *l)
{
    tir_foreach_inst(inst, l->f)
        if (inst->op == TIR_OP_SCOPE && (!check_scope(l, inst) || !check_barriers(l, inst)))
            return;
}
