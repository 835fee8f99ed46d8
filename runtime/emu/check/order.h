// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Happens-before: which accesses of other agents an agent may rely on.
//
// An *agent* acts sequentially: a warp, the copies of a warp that complete in the order of their
// groups, or one slot of an asynchronous engine. Its clock advances whenever it releases, so an
// access is identified by (agent, clock). A *view* holds, for every agent, the clock up to which
// its accesses are known. A release joins the agent's view into another one (a barrier's, a
// flag's); an acquire joins that into the agent's view. These are vector clocks, with the last
// access of a place kept as one (agent, clock) as in FastTrack (Flanagan and Freund, PLDI 2009).
//
// PTX adds two things (PTX ISA, memory consistency model). First, accesses through another proxy,
// such as asynchronous copies and matrix instructions, need a proxy fence on the way. So a view has
// one clock for known accesses and further clocks for accesses known *with* such a fence after
// them; a fence copies the first to the others. Tensor memory needs two fences, one on either side.
//
// Second, releases and acquires work only between threads that both scopes include; if a fence and
// a strong access form one together, the smaller scope counts. So the contents of a flag are kept
// by scope: for all threads, and for each releasing CTA, for its cluster and for itself. The
// releases of fences, and the loads that a fence has yet to acquire, are kept by scope too.
//
// Agents belong to *domains*, the running clusters. The clocks of the own domain are a dense array,
// those of other domains a sorted list. A join in one domain costs one pass over its agents; the
// clocks of proxy fences exist only after the first fence. If a list would exceed its bound, the
// oldest agents become known to all, which can hide a race and never invents one.
//
// Lanes of a warp share its clock. Instructions that gather lanes order them: there is the clock of
// the last instruction that gathered all, and after one that gathered only some, a matrix whose row
// i, column j is the clock up to which lane i knows lane j. A release by one lane counts as one by
// its warp. But for every lane there is the clock up to which some lane that knew its accesses has
// released, or made a proxy fence; later accesses cannot be known elsewhere. An acquire by one lane
// is one by its warp. But a proxy fence by some lanes counts for what they do next, and what lanes
// do that an instruction gathers with them; for the warp once one gathers all.
#ifndef EMU_ORDER_H
#define EMU_ORDER_H

#include "emu/base.h"

// A view's knowledge of an agent.
enum emu_plane {
    EMU_KNOWN,        // ordered before
    EMU_FENCED_ASYNC, // ... with a proxy fence for asynchronous accesses to shared memory
    EMU_FENCED_GLOBAL,
    EMU_FENCED_MAP,    // ... for the reading of tensor maps
    EMU_FENCED_INIT,   // ... for copies to signal an mbarrier
    EMU_FENCED_BEFORE, // with a tcgen05.fence before the threads synchronised,
    EMU_FENCED_TENSOR, // and one after it
    EMU_HANDED_ASYNC,  // as EMU_FENCED_ASYNC and _GLOBAL, by fences of other warps than that which
    EMU_HANDED_GLOBAL, // accessed
    EMU_PLANES
};
enum {
    EMU_FENCE_ASYNC_SHARED = 1 << EMU_FENCED_ASYNC,
    EMU_FENCE_ASYNC_GLOBAL = 1 << EMU_FENCED_GLOBAL,
    EMU_FENCE_MAP = 1 << EMU_FENCED_MAP,
    EMU_FENCE_INIT = 1 << EMU_FENCED_INIT // of mbarriers; in EMU_FENCE_ASYNC_SHARED
};

enum emu_scope { EMU_SCOPE_CTA, EMU_SCOPE_CLUSTER, EMU_SCOPE_GPU, EMU_SCOPE_SYS };
enum { EMU_SCOPES = EMU_SCOPE_GPU + 1 }; // that are told apart: there is one GPU

// The effect of an instruction on order. The rest are bits.
enum {
    EMU_STRONG = 1 << 0, // .relaxed and stronger, .volatile, atomics
    EMU_ACQUIRE = 1 << 1,
    EMU_RELEASE = 1 << 2
};

struct emu_far { // an agent of another domain
    uint32_t uid;
    uint32_t clock[EMU_PLANES];
};

struct emu_view {
    uint32_t base, count;        // agents of the own domain: uids from base; 0: none
    uint32_t cap;                // of each array
    uint32_t *clock[EMU_PLANES]; // NULL: all 0
    struct emu_far *far;         // by uid
    uint32_t far_count, far_cap;
};

struct emu_order;

// Agents that know each other by index.
struct emu_domain {
    struct emu_order *order;
    uint32_t base;       // uid of its first agent
    uint32_t fixed;      // agents with an index of their own, before the slots
    uint32_t slot_count; // slots that were ever used
    uint32_t next_slot;
    uint32_t per_cta; // fixed agents of one CTA: warps, then their copy queues
    struct emu_agent *slots;
};

// Up to which clock the accesses of each lane were released, and proxy fences made, by a lane that
// knew of them.
struct emu_tells {
    uint32_t released[EMU_WARP], fenced_async[EMU_WARP], fenced_global[EMU_WARP];
};

// An accessing agent: its knowledge, and the name under which others will know its accesses.
struct emu_agent {
    struct emu_domain *domain;
    uint32_t uid;
    uint32_t clock; // of what it does now
    uint32_t busy;  // of a slot: operations that have not completed; several may share it
    struct emu_view view;
    struct emu_view released[EMU_SCOPES]; // at the last fence of the scope that releases; later
                                          // ones of larger scopes hold it as well
    struct emu_view pending[EMU_SCOPES];  // seen by strong loads, by the scope that the acquiring
                                          // fence needs
    uint8_t has_released, has_pending;    // a bit a scope
    // Lanes of a warp.
    uint32_t acting;         // the agent of the next accesses
    struct emu_tells *tells; // NULL: nothing was told yet
    uint32_t gathered;       // clock of the last instruction of all lanes
    uint32_t fencers;        // lanes that know of a proxy fence that not all of them know of
    struct emu_view
        fenced; // what they know with it; of other fences too, if several lanes made some
    uint32_t (*lanes)[EMU_WARP];
};

// The releases of one CTA's agents through a flag: to the CTA, and to its cluster.
struct emu_told {
    const struct emu_domain *domain;
    uint32_t base; // of that domain then
    uint32_t cta;  // in the domain
    struct emu_view view[EMU_SCOPE_GPU];
};

// A place of strong accesses in memory: the view that a load of it acquires.
struct emu_flag {
    uint64_t address;
    struct emu_view view; // for all threads
    struct emu_told *told;
    uint32_t told_count, told_cap;
    bool is_set;
};

struct emu_domain_name {
    uint32_t base, agents;
    uint32_t ctas, per_cta;
    uint64_t serial;               // the caller's
    const struct emu_agent *warps; // those of its agents that are warps; NULL: not said
    uint32_t per_warp;             // agents of one
};

// The order of one launch. Its memory lives on the arena.
struct emu_order {
    struct emu_arena *arena;
    bool has_lanes; // proxy fences count for the lanes that know of them
    uint32_t next_uid;
    uint32_t floor; // agents below are known to all
    EMU_VEC(struct emu_domain_name) names;
    EMU_VEC(struct emu_view) spare; // given back
    struct emu_flag *flags;         // open addressing
    uint32_t flag_count, flag_cap;
    struct emu_far *scratch[2];
    uint32_t scratch_cap[2];
};

void emu_order_init(struct emu_order *o, struct emu_arena *arena);

// Starts a domain, or starts it anew, with `ctas` CTAs of `per_cta` agents each and slots for
// engines. `serial` is what emu_order_name gives back for its agents. False: uids are used up.
bool emu_domain_start(struct emu_order *o, struct emu_domain *d, uint32_t ctas, uint32_t per_cta,
                      uint64_t serial);
// The domain an agent is or was of, or NULL.
const struct emu_domain_name *emu_order_name(const struct emu_order *o, uint32_t uid);
// Says which of the agents of the domain that started last are warps: `warps`, every `per_warp`.
void emu_domain_warps(struct emu_order *o, const struct emu_agent *warps, uint32_t per_warp);
// The warp of this uid, if it still runs; else NULL.
const struct emu_agent *emu_order_warp(const struct emu_order *o, uint32_t uid);
// Makes agent `index` of a domain (CTA * per_cta + number in the CTA) as it is at the start.
void emu_agent_start(struct emu_agent *a, struct emu_domain *d, uint32_t index);

// Views of barriers and the like. The memory of a cleared one is kept for its next use.
void emu_view_clear(struct emu_view *v, const struct emu_domain *home); // NULL: no domain
// A cleared view, with memory that another one gave back.
void emu_view_take(struct emu_order *o, struct emu_view *v, const struct emu_domain *home);
void emu_view_give(struct emu_order *o, const struct emu_view *v);
void emu_view_join(struct emu_order *o, struct emu_view *to, const struct emu_view *from);
// Adds that the accesses of `uid` up to `clock` are known.
void emu_view_learn(struct emu_order *o, struct emu_view *v, uint32_t uid, uint32_t clock);
// The same, and with a tcgen05.fence::before_thread_sync after them.
void emu_view_learn_committed(struct emu_order *o, struct emu_view *v, uint32_t uid,
                              uint32_t clock);
uint32_t emu_view_clock(const struct emu_order *o, const struct emu_view *v, enum emu_plane plane,
                        uint32_t uid);

void emu_order_release(struct emu_agent *a, struct emu_view *to);
// By a relaxed arrival at the cluster's barrier: only initialisations of mbarriers that a fence of
// theirs has followed.
void emu_order_release_inits(struct emu_agent *a, struct emu_view *to);
void emu_order_acquire(struct emu_agent *a, const struct emu_view *from);
// A proxy fence by the acting lanes; `which`: EMU_FENCE_*; `alive`: the lanes that have not exited.
void emu_order_fence(struct emu_agent *a, uint32_t which, uint32_t alive);
// tcgen05.fence::before_thread_sync, or after: what was fenced on the other side is known with
// both.
void emu_order_fence_tensor(struct emu_agent *a, bool after);
// fence.sc, .acq_rel, .acquire, .release; `order`: EMU_ACQUIRE, EMU_RELEASE.
void emu_order_fence_memory(struct emu_agent *a, uint32_t order, enum emu_scope scope);
// A strong store to, load of, or atomic operation on an address.
void emu_order_flag_store(struct emu_agent *a, uint64_t address, uint32_t order,
                          enum emu_scope scope);
void emu_order_flag_load(struct emu_agent *a, uint64_t address, uint32_t order,
                         enum emu_scope scope);
void emu_order_flag_atomic(struct emu_agent *a, uint64_t address, uint32_t order,
                           enum emu_scope scope);

// An asynchronous operation starts: it knows what its issuer knows. What the issuer does next is
// not ordered before it. `is_named`: its accesses are known by the slot, not by another agent; such
// a slot is used again when the issuer knows its last operation, others once that is over.
struct emu_agent *emu_order_begin(struct emu_agent *issuer, bool is_named);
// It completes: `to` learns of its accesses, and of nothing else.
void emu_order_complete(struct emu_agent *slot, struct emu_view *to);
// It is over: once all that share the slot are, it may be used again.
void emu_order_end(struct emu_agent *slot);

// All of `mask` are at one instruction that gathers them; `alive`: the lanes that have not exited.
void emu_order_lanes(struct emu_agent *a, uint32_t mask, uint32_t alive);
// Whether `lane` knows what lane `other` of its warp did at `clock`.
static inline bool emu_order_knows_lane(const struct emu_agent *a, uint32_t lane, uint32_t other,
                                        uint32_t clock)
{
    return clock <= a->gathered || lane == other || (a->lanes && clock <= a->lanes[lane][other]);
}

#endif
