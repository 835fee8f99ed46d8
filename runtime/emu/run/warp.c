// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A warp: choosing which of its paths runs, splitting and merging them, calls.

#include <stdalign.h>
#include <string.h>

#include "emu/async/cp_async.h"
#include "emu/check/undefined.h"
#include "emu/lane/builtin.h"
#include "emu/run/run.h"
#include "emu/run/schedule.h"
#include "emu/run/trace.h"
#include "emu/tensor/tmem.h"
#include "emu/tensor/wgmma.h"

enum {
    PATH_SLICE = 4096,  // instructions of a path, where the warp has several
    MAX_DEPTH = 256,    // calls
    MAX_STACK = 1 << 19 // bytes of local memory a thread
};

// --- frames ---

static struct emu_frame *frame_new(struct emu_warp *w, const struct emu_func *f)
{
    for (struct emu_frame **at = &w->free_frames; *at; at = &(*at)->parent)
        if ((*at)->func == f) {
            struct emu_frame *frame = *at;
            *at = frame->parent;
            return frame;
        }
    const size_t header = emu_align_up(sizeof(struct emu_frame), 64);
    const size_t local = emu_align_up((size_t)f->local_bytes * EMU_WARP, 64);
    const size_t regs = emu_align_up(f->reg_bytes, 64);
    const size_t undefined = emu_align_up(emu_undefined_size(f), 64);
    const size_t size = header + regs + 2 * local + undefined;
    struct emu_frame *frame = emu_launch_alloc(w->launch, NULL, 0, size);
    memset(frame, 0, header);
    frame->func = f;
    frame->size = size;
    frame->regs = (uint8_t *)frame + header;
    frame->local = frame->regs + regs;
    frame->local_shadow = frame->local + local;
    frame->undefined = (uint32_t *)(void *)(frame->local_shadow + local);
    memset(frame->undefined, 0, undefined);
    memset(frame->regs, 0xcd, regs);
    memset(frame->local, 0xcd, local);
    return frame;
}

static void frame_release(struct emu_warp *w, struct emu_frame *frame)
{
    while (frame && --frame->users == 0) {
        struct emu_frame *parent = frame->parent;
        if (frame->undefined_count)
            emu_undefined_drop(w, frame);
        frame->parent = w->free_frames;
        w->free_frames = frame;
        frame = parent;
    }
}

// --- paths ---

static struct emu_path *path_new(struct emu_warp *w, uint32_t pc, uint32_t mask,
                                 struct emu_frame *frame)
{
    struct emu_path *p = w->paths[w->path_count++]; // slots from path_count on are free
    *p = (struct emu_path){.pc = pc, .mask = mask, .frame = frame};
    frame->users++;
    w->reschedule = true;
    return p;
}

static void path_drop(struct emu_warp *w, struct emu_path *p)
{
    uint32_t i = 0;
    while (w->paths[i] != p)
        i++;
    w->paths[i] = w->paths[--w->path_count];
    w->paths[w->path_count] = p;
    w->reschedule = true;
    frame_release(w, p->frame);
}

void emu_path_split(struct emu_warp *w, uint32_t mask, uint32_t pc)
{
    if (mask == w->path->mask) {
        w->reschedule |= pc < w->path->pc && w->path_count > 1; // it may meet one further up
        w->path->pc = pc;
        return;
    }
    w->path->mask &= ~mask;
    path_new(w, pc, mask, w->path->frame)->used = w->path->used;
}

void emu_path_exit(struct emu_warp *w, uint32_t mask)
{
    w->alive &= ~mask;
    w->cta->alive -= emu_popc(mask);
    w->cta->cluster->alive -= emu_popc(mask);
    w->path->mask &= ~mask;
    emu_copies_exit(w, mask);
    if (!w->alive)
        emu_wgmma_exit(w);
    if (!w->cta->alive) {
        emu_tmem_exit(w);
        emu_cta_exit(w);
    }
    w->launch->events++;
    if (!w->alive)
        emu_trace_exit(w);
    if (!w->path->mask)
        path_drop(w, w->path);
    for (uint32_t i = 0; i < w->path_count; i++) // paths that waited for these lanes test again
        if (w->paths[i]->state == EMU_PATH_MEET)
            w->paths[i]->state = EMU_PATH_READY;
    w->reschedule = true;
    emu_barrier_recheck(w->cta);
    emu_cluster_barrier_recheck(w->cta->cluster);
    emu_registers_recheck(w->cta);
}

// Whether all that a path still does is to exit.
static bool is_leaving(const struct emu_warp *w, const struct emu_path *p)
{
    const struct emu_insn *code = w->launch->module->code.at;
    const uint32_t most = 8; // jumps
    uint32_t pc = p->pc;
    for (uint32_t i = 0; i < most && code[pc].run == emu_run_bra && code[pc].guard == EMU_NO_REF;
         i++)
        pc = code[pc].target;
    return code[pc].guard == EMU_NO_REF &&
           (code[pc].run == emu_run_exit || (code[pc].run == emu_run_ret && !p->frame->call));
}

// The path begins to wait for lanes, or goes on doing so.
static void await(struct emu_warp *w, struct emu_path *p, uint32_t needs)
{
    if (p->meeting != w->in)
        p->awaited = p->elsewhere = 0;
    p->meeting = w->in;
    p->awaited |= needs;
    for (uint32_t i = 0; i < w->path_count; i++)
        if (!is_leaving(w, w->paths[i]))
            p->elsewhere |= w->paths[i]->mask & needs;
}

void emu_path_check_gone(struct emu_warp *w, uint32_t members)
{
    struct emu_path *p = w->path;
    const uint32_t gone = p->meeting == w->in ? p->awaited & members & ~w->alive : 0;
    p->meeting = NULL;
    if (gone & p->elsewhere)
        emu_report(w, emu_first_lane(p->mask),
                   "lanes never came: 0x%08x waited for 0x%08x, which exited", p->mask,
                   gone & p->elsewhere);
    else if (gone && w->launch->emu->options.check == EMU_CHECK_FULL)
        emu_report(w, emu_first_lane(p->mask), "lanes exited: 0x%08x waited for 0x%08x", p->mask,
                   gone);
}

bool emu_path_gather(struct emu_warp *w, uint32_t mask, uint32_t members)
{
    const uint32_t needs = members & w->alive & ~mask;
    if (!needs)
        return true;
    struct emu_path *p = w->path;
    await(w, p, needs);
    p->pc--;
    p->state = EMU_PATH_MEET;
    p->needs = needs;
    w->reschedule = true;
    for (uint32_t i = 0; i < w->path_count;) {
        struct emu_path *other = w->paths[i];
        if (other != p && other->frame == p->frame && other->pc == p->pc &&
            !emu_path_waits(other)) {
            p->mask |= other->mask;
            if (other->meeting == w->in) {
                p->awaited |= other->awaited;
                p->elsewhere |= other->elsewhere;
            }
            path_drop(w, other);
            p->state = EMU_PATH_READY; // more lanes are here: look again
            continue;
        }
        i++;
    }
    return false;
}

bool emu_path_meet(struct emu_warp *w, uint32_t mask, uint32_t members)
{
    if (!emu_path_gather(w, mask, members))
        return false;
    emu_path_check_gone(w, members);
    if (w->agent)
        emu_order_lanes(w->agent, mask & members, w->alive);
    return true;
}

static bool runs_before(const struct emu_path *a, const struct emu_path *b)
{
    if (a->is_tired != b->is_tired)
        return b->is_tired;
    if (a->frame->depth != b->frame->depth)
        return a->frame->depth > b->frame->depth;
    return a->pc < b->pc;
}

static struct emu_path *choose(struct emu_warp *w)
{
    struct emu_path *best = NULL;
    for (uint32_t i = 0; i < w->path_count; i++)
        if (w->paths[i]->state == EMU_PATH_READY && (!best || runs_before(w->paths[i], best)))
            best = w->paths[i];
    if (best && best->is_tired) // all of them are: a new turn
        for (uint32_t i = 0; i < w->path_count; i++) {
            w->paths[i]->is_tired = false;
            w->paths[i]->used = 0;
        }
    return best;
}

// Joins the paths that are where the running one is, and finds where it will meet the next.
static void merge(struct emu_warp *w)
{
    struct emu_path *p = w->path;
    w->stop_pc = UINT32_MAX;
    for (uint32_t i = 0; i < w->path_count;) {
        struct emu_path *other = w->paths[i];
        if (other != p && other->frame == p->frame && !emu_path_waits(other)) {
            if (other->pc == p->pc) {
                p->mask |= other->mask;
                p->used = p->used > other->used ? p->used : other->used;
                path_drop(w, other);
                continue;
            }
            if (other->pc > p->pc && other->pc < w->stop_pc)
                w->stop_pc = other->pc;
        }
        i++;
    }
    w->base[EMU_BASE_REG] = p->frame->regs;
    w->reschedule = false;
}

// Runs the chosen path for at most `budget` instructions; gives how many it ran.
static uint64_t run_path(struct emu_warp *w, uint64_t budget)
{
    const struct emu_insn *code = w->launch->module->code.at;
    const bool is_traced = w->launch->is_traced;
    uint64_t left = budget;
    while (left) {
        left--;
        struct emu_path *p = w->path;
        const struct emu_insn *in = &code[p->pc++];
        uint32_t mask = p->mask;
        w->in = in;
        if (w->undefined_count)
            emu_undefined_step(w, in);
        if (in->guard != EMU_NO_REF) {
            const uint32_t guard = *(const uint32_t *)emu_at_ref(w, in->guard);
            mask &= in->flags & EMU_INSN_GUARD_NOT ? ~guard : guard;
            if (in->flags & EMU_INSN_SYNC && mask && mask != p->mask) {
                path_new(w, p->pc, p->mask & ~mask, p->frame);
                p->mask = mask;
            }
        }
        if (is_traced) {
            w->run_in = w->run_in ? w->run_in : in;
            w->time += in->cost;
        }
        if (mask && w->watch)
            emu_watch(w, in);
        if (mask)
            in->run(w, in, mask);
        if (w->reschedule || w->yield || w->path->pc >= w->stop_pc)
            break;
    }
    return budget - left;
}

uint64_t emu_warp_run(struct emu_warp *w, uint64_t slice)
{
    uint64_t left = slice;
    w->yield = w->is_polling = false;
    while (left && !w->yield && (w->path = choose(w)) != NULL) {
        merge(w);
        const bool alone = w->path_count == 1;
        const uint64_t budget = alone || left < PATH_SLICE ? left : PATH_SLICE;
        struct emu_path *p = w->path;
        const uint64_t ran = run_path(w, budget);
        left -= ran;
        w->steps += ran;
        w->launch->clock += ran;
        p->used += (uint32_t)ran;
        p->is_tired |= !alone && p->used >= PATH_SLICE;
        if (w->steps > w->launch->emu->options.step_limit)
            emu_fault(w, emu_first_lane(w->path->mask ? w->path->mask : 1),
                      "step limit: the warp executed more than %llu instructions",
                      (unsigned long long)w->launch->emu->options.step_limit);
    }
    return slice - left;
}

void emu_warp_stop(struct emu_warp *w)
{
    while (w->path_count)
        path_drop(w, w->paths[0]);
}

void emu_warp_start(struct emu_warp *w, const struct emu_func *kernel)
{
    emu_warp_stop(w);
    w->alive = w->exists;
    w->cluster_arrived = w->cluster_done = w->registers = 0;
    w->wgmma_group = 0;
    emu_watch_free(w);
    w->passed = NULL;
    w->poll = NULL;
    memset(w->polls, 0, sizeof w->polls);
    w->repeat = (struct emu_repeat){0};
    w->carry = 0;
    w->steps = 0;
    memset(w->group, 0, sizeof w->group);
    memset(w->bulk_group, 0, sizeof w->bulk_group);
    w->is_at_pair = false;
    w->umma_group = 0;
    w->umma_lanes = 0;
    memset(w->tmem_group, 0, sizeof w->tmem_group);
    emu_schedule_warp(w);
    emu_trace_start(w);
    struct emu_frame *frame = frame_new(w, kernel);
    frame->parent = NULL;
    frame->call = NULL;
    frame->depth = 0;
    frame->users = 0;
    frame->local_base = 256; // so that 0 is no address of local memory
    memset(frame->local_shadow, EMU_UNSET, (size_t)kernel->local_bytes * EMU_WARP);
    path_new(w, kernel->entry, w->exists, frame);
}

// --- calls ---

// Copies a parameter from the caller's frame to the callee's, or a result back. Both sides are of
// the same kind and size (check_call).
static void copy_arg(struct emu_warp *w, struct emu_frame *caller, const struct emu_arg *actual,
                     struct emu_frame *callee, const struct emu_param *formal, bool back,
                     uint32_t mask)
{
    if (actual->ref != EMU_NO_REF) {
        alignas(16) uint8_t value[16 * EMU_WARP];
        uint32_t pred;
        const size_t size = actual->width ? (size_t)actual->width * EMU_WARP : sizeof pred;
        uint8_t *saved = w->base[EMU_BASE_REG];
        w->base[EMU_BASE_REG] = back ? callee->regs : caller->regs;
        memcpy(value, emu_at_ref(w, back ? formal->ref : actual->ref), size);
        memcpy(&pred, value, sizeof pred);
        w->base[EMU_BASE_REG] = back ? caller->regs : callee->regs;
        const uint32_t to = back ? actual->ref : formal->ref;
        if (actual->width)
            emu_commit(w, to, value, actual->width, mask);
        else
            emu_commit_pred(w, to, pred, mask);
        w->base[EMU_BASE_REG] = saved;
        return;
    }
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const size_t outer = (size_t)i * caller->func->local_bytes + actual->offset;
        const size_t inner = (size_t)i * callee->func->local_bytes + formal->offset;
        if (back) {
            memcpy(caller->local + outer, callee->local + inner, formal->size);
            memcpy(caller->local_shadow + outer, callee->local_shadow + inner, formal->size);
        } else {
            memcpy(callee->local + inner, caller->local + outer, formal->size);
            memcpy(callee->local_shadow + inner, caller->local_shadow + outer, formal->size);
        }
    }
}

static struct emu_frame *find_frame(struct emu_warp *w, const struct emu_func *f,
                                    const struct emu_insn *in)
{
    for (uint32_t i = 0; i < w->path_count; i++) {
        struct emu_frame *frame = w->paths[i]->frame;
        if (frame->func == f && frame->call == in && frame->parent == w->path->frame)
            return frame; // lanes that called here before: their lanes of its registers are ours
    }
    return NULL;
}

// The actual arguments and results must match the callee's in number and size.
static void check_call(struct emu_warp *w, const struct emu_func *f, const struct emu_insn *in,
                       uint32_t lane)
{
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    if (in->op != f->ret_count || in->count != f->param_count)
        emu_fault(w, lane, "call of %s with the wrong number of parameters", f->name);
    for (uint32_t i = 0; i < f->ret_count + f->param_count; i++) {
        const struct emu_param *p = i < f->ret_count ? &f->rets[i] : &f->params[i - f->ret_count];
        const bool same = p->ref != EMU_NO_REF
                              ? args[i].ref != EMU_NO_REF && args[i].width == p->width
                              : args[i].ref == EMU_NO_REF && args[i].size == p->size;
        if (!same)
            emu_fault(w, lane, "call of %s with a parameter of another kind or size", f->name);
    }
}

void emu_warp_call(struct emu_warp *w, const struct emu_func *f, const struct emu_insn *in,
                   uint32_t mask)
{
    struct emu_frame *caller = w->path->frame;
    if (!f->is_defined && emu_builtin_call(w, f, in, mask))
        return;
    if (!f->is_defined)
        emu_fault(w, emu_first_lane(mask), "call of %s, which has no body", f->name);
    if (caller->depth >= MAX_DEPTH)
        emu_fault(w, emu_first_lane(mask), "call stack overflow: more than %d calls", MAX_DEPTH);
    check_call(w, f, in, emu_first_lane(mask));
    struct emu_frame *frame = find_frame(w, f, in);
    if (!frame) {
        frame = frame_new(w, f);
        frame->parent = caller;
        caller->users++;
        frame->users = 0;
        frame->call = in;
        frame->ret_pc = w->path->pc;
        frame->depth = caller->depth + 1;
        frame->local_base =
            (uint32_t)emu_align_up(caller->local_base + caller->func->local_bytes, 256);
        if (frame->local_base > MAX_STACK)
            emu_fault(w, emu_first_lane(mask), "call stack overflow: more than %d bytes",
                      MAX_STACK);
    }
    for (uint32_t i = 0; i < EMU_WARP; i++)
        if (mask >> i & 1)
            memset(frame->local_shadow + (size_t)i * f->local_bytes, EMU_UNSET, f->local_bytes);
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    for (uint32_t i = 0; i < f->param_count; i++)
        copy_arg(w, caller, &args[f->ret_count + i], frame, &f->params[i], false, mask);
    path_new(w, f->entry, mask, frame);
    w->path->mask &= ~mask;
    if (!w->path->mask)
        path_drop(w, w->path);
}

void emu_warp_return(struct emu_warp *w, uint32_t mask)
{
    struct emu_frame *frame = w->path->frame;
    const struct emu_insn *call = frame->call;
    if (!call) {
        emu_path_exit(w, mask);
        return;
    }
    const struct emu_func *f = frame->func;
    const struct emu_arg *args = &w->launch->module->args.at[call->list];
    for (uint32_t i = 0; i < f->ret_count; i++)
        copy_arg(w, frame->parent, &args[i], frame, &f->rets[i], true, mask);
    path_new(w, frame->ret_pc, mask, frame->parent);
    w->path->mask &= ~mask;
    if (!w->path->mask)
        path_drop(w, w->path);
}

// --- control flow ---

EMU_RUN(bra)
{
    emu_path_split(w, mask, in->target);
}

EMU_RUN(brx)
{
    const uint32_t *index = emu_at_ref(w, in->src[0]);
    for (uint32_t left = mask; left;) {
        const uint32_t lane = emu_first_lane(left);
        uint32_t same = 0;
        if (index[lane] >= in->target)
            emu_fault(w, lane, "brx.idx: index %u is beyond its %u targets", index[lane],
                      in->target);
        for (uint32_t i = lane; i < EMU_WARP; i++)
            same |= (uint32_t)(left >> i & 1 && index[i] == index[lane]) << i;
        left &= ~same;
        emu_path_split(w, same, w->launch->module->targets.at[in->list + index[lane]]);
    }
}

EMU_RUN(call)
{
    emu_warp_call(w, w->launch->module->funcs.at[in->target], in, mask);
}

EMU_RUN(call_indirect)
{
    const uint64_t *address = emu_at_ref(w, in->src[0]);
    struct emu_path *path = w->path;
    uint64_t targets[EMU_WARP];
    memcpy(targets, address, sizeof targets);
    for (uint32_t left = mask; left;) {
        const uint32_t lane = emu_first_lane(left);
        const uint64_t index = (targets[lane] - EMU_FUNC_WINDOW) / 16 - 1;
        uint32_t same = 0;
        if (targets[lane] % 16 || index >= w->launch->module->funcs.len)
            emu_fault(w, lane, "call of 0x%llx, which is no function",
                      (unsigned long long)targets[lane]);
        for (uint32_t i = lane; i < EMU_WARP; i++)
            same |= (uint32_t)(left >> i & 1 && targets[i] == targets[lane]) << i;
        left &= ~same;
        w->path = path;
        emu_warp_call(w, w->launch->module->funcs.at[index], in, same);
    }
}

EMU_RUN(ret)
{
    (void)in;
    emu_warp_return(w, mask);
}

EMU_RUN(exit)
{
    (void)in;
    emu_path_exit(w, mask);
}

EMU_RUN(trap)
{
    (void)in;
    emu_fault(w, emu_first_lane(mask), "trap");
}

EMU_RUN(nanosleep)
{
    (void)in;
    (void)mask;
    w->path->is_tired = true; // the warp's other paths first
    w->yield = w->is_polling = true;
}
