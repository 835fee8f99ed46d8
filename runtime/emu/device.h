// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The device: its memory objects, its modules, and the map of generic addresses.
//
//   0x0000'1000'0000 ...             global and constant memory, one object after another
//   0x0100'0000'0000 + 32 bits       shared memory of the cluster's CTAs: rank << 24 | offset
//   0x0200'0000'0000 + 32 bits       the thread's local memory
//   0x0300'0000'0000 + 16 bits       the launch's parameters
//   0x0400'0000'0000 + 16 * index    functions: they can be called, not read
//
// Every byte of memory has a shadow byte that says whether it was ever written. Objects have wide
// gaps between them and their addresses are never used again, so that a wild access hits nothing.
#ifndef EMU_DEVICE_H
#define EMU_DEVICE_H

#include "emu/base.h"
#include "emu/check/finding.h"
#include "emu/check/race.h"
#include "emu/emu.h"

#define EMU_SHARED_WINDOW ((uint64_t)0x010000000000)
#define EMU_LOCAL_WINDOW  ((uint64_t)0x020000000000)
#define EMU_PARAM_WINDOW  ((uint64_t)0x030000000000)
#define EMU_FUNC_WINDOW   ((uint64_t)0x040000000000)
#define EMU_WINDOW_MASK   ((uint64_t)0xff0000000000)

// Shared memory starts here: the first kilobyte belongs to the system, so 0 is no address in it.
enum { EMU_SHARED_START = 1024, EMU_SHARED_LIMIT = 232448 };
// Where the rank of a CTA lies in its shared addresses, as on hardware. A CTA's own addresses carry
// its own rank.
enum { EMU_RANK_SHIFT = 24, EMU_RANK_MASK = (1 << EMU_RANK_SHIFT) - 1, EMU_MAX_CLUSTER = 16 };

// The values of a shadow byte.
enum { EMU_UNSET = 0, EMU_SET = 1, EMU_IN_FLIGHT = 2, EMU_MBARRIER = 3 };

struct emu_object {
    uint64_t address, size;
    uint64_t capacity; // its size when it was made; device code's free makes the size 0
    uint8_t *bytes;    // never NULL; capacity + 1 bytes
    uint8_t *shadow;   // as many
    bool is_constant;
    bool is_heap; // from device code's malloc
    struct emu_race_map race;
};

struct emu {
    tir_allocator allocator;
    struct emu_options options;
    struct emu_object **objects; // by address
    uint32_t object_count, object_cap;
    uint64_t next_address;
    uint64_t memory_used;
    struct emu_module *modules;
    uint64_t instructions; // of the last launch
    struct emu_isa *isa;   // the index of instructions
    struct emu_findings findings;
};

static inline uint64_t emu_func_address(uint32_t index)
{
    return EMU_FUNC_WINDOW + 16 * ((uint64_t)index + 1);
}

// Makes an object of uninitialised bytes; raises when memory is short.
uint64_t emu_object_new(struct emu *emu, uint64_t size, uint64_t align, struct emu_trap *trap);
// Sets an object's first bytes (zeros when `bytes` is NULL).
void emu_object_init(struct emu *emu, uint64_t address, const uint8_t *bytes, uint64_t size,
                     bool is_constant);
// Frees what device code has freed, at the end of a launch.
void emu_object_sweep(struct emu *emu);
void emu_object_drop(struct emu *emu, uint64_t address);
// The object an address lies in, or the nearest one before it, or NULL.
struct emu_object *emu_object_at(struct emu *emu, uint64_t address);

#endif
