// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Findings: each fault with its place and its fix.
//
// A fault ends the launch, since later results would mean nothing. A race is kept and the launch
// goes on; its result is an error with the first finding's message. One finding is kept for each
// kind and pair of instructions, and 32 in all, of which the last 24 are not hints.
#ifndef EMU_FINDING_H
#define EMU_FINDING_H

#include "emu/base.h"
#include "emu/emu.h"

struct emu_warp;
struct emu_grid;
struct emu_conflict;

enum { EMU_MAX_FINDINGS = 32, EMU_MAX_HINTS = 8 };

// Findings of a device's last launch. Their text lives on the arena.
struct emu_findings {
    struct emu_arena arena;
    struct emu_finding at[EMU_MAX_FINDINGS];
    uint32_t count;
    const char *error; // the first message that is no hint; NULL: the launch is right
};

// Keeps a finding, unless it is known already. `f` holds no strings but its message, which is
// copied, and files, which are too.
void emu_finding_add(struct emu_grid *l, const struct emu_finding *f);
// Whether it would be kept: not known of these lines of PTX, and there is room.
bool emu_finding_is_new(const struct emu_grid *l, enum emu_finding_kind kind, uint32_t line,
                        uint32_t other);
// Ends the launch with the first finding that is no hint.
_Noreturn void emu_findings_stop(struct emu_grid *l);
// Where lane `lane` of the warp is.
struct emu_place emu_place_of(const struct emu_warp *w, uint32_t lane);

// Ends the launch: the kernel did something wrong. The message is the formatted text, and goes on
// with where: lines, CTA, thread. It begins as a row of finding.def says, which gives the kind.
_Noreturn void emu_fault(struct emu_warp *w, uint32_t lane, const char *format, ...)
    TIR_PRINTF(3, 4);
// The same for an access to memory: "WHAT SPACE ACCESS of SIZE bytes at ADDRESS".
_Noreturn void emu_fault_access(struct emu_warp *w, uint32_t lane, const char *what,
                                const char *access, const char *space, uint64_t address,
                                uint32_t size);
// The same as emu_fault, without ending the launch.
void emu_report(struct emu_warp *w, uint32_t lane, const char *format, ...) TIR_PRINTF(3, 4);

// A finding of race.c; `user`: struct emu_grid.
void emu_report_conflict(void *user, const struct emu_conflict *conflict);

#endif
