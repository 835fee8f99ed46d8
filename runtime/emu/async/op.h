// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations of asynchronous engines, from issue to completion.
//
// Hardware may execute such an operation at any time between its issue and the event that says it
// is complete, so a program may rely on neither moment. An operation therefore waits in its
// cluster's queue until the schedule picks it or a wait demands it. Then it reads its sources,
// writes its destinations, signals, and leaves the queue.
#ifndef EMU_OP_H
#define EMU_OP_H

#include "emu/run/state.h"

struct emu_op;

struct emu_engine {
    const char *name;                          // for messages: "bulk copy"
    enum emu_unit unit;                        // the timeline: what it occupies,
    uint32_t latency;                          // how many cycles more its completion takes,
    uint64_t (*cycles)(const struct emu_op *); // and how many it occupies it; NULL: one
    bool in_order; // operations of one queue are done in the order of issue
    // Reads the sources, for operations whose wait tells reading from writing; else NULL.
    void (*read)(struct emu_op *op);
    // Does the rest and signals. May call emu_op_fault.
    void (*finish)(struct emu_op *op);
    // Frees what the operation has of its own; or NULL.
    void (*drop)(struct emu_op *op);
    // Whether what is left of it reads or writes shared memory of this CTA; or NULL: it does not.
    bool (*touches)(const struct emu_op *op, const struct emu_cta *cta);
    // The barrier that it signals, for the list of a deadlock: "mbarrier at 0x400".
    void (*describe)(const struct emu_op *op, char *text, size_t size);
};

// An engine's own data follows this header: it makes a struct whose first member this is.
struct emu_op {
    struct emu_op *next, *prev; // in the cluster's queue
    const struct emu_engine *engine;
    struct emu_warp *warp;     // that issued it
    const struct emu_insn *in; // by this instruction
    const void *queue;         // of engines that work in order: whose queue
    size_t size;               // of the whole struct
    uint64_t end_time;         // the timeline
    uint64_t born;             // the launch's clock at its issue
    uint32_t lane;             // that issued it; the first, where several did
    uint32_t group;            // the commit group it belongs to, of engines that have groups
    uint32_t priority;         // schedule.c
    bool is_read;              // its sources have been read
    bool is_generic;           // it accesses memory as threads do, not by the async proxy
    uint32_t core_op;          // its number as an operation of the tensor core; 0: it is none
    struct emu_agent *agent;   // the accessing agent; NULL: no race checks
    struct emu_mbarrier *const *barriers; // that it is going to signal, in its own data
    uint32_t barrier_count;               // of which some may be NULL
};

// A zeroed operation of `size` bytes issued by the instruction that runs, at the end of the queue.
// The caller fills the rest and then calls emu_op_issued.
void *emu_op_new(struct emu_warp *w, const struct emu_engine *engine, uint32_t lane, size_t size);
// The operation is complete as a description: the schedule may do it from now on.
void emu_op_issued(struct emu_op *op);

// Makes it an agent that knows what its issuers, these lanes, know now. `in_group`: all its
// accesses are those of one of its warp's agents that complete by groups.
void emu_op_track(struct emu_op *op, uint32_t lanes, bool in_group);
// It accesses `size` bytes, which lie in shared or global memory of the host. Without an agent
// nothing happens. An operation of a bulk group is known by the group.
void emu_op_access(struct emu_op *op, const uint8_t *bytes, uint32_t size, enum emu_access access,
                   bool in_group);
// The same, as one of its warp's agents that complete by groups; EMU_AGENT_SELF: by itself.
void emu_op_access_as(struct emu_op *op, const uint8_t *bytes, uint32_t size,
                      enum emu_access access, enum emu_warp_agent which);
// The same, of a map that is known.
void emu_op_access_map(struct emu_op *op, struct emu_race_map *map, uint64_t at, uint32_t size,
                       enum emu_access access, enum emu_warp_agent which, enum emu_proxy proxy);
// It signals for its warp's operations of this kind up to its group, and for all that its issuer
// knew: they were done after that.
void emu_op_release(const struct emu_op *op, enum emu_warp_agent which, struct emu_view *view);
// Its accesses are complete for agents that acquire the view.
void emu_op_signal(const struct emu_op *op, struct emu_view *view);

// Reads its sources, if that has not been done.
void emu_op_read(struct emu_op *op);
// Does it, after those before it where its engine works in order, and frees it.
void emu_op_finish(struct emu_op *op);
// Takes an operation whose work is done out of the queue and frees it.
void emu_op_free(struct emu_op *op);
// Forgets all operations of a cluster.
void emu_ops_drop(struct emu_cluster *cluster);

// Whether bytes lie in the shared memory of this CTA.
bool emu_op_is_of(const struct emu_cta *cta, const uint8_t *bytes);
// The threads that should have waited for it have exited: a finding at level full.
void emu_op_left(const struct emu_op *op);

// Ends the launch: the operation does something wrong.
_Noreturn void emu_op_fault(struct emu_op *op, const char *format, ...) TIR_PRINTF(2, 3);

#endif
