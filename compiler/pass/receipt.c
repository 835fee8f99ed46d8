// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Records of the receipt, and those that follow from a synchronised kernel alone.

#include "pass/receipt.h"

#include <stdarg.h>
#include <stdio.h>

#include "ir/effect.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "pass/async/pixels.h"
#include "pass/sync/shared.h"

const char *const tir_topic_names[TIR_TOPIC_COUNT] = {
    [TIR_TOPIC_COPY] = "copy",         [TIR_TOPIC_DOT] = "dot",
    [TIR_TOPIC_QUOTIENT] = "quotient", [TIR_TOPIC_COMPARISON] = "comparison",
    [TIR_TOPIC_LOOP] = "loop",         [TIR_TOPIC_RING] = "ring",
    [TIR_TOPIC_ROLE] = "role",         [TIR_TOPIC_LAUNCH] = "launch",
    [TIR_TOPIC_MEMORY] = "memory",     [TIR_TOPIC_SYNC] = "sync",
    [TIR_TOPIC_CODE] = "code",
};

const struct tir_wish_info tir_wishes[TIR_WISH_COUNT] = {
    [TIR_WISH_ASYNC] = {"async", "copy to shared memory past the registers"},
    [TIR_WISH_TMA] = {"tma", "copy by the tensor copy engine"},
    [TIR_WISH_WGMMA] = {"wgmma", "product on warpgroups"},
    [TIR_WISH_PIPELINE] = {"pipeline", "loop with asynchronous copies"},
    [TIR_WISH_SPECIALIZE] = {"specialize", "role"},
    [TIR_WISH_CLUSTER] = {"cluster", "cluster of CTAs"},
    [TIR_WISH_SYNC] = {"sync", "check of its synchronisation"},
};

static bool has_record(const struct tir_receipt_part *part, const struct tir_record *record)
{
    vec_foreach(const struct tir_record, r, &part->records)
        if (r->topic == record->topic && r->span.begin == record->span.begin &&
            r->span.end == record->span.end && tir_str_equal(r->text, record->text))
            return true;
    return false;
}

static void add_record(struct tir_pass_cx *cx, struct tir_record record, const char *format,
                       va_list args)
{
    struct tir_receipt *receipt = cx->receipt;
    if (!receipt || !receipt->parts.len)
        return;
    record.text = tir_str_vformat(receipt->arena, format, args);
    struct tir_receipt_part *part = &receipt->parts.at[receipt->parts.len - 1];
    if (!has_record(part, &record))
        vec_push(receipt->arena, &part->records, record);
}

static void append(struct tir_arena *arena, struct tir_receipt_part *part,
                   const struct tir_record *records, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!has_record(part, &records[i]))
            vec_push(arena, &part->records, records[i]);
}

void tir_receipt_insert(struct tir_arena *arena, struct tir_receipt_part *part, uint32_t at,
                        const struct tir_receipt_part *from)
{
    const struct tir_receipt_part old = *part;
    part->granted |= from->granted;
    memset(&part->records, 0, sizeof part->records);
    append(arena, part, old.records.at, at);
    append(arena, part, from->records.at, from->records.len);
    append(arena, part, old.records.at + at, old.records.len - at);
}

void tir_receipt_add(struct tir_pass_cx *cx, enum tir_topic topic, struct tir_span span,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_record(cx, (struct tir_record){.topic = topic, .span = span}, format, args);
    va_end(args);
}

void tir_receipt_refuse(struct tir_pass_cx *cx, enum tir_topic topic, enum tir_wish wish,
                        struct tir_span span, const char *format, ...)
{
    struct tir_record record = {.topic = topic, .is_refusal = true, .wish = wish, .span = span};
    va_list args;
    va_start(args, format);
    add_record(cx, record, format, args);
    va_end(args);
}

void tir_receipt_grant(struct tir_pass_cx *cx, enum tir_wish wish)
{
    struct tir_receipt *receipt = cx->receipt;
    if (receipt && receipt->parts.len)
        receipt->parts.at[receipt->parts.len - 1].granted |= 1u << wish;
}

void tir_receipt_certify(struct tir_pass_cx *cx, const struct tir_certificate *certificate,
                         const char *why)
{
    struct tir_receipt *receipt = cx->receipt;
    if (!receipt || !receipt->parts.len)
        return;
    struct tir_certificate claim = *certificate;
    claim.why = tir_str_copy(receipt->arena, tir_str_of(why));
    vec_push(receipt->arena, &receipt->parts.at[receipt->parts.len - 1].schedules, claim);
}

// Are offsets of pixels known to be those that a copy has bits for?
static bool offsets_fit(const struct tir_func *f, struct tir_pass_cx *cx,
                        const struct tir_inst *pixels, uint32_t rank)
{
    const struct tir_ranges *ranges = tir_ranges_new(cx->scratch, f);
    const uint32_t at = pixels->op == TIR_OP_PIXEL_INDEX ? TIR_PIXEL_DZ : TIR_COPY_DZ;
    for (uint32_t i = 0; i < TIR_PIXEL_DIMS; i++) {
        int64_t low = 0, high = 0;
        if (pixels->operands[at + i])
            tir_range_get(ranges, pixels->operands[at + i], &low, &high);
        if (low < 0 || high > tir_most_pixel_offset(rank))
            return false;
    }
    return true;
}

void tir_receipt_tma(const struct tir_func *f, struct tir_pass_cx *cx, struct tir_span span,
                     const struct tir_inst *load, const struct tir_value *to)
{
    const char *name = tir_ref_base(load)->name;
    const uint32_t rank = tir_ref_base(load)->type->rank;
    const struct tir_inst *pixels = tir_copies_pixels(load) ? load : tir_pixels_of(load);
    char most[48] = "";
    if (pixels && !offsets_fit(f, cx, pixels, rank))
        snprintf(most, sizeof most, ", with offsets taken to be 0 to %lld",
                 (long long)tir_most_pixel_offset(rank));
    tir_receipt_add(cx, TIR_TOPIC_COPY, span, "copy of %s: tma%s%s%s", name ? name : "a tensor",
                    tir_copied_rows(load) ? ", four rows at a time"
                    : pixels              ? ", pixels in the order of images"
                                          : "",
                    most, tir_rounds(load, to) ? ", which rounds to tf32" : "");
}

void tir_receipt_dot(struct tir_pass_cx *cx, const struct tir_inst *dot,
                     const struct tir_dot_plan *plan)
{
    const struct tir_scaled *a = plan->scaled[0], *b = plan->scaled[1];
    if (a)
        tir_receipt_add(cx, TIR_TOPIC_DOT, dot->span,
                        "dot: mma.sync m16n8k%u %s%s%s with block_scale, %s for %lld elements",
                        plan->depth, tir_words[a->kind].name, a == b ? "" : " by ",
                        a == b ? "" : tir_words[b->kind].name, tir_elems[a->scale].name,
                        (long long)tir_scaled_block(a));
    else if (plan->kind == TIR_WORD_kind_f64 && !(cx->target->features & TIR_HAS_MMA_F64))
        tir_receipt_add(cx, TIR_TOPIC_DOT, dot->span, "dot: mma.sync m8n8k4 f64");
    else if (plan->mma)
        tir_receipt_add(cx, TIR_TOPIC_DOT, dot->span, "dot: mma.sync m16n8k%u %s%s%s", plan->depth,
                        tir_words[plan->kind].name, plan->b_kind ? " by " : "",
                        plan->b_kind ? tir_words[plan->b_kind].name : "");
    else
        tir_receipt_refuse(cx, TIR_TOPIC_DOT, TIR_WISH_WGMMA, dot->span,
                           "dot: fused multiply-adds, because %s", plan->refusal);
}

// Describing.

static void describe_launch(struct tir_pass_cx *cx, const struct tir_func *f)
{
    tir_receipt_add(cx, TIR_TOPIC_LAUNCH, f->span, "threads: %u a CTA", f->threads);
    if (f->cluster[0])
        tir_receipt_add(cx, TIR_TOPIC_LAUNCH, f->span, "cluster: %u x %u x %u CTAs", f->cluster[0],
                        f->cluster[1], f->cluster[2]);
    if (f->preferred[0])
        tir_receipt_add(cx, TIR_TOPIC_LAUNCH, f->span, "cluster: %u x %u x %u CTAs are preferred",
                        f->preferred[0], f->preferred[1], f->preferred[2]);
    if (f->persistent)
        tir_receipt_add(cx, TIR_TOPIC_LAUNCH, f->span, "grid: %u CTAs a multiprocessor stay",
                        f->persistent);
}

void tir_receipt_role(struct tir_pass_cx *cx, const struct tir_inst *role)
{
    const struct tir_attr *name = tir_attr_find(role, TIR_ATTR_name);
    long long first = tir_attr_int(role, TIR_ATTR_first, -1),
              warps = tir_attr_int(role, TIR_ATTR_warps, 1),
              regs = tir_attr_int(role, TIR_ATTR_regs, 0);
    struct tir_text text;
    tir_text_init(&text, cx->scratch, 0);
    tir_text_format(&text, "role " STR_FMT ": %lld warp%s", STR_ARG(name->text), warps,
                    warps == 1 ? "" : "s");
    if (first >= 0)
        tir_text_format(&text, " from warp %lld on", first);
    if (regs)
        tir_text_format(&text, ", %lld registers a thread", regs);
    tir_receipt_add(cx, TIR_TOPIC_ROLE, role->span, "%s", text.ptr);
}

// The tensor that the buffer is filled from; NULL: it has no name, or none is copied to the buffer.
static const char *filled_from(const struct tir_func *f, const struct tir_value *buffer)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_COPY_ASYNC &&
            tir_buffer_root(inst->operands[TIR_COPY_TO]) == buffer && tir_ref_base(inst)->name)
            return tir_ref_base(inst)->name;
    return NULL;
}

static void describe_buffer(struct tir_pass_cx *cx, const struct tir_func *f,
                            const struct tir_inst *alloc)
{
    const struct tir_value *v = tir_result(alloc);
    if (v->type->space != TIR_SPACE_SHARED || !tir_attr_find(alloc, TIR_ATTR_offset))
        return;
    const char *tensor = v->name ? NULL : filled_from(f, v);
    const char *name = v->name ? v->name : tensor ? tensor : "a buffer";
    tir_receipt_add(cx, TIR_TOPIC_MEMORY, alloc->span, "shared memory: %s%s at %lld, %lld bytes",
                    tensor ? "tiles of " : "", name,
                    (long long)tir_attr_int(alloc, TIR_ATTR_offset, 0),
                    (long long)tir_buffer_bytes(v->type));
}

static bool has_topic(const struct tir_receipt_part *part, enum tir_topic topic)
{
    vec_foreach(const struct tir_record, r, &part->records)
        if (r->topic == topic)
            return true;
    return false;
}

static void describe_copy(const struct tir_func *f, struct tir_pass_cx *cx,
                          const struct tir_inst *copy)
{
    const char *name = tir_ref_base(copy)->name ? tir_ref_base(copy)->name : "a tensor";
    if (copy->operands[TIR_COPY_MBAR] &&
        tir_attr_word(copy, TIR_ATTR_engine, TIR_WORD_engine_tma) == TIR_WORD_engine_tma)
        tir_receipt_tma(f, cx, copy->span, copy, copy->operands[TIR_COPY_TO]);
    else if (copy->operands[TIR_COPY_MBAR])
        tir_receipt_add(cx, TIR_TOPIC_COPY, copy->span, "copy of %s: bulk", name);
    else
        tir_receipt_add(cx, TIR_TOPIC_COPY, copy->span, "copy of %s: cp.async, %lld bytes each",
                        name, (long long)tir_attr_int(copy, TIR_ATTR_width, 16));
}

static void describe_dot(struct tir_pass_cx *cx, const struct tir_inst *dot)
{
    struct tir_dot_plan plan = tir_dot_plan(cx->target, dot);
    tir_receipt_dot(cx, dot, &plan);
}

// For a kernel written in a form after the passes that decide about copies and products. Tensor
// copies and products on warpgroups are listed when they are lowered.
static void describe_by_hand(struct tir_pass_cx *cx, const struct tir_receipt_part *part,
                             const struct tir_func *f)
{
    bool copies = !has_topic(part, TIR_TOPIC_COPY), dots = !has_topic(part, TIR_TOPIC_DOT);
    tir_foreach_inst(inst, f) {
        if (copies && inst->op == TIR_OP_COPY_ASYNC)
            describe_copy(f, cx, inst);
        else if (dots && inst->op == TIR_OP_DOT)
            describe_dot(cx, inst);
    }
}

// counts: by operation, of the whole kernel.
static void describe_sync(struct tir_pass_cx *cx, const struct tir_func *f, const uint32_t *counts)
{
    static const enum tir_op ops[] = {
        TIR_OP_BAR_SYNC,     TIR_OP_BAR_ARRIVE,   TIR_OP_WARP_SYNC,     TIR_OP_CLUSTER_ARRIVE,
        TIR_OP_CLUSTER_WAIT, TIR_OP_GRID_SYNC,    TIR_OP_MBARRIER_INIT, TIR_OP_ARRIVE,
        TIR_OP_WAIT,         TIR_OP_COMMIT_GROUP, TIR_OP_WAIT_GROUP,    TIR_OP_AWAIT,
        TIR_OP_FENCE,
    };
    struct tir_text text;
    tir_text_init(&text, cx->scratch, 0);
    for (uint32_t i = 0; i < TIR_COUNT_OF(ops); i++)
        if (counts[ops[i]])
            tir_text_format(&text, "%s%u %s", text.len ? ", " : "", counts[ops[i]],
                            tir_ops[ops[i]].name);
    if (text.len)
        tir_receipt_add(cx, TIR_TOPIC_SYNC, f->span, "synchronisation: %s", text.ptr);
}

static bool in_loop(const struct tir_inst *inst)
{
    for (const struct tir_block *b = inst->block; b->owner; b = b->owner->block)
        if (tir_is_loop(b->owner))
            return true;
    return false;
}

// Bits of the wishes that inst grants.
static uint32_t granted_by(const struct tir_inst *inst)
{
    bool tma =
        tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_engine_cp_async) == TIR_WORD_engine_tma;
    if (inst->op == TIR_OP_ROLE)
        return 1u << TIR_WISH_SPECIALIZE;
    switch (tir_done_of(inst)) {
    case TIR_DONE_CP_ASYNC:
    case TIR_DONE_RING:
    case TIR_DONE_BYTES:
        return 1u << TIR_WISH_ASYNC | (tma ? 1u << TIR_WISH_TMA : 0) |
               (in_loop(inst) ? 1u << TIR_WISH_PIPELINE : 0);
    case TIR_DONE_TMA:
        return tma ? 1u << TIR_WISH_TMA : 0;
    case TIR_DONE_WGMMA:
        return 1u << TIR_WISH_WGMMA;
    case TIR_DONE_COMMIT:
    case TIR_DONE_NOW:
    case TIR_DONE_COUNT:
        return 0;
    }
    return 0;
}

void tir_receipt_describe(struct tir_pass_cx *cx, const struct tir_func *f)
{
    struct tir_receipt *receipt = cx->receipt;
    if (!receipt || !receipt->parts.len)
        return;
    uint32_t counts[TIR_OP_COUNT] = {0}, granted = f->cluster[0] ? 1u << TIR_WISH_CLUSTER : 0;
    struct tir_arena_mark mark = tir_arena_mark(cx->scratch);
    struct tir_receipt_part *part = &receipt->parts.at[receipt->parts.len - 1];
    describe_launch(cx, f);
    describe_by_hand(cx, part, f);
    if (f->shared_bytes)
        tir_receipt_add(cx, TIR_TOPIC_MEMORY, f->span, "shared memory: %lld bytes",
                        (long long)f->shared_bytes);
    tir_foreach_inst(inst, f) {
        granted |= granted_by(inst);
        counts[inst->op]++;
        if (inst->op == TIR_OP_ROLE)
            tir_receipt_role(cx, inst);
        else if (inst->op == TIR_OP_ALLOC)
            describe_buffer(cx, f, inst);
    }
    describe_sync(cx, f, counts);
    part->granted |= granted;
    tir_arena_release(cx->scratch, mark);
}
