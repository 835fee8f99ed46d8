// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// memory: gives scratch space to operations that need it and places every shared buffer by
// liveness.
//
//     let a: shared f32[64, 64] in S = alloc();          // last used by d
//     let d: f32[64, 64] in M = dot(a, b, acc);
//     let e: f32[64, 64] in B = convert_layout(d);
// becomes
//     let a: shared f32[64, 64] in S = alloc(offset = 0);
//     let d: f32[64, 64] in M = dot(a, b, acc);
//     let scratch: shared f32[64, 64] in R = alloc(offset = 0);
//     let e: f32[64, 64] in B = convert_layout(d, scratch = scratch);
//
// What lives when, and lies where, is in life.c. Buffers that the program declares and orders
// itself live for ever as long as there is room: their author orders accesses to each buffer, not
// to bytes that two of them share. Scratch in a scope is there once for each group of warps, and
// shares its bytes with that of the same scope. The barrier pass orders reuse: it works on the
// bytes placed here.
//
// Where this takes more than a CTA has, the scratch of conversions is cut to a half along one
// dimension, the largest first, until all fits: such a tile changes threads in parts.

#include "ir/walk.h"
#include "machine/target.h"
#include "pass/pass.h"
#include "pass/receipt.h"
#include "pass/sync/life.h"
#include "pass/sync/scratch.h"

struct memory {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_lives lives;
};

static void add_scratch(struct tir_func *f, struct tir_inst *inst, bool used)
{
    const struct tir_type *type = tir_scratch_type(f, inst, used);
    if (!type)
        return;
    struct tir_builder b = tir_builder_before(f, inst);
    struct tir_value *v = tir_build1(&b, TIR_OP_ALLOC, type, NULL, 0);
    v->name = tir_intern_cstr(f->module->names, "scratch");
    inst->operands[tir_scratch_at(inst)] = v;
}

static void place(struct memory *m)
{
    m->f->shared_bytes = tir_lives_place(&m->lives);
}

static void set_offsets(const struct memory *m)
{
    vec_foreach(const struct tir_life, in, &m->lives.buffers)
        if (in->buffer)
            tir_set_int(m->f, in->buffer->def, TIR_ATTR_offset, in->offset);
    vec_foreach(const struct tir_life, in, &m->lives.scoped)
        vec_foreach(const struct tir_life, all, &m->lives.buffers) {
            if (all->scope != in->scope)
                continue;
            tir_set_int(m->f, in->buffer->def, TIR_ATTR_offset,
                        tir_scoped_offset(&m->lives, all, in));
            if (in->groups > 1)
                tir_set_int(m->f, in->buffer->def, TIR_ATTR_apart, all->apart);
        }
}

static const struct tir_type *half_of(const struct memory *m, const struct tir_life *in)
{
    return in->user ? tir_scratch_half(m->f, in->user, in->buffer->type) : NULL;
}

// The largest buffers of a group of the scope that can be halved. NULL: there are no more.
static struct tir_life *next_largest(const struct memory *m, const struct tir_life *all,
                                     struct tir_life *in)
{
    int64_t most = 0;
    vec_foreach(const struct tir_life, other, &m->lives.scoped)
        most = other->scope == all->scope && half_of(m, other) ? TIR_MAX(most, other->bytes) : most;
    for (in = in ? in + 1 : m->lives.scoped.at; in < m->lives.scoped.at + m->lives.scoped.len; in++)
        if (in->scope == all->scope && in->bytes == most && half_of(m, in))
            return in;
    return NULL;
}

static bool can_shrink(const struct memory *m, const struct tir_life *all)
{
    return all->scope ? next_largest(m, all, NULL) != NULL : half_of(m, all) != NULL;
}

static void halve(struct memory *m, struct tir_life *in)
{
    in->buffer->type = half_of(m, in);
    in->bytes = tir_buffer_bytes(in->buffer->type);
    in->alignment = tir_layout_alignment(in->buffer->type->layout);
}

static void shrink(struct memory *m, struct tir_life *all)
{
    if (!all->scope) {
        halve(m, all);
        return;
    }
    VEC(struct tir_life *) largest = {0};
    for (struct tir_life *in = next_largest(m, all, NULL); in; in = next_largest(m, all, in))
        vec_push(m->cx->scratch, &largest, in);
    vec_foreach(struct tir_life *, it, &largest)
        halve(m, *it);
}

// Does a buffer that is live with this one, or it itself, end above the limit?
static bool is_at_limit(const struct memory *m, const struct tir_life *in, int64_t limit)
{
    vec_foreach(const struct tir_life, other, &m->lives.buffers)
        if (other->offset + other->bytes > limit && tir_alive_together(&m->lives, in, other))
            return true;
    return false;
}

static bool share_bytes(const struct tir_life *a, const struct tir_life *b)
{
    return a->by_hand && b->by_hand && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

// A line for each buffer: pairs would be too many to read.
static void tell_shared(struct memory *m)
{
    for (uint32_t i = 0; i < m->lives.buffers.len; i++) {
        const struct tir_life *b = &m->lives.buffers.at[i], *first = NULL;
        uint32_t more = 0;
        for (uint32_t k = 0; k < i; k++) {
            const struct tir_life *a = &m->lives.buffers.at[k];
            if (!share_bytes(a, b))
                continue;
            more += first != NULL;
            first = first ? first : a;
        }
        if (first && more)
            tir_receipt_add(m->cx, TIR_TOPIC_MEMORY, b->buffer->def->span,
                            "shared memory: %s and %s share bytes, as do %u more buffers with %s, "
                            "since there is no room for all",
                            first->buffer->name, b->buffer->name, more, b->buffer->name);
        else if (first)
            tir_receipt_add(m->cx, TIR_TOPIC_MEMORY, b->buffer->def->span,
                            "shared memory: %s and %s share bytes, since there is no room for both",
                            first->buffer->name, b->buffer->name);
    }
}

// Of a tile that changes threads in parts.
static void tell_parts(const struct memory *m, const struct tir_life *in)
{
    if (!in->user || in->user->op != TIR_OP_CONVERT_LAYOUT)
        return;
    const struct tir_type *tile = in->user->operands[TIR_REDUCE_X]->type;
    uint32_t d = tir_parts_along(tile);
    int64_t size = in->buffer->type->shape[d];
    if (size < tile->shape[d])
        tir_receipt_add(
            m->cx, TIR_TOPIC_MEMORY, in->user->span,
            "a tile of %s changes threads in %lld parts of %lld bytes, since shared "
            "memory has no room for all of it",
            tir_type_text(m->cx->scratch, tir_type_with_layout(m->f->module->types, tile, NULL))
                .ptr,
            (long long)((tile->shape[d] + size - 1) / size), (long long)in->bytes);
}

static void place_within(struct memory *m, int64_t limit)
{
    place(m);
    m->lives.by_hand_end = m->f->shared_bytes > limit;
    for (place(m); m->f->shared_bytes > limit; place(m)) {
        struct tir_life *largest = NULL;
        vec_foreach(struct tir_life, in, &m->lives.buffers)
            if (can_shrink(m, in) && is_at_limit(m, in, limit) &&
                (!largest || in->bytes > largest->bytes))
                largest = in;
        if (!largest)
            return;
        shrink(m, largest);
    }
    vec_foreach(const struct tir_life, in, &m->lives.buffers)
        tell_parts(m, in);
    vec_foreach(const struct tir_life, in, &m->lives.scoped)
        tell_parts(m, in);
}

// Is a side of a buffer that lacks room as long as the meta says?
static bool is_side(const struct memory *m, const struct tir_meta *meta)
{
    vec_foreach(struct tir_life, in, &m->lives.buffers) {
        const struct tir_type *t = in->buffer ? in->buffer->type : NULL;
        for (uint32_t d = 0; t && d < t->rank; d++) {
            const char *side = tir_str_format(m->cx->scratch, "%lld", (long long)t->shape[d]).ptr;
            if (t->shape[d] > 1 && tir_str_equal(meta->value, tir_str_of(side)))
                return true;
        }
    }
    return false;
}

// Which metas a smaller tile may follow from.
static void name_metas(struct memory *m)
{
    struct tir_text text;
    tir_text_init(&text, m->cx->scratch, 0);
    for (uint32_t i = 0; i < m->f->meta_count; i++) {
        const struct tir_meta *meta = &m->f->metas[i];
        if (is_side(m, meta))
            tir_text_format(&text, "%s%s = " STR_FMT, text.len ? ", " : "", meta->name,
                            STR_ARG(meta->value));
    }
    if (text.len)
        tir_note_at(m->cx->diags, m->f->span,
                    "sides of these are as long as %s: -D NAME=VALUE gives a meta another value",
                    text.ptr);
}

static bool check_limit(struct memory *m, int64_t limit)
{
    if (m->f->shared_bytes <= limit)
        return true;
    tir_error_at(m->cx->diags, m->f->span, TIR_E_SHARED_LIMIT,
                 "kernel %s needs %lld bytes of shared memory, %s has %lld", m->f->name,
                 (long long)m->f->shared_bytes, m->cx->target->name, (long long)limit);
    vec_foreach(struct tir_life, in, &m->lives.buffers) {
        const struct tir_value *v = in->buffer;
        if (!v) {
            tir_note_at(
                m->cx->diags, in->scope->span,
                "%lld bytes for tiles that change threads in a scope, of %u groups of warps",
                (long long)in->bytes, in->groups);
            continue;
        }
        tir_note_at(
            m->cx->diags, v->def->span, "%lld bytes for %s: %s", (long long)in->bytes,
            v->name ? v->name : "a buffer",
            tir_type_text(m->cx->scratch, tir_type_with_layout(m->f->module->types, v->type, NULL))
                .ptr);
    }
    name_metas(m);
    return false;
}

enum tir_change tir_pass_memory(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) all = {0};
    const uint32_t *uses = tir_count_uses(cx->scratch, f);
    tir_foreach_inst(inst, f)
        if (tir_scratch_at(inst) != UINT32_MAX)
            vec_push(cx->scratch, &all, inst);
    vec_foreach(struct tir_inst *, it, &all)
        add_scratch(f, *it, uses[(*it)->results[0]->id] > 0);

    struct memory m = {.f = f, .cx = cx};
    f->shared_bytes = 0;
    tir_lives_find(&m.lives, f, cx->scratch, false);
    if (!m.lives.buffers.len)
        return TIR_UNCHANGED;
    place_within(&m, cx->target->shared_per_cta);
    set_offsets(&m);
    tell_shared(&m);
    if (!check_limit(&m, cx->target->shared_per_cta))
        return TIR_FAILED;
    return TIR_CHANGED;
}
