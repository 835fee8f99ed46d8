// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks without a replay: named barriers, registers of roles, mbarriers in branches on data; and
// registers that warpgroups request in branches.

#include "pass/sync_check/sync_check.h"

enum { WARPGROUP = TIR_WARPGROUP * SYNC_LANES, MAX_WARPGROUPS = 8 };

static TIR_PRINTF(4, 5) bool wrong(const struct sync_program *p, enum tir_diag_code code,
                                   const struct tir_inst *inst, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tir_str text = tir_str_vformat(p->cx->scratch, format, args);
    va_end(args);
    tir_error_at(p->cx->diags, inst->span, code, "%s", text.ptr);
    return false;
}

static bool check_named(const struct sync_program *p)
{
    const struct tir_inst *first[SYNC_BARRIERS] = {NULL};
    int most = (int)p->threads;
    tir_foreach_inst(inst, p->f) {
        if (inst->op != TIR_OP_BAR_SYNC && inst->op != TIR_OP_BAR_ARRIVE)
            continue;
        int id = (int)tir_attr_int(inst, TIR_ATTR_id, 0);
        int threads = (int)tir_attr_int(inst, TIR_ATTR_threads, most);
        if (id < 0 || id >= SYNC_BARRIERS)
            return wrong(p, TIR_E_SYNC_BARRIER, inst,
                         "there is no named barrier %d: they are 0 to 15", id);
        if (threads <= 0 || threads % SYNC_LANES || threads > most)
            return wrong(p, TIR_E_SYNC_BARRIER, inst,
                         "a barrier of %d threads: a multiple of 32 is needed, %d at most", threads,
                         most);
        const struct tir_inst *other = first[id] ? first[id] : inst;
        int before = (int)tir_attr_int(other, TIR_ATTR_threads, most);
        first[id] = other;
        if (before == threads)
            continue;
        wrong(p, TIR_E_SYNC_BARRIER, inst, "barrier %d waits for %d threads here", id, threads);
        tir_note_at(p->cx->diags, other->span, "and for %d here", before);
        return false;
    }
    return true;
}

static bool check_count(const struct sync_program *p, const struct tir_inst *inst)
{
    int64_t regs = tir_attr_int(inst, TIR_ATTR_regs, 24);
    return (regs % 8 == 0 && regs >= 24 && regs <= 256) ||
           wrong(p, TIR_E_REGISTERS, inst,
                 "%lld registers of a thread: a multiple of 8 from 24 to 256 is needed",
                 (long long)regs);
}

// The registers that each warpgroup asks for by the clauses of its roles, and by which role.
static bool find_roles(const struct sync_program *p, const struct tir_inst **by)
{
    for (const struct tir_inst *role = p->f->body->first; role; role = role->next) {
        if (role->op != TIR_OP_ROLE || !tir_attr_find(role, TIR_ATTR_regs))
            continue;
        if (!check_count(p, role))
            return false;
        struct tir_crew crew = tir_crew_of(p->f, role);
        uint32_t last = crew.first + crew.warps - 1;
        for (uint32_t g = crew.first / 4; g <= last / 4 && g < MAX_WARPGROUPS; g++) {
            if (!by[g]) {
                by[g] = role;
                continue;
            }
            if (tir_attr_int(by[g], TIR_ATTR_regs, 0) == tir_attr_int(role, TIR_ATTR_regs, 0))
                continue;
            wrong(p, TIR_E_REGISTERS, role,
                  "roles of one warpgroup have different numbers of registers: %lld and %lld",
                  (long long)tir_attr_int(by[g], TIR_ATTR_regs, 0),
                  (long long)tir_attr_int(role, TIR_ATTR_regs, 0));
            tir_note_at(p->cx->diags, by[g]->span, "the other role");
            return false;
        }
    }
    return true;
}

static bool is_in_branch(const struct tir_inst *inst)
{
    const struct tir_inst *up = inst->block->owner;
    while (up && up->op != TIR_OP_IF)
        up = up->block->owner;
    return up;
}

// What the program asks for by setmaxnreg itself: the last of a warpgroup is what it has in the
// end. Who takes a branch only a replay knows.
static bool find_requests(const struct sync_program *p, const struct tir_inst **by)
{
    tir_foreach_inst(inst, p->f) {
        if (inst->op != TIR_OP_SETMAXNREG)
            continue;
        if (!check_count(p, inst))
            return false;
        struct tir_crew crew = tir_crew_of(p->f, inst);
        uint32_t last = crew.first + crew.warps - 1;
        if (!is_in_branch(inst))
            for (uint32_t g = crew.first / 4; g <= last / 4 && g < MAX_WARPGROUPS; g++)
                by[g] = inst;
    }
    return true;
}

static bool check_sum(const struct sync_program *p, const struct tir_inst *const *by)
{
    const struct tir_inst *last = NULL, *first = NULL;
    // A warpgroup that asks for nothing keeps what every thread has at launch.
    int64_t launch = tir_launch_registers(p->threads), had = launch * p->threads, sum = 0;
    for (uint32_t g = 0; g * WARPGROUP < p->threads && g < MAX_WARPGROUPS; g++) {
        int64_t threads = TIR_MIN(p->threads - g * WARPGROUP, WARPGROUP);
        sum += threads * (by[g] ? tir_attr_int(by[g], TIR_ATTR_regs, 0) : launch);
        if (by[g] && !first)
            first = by[g];
        if (by[g])
            last = by[g];
    }
    if (!last || sum <= had)
        return true;
    wrong(p, TIR_E_REGISTERS, last,
          "the warpgroups ask for %lld registers together; %u threads begin with %lld",
          (long long)sum, p->threads, (long long)had);
    if (first != last)
        tir_note_at(p->cx->diags, first->span, "the first that asks for registers");
    return false;
}

static bool check_registers(const struct sync_program *p)
{
    const struct tir_inst *by[MAX_WARPGROUPS] = {NULL};
    return find_roles(p, by) && find_requests(p, by) && check_sum(p, by);
}

bool tir_sync_registers(struct sync_run *r, uint32_t cta)
{
    const struct tir_inst *by[MAX_WARPGROUPS] = {NULL};
    for (uint32_t i = 0; i < r->agent_count; i++) {
        const struct sync_agent *a = &r->agents[i];
        uint32_t last = a->first_warp + a->warps - 1;
        if (a->cta == cta && a->registers)
            for (uint32_t g = a->first_warp / 4; g <= last / 4 && g < MAX_WARPGROUPS; g++)
                by[g] = a->registers;
    }
    if (r->outcome == SYNC_GOING && !check_sum(r->p, by))
        r->outcome = SYNC_FAILED;
    return r->outcome == SYNC_GOING;
}

static bool check_places(const struct sync_program *p)
{
    for (uint32_t i = 0; i < p->roots.len; i++)
        for (uint32_t k = 0; k < p->roots.len; k++) {
            const struct sync_root *bar = &p->roots.at[i], *other = &p->roots.at[k];
            if (i == k || !bar->is_mbarrier || bar->begin >= other->end || other->begin >= bar->end)
                continue;
            tir_error_at(p->cx->diags, bar->alloc->def->span, TIR_E_SYNC_BARRIER,
                         "these mbarriers share bytes with another buffer");
            tir_note_at(p->cx->diags, other->alloc->def->span, "the other buffer");
            return false;
        }
    return true;
}

bool tir_sync_limits(const struct sync_program *p)
{
    return check_named(p) && check_registers(p) && check_places(p);
}
