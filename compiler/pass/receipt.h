// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The receipt: what the passes decided, and why what was wished for was refused.
#ifndef TIR_PASS_RECEIPT_H
#define TIR_PASS_RECEIPT_H

#include "pass/pass.h"

enum tir_topic { // what a line is about
    TIR_TOPIC_COPY,
    TIR_TOPIC_DOT,
    TIR_TOPIC_LOOP,
    TIR_TOPIC_RING,
    TIR_TOPIC_ROLE,
    TIR_TOPIC_MEMORY,
    TIR_TOPIC_SYNC
};

enum tir_wish { // what --require can ask for
    TIR_WISH_NONE,
    TIR_WISH_ASYNC,      // copies past the registers
    TIR_WISH_TMA,        // copies by the tensor copy engine
    TIR_WISH_WGMMA,      // products on warpgroups
    TIR_WISH_PIPELINE,   // copies that run ahead
    TIR_WISH_SPECIALIZE, // roles
    TIR_WISH_CLUSTER     // copies that several CTAs share
};

// One decision about what stands at span. The text is a clause: "copy of A: tma, 2 boxes".
void tir_receipt_add(struct tir_pass_cx *cx, enum tir_topic topic, struct tir_span span,
                     const char *format, ...) TIR_PRINTF(4, 5);
// A wish that cannot be granted there; the text says why: "copy of A: no tma, because ...".
void tir_receipt_refuse(struct tir_pass_cx *cx, enum tir_topic topic, enum tir_wish wish,
                        struct tir_span span, const char *format, ...) TIR_PRINTF(5, 6);

#endif
