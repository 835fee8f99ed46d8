// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The room for slots: how much shared memory a kernel will take.
#ifndef TIR_PASS_ASYNC_ROOM_H
#define TIR_PASS_ASYNC_ROOM_H

#include "pass/pass.h"
#include "pass/sync/life.h"

// Where slots are filled: by the threads that read them, or by a role, which copies or also
// computes.
enum tir_filler { TIR_FILL_IN_LINE, TIR_FILL_COPIES, TIR_FILL_COMPUTES };

struct tir_room {
    struct tir_lives lives;
    int64_t limit;
    bool in_roles;
};

// Of f, laid out. Rings, if there are any, go to roles unless they are filled in line.
void tir_room_init(struct tir_room *room, struct tir_func *f, struct tir_pass_cx *cx,
                   enum tir_filler filler);
// Makes this alloc, in the loop, so many slots that live as long as the loop.
void tir_room_repeat(struct tir_room *room, const struct tir_inst *alloc, int64_t slots,
                     const struct tir_inst *loop);
// Leaves place for the mbarriers of rings.
void tir_room_add_mbarriers(struct tir_room *room);
bool tir_room_suffices(struct tir_room *room);

#endif
