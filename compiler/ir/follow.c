// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walks from values to what they follow from.

#include "ir/follow.h"

static char yes, no; // what the map of answers points to

void tir_follow_init(struct tir_follow *follow, struct tir_arena *arena,
                     enum tir_answer (*ask)(void *user, struct tir_value *v), void *user)
{
    *follow = (struct tir_follow){.arena = arena, .ask = ask, .user = user};
    tir_map_init(&follow->answers, arena);
}

struct open { // a value whose operands are being asked about
    struct tir_value *v;
    uint32_t next; // operand
};

typedef VEC(struct open) open_list;

static void answer(struct tir_follow *follow, const struct tir_value *v, bool is_yes)
{
    tir_map_set(&follow->answers, tir_map_key(v), is_yes ? &yes : &no);
}

// Asks about v, unless that was done. Gives what is known of it; NULL: its operands decide.
static const void *visit(struct tir_follow *follow, open_list *open, struct tir_value *v)
{
    const void *known = v ? tir_map_get(&follow->answers, tir_map_key(v)) : &yes;
    if (known)
        return known;
    enum tir_answer a = follow->ask(follow->user, v);
    if (a == TIR_IF_OPERANDS) {
        vec_push(follow->arena, open, ((struct open){v, 0}));
        return NULL;
    }
    answer(follow, v, a == TIR_YES);
    return a == TIR_YES ? &yes : &no;
}

bool tir_follows(struct tir_follow *follow, struct tir_value *v)
{
    open_list open = {0};
    const void *known = visit(follow, &open, v);
    while (open.len) {
        struct open *top = &vec_last(&open);
        if (known == &no) { // so it is for all that follow from it
            answer(follow, top->v, false);
            open.len--;
        } else if (top->next < top->v->def->operand_count) {
            known = visit(follow, &open, top->v->def->operands[top->next++]);
        } else {
            if (follow->then)
                follow->then(follow->user, top->v);
            answer(follow, top->v, true);
            known = &yes;
            open.len--;
        }
    }
    return known == &yes;
}

// The value that stands for all that v is taken to be the same as.
static struct tir_value *class_of(const struct tir_map *joined, struct tir_value *v)
{
    struct tir_value *other;
    while (v && (other = tir_map_get(joined, tir_map_key(v))))
        v = other;
    return v;
}

static bool same_operation(const struct tir_value *a, const struct tir_value *b)
{
    return a && b && a->def && b->def && a->def->op == b->def->op && a->type == b->type &&
           a->index == b->index && a->def->operand_count == b->def->operand_count &&
           !a->def->attr_count && !b->def->attr_count && !a->def->region_count &&
           tir_has_trait(a->def, TIR_PURE);
}

// A pair of values with the same operation is taken to be the same, and their operands are pairs to
// be compared. What was taken to be the same is one class and not compared again, so there are
// fewer steps than values.
bool tir_same_value(struct tir_arena *scratch, struct tir_value *a, struct tir_value *b)
{
    if (a == b)
        return true;
    if (!same_operation(a, b))
        return false;
    struct tir_map joined;
    VEC(struct tir_value *) pairs = {0};
    tir_map_init(&joined, scratch);
    vec_push(scratch, &pairs, a);
    vec_push(scratch, &pairs, b);
    while (pairs.len) {
        b = class_of(&joined, vec_pop(&pairs));
        a = class_of(&joined, vec_pop(&pairs));
        if (a == b)
            continue;
        if (!same_operation(a, b))
            return false;
        tir_map_set(&joined, tir_map_key(a), b);
        for (uint32_t i = 0; i < a->def->operand_count; i++) {
            vec_push(scratch, &pairs, a->def->operands[i]);
            vec_push(scratch, &pairs, b->def->operands[i]);
        }
    }
    return true;
}

// Sizes of expressions, by value; what is not there is one value.
static uint64_t size_of(const struct tir_map *sizes, const struct tir_value *v)
{
    const void *size = v ? tir_map_get(sizes, tir_map_key(v)) : NULL;
    return size ? (uint64_t)(uintptr_t)size : 1;
}

static enum tir_answer ask_for_size(void *user, struct tir_value *v)
{
    (void)user;
    return v->def && v->def->operand_count ? TIR_IF_OPERANDS : TIR_YES;
}

static void add_sizes(void *user, struct tir_value *v)
{
    struct tir_map *sizes = user;
    uint64_t size = v->def->op != TIR_OP_CAST;
    for (uint32_t i = 0; i < v->def->operand_count; i++)
        size += size_of(sizes, v->def->operands[i]);
    tir_map_set(sizes, tir_map_key(v), (void *)(uintptr_t)TIR_MIN(size, UINT32_MAX));
}

uint32_t tir_expression_size(struct tir_arena *scratch, struct tir_value *v)
{
    struct tir_map sizes;
    struct tir_follow follow;
    tir_map_init(&sizes, scratch);
    tir_follow_init(&follow, scratch, ask_for_size, &sizes);
    follow.then = add_sizes;
    tir_follows(&follow, v);
    return (uint32_t)size_of(&sizes, v);
}
