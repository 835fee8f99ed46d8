// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The receipt: what the passes decided, and why what was wished for was refused.
//
// A compilation has one receipt with a part for each variant of each kernel; passes add records to
// the part of the variant they work on. compile/receipt.c prints it and checks --require against
// it.
#ifndef TIR_PASS_RECEIPT_H
#define TIR_PASS_RECEIPT_H

#include "pass/layout/dot.h"
#include "pass/pass.h"
#include "pass/role/certificate.h"

enum tir_topic { // the subject of a record, in the order of printing
    TIR_TOPIC_COPY,
    TIR_TOPIC_DOT,
    TIR_TOPIC_QUOTIENT,
    TIR_TOPIC_COMPARISON,
    TIR_TOPIC_LOOP,
    TIR_TOPIC_RING,
    TIR_TOPIC_ROLE,
    TIR_TOPIC_LAUNCH, // threads, clusters
    TIR_TOPIC_MEMORY,
    TIR_TOPIC_SYNC,
    TIR_TOPIC_CODE, // the assembler's report
    TIR_TOPIC_COUNT
};
extern const char *const tir_topic_names[TIR_TOPIC_COUNT];

enum tir_wish { // wishes of --require
    TIR_WISH_NONE,
    TIR_WISH_ASYNC,      // copies that bypass the registers
    TIR_WISH_TMA,        // copies by the tensor copy engine
    TIR_WISH_WGMMA,      // products on warpgroups
    TIR_WISH_PIPELINE,   // copies that run ahead
    TIR_WISH_SPECIALIZE, // roles
    TIR_WISH_CLUSTER,    // CTAs that share copies
    TIR_WISH_SYNC,       // sync_check leaves nothing unchecked
    TIR_WISH_COUNT
};

struct tir_wish_info {
    const char *name; // as --require has it
    const char *what; // "product on warpgroups": what a kernel has that grants the wish
};
extern const struct tir_wish_info tir_wishes[TIR_WISH_COUNT];

struct tir_record {
    enum tir_topic topic;
    bool is_refusal;
    enum tir_wish wish; // the refused wish; NONE: none that can be required
    struct tir_span span;
    tir_str text; // a clause
};

struct tir_receipt_part {       // of one variant
    const char *kernel, *entry; // entry NULL: of a kernel that is several launches
    const char *sequence;       // the name of that
    struct tir_span span;
    tir_str relies_on; // conditions of the variant; empty: none
    uint32_t granted;  // 1 << tir_wish: wishes that the synchronised kernel meets
    VEC(struct tir_record) records;
    VEC(struct tir_certificate) schedules; // of its loops with products on warpgroups
};

struct tir_receipt {
    struct tir_arena *arena;
    VEC(struct tir_receipt_part) parts;
};

// One decision about the code at span. The text is a clause: "copy of A: tma, 2 boxes". Equal
// records of a part are added once.
void tir_receipt_add(struct tir_pass_cx *cx, enum tir_topic topic, struct tir_span span,
                     const char *format, ...) TIR_PRINTF(4, 5);
// A wish that cannot be granted there; the text says why: "copy of A: no tma, because ...".
void tir_receipt_refuse(struct tir_pass_cx *cx, enum tir_topic topic, enum tir_wish wish,
                        struct tir_span span, const char *format, ...) TIR_PRINTF(5, 6);

// A wish that the kernel meets, reported by the pass that decides about it.
void tir_receipt_grant(struct tir_pass_cx *cx, enum tir_wish wish);

// Adds what a check reported to a part of its own, as if it had been run when the part had `at`
// records. Their texts stay where they are.
void tir_receipt_insert(struct tir_arena *arena, struct tir_receipt_part *part, uint32_t at,
                        const struct tir_receipt_part *from);

// The order of a loop, as the pass schedule certified it, and why there is no better one.
void tir_receipt_certify(struct tir_pass_cx *cx, const struct tir_certificate *certificate,
                         const char *why);

// A tensor copy brings what `load`, an access of a tensor, gives as `to`.
void tir_receipt_tma(const struct tir_func *f, struct tir_pass_cx *cx, struct tir_span span,
                     const struct tir_inst *load, const struct tir_value *to);

// The instructions of a dot that does not run on warpgroups.
void tir_receipt_dot(struct tir_pass_cx *cx, const struct tir_inst *dot,
                     const struct tir_dot_plan *plan);

// The warps of a role and the registers of its threads.
void tir_receipt_role(struct tir_pass_cx *cx, const struct tir_inst *role);

// Describes a synchronised kernel, written by passes or by hand: its roles and their registers, its
// cluster, its map of shared memory, how often it synchronises, the wishes it meets, and the copies
// and products that no pass decided about.
void tir_receipt_describe(struct tir_pass_cx *cx, const struct tir_func *f);

#endif
