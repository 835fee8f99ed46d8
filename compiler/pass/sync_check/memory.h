// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by boxes.c, points.c, memory.c and global.c: two accesses, and what is said of them.
#ifndef TIR_PASS_SYNC_CHECK_MEMORY_H
#define TIR_PASS_SYNC_CHECK_MEMORY_H

#include "pass/sync_check/sync_check.h"

static const char SYNC_BY_DATA[] =
    "data decides where it is in a tensor, and another thread may be there";

// boxes.c
bool tir_sync_boxes_meet(const struct sync_box *a, const struct sync_box *b, uint32_t rank);
bool tir_sync_is_empty_box(const struct sync_box *box, uint32_t rank);
bool tir_sync_box_covers(const struct sync_box *a, const struct sync_box *b, uint32_t rank);
// The bytes that a box spans, from the first to the end of the last; in tensor memory, the columns.
void tir_sync_span(const struct sync_root *root, const struct sync_box *box, int64_t *begin,
                   int64_t *end);

// points.c: do two accesses touch the same elements, by the same threads where it knows them?
bool tir_sync_same_places(const struct sync_record *a, const struct sync_record *b);

// memory.c
// The pairs of threads of which the two would have to be ordered, and are not.
enum sync_pairs tir_sync_may_conflict(const struct sync_who *who, const struct sync_record *old,
                                      const struct sync_record *now);
const char *tir_sync_name_of(const struct tir_inst *inst);
// root, old_root: the buffers that `now` and `old` access, if they share bytes for want of room.
void tir_sync_report(struct sync_run *r, const struct sync_who *who, uint32_t root,
                     uint32_t old_root, const struct sync_record *old,
                     const struct sync_record *now);
// Does `now` stand for the old access too, against all that comes later?
bool tir_sync_is_superseded(const struct sync_run *r, const struct sync_who *who,
                            const struct sync_root *root, const struct sync_record *old,
                            const struct sync_record *now);

// records.c: compares with what was forgotten; root: NULL where they are of another buffer in the
// same bytes.
void tir_sync_compare_rests(struct sync_run *r, const struct sync_who *who,
                            const struct sync_root *root, const struct sync_shadow *s,
                            const struct sync_record *now);
// To be compared with what comes after it.
void tir_sync_remember(struct sync_run *r, const struct sync_root *root, struct sync_shadow *s,
                       const struct sync_record *now);

// meet.c: a pair of accesses to a root that such pairs of threads make and that nothing orders.
void tir_sync_note_pair(struct sync_run *r, const struct sync_root *root,
                        const struct sync_record *old, const struct sync_record *now,
                        enum sync_pairs pairs);
// The same, of these two.
void tir_sync_note_unordered(struct sync_run *r, const struct sync_who *who,
                             const struct sync_root *root, const struct sync_record *old,
                             const struct sync_record *now);
// Do settings move an access of inst?
bool tir_sync_moves(const struct sync_program *p, const struct tir_inst *inst);

// global.c. Stores are remembered, and loads of elements, and compared with what comes after them;
// of tiles too where the program orders its accesses itself, or has roles.
void tir_sync_access_tensor(struct sync_run *r, const struct sync_who *who,
                            const struct sync_buffer *b, const struct sync_record *now);

#endif
