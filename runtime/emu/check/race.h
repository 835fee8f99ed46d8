// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data races: the last accesses of every piece of shared, global and tensor memory.
//
// A *map* covers a CTA's shared memory, its tensor memory or one object of global memory in pages
// of a kilobyte, made when they are touched. A page is cut into granules of 16, 8, 4, 2 or 1 bytes,
// as coarse as all accesses so far allow, and cut finer when one needs it. A granule holds the
// record of its last plain write and of the reads and strong writes since: one record, or a list of
// up to 32 if several agents access it without knowing of each other. A race that needs more
// records is missed; a reported race is always one.
//
// An access races with a recorded one if one of them writes, they are not both strong with scopes
// that include each other, and the agent does not know the recorded one (order.h). Two cases have
// their own kind of finding: a generic write that the agent knows, but not with a proxy fence, and
// lanes of a warp that do not know each other. One race is accepted: a plain load against a compare
// and exchange, since compilers implement other atomic operations by code that begins with such a
// load, and a wrong value only costs another turn of the loop. Plain stores of the same value are
// told apart from races: their order does not matter, and compilers emit them.
//
// Cost: 32 bytes a granule, so twice the touched memory for accesses of 16 bytes, 8 times with 4,
// 32 times with single bytes, and 16 bytes for each reader in a list.
#ifndef EMU_RACE_H
#define EMU_RACE_H

#include "emu/check/order.h"

enum emu_proxy {
    EMU_PROXY_GENERIC,
    EMU_PROXY_ASYNC,
    EMU_PROXY_MAP,
    EMU_PROXY_TENSOR // the tensor core in its own memory
};

// The bits of a record about its access, below the instruction's index.
enum {
    EMU_REC_PROXY = 3,       // enum emu_proxy
    EMU_REC_STRONG = 1 << 2, // .relaxed, .volatile, atomic ...
    EMU_REC_SCOPE = 3 << 3,  // enum emu_scope
    EMU_REC_SCOPE_SHIFT = 3,
    EMU_REC_ATOMIC = 1 << 5,
    EMU_REC_MANY = 1 << 6, // a list of readers; nothing else is set
    EMU_REC_CAS = 1 << 7,  // compare and exchange
    EMU_REC_WRITES = 1 << 8,
    EMU_REC_AGAIN = 1 << 9, // a store of what is there already; not kept
    EMU_REC_PC_SHIFT = 11   // index of the instruction, 21 bits
};

struct emu_record {
    uint32_t uid; // 0: none
    uint32_t clock;
    uint32_t what;
    uint32_t lanes; // of the warp; 0: an engine; of the tensor core: its operation
};

struct emu_granule;

struct emu_race_page {
    struct emu_granule *at; // NULL: not touched
    uint32_t shift;         // a granule has 1 << shift bytes
};

struct emu_race_map {
    struct emu_race_page *pages; // NULL: nothing was touched
    uint64_t address, size;      // of the bytes it covers
    bool is_global, is_tensor;
    bool is_listed;            // in the race's list of maps
    struct emu_race_map *next; // there
};

enum emu_conflict_kind {
    EMU_CONFLICT_ORDER, // neither comes before the other
    EMU_CONFLICT_PROXY, // ordered, but without a proxy fence
    EMU_CONFLICT_LANES, // lanes of one warp
    EMU_CONFLICT_FENCE, // ordered, but without the two fences of tensor memory
    EMU_CONFLICT_AGAIN, // two plain stores of the same value, in any order
    EMU_CONFLICT_CORE   // operations of the tensor core that PTX does not keep in order
};

struct emu_conflict {
    enum emu_conflict_kind kind;
    struct emu_record before, now;
    bool before_writes, now_writes;
    const struct emu_race_map *map;
    uint64_t offset; // in the map
    uint32_t size;   // of the access
};

// An accessing thread or engine.
struct emu_who {
    const struct emu_order *order;
    const struct emu_view *view;
    const struct emu_agent *warp; // whose lanes it is; NULL: an engine
    uint32_t uid, clock;
    uint32_t own, own_end; // uids of the warp's agents
    enum emu_plane also;   // of the view, that shows an order too; or EMU_KNOWN
};

struct emu_race_block;

// An operation of the tensor core. It may overtake the ones before it, but a product does not
// overtake copies, nor products of the same accumulator and shape (PTX ISA 9.7.16.6).
struct emu_core_op {
    uint32_t number;      // of the operation; 0: none
    uint32_t warp, clock; // the uid of the warp that issued it, and its clock then
    uint32_t accumulator; // of a product, with the shape; 0: a copy
};
enum { EMU_CORE_OPS = 1024 }; // that are remembered; older ones count as in order

struct emu_race {
    struct emu_arena *arena;
    bool check_lanes;
    struct emu_race_map *maps; // of global memory, to be cleared at the end
    struct emu_race_block *free_pages[5], *free_lists[4];
    struct emu_core_op *core_ops; // of the tensor core, by their number; NULL: none yet
    uint32_t core_op_count;
    void (*found)(void *user, const struct emu_conflict *conflict);
    void *user;
};

static inline uint32_t emu_record_what(uint32_t pc, enum emu_proxy proxy, uint32_t strong,
                                       enum emu_scope scope)
{
    return (pc < 0x1fffff ? pc : 0x1fffff) << EMU_REC_PC_SHIFT | (uint32_t)proxy |
           (strong ? EMU_REC_STRONG | (uint32_t)scope << EMU_REC_SCOPE_SHIFT : 0);
}

static inline struct emu_who emu_who_agent(const struct emu_agent *a)
{
    return (struct emu_who){
        .order = a->domain->order, .view = &a->view, .warp = a, .uid = a->uid, .clock = a->clock};
}

// An access of `size` bytes at `offset` of a map, which lie in it. `lanes`: of the warp, 0 for an
// engine. True when another lane wrote to the same place by the same instruction just before.
bool emu_race_access(struct emu_race *race, const struct emu_who *who, uint32_t lanes,
                     struct emu_race_map *map, uint64_t offset, uint64_t size, bool writes,
                     uint32_t what);
// Numbers an operation of the tensor core that a warp issues; its accesses name it as their lanes.
uint32_t emu_race_core_op(struct emu_race *race, const struct emu_agent *warp,
                          uint32_t accumulator);
// Forgets what a map holds; its pages will be used for others.
void emu_race_forget(struct emu_race *race, struct emu_race_map *map);
// At the end of a launch: maps of global memory point at nothing any more.
void emu_race_end(struct emu_race *race);

#endif
