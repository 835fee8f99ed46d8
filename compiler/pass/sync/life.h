// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// When shared buffers live, and where that lets them lie: what `memory` does, and what passes in
// front of it expect it to do.
#ifndef TIR_PASS_SYNC_LIFE_H
#define TIR_PASS_SYNC_LIFE_H

#include "ir/walk.h"

struct tir_life {
    struct tir_value *buffer;    // NULL: scratch that is not made yet, or all buffers of a scope
    const struct tir_inst *user; // the operation whose scratch it is; NULL: none
    const struct tir_inst *role; // that the buffer is made in; NULL: none
    int64_t begin, end;          // program positions, inclusive
    int64_t bytes, offset, alignment;
    bool by_hand;                 // declared and ordered by the program
    const struct tir_inst *scope; // whose groups of warps each have one; NULL: none
    uint32_t groups;
    int64_t apart; // of all buffers of a scope: from group to group
};

struct tir_lives {
    struct tir_func *f;
    struct tir_arena *arena;
    struct tir_order order;
    VEC(struct tir_life) buffers;
    VEC(struct tir_life) scoped; // those of scopes, each of which has one life in `buffers`
    bool by_hand_end;            // buffers of the program end with their last use, like all others
};

// Of all buffers and slots of rings. with_scratch: also of the scratch that operations will have,
// as small as it can be.
void tir_lives_find(struct tir_lives *l, struct tir_func *f, struct tir_arena *arena,
                    bool with_scratch);
// Of this alloc or ring's buffer.
struct tir_life *tir_life_of(const struct tir_lives *l, const struct tir_value *buffer);
// May the two not share bytes?
bool tir_alive_together(const struct tir_lives *l, const struct tir_life *a,
                        const struct tir_life *b);
// Gives every buffer its offset, largest first; all the bytes that they take.
int64_t tir_lives_place(struct tir_lives *l);
// Where the first group of its scope has a buffer of one.
int64_t tir_scoped_offset(const struct tir_lives *l, const struct tir_life *all,
                          const struct tir_life *in);

#endif
