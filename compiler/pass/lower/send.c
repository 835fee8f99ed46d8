// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, copies of shared memory to another CTA of the cluster.
//
// The engine moves bytes that lie together, here and there. So both buffers are cut into pieces of
// 16 bytes along a row, and pieces that follow each other in both places go together: two buffers
// of one layout are one copy. A swizzle permutes the pieces within a row of its atom, as the
// address says, so whole rows go to where it says the same.

#include "ir/range.h"
#include "machine/budget.h"
#include "pass/lower/lower.h"
#include "pass/sync/shared.h"

enum { PIECE = 16 }; // bytes: what the engine moves at least

struct send {
    struct lower *lo;
    const struct tir_inst *inst;
    struct lower_part to, from;
    struct tir_value *to_at, *from_at; // bytes where the parts start
    int64_t *pieces;                   // of the part there, by number: 1 + its byte here; 0: none
    int64_t count;
};

static bool refuse(struct send *s, const char *why)
{
    tir_error_at(s->lo->cx->diags, s->inst->span, TIR_E_UNSUPPORTED,
                 "no such copy to shared memory of another CTA: %s", why);
    s->lo->failed = true;
    return false;
}

// The slice that is copied, as a part of its alloc.
static struct lower_part part_of_slice(struct lower *lo, const struct tir_inst *inst)
{
    struct tir_type t = *inst->operands[TIR_COPY_TO]->type;
    t.space = TIR_SPACE_SHARED;
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    struct tir_value *view = tir_build1(&lo->b, TIR_OP_VIEW, tir_type_get(lo->types, &t),
                                        inst->operands + TIR_COPY_FIXED, 1 + box->list_count);
    tir_set_list(lo->f, view->def, TIR_ATTR_box, box->list, box->list_count);
    struct lower_part part = tir_lower_part_of(lo, view);
    tir_remove(view->def);
    return part;
}

static bool next_piece(const struct tir_type *t, int64_t elements, int64_t at[TIR_MAX_RANK])
{
    for (uint32_t d = t->rank; d-- > 0;) {
        at[d] += d + 1 == t->rank ? elements : 1;
        if (at[d] < t->shape[d])
            return true;
        at[d] = 0;
    }
    return false;
}

// Where the piece at `at` lies; negative: its bytes do not lie together.
static int64_t piece_of(const struct lower_part *part, const int64_t at[TIR_MAX_RANK],
                        uint32_t inner, int64_t elements)
{
    int64_t end[TIR_MAX_RANK], first = tir_lower_part_byte(part, at);
    memcpy(end, at, sizeof(end));
    for (int64_t i = 1; i < elements; i++) {
        end[inner] = at[inner] + i;
        if (tir_lower_part_byte(part, end) != first + i * part->bits / 8)
            return -1;
    }
    return first % PIECE ? -1 : first;
}

static bool find_pieces(struct send *s)
{
    const struct tir_type *t = s->inst->operands[TIR_COPY_TO]->type;
    int64_t elements = PIECE * 8 / tir_elems[t->elem].bits, at[TIR_MAX_RANK] = {0};
    if (!t->rank || t->shape[t->rank - 1] % elements)
        return refuse(s, "its rows are no multiple of 16 bytes");
    s->count = tir_buffer_bytes(s->to.base->type) / PIECE + 1;
    s->pieces = arena_array(s->lo->cx->scratch, int64_t, (size_t)s->count);
    do {
        int64_t to = piece_of(&s->to, at, t->rank - 1, elements);
        int64_t from = piece_of(&s->from, at, t->rank - 1, elements);
        if (to < 0 || from < 0 || to / PIECE >= s->count)
            return refuse(s, "its rows do not lie together in pieces of 16 bytes");
        s->pieces[to / PIECE] = from + 1;
    } while (next_piece(t, elements, at));
    return true;
}

// Pieces from `first` on that follow each other here as they do there.
static int64_t run_at(const struct send *s, int64_t first)
{
    int64_t n = 0;
    while (first + n < s->count && s->pieces[first + n] &&
           s->pieces[first + n] == s->pieces[first] + n * PIECE)
        n++;
    return n;
}

static bool check(struct send *s)
{
    int64_t swizzle = s->to.memory->swizzle, atom = swizzle ? 8 * swizzle : PIECE, runs = 0;
    if (!tir_lower_part_adds(&s->to) || !tir_lower_part_adds(&s->from))
        return refuse(s, "a part of a buffer begins inside of what lies together");
    if (swizzle != s->from.memory->swizzle)
        return refuse(s, "the buffers are swizzled differently");
    if (tir_lower_part_divisor(&s->to) % (uint64_t)atom ||
        tir_lower_part_divisor(&s->from) % (uint64_t)atom)
        return refuse(s, swizzle ? "a part does not begin with the pattern of its swizzle"
                                 : "a part begins at no multiple of 16 bytes");
    if (!find_pieces(s))
        return false;
    for (int64_t first = 0, n; first < s->count; first += n ? n : 1) {
        n = run_at(s, first);
        runs += n > 0;
        int64_t moved = n ? s->pieces[first] - 1 - first * PIECE : 0;
        if (n && swizzle && (first * PIECE % swizzle || n * PIECE % swizzle || moved % atom))
            return refuse(s, "its rows are swizzled, and not copied to where they lie alike");
    }
    if (runs > TIR_BUDGET_TILE_COPIES)
        return refuse(s, "its layouts take more than 64 copies");
    return true;
}

static struct tir_value *byte(struct lower *lo, struct tir_value *start, int64_t offset)
{
    struct tir_value *at = tir_lower_add(lo, &lo->b, start, tir_lower_i32(lo, offset));
    return at ? at : tir_lower_i32(lo, 0);
}

void tir_lower_send(struct lower *lo, struct tir_inst *inst)
{
    struct send s = {.lo = lo, .inst = inst};
    if (!(lo->cx->target->features & TIR_HAS_TMA)) {
        refuse(&s, "the target has no bulk copies");
        tir_lower_note_target(lo, TIR_HAS_TMA);
        return;
    }
    s.to = tir_lower_part_of(lo, inst->operands[TIR_COPY_TO]);
    s.from = part_of_slice(lo, inst);
    if (!check(&s))
        return;
    s.to_at = tir_lower_part_start(lo, &s.to);
    s.from_at = tir_lower_part_start(lo, &s.from);
    struct lower_part bar = tir_lower_part_of(lo, inst->operands[TIR_COPY_MBAR]);
    struct tir_value *bar_at = byte(lo, tir_lower_part_start(lo, &bar), 0);
    struct tir_value *cta = s.to.base->def->operands[1]; // of the remote
    for (int64_t first = 0, n; first < s.count; first += n ? n : 1) {
        n = run_at(&s, first);
        if (!n)
            continue;
        struct tir_value *operands[] = {s.to.base,
                                        byte(lo, s.to_at, first * PIECE),
                                        bar.base,
                                        bar_at,
                                        s.from.base,
                                        byte(lo, s.from_at, s.pieces[first] - 1),
                                        tir_lower_i32(lo, n * PIECE),
                                        cta};
        tir_build(&lo->b, TIR_OP_BULK_SEND, operands, TIR_COUNT_OF(operands), NULL, 0, 0);
    }
}

void tir_lower_push(struct lower *lo, struct tir_inst *inst)
{
    struct lower_walk *walk = tir_lower_walk_slice(lo, inst, NULL);
    struct lower_place place = tir_lower_walk_at(lo, walk, 0);
    struct lower_part bar = tir_lower_part_of(lo, inst->operands[TIR_PUSH_MBAR]);
    struct tir_value *bar_at = byte(lo, tir_lower_part_start(lo, &bar), 0);
    struct tir_value *operands[] = {place.base,
                                    place.at,
                                    bar.base,
                                    bar_at,
                                    inst->operands[TIR_STORE_VALUE],
                                    place.base->def->operands[1],
                                    place.pred};
    struct tir_inst *st =
        tir_build(&lo->b, TIR_OP_ST_ASYNC, operands, TIR_COUNT_OF(operands), NULL, 0, 0);
    if (place.offset)
        tir_set_int(lo->f, st, TIR_ATTR_offset, place.offset);
}
