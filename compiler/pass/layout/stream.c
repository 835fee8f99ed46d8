// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Streams, a step of the layout pass: tiles that a loop loads go through shared memory, so that the
// copies of later iterations can be in flight.
//
//     for k: i64 in range(0, N, 256) stages(3) {
//         let x: f32[16, 256] = load(X[m:+16, k:+256]);
//         ... sum(x) ...
// becomes
//     for k: i64 in range(0, N, 256) stages(3) {
//         let x: f32[16, 256] = load(X[m:+16, k:+256]);
//         let x_ahead: shared f32[16, 256] = alloc();
//         store(x_ahead[0:+16, 0:+256], x);
//         let x_2: f32[16, 256] = load(x_ahead[0:+16, 0:+256]);
//         ... sum(x_2) ...
// async_copy makes an asynchronous copy of the first three, and pipeline gives it stages.
//
// It is done in loops without products that ask for stages, and for operands of products that a
// loop computes from what it loads: a product takes tiles of other elements than those in memory,
// bf16(A[...]). An operand as it is in memory is a copy anyway. What hardware cannot copy stays a
// load: going through shared memory for nothing would only take time.
//
// Copies fill what is outside of the tensor with zeros. Another pad takes their place where the
// tile is read (choice.c).
//
// Where products run on warpgroups, the role that fills the slots of rings runs ahead. It computes
// what is stored for a product, from what its own warps have copied by cp.async some iterations
// before; these copies stand first in the loop, since all puts come after them. An operand in
// registers is computed by the warps that multiply, from a slot that a tensor copy fills: that
// costs less than computing it in the other role, which would load and store it. So is one that is
// put together in shared memory, as interleave(...) of two halves of bytes.

#include "pass/layout/stream.h"

#include "base/bitset.h"
#include "ir/crew.h"
#include "ir/follow.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "pass/async/cp_async.h"
#include "pass/async/lookup.h"
#include "pass/async/pipeline.h"
#include "pass/async/tma.h"
#include "pass/layout/choice.h"
#include "pass/layout/operand.h"
#include "pass/layout/staging.h"
#include "pass/layout/turned.h"
#include "pass/layout/warpgroup.h"
#include "pass/receipt.h"
#include "pass/sync/life.h"

// What operands of products follow from, element by element.
struct sources {
    struct bitset loads;   // results of the loop's loads
    struct bitset buffers; // shared buffers in which parts are put together: interleave, concat
};

struct stream {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    struct tir_inst *loop;
    struct tir_block *body;
    struct tir_lookups lookups; // what these loads' addresses follow from: needed before they start
    struct tir_follow ahead;    // what can be computed ahead of its iteration
    struct sources operands;    // of operands of products
    struct sources in_puts;     // of those that another role computes
    struct sources *marked;     // of these two: where find_operands puts what it finds
    struct bitset are_copies;   // results of loads that go to shared memory as they are
    struct bitset are_turned;   // operands that the other role transposes on the way
    VEC(struct tir_turned) turned; // of these, those of bytes
    bool on_warpgroups;            // the kernel's products are
    const char *no_puts; // why nothing is copied ahead of what puts compute; NULL: it can be
    VEC(struct tir_inst *) loads;
    bool multiplies;
    bool feeds_puts;       // some of the loads are for operands that puts compute
    int64_t bytes;         // of one stage, with operands of products as they are in memory
    int64_t operand_bytes; // of those that are computed, or that threads copy
};

// Does an operation give a tile that follows from the elements of those it takes alone?
static bool passes_on(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_PERMUTE:
    case TIR_OP_BROADCAST:
    case TIR_OP_RESHAPE:
    case TIR_OP_EXTRACT:
        return true;
    case TIR_OP_REDUCE:
    case TIR_OP_SCAN:
        return inst->result_count == 1;
    default:
        return tir_is_elementwise(inst);
    }
}

// Marks the loads of the loop that an operand of a product follows from, element by element.
static enum tir_answer mark_loads(void *user, struct tir_value *v)
{
    struct stream *s = user;
    if (!v->def || v->def->block != s->body || !tir_type_is_tile(v->type))
        return TIR_YES;
    if (v->def->op == TIR_OP_LOAD) {
        bitset_insert(&s->marked->loads, v->id);
        bitset_insert(&s->marked->buffers, tir_ref_base(v->def)->id);
    }
    return passes_on(v->def) ? TIR_IF_OPERANDS : TIR_YES;
}

// Is operand i of the product computed in the registers of the warpgroups that multiply?
static bool stays_in_registers(const struct tir_inst *dot, uint32_t i)
{
    return tir_dot_on_warpgroups(dot) && i == TIR_DOT_A && tir_a_in_registers(dot);
}

// Can v be computed in a put: ahead of its iteration, and from no tile of outside of the loop?
static enum tir_answer is_put_ahead(void *user, struct tir_value *v)
{
    struct stream *s = user;
    if (v->kind == TIR_VALUE_CONST)
        return TIR_YES;
    const bool is_made_here = v->def && tir_block_contains(s->body, v->def);
    if (!tir_follows(&s->ahead, v) || (tir_type_is_tile(v->type) && !is_made_here))
        return TIR_NO;
    return is_made_here ? TIR_IF_OPERANDS : TIR_YES;
}

// Does the store fill all of its buffer? A copy does; of a part there is none.
static bool fills_buffer(const struct tir_inst *store)
{
    return tir_type_count(store->operands[TIR_STORE_VALUE]->type) ==
           tir_type_count(tir_ref_base(store)->type);
}

// Does operand i, a transpose of v or v itself, have stages as it is in memory?
static bool comes_by_copy(const struct stream *s, const struct tir_inst *dot, uint32_t i,
                          const struct tir_value *v)
{
    struct tir_copied copied;
    const char *why;
    return tir_stages_straight(s->cx->target, dot, i) && tir_copied_of(v, &copied) &&
           copied.slice->block == s->body &&
           (s->on_warpgroups || tir_tile_copy_width(s->f, s->cx->target, s->ranges, v, &why));
}

static void find_operands(struct stream *s)
{
    struct tir_follow follow, put, can_put;
    tir_follow_init(&follow, s->cx->scratch, mark_loads, s);
    tir_follow_init(&put, s->cx->scratch, mark_loads, s);
    tir_follow_init(&can_put, s->cx->scratch, is_put_ahead, s);
    struct sources *both[] = {&s->operands, &s->in_puts};
    for (uint32_t i = 0; i < TIR_COUNT_OF(both); i++) {
        both[i]->loads = bitset_new(s->cx->scratch, s->f->value_count);
        both[i]->buffers = bitset_new(s->cx->scratch, s->f->value_count);
    }
    s->are_copies = bitset_new(s->cx->scratch, s->f->value_count);
    s->are_turned = bitset_new(s->cx->scratch, s->f->value_count);
    for (const struct tir_inst *inst = s->body->first; inst; inst = inst->next) {
        s->multiplies |= inst->op == TIR_OP_DOT;
        if (inst->op == TIR_OP_STORE && tir_ref_base(inst)->type->space == TIR_SPACE_SHARED &&
            fills_buffer(inst))
            bitset_insert(&s->are_copies, inst->operands[TIR_STORE_VALUE]->id);
        for (uint32_t i = TIR_DOT_A; inst->op == TIR_OP_DOT && i <= TIR_DOT_B; i++) {
            bool turned;
            struct tir_value *v = inst->operands[i];
            const bool in_put =
                s->on_warpgroups && !stays_in_registers(inst, i) && tir_follows(&can_put, v);
            s->marked = in_put ? &s->in_puts : &s->operands;
            tir_follows(in_put ? &put : &follow, v);
            if (stays_in_registers(inst, i))
                continue;
            const bool is_copy = !s->on_warpgroups || tir_stages_straight(s->cx->target, inst, i);
            const struct tir_turned bytes_of =
                tir_turned_of(s->f->module->types, v, i == TIR_DOT_B, s->f->threads / 32);
            if (!is_copy && bytes_of.load)
                vec_push(s->cx->scratch, &s->turned, bytes_of);
            v = tir_brought(tir_unturned(v, &turned));
            bool is_new = bitset_insert(is_copy ? &s->are_copies : &s->are_turned, v->id);
            int64_t *bytes = comes_by_copy(s, inst, i, v) ? &s->bytes : &s->operand_bytes;
            if (is_new && tir_type_is_tile(v->type))
                *bytes += tir_type_bytes(v->type) * tir_crew_of(s->f, inst).groups;
        }
    }
    for (const struct tir_inst *inst = s->body->last; inst; inst = inst->prev) {
        if (inst->op != TIR_OP_STORE || tir_ref_base(inst)->type->space != TIR_SPACE_SHARED)
            continue;
        s->marked = &s->operands; // the warps that multiply put them together, for themselves
        if (bitset_has(&s->operands.buffers, tir_ref_base(inst)->id) ||
            bitset_has(&s->in_puts.buffers, tir_ref_base(inst)->id))
            tir_follows(&follow, inst->operands[TIR_STORE_VALUE]);
    }
}

// Is the load's tile on its way to an operand that a put computes?
static bool is_for_put(const struct stream *s, const struct tir_inst *load)
{
    return bitset_has(&s->in_puts.loads, load->results[0]->id);
}

// What a put turns that it loads from the load's buffer, or NULL.
static const struct tir_turned *turned_of(const struct stream *s, const struct tir_inst *load)
{
    vec_foreach(const struct tir_turned, turned, &s->turned)
        if (turned->load == load)
            return turned;
    return NULL;
}

// Will a put turn its bytes? Then matrices are read.
static bool is_turned(const struct stream *s, const struct tir_inst *load)
{
    if (tir_elems[load->results[0]->type->elem].bits != 8)
        return false;
    if (turned_of(s, load))
        return true;
    tir_foreach_inst(inst, s->f)
        if (inst->op == TIR_OP_PERMUTE && inst->operands[0] == load->results[0])
            return true;
    return false;
}

// The rows of a buffer in the order in which matrices have them: a lane gets two rows of one and
// two of another. So the eight rows of a matrix, which are a pair of registers of four lanes, lie
// in eight lines that follow each other, and have all banks.
static const struct tir_layout *by_matrices(struct tir_types *types, const struct tir_layout *l,
                                            const struct tir_layout *loaded)
{
    if (l->rank != 2 || l->first[1] != 1)
        return l;
    const uint32_t line = l->iters[0].stride, own = loaded->first[1];
    struct tir_iter rows[TIR_MAX_ITERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < own; i++) {
        rows[count++] = loaded->iters[i];
        if (i + 1 < own || loaded->iters[i].axis != TIR_AXIS_REG || loaded->iters[i].extent < 4)
            continue;
        rows[count - 1].extent /= 2;
        rows[count++] = (struct tir_iter){2, 0, TIR_AXIS_REG};
    }
    if (count < 2 || rows[count - 1].axis != TIR_AXIS_REG || rows[count - 1].extent != 2)
        return l;
    uint32_t within = line, beyond = 8 * line; // strides of what a matrix has, and of the rest
    for (uint32_t i = count; i-- > 0;) {
        const bool in_matrix = i == count - 1 || rows[i].axis == TIR_AXIS_LANE;
        uint32_t *stride = in_matrix ? &within : &beyond;
        rows[i] = (struct tir_iter){rows[i].extent, *stride, TIR_AXIS_REG};
        *stride *= rows[i].extent;
    }
    if (within != 8 * line)
        return l;
    memcpy(rows + count, l->iters + 1, (l->iter_count - 1) * sizeof(*rows));
    return tir_layout_from_iters(types, l->rank, l->shape, rows, count + l->iter_count - 1, NULL, 0,
                                 l->swizzle);
}

// Fragments of products take the same columns of eight rows at a time, so these are swizzled: rows
// that there are several of.
static const struct tir_type *buffer_type(const struct stream *s, const struct tir_inst *load)
{
    struct tir_type t = *load->results[0]->type;
    const bool one_row = tir_type_count(&t) == t.shape[t.rank - 1];
    const bool swizzles =
        s->on_warpgroups && (!is_for_put(s, load) || is_turned(s, load)) && !one_row;
    const uint32_t bits = tir_elems[t.elem].bits;
    const int64_t row = t.shape[t.rank - 1] * bits / 8;
    t.space = TIR_SPACE_SHARED;
    t.layout = tir_layout_memory(s->f->module->types, t.rank, t.shape, bits,
                                 swizzles ? tir_layout_swizzle_for(row) : 0);
    const struct tir_turned *turned = swizzles ? turned_of(s, load) : NULL;
    if (turned && tir_contiguous_dim(load, t.rank) == 1)
        t.layout = by_matrices(s->f->module->types, t.layout, turned->loaded);
    return tir_type_get(s->f->module->types, &t);
}

// Does a product on warpgroups multiply what lies in the buffer?
static bool is_multiplied(const struct tir_func *f, const struct tir_value *buffer)
{
    tir_foreach_inst(inst, f)
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i] == buffer &&
                (tir_dot_on_warpgroups(inst) ||
                 (tir_viewed(inst) && is_multiplied(f, inst->results[0]))))
                return true;
    return false;
}

bool tir_is_for_puts(const struct tir_func *f, struct tir_arena *scratch,
                     const struct tir_value *buffer)
{
    struct bitset from = bitset_new(scratch, f->value_count); // tiles that follow from the buffer
    bool any = false;
    tir_foreach_inst(inst, f)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            const struct tir_value *v = inst->operands[i];
            const bool is_read = v == buffer && inst->op != TIR_OP_STORE;
            if (!v || (!is_read && !bitset_has(&from, v->id)))
                continue;
            if (!is_read && inst->op == TIR_OP_STORE && i == TIR_STORE_VALUE &&
                is_multiplied(f, tir_ref_base(inst)) && !tir_follows_from_products(scratch, f, v))
                continue;
            if (is_read ? inst->op != TIR_OP_LOAD
                        : !passes_on(inst) && inst->op != TIR_OP_CONVERT_LAYOUT)
                return false;
            bitset_insert(&from, inst->results[0]->id);
            any = true;
        }
    return any;
}

// Do nothing but operands that puts compute follow from v?
static bool only_puts_use(struct stream *s, const struct tir_value *v)
{
    struct tir_follow put;
    struct bitset from = bitset_new(s->cx->scratch, s->f->value_count);
    tir_follow_init(&put, s->cx->scratch, is_put_ahead, s);
    bitset_insert(&from, v->id);
    tir_foreach_inst(inst, s->f)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            if (!inst->operands[i] || !bitset_has(&from, inst->operands[i]->id))
                continue;
            const bool is_operand = tir_dot_on_warpgroups(inst) && i <= TIR_DOT_B &&
                                    !stays_in_registers(inst, i) &&
                                    tir_follows(&put, inst->operands[i]);
            if (inst->block != s->body || !(is_operand || passes_on(inst)))
                return false;
            if (!is_operand)
                bitset_insert(&from, inst->results[0]->id);
        }
    return true;
}

// Why threads cannot copy the tile to a slot; NULL: they can.
static const char *threads_refusal(const struct stream *s, const struct tir_inst *load)
{
    struct tir_copied copied;
    const char *why = "its columns turn";
    return tir_copied_of(load->results[0], &copied) &&
                   tir_copy_width(s->f, s->cx->target, s->ranges, &copied, buffer_type(s, load),
                                  &why)
               ? NULL
               : why;
}

// The same for a tile from which a put computes an operand: cp.async brings it, to the role of the
// put.
static const char *put_refusal(struct stream *s, struct tir_inst *load)
{
    const char *why = s->no_puts;
    if (why)
        return why;
    if (bitset_has(&s->operands.loads, load->results[0]->id) || !only_puts_use(s, load->results[0]))
        return "not only operands that another role computes follow from it";
    return threads_refusal(s, load);
}

// Why the tile cannot be copied ahead of its iteration; NULL: it can.
static const char *refusal(struct stream *s, struct tir_inst *load)
{
    const struct tir_type *t = load->results[0]->type;
    const char *why = NULL;
    for (uint32_t i = 0; i < load->operand_count; i++)
        if (!tir_follows(&s->ahead, load->operands[i]))
            return "its address or mask depends on values carried in the loop";
    if (t->rank == TIR_MAX_RANK)
        return "a buffer has no dimension left for the stages";
    if (s->on_warpgroups && is_for_put(s, load))
        return put_refusal(s, load);
    if (s->on_warpgroups) {
        const struct tir_type *buffer = buffer_type(s, load);
        why = tir_tma_refusal(s->f, s->cx->target, s->ranges, load);
        why = why ? why : tir_tma_boxes_refusal(buffer->layout, buffer->shape, NULL, buffer->elem);
        return why || t->rank > 1 ? why : "tensor copies fill buffers of two dimensions or more";
    }
    return threads_refusal(s, load);
}

// The same without regard to such a pad.
static const char *refusal_without_pad(struct stream *s, struct tir_inst *load)
{
    struct tir_value *pad = load->operands[TIR_LOAD_PAD];
    if (tir_removable_pad(load))
        load->operands[TIR_LOAD_PAD] = NULL;
    const char *why = refusal(s, load);
    load->operands[TIR_LOAD_PAD] = pad;
    return why;
}

static void consider(struct stream *s, struct tir_inst *load, bool asked)
{
    const struct tir_value *v = load->results[0];
    if (tir_ref_base(load)->type->space != TIR_SPACE_GLOBAL || !tir_type_is_tile(v->type) ||
        bitset_has(&s->are_copies, v->id) || tir_is_lookup(&s->lookups, v) ||
        !(asked || bitset_has(&s->operands.loads, v->id) || bitset_has(&s->in_puts.loads, v->id)))
        return;
    const char *why = refusal_without_pad(s, load), *name = tir_ref_base(load)->name;
    if (why) {
        tir_receipt_refuse(s->cx, TIR_TOPIC_COPY, TIR_WISH_ASYNC, load->span,
                           "load of %s: not ahead of its iteration, because %s",
                           name ? name : "a tensor", why);
        return;
    }
    s->bytes += tir_slot_bytes(buffer_type(s, load)) * tir_crew_of(s->f, load).groups;
    s->feeds_puts |= s->on_warpgroups && is_for_put(s, load);
    vec_push(s->cx->scratch, &s->loads, load);
}

// Two stages, the operands that are computed from them, and what the loop needs beside. A role that
// computes operands ahead of their products needs a second slot for these, and runs ahead into the
// next tile.
static bool has_room(const struct stream *s)
{
    const int64_t slots = s->feeds_puts ? 2 : 1;
    struct tir_lives lives;
    tir_lives_find(&lives, s->f, s->cx->scratch, false);
    struct tir_life round = {.begin = lives.order.begin[s->loop->id],
                             .end = lives.order.end[s->loop->id],
                             .bytes = 2 * s->bytes + slots * s->operand_bytes +
                                      tir_loop_scratch(s->f, s->body),
                             .alignment = 16};
    if (s->on_warpgroups) {
        round.begin = 0;
        round.end = INT64_MAX;
    }
    vec_push(s->cx->scratch, &lives.buffers, round);
    return tir_lives_place(&lives) <= s->cx->target->shared_per_cta;
}

// Puts may stand before the load, so it comes first in the loop, with what its address follows
// from.
static void move_to_front(struct stream *s, struct tir_inst *load)
{
    struct bitset needed = bitset_new(s->cx->scratch, s->f->value_count);
    VEC(struct tir_inst *) found = {0}; // last to first
    bitset_insert(&needed, load->results[0]->id);
    for (struct tir_inst *inst = load; inst; inst = inst->prev) {
        bool is_needed = false;
        for (uint32_t i = 0; i < inst->result_count; i++)
            is_needed |= bitset_has(&needed, inst->results[i]->id);
        for (uint32_t i = 0; is_needed && i < inst->operand_count; i++)
            if (inst->operands[i])
                bitset_insert(&needed, inst->operands[i]->id);
        if (is_needed)
            vec_push(s->cx->scratch, &found, inst);
    }
    struct tir_inst *place = s->body->first;
    vec_foreach(struct tir_inst *, it, &found) {
        if (*it != place)
            tir_move_before(*it, place);
        place = *it;
    }
}

static void stream_load(struct stream *s, struct tir_inst *load)
{
    struct tir_func *f = s->f;
    tir_choose_pad(f, s->ranges, load);
    if (s->on_warpgroups && is_for_put(s, load))
        move_to_front(s, load);
    struct tir_value *x = load->results[0];
    struct tir_builder b = {f, load->block, load->next, load->span};
    struct tir_value *buffer = tir_build1(&b, TIR_OP_ALLOC, buffer_type(s, load), NULL, 0);
    const char *name = x->name ? x->name : tir_ref_base(load)->name;
    if (name)
        buffer->name =
            tir_intern(f->module->names, tir_str_format(s->cx->scratch, "%s_ahead", name));
    struct tir_value *y = tir_stage_through(&b, x, buffer);
    y->name = x->name;
    tir_replace_uses(f, x, y);
    struct tir_inst *store = buffer->def->next;
    store->operands[TIR_STORE_VALUE] = x;
    tir_receipt_add(s->cx, TIR_TOPIC_COPY, load->span,
                    "load of %s: through shared memory, ahead of its iteration",
                    tir_ref_base(load)->name ? tir_ref_base(load)->name : "a tensor");
}

static void stream_loop(struct stream *s)
{
    tir_runs_ahead_init(&s->ahead, s->cx->scratch, s->f, s->body);
    tir_lookups_init(&s->lookups, s->f, s->cx->scratch, s->loop);
    find_operands(s);
    const bool asked = tir_attr_int(s->loop, TIR_ATTR_stages, 0) > 1 && !s->multiplies;
    for (struct tir_inst *inst = s->body->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_LOAD && tir_type_is_tile(inst->results[0]->type))
            tir_lookups_add_operands(&s->lookups, inst);
    for (struct tir_inst *inst = s->body->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_LOAD)
            consider(s, inst, asked);
    if (s->loads.len && !has_room(s)) {
        tir_receipt_refuse(s->cx, TIR_TOPIC_LOOP, TIR_WISH_PIPELINE, s->loop->span,
                           "loop: its loads are not ahead, because shared memory has no room for "
                           "two stages of %lld bytes",
                           (long long)s->bytes);
        return;
    }
    vec_foreach(struct tir_inst *, it, &s->loads)
        stream_load(s, *it);
}

// Why nothing is copied ahead of what puts compute: groups of other copies would be counted with
// these. NULL: it can be.
static const char *refuse_puts(struct tir_func *f, const struct tir_pass_cx *cx,
                               const struct tir_ranges *ranges)
{
    tir_foreach_inst(inst, f) {
        if (inst->op == TIR_OP_COPY_ASYNC || inst->op == TIR_OP_COMMIT_GROUP ||
            inst->op == TIR_OP_WAIT_GROUP)
            return "the program has asynchronous copies of its own";
        for (uint32_t i = TIR_DOT_A; tir_dot_on_warpgroups(inst) && i <= TIR_DOT_B; i++) {
            bool turned;
            struct tir_value *v = tir_brought(tir_unturned(inst->operands[i], &turned));
            struct tir_copied copied;
            const char *why;
            if (tir_copied_of(v, &copied) &&
                (copied.where || tir_tma_refusal(f, cx->target, ranges, copied.slice)) &&
                tir_tile_copy_width(f, cx->target, ranges, v, &why))
                return "cp.async fills slots with another operand";
        }
    }
    return NULL;
}

void tir_stream_loads(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) loops = {0};
    bool says_itself = false; // what runs ahead, but for loops of scopes
    tir_foreach_inst(inst, f) {
        says_itself |= inst->op == TIR_OP_ROLE || inst->op == TIR_OP_SCOPE ||
                       inst->op == TIR_OP_RING || inst->op == TIR_OP_GEMM_ASYNC;
        if (inst->op == TIR_OP_FOR && tir_attr_int(inst, TIR_ATTR_stages, 0) != 1)
            vec_push(cx->scratch, &loops, inst);
    }
    struct tir_ranges *ranges = loops.len ? tir_ranges_new(cx->scratch, f) : NULL;
    const bool on_warpgroups = loops.len && tir_has_warpgroup_dot(f);
    const char *no_puts = on_warpgroups ? refuse_puts(f, cx, ranges) : NULL;
    vec_foreach(struct tir_inst *, it, &loops) {
        if (says_itself && !tir_crew_of(f, *it).scope)
            continue;
        struct stream s = {.f = f,
                           .cx = cx,
                           .ranges = ranges,
                           .loop = *it,
                           .body = (*it)->regions[0],
                           .on_warpgroups = on_warpgroups,
                           .no_puts = no_puts};
        stream_loop(&s);
    }
}
