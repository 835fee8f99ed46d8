// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of access.c: what they say of an access.
#ifndef TIR_PASS_SYNC_CHECK_ACCESS_H
#define TIR_PASS_SYNC_CHECK_ACCESS_H

#include "pass/sync_check/sync_check.h"

// access.c
uint64_t tir_sync_box_hash(const struct sync_buffer *b);
// NULL: that depends on data, as the receipt says.
const struct sync_buffer *tir_sync_buffer_of(struct sync_run *r, const struct sync_agent *a,
                                             const struct tir_inst *inst,
                                             const struct tir_value *v);
// By all lanes, or by the one that acts; in program order with what that thread does.
struct sync_record tir_sync_ordinary(const struct sync_who *who, const struct tir_inst *inst,
                                     enum sync_access access);
// Of a group that is closed as the next one after `closed`.
struct sync_record tir_sync_grouped(const struct tir_inst *inst, enum sync_access access,
                                    uint16_t strand, uint32_t closed, bool async);
void tir_sync_note_crew(const struct sync_agent *a, struct sync_record *record);
bool tir_sync_is_indexed(const struct tir_inst *inst); // by an index tile

// copies.c
void tir_sync_copy(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst);
void tir_sync_push(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst);
void tir_sync_request(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst);
void tir_sync_query_op(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst);
void tir_sync_store_bulk(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst);

// groups.c
void tir_sync_product_op(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst);

// reach.c: how far into a tensor that is.
void tir_sync_note_reach(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst);

#endif
