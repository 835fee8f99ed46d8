// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The check of a schedule's certificate finds each kind of damage. A loop of attention is compiled
// up to the pass schedule; each test changes one claim, or the loop.

#include "unit.h"

#include "front/front.h"
#include "ir/context.h"
#include "ir/walk.h"
#include "machine/target.h"
#include "pass/pass.h"
#include "pass/receipt.h"

// The second product runs a round later than the first.
static const char source[] =
    "kernel k(Q: bf16[M, 64], K: bf16[T, 64], V: bf16[T, 64], O: out bf16[M, 64])"
    " facts(index32, vector16, unit_inner)\n"
    "{\n"
    "    for m in tiles(M by 128) {\n"
    "        let q = Q[m:+128, :];\n"
    "        var top: f32[128, 1] = -1e30;\n"
    "        var o: f32[128, 64] = 0;\n"
    "        for t in range(0, T, 128, stages = 2) {\n"
    "            let s = dot(q, K[t:+128, :].T);\n"
    "            let n = max(top, rowmax(s));\n"
    "            o = o * exp2(top - n) + dot(bf16(exp2(s - n)), V[t:+128, :]);\n"
    "            top = n;\n"
    "        }\n"
    "        O[m:+128, :] = bf16(o);\n"
    "    }\n"
    "}\n";

struct rig {
    struct tir_context cx;
    struct tir_receipt receipt;
    struct tir_certificate *claim;
    struct tir_needs needs; // of the source
    struct tir_inst *loop;
};

static const char *check(struct rig *rig)
{
    return tir_certificate_check(rig->claim, &rig->needs, rig->loop, &rig->cx.scratch);
}

// The claim is damaged: that is found, with this message if it is not NULL.
static void is_found(struct rig *rig, const char *message)
{
    const char *found = check(rig);
    if (!found)
        fail_msg("the damage is not found%s%s", message ? ": " : "", message ? message : "");
    if (message)
        assert_string_equal(found, message);
}

static void start(struct rig *rig)
{
    struct tir_front_options front = {0};
    struct tir_pass_options options = {.stop_after = STR("cluster"), .bisect = -1};
    struct tir_module *m = NULL;
    memset(rig, 0, sizeof(*rig));
    tir_context_init(&rig->cx, NULL);
    assert_true(tir_front_module(&rig->cx, STR("k.tir"), tir_str_of(source), &front, &m));
    struct tir_func *f = m->funcs.at[0];
    struct tir_receipt_part part = {.kernel = f->name, .entry = f->name};
    rig->receipt.arena = &rig->cx.arena;
    vec_push(rig->receipt.arena, &rig->receipt.parts, part);
    struct tir_pass_cx cx = {.scratch = &rig->cx.scratch,
                             .diags = &rig->cx.diags,
                             .target = tir_target_find(STR("sm_90a")),
                             .receipt = &rig->receipt};
    if (!tir_run_passes(f, &cx, &options)) {
        struct tir_text why;
        tir_text_init(&why, &rig->cx.arena, 0);
        tir_diags_render(&rig->cx.diags, TIR_DIAG_TEXT, &why);
        fail_msg("%s", why.ptr);
    }
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR && tir_certificate_needs(inst, &rig->cx.arena).list.len)
            rig->needs = tir_certificate_needs(inst, &rig->cx.arena);
    assert_int_equal(tir_run_pass(f, &cx, tir_pass_by_name(STR("schedule"))), TIR_CHANGED);
    assert_int_equal(rig->receipt.parts.at[0].schedules.len, 1);
    rig->claim = &rig->receipt.parts.at[0].schedules.at[0];
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR && tir_certificate_needs(inst, &rig->cx.arena).list.len)
            rig->loop = inst;
    assert_non_null(rig->loop);
    assert_null(check(rig));
    assert_int_equal(rig->claim->stages, 2);
    assert_int_equal(rig->claim->groups, 2);
}

static void operations(void **state)
{
    struct rig rig;
    (void)state;
    start(&rig);
    vec_foreach(struct tir_claim_op, op, &rig.claim->ops) {
        const struct tir_claim_op kept = *op;
        op->op = TIR_OP_LOG;
        is_found(&rig, "the loop has other operations");
        *op = kept;
        op->is_product = !kept.is_product;
        is_found(&rig, "other operations are products");
        *op = kept;
        op->stage = 2;
        is_found(&rig, "an operation has no such stage");
        *op = kept;
    }
    rig.claim->ops.len--;
    is_found(&rig, "the loop has other operations");
    tir_context_finish(&rig.cx);
}

// Every dependence, of each kind.
static void dependences(void **state)
{
    struct rig rig;
    uint32_t kinds[TIR_NEED_COUNT] = {0};
    (void)state;
    start(&rig);
    vec_foreach(struct tir_claim_need, need, &rig.claim->needs.list) {
        const struct tir_claim_need kept = *need;
        kinds[kept.kind]++;
        need->slack++;
        is_found(&rig, "a dependence has another slack");
        *need = kept;
        need->rounds++;
        is_found(&rig, "the loop has other dependences");
        *need = kept;
        *need = rig.claim->needs.list.at[need == rig.claim->needs.list.at]; // one of them twice
        is_found(&rig, "the loop has other dependences");
        *need = kept;
        need->kind = (kept.kind + 1) % TIR_NEED_COUNT;
        is_found(&rig, "the loop has other dependences");
        *need =
            rig.claim->needs.list.at[rig.claim->needs.list.len - 1]; // as if it were not claimed
        rig.claim->needs.list.len--;
        is_found(&rig, "the loop has other dependences");
        rig.claim->needs.list.len++;
        *need = kept;
    }
    assert_true(kinds[TIR_NEED_VALUE] && kinds[TIR_NEED_SUM] && kinds[TIR_NEED_QUEUE]);
    tir_context_finish(&rig.cx);
}

// Stages and places of the source that are not those of the program.
static void stages(void **state)
{
    static const char message[] = "operations depend on others than in the source";
    struct rig rig;
    (void)state;
    start(&rig);
    vec_foreach(struct tir_claim_op, op, &rig.claim->ops) {
        op->stage ^= 1;
        is_found(&rig, message);
        op->stage ^= 1;
        op->source++;
        is_found(&rig, message);
        op->source--;
    }
    tir_context_finish(&rig.cx);
}

static void times(void **state)
{
    struct rig rig;
    (void)state;
    start(&rig);
    const uint32_t count = TIR_CERTIFICATE_ROUNDS * rig.claim->groups * rig.claim->ops.len;
    for (uint32_t i = 0; i < count; i++) {
        struct tir_run *run = &rig.claim->runs[i];
        int64_t *const fields[] = {&run->from, &run->start, &run->end, &run->next, &run->ready};
        for (uint32_t k = 0; k < TIR_COUNT_OF(fields); k++) {
            ++*fields[k];
            is_found(&rig, NULL);
            --*fields[k];
        }
    }
    rig.claim->cycles++;
    is_found(&rig, "a round takes another time");
    tir_context_finish(&rig.cx);
}

// Both warpgroups in step: each alone is right, together they have the engines at one time.
static void engines(void **state)
{
    struct rig rig;
    (void)state;
    start(&rig);
    const uint32_t rounds = TIR_CERTIFICATE_ROUNDS, ops = rig.claim->ops.len;
    for (uint32_t round = 0; round < rounds; round++)
        memcpy(tir_certificate_run(rig.claim, round, 1, 0),
               tir_certificate_run(rig.claim, round, 0, 0), ops * sizeof(struct tir_run));
    vec_foreach(struct tir_claim_need, need, &rig.claim->needs.list)
        while (check(&rig) && !strcmp(check(&rig), "a dependence has another slack") &&
               need->slack < 100000)
            need->slack++; // what the first warpgroup alone has
    is_found(&rig, "two warpgroups have one unit at a time");
    tir_context_finish(&rig.cx);
}

static void registers(void **state)
{
    struct rig rig;
    (void)state;
    start(&rig);
    rig.claim->words++;
    is_found(&rig, "tiles take another number of registers");
    rig.claim->words--;
    rig.claim->fullest++;
    is_found(&rig, "tiles take another number of registers");
    rig.claim->fullest--;
    rig.claim->registers = rig.claim->words - 1;
    is_found(&rig, "tiles do not fit the registers");
    rig.claim->registers++;
    assert_null(check(&rig));
    vec_foreach(struct tir_claim_op, op, &rig.claim->ops) {
        op->words++;
        is_found(&rig, NULL);
        op->words--;
    }
    tir_context_finish(&rig.cx);
}

static void shared_memory(void **state)
{
    struct rig rig;
    int64_t bytes = 0;
    (void)state;
    start(&rig);
    assert_int_equal(rig.claim->rings.len, 2);
    vec_foreach(struct tir_claim_ring, ring, &rig.claim->rings) {
        bytes += ring->bytes;
        ring->bytes--;
        is_found(&rig, "a ring takes other shared memory");
        ring->bytes++;
        ring->slots++;
        is_found(&rig, "a ring takes other shared memory");
        ring->slots--;
        ring->held++;
        is_found(&rig, "a ring's slots are read for another time");
        ring->held--;
        ring->slack++;
        is_found(&rig, "a ring's slots are read for another time");
        ring->slack--;
    }
    rig.claim->shared = bytes;
    assert_null(check(&rig));
    rig.claim->shared--;
    is_found(&rig, "rings do not fit the shared memory");
    rig.claim->shared++;
    rig.claim->rings.len--;
    is_found(&rig, "the loop has other rings");
    tir_context_finish(&rig.cx);
}

// The loop that differs from what is claimed: two products that changed places.
static void another_loop(void **state)
{
    struct rig rig;
    struct tir_inst *gets[2] = {NULL, NULL};
    uint32_t count = 0;
    (void)state;
    start(&rig);
    for (struct tir_inst *inst = rig.loop->regions[0]->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_GET && count < 2)
            gets[count++] = inst;
    assert_int_equal(count, 2);
    tir_move_before(gets[1], gets[0]);
    is_found(&rig, NULL);
    tir_context_finish(&rig.cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations),    cmocka_unit_test(dependences),
        cmocka_unit_test(stages),        cmocka_unit_test(times),
        cmocka_unit_test(engines),       cmocka_unit_test(registers),
        cmocka_unit_test(shared_memory), cmocka_unit_test(another_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
