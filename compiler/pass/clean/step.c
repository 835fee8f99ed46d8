// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps of carried integers: from what a round yields back to what it began with.
//
//     let k_2: i64 = add(k, 32);
//     let k_3: i64 = if c { let a: i64 = add(k_2, 32); yield a; }          // both add 32
//                    else { let b: i64 = sub(k_2, -32); yield b; }
//     yield k_3;                                                          // k steps by 64
//
// Integers wrap, so the sum of the parts is right whatever happens between them.
#include "pass/clean/step.h"

bool tir_is_invariant(const struct tir_inst *loop, const struct tir_value *v)
{
    return v->kind == TIR_VALUE_CONST || !tir_is_made_in(loop, v);
}

// Adds a part, which may be 0, to the sum. False: there is more than a value from outside.
static bool add_part(struct tir_step *sum, struct tir_step part)
{
    if (sum->by)
        return !part.by && !part.number;
    if (part.by) {
        const bool is_first = !sum->number;
        *sum = part;
        return is_first;
    }
    return tir_add_checked(sum->number, part.number, &sum->number);
}

// What an addition or subtraction of v adds. False: its number has no opposite.
static bool part_of(struct tir_value *v, bool is_sub, struct tir_step *part)
{
    int64_t n;
    *part = (struct tir_step){v, is_sub, 0};
    if (!tir_is_const_int(v, &n))
        return true;
    *part = (struct tir_step){.number = n};
    return !is_sub || tir_sub_checked(0, n, &part->number);
}

static struct tir_value *began_as(const struct tir_inst *loop, const struct tir_inst *within,
                                  struct tir_value *v, struct tir_step *step);

// The value in front of a branch whose ways add the same to it. NULL: they do not.
static struct tir_value *before_branch(const struct tir_inst *loop, const struct tir_value *result,
                                       struct tir_step *step)
{
    struct tir_value *from[2];
    struct tir_step way[2] = {{0}, {0}};
    for (uint32_t r = 0; r < 2; r++) {
        struct tir_inst *yield = tir_yield_of(result->def->regions[r]);
        from[r] = began_as(loop, result->def, yield->operands[result->index], &way[r]);
    }
    const bool agree = from[0] && from[0] == from[1] && way[0].by == way[1].by &&
                       way[0].is_sub == way[1].is_sub && way[0].number == way[1].number;
    return agree && add_part(step, way[0]) ? from[0] : NULL;
}

// What v was before additions in `within`, which step sums up. NULL: there is no one step.
static struct tir_value *began_as(const struct tir_inst *loop, const struct tir_inst *within,
                                  struct tir_value *v, struct tir_step *step)
{
    while (v && v->def && tir_is_inside(v->def, within)) {
        struct tir_value *const *at = v->def->operands;
        if (v->def->op == TIR_OP_IF) {
            v = before_branch(loop, v, step);
        } else if (v->def->op == TIR_OP_ADD || v->def->op == TIR_OP_SUB) {
            const bool is_sub = v->def->op == TIR_OP_SUB;
            const bool turned = !is_sub && tir_is_invariant(loop, at[0]);
            struct tir_step part;
            if (!tir_is_invariant(loop, at[!turned]) || !part_of(at[!turned], is_sub, &part) ||
                !add_part(step, part))
                return NULL;
            v = at[turned];
        } else {
            return NULL;
        }
    }
    return v;
}

bool tir_step_of(const struct tir_inst *loop, uint32_t slot, struct tir_step *out)
{
    struct tir_block *body = loop->regions[loop->region_count - 1];
    struct tir_value *arg = body->args[slot + (loop->op == TIR_OP_FOR)];
    *out = (struct tir_step){0};
    return tir_type_is_scalar(arg->type) && tir_elem_is_int(arg->type->elem) &&
           began_as(loop, loop, tir_yield_of(body)->operands[slot], out) == arg &&
           (out->by || out->number);
}
