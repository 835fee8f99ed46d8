// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products on warpgroups.
//
// LLVM has no intrinsic for them, so one operation becomes one piece of inline PTX with all its
// steps, whose descriptors are stepped on inside. The accumulators go in and out of it in the same
// registers ("0", "1", ... tie inputs to outputs), and through the loop as phis, so no instruction
// moves them. `await` ties them through the wait in the same way: LLVM orders nothing else after
// it. A in registers is an input of the wait, too.
//
// Where their sums lie says wgmma_sums.h.
//
// A product that adds to the sums of the one before it, with nothing but arithmetic between them,
// is one piece of inline PTX with it. To LLVM each of its operands costs more than an addition.

#include "ir/effect.h"
#include "ir/walk.h"
#include "machine/product.h"
#include "target/nvptx/wgmma_sums.h"

#include <inttypes.h>

enum tail { // what follows the scale
    TAIL_NONE,
    TAIL_SIGNS,  // signs of A and B
    TAIL_TURNED, // and which of them are transposed
};
struct wgmma_row {
    enum tir_word kind;
    enum tail tail;
    const char *elem;
};
static const struct wgmma_row rows[] = {
    {TIR_WORD_kind_f16, TAIL_TURNED, "f16"},  {TIR_WORD_kind_bf16, TAIL_TURNED, "bf16"},
    {TIR_WORD_kind_tf32, TAIL_SIGNS, "tf32"}, {TIR_WORD_kind_e4m3, TAIL_SIGNS, "e4m3"},
    {TIR_WORD_kind_e5m2, TAIL_SIGNS, "e5m2"}, {TIR_WORD_kind_i8, TAIL_NONE, "s8"},
    {TIR_WORD_kind_u8, TAIL_NONE, "u8"},
};

// B's elements in PTX.
static const char *elem_of_b(const struct tir_inst *inst, const struct wgmma_row *row)
{
    switch (tir_attr_word(inst, TIR_ATTR_b_kind, TIR_WORD_NONE)) {
    case TIR_WORD_b_kind_e4m3:
        return "e4m3";
    case TIR_WORD_b_kind_e5m2:
        return "e5m2";
    case TIR_WORD_b_kind_i8:
        return "s8";
    case TIR_WORD_b_kind_u8:
        return "u8";
    default:
        return row->elem;
    }
}

static const struct wgmma_row *row_of(const struct tir_inst *inst)
{
    enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
    for (uint32_t i = 0; i < TIR_COUNT_OF(rows); i++)
        if (rows[i].kind == kind)
            return &rows[i];
    return NULL;
}

// Whether an operation is one of the instructions there are; check.c has seen to types and counts.
const char *tir_wgmma_wrong(const struct tir_inst *inst)
{
    const struct wgmma_row *row = row_of(inst);
    int64_t cols = tir_attr_int(inst, TIR_ATTR_cols, 0),
            steps = tir_attr_int(inst, TIR_ATTR_steps, 0);
    bool integer = row && row->tail == TAIL_NONE;
    const struct tir_product *product =
        row ? tir_product_of_kind(TIR_ENGINE_WGMMA, row->kind) : NULL;
    if (!product || tir_attr_int(inst, TIR_ATTR_depth, 0) != product->depth)
        return "no instruction has this kind and depth";
    if (!tir_kind_takes(row->kind, tir_attr_word(inst, TIR_ATTR_b_kind, TIR_WORD_NONE)))
        return "only elements of fp8 and bytes multiply others";
    if (cols < TIR_WGMMA_COLUMNS || cols > TIR_WGMMA_MOST_COLUMNS || cols % TIR_WGMMA_COLUMNS ||
        (integer && cols > 24 && cols % 16))
        return "no instruction has as many columns";
    if (steps < 1 || steps > TIR_WGMMA_STEPS)
        return "it takes 1 to 16 steps";
    int64_t a_step = tir_attr_int(inst, TIR_ATTR_a_step, 0);
    int64_t b_step = tir_attr_int(inst, TIR_ATTR_b_step, 0);
    int64_t a_at = tir_attr_int(inst, TIR_ATTR_a_at, 0);
    int64_t b_at = tir_attr_int(inst, TIR_ATTR_b_at, 0);
    if (a_step < 0 || a_step > TIR_DESCRIPTOR_ADDRESS || b_step < 0 ||
        b_step > TIR_DESCRIPTOR_ADDRESS || a_at < 0 || a_at > TIR_DESCRIPTOR_ADDRESS || b_at < 0 ||
        b_at > TIR_DESCRIPTOR_ADDRESS)
        return "a step stays within shared memory";
    if (row->tail != TAIL_TURNED &&
        (tir_attr_int(inst, TIR_ATTR_a_trans, 0) || tir_attr_int(inst, TIR_ATTR_b_trans, 0)))
        return "only elements of 16 bits can be transposed";
    if (!inst->operands[TIR_WGMMA_A] && tir_attr_int(inst, TIR_ATTR_a_trans, 0))
        return "A in registers cannot be transposed";
    return NULL;
}

struct numbers { // of asm operands: the first register of A, the descriptors, the scale
    uint32_t a, b_desc, a_desc, scale, end;
};

static void list_registers(struct tir_text *text, uint32_t first, uint32_t count)
{
    tir_text_add(text, STR("{"));
    for (uint32_t i = 0; i < count; i++)
        tir_text_format(text, "%s$%" PRIu32, i ? "," : "", first + i);
    tir_text_add(text, STR("}"));
}

static void list_sums(const struct emit *e, struct tir_text *text, struct tir_value *const *sums,
                      uint32_t count)
{
    tir_text_add(text, STR("{"));
    for (uint32_t i = 0; i < count; i++) {
        tir_text_add(text, i ? STR(",") : STR(""));
        tir_emit_add_sum(e, text, sums[i]);
    }
    tir_text_add(text, STR("}"));
}

// The scale of a step as an operand, or NULL: it is operand number p->scale.
static const char *scale_text(const struct tir_wgmma *p, uint32_t step)
{
    int known = step ? 1 : tir_emit_known(p->inst->operands[TIR_WGMMA_SCALE]);
    if (known >= 0)
        return known ? "1" : "0";
    return NULL;
}

// The operands of a product that come behind so many others.
static struct numbers number(const struct tir_wgmma *p, uint32_t first)
{
    struct numbers n = {.a = first, .b_desc = first + p->a_count};
    n.a_desc = n.b_desc + 1;
    n.scale = n.a_desc + !p->a_count;
    n.end = n.scale + !scale_text(p, 0);
    return n;
}

// A descriptor in a step: the operand as it is, or under this name what is added to it as well.
struct moved {
    const char *name;
    uint32_t operand;
    bool moves;
    int64_t by;
};

static struct moved moved(const struct tir_wgmma *p, const char *name, uint32_t operand,
                          enum tir_attr_key at, enum tir_attr_key each, uint32_t step)
{
    const int64_t first = tir_attr_int(p->inst, at, 0);
    return (struct moved){.name = name,
                          .operand = operand,
                          .moves = step || first,
                          .by = first + tir_attr_int(p->inst, each, 0) * step};
}

static void move_descriptor(struct tir_text *text, const struct moved *m)
{
    if (m->moves)
        tir_text_format(text, "add.s64 %s, $%" PRIu32 ", %" PRId64 "; ", m->name, m->operand,
                        m->by);
}

static void add_descriptor(struct tir_text *text, const struct moved *m)
{
    if (m->moves)
        tir_text_format(text, "%s", m->name);
    else
        tir_text_format(text, "$%" PRIu32, m->operand);
}

// The type of the accumulators in PTX.
static const char *sum_of(const struct tir_wgmma *p)
{
    if (row_of(p->inst)->tail == TAIL_NONE)
        return "s32";
    return 4 * p->sums == (uint32_t)tir_attr_int(p->inst, TIR_ATTR_cols, 0) ? "f16" : "f32";
}

// sums: the list of the accumulators.
static void add_step(struct tir_text *text, const struct tir_wgmma *p, const struct numbers *n,
                     tir_str sums, uint32_t step)
{
    const struct wgmma_row *row = row_of(p->inst);
    const struct moved a = moved(p, "a", n->a_desc, TIR_ATTR_a_at, TIR_ATTR_a_step, step);
    const struct moved b = moved(p, "b", n->b_desc, TIR_ATTR_b_at, TIR_ATTR_b_step, step);
    if (!p->a_count)
        move_descriptor(text, &a);
    move_descriptor(text, &b);
    tir_text_format(text, "wgmma.mma_async.sync.aligned.m64n%" PRId64 "k%" PRId64 ".%s.%s.%s ",
                    tir_attr_int(p->inst, TIR_ATTR_cols, 0),
                    tir_attr_int(p->inst, TIR_ATTR_depth, 0), sum_of(p), row->elem,
                    elem_of_b(p->inst, row));
    tir_text_add(text, sums);
    tir_text_add(text, STR(", "));
    if (p->a_count)
        list_registers(text, n->a + 4 * step, 4);
    else
        add_descriptor(text, &a);
    tir_text_add(text, STR(", "));
    add_descriptor(text, &b);
    const char *scale = scale_text(p, step);
    if (scale)
        tir_text_format(text, ", %s", scale);
    else
        tir_text_format(text, ", $%" PRIu32, n->scale);
    if (row->tail != TAIL_NONE)
        tir_text_add(text, STR(", 1, 1"));
    if (row->tail == TAIL_TURNED && !p->a_count)
        tir_text_format(text, ", %" PRId64, tir_attr_int(p->inst, TIR_ATTR_a_trans, 0));
    if (row->tail == TAIL_TURNED)
        tir_text_format(text, ", %" PRId64, tir_attr_int(p->inst, TIR_ATTR_b_trans, 0));
    tir_text_add(text, STR("; "));
}

// Starts constraints and types with `count` outputs of these values.
static LLVMTypeRef add_outputs(struct emit *e, struct tir_text *constraints,
                               struct tir_value *const *values, uint32_t count, const char *prefix)
{
    LLVMTypeRef *types = arena_array(e->arena, LLVMTypeRef, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        bool is_float = tir_elem_is_float(values[i]->type->elem);
        types[i] = is_float ? e->ll->f32 : e->ll->i32;
        tir_text_format(constraints, "%s%s,", prefix, is_float ? "f" : "r");
    }
    if (count < 2)
        return count ? types[0] : e->ll->none;
    return LLVMStructTypeInContext(e->ll->context, types, count, false);
}

static void add_ties(struct tir_text *constraints, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tir_text_format(constraints, "%" PRIu32 ",", i);
}

static void add_inputs(struct tir_text *constraints, struct tir_value *const *values,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tir_text_add(constraints, tir_elem_is_float(values[i]->type->elem) ? STR("f,") : STR("r,"));
}

static V output_of(struct emit *e, V v, uint32_t count, uint32_t i)
{
    return count == 1 ? v : LLVMBuildExtractValue(e->b, v, i, "");
}

// The product behind this one that alone takes its sums, with only arithmetic between them, or
// NULL.
static const struct tir_inst *continued_by(const struct emit *e, const struct tir_wgmma *p)
{
    const struct tir_inst *next = p->inst->next;
    while (next && tir_has_trait(next, TIR_PURE) && !next->region_count)
        next = next->next;
    if (!next || next->op != TIR_OP_WGMMA)
        return NULL;
    const struct tir_wgmma after = tir_wgmma_of(next);
    if (after.kept != p->sums)
        return NULL;
    for (uint32_t i = 0; i < p->sums; i++)
        if (after.registers[after.a_count + i] != p->inst->results[i] ||
            e->uses[p->inst->results[i]->id] > 1)
            return NULL;
    return next;
}

// Adds what a product takes beside accumulators to the arguments.
static uint32_t add_arguments(struct emit *e, const struct tir_wgmma *p, V *args,
                              struct tir_text *constraints)
{
    uint32_t count = 0;
    for (; count < p->a_count; count++) {
        args[count] = tir_emit_value(e, p->registers[count]);
        tir_text_add(constraints, STR("r,"));
    }
    for (uint32_t i = TIR_WGMMA_B; i <= TIR_WGMMA_A; i++)
        if (p->inst->operands[i]) {
            args[count++] = tir_emit_value(e, p->inst->operands[i]);
            tir_text_add(constraints, STR("l,"));
        }
    if (!scale_text(p, 0)) {
        args[count++] = tir_emit_value(e, p->inst->operands[TIR_WGMMA_SCALE]);
        tir_text_add(constraints, STR("b,"));
    }
    return count;
}

// Moves inputs to outputs from number `first` on; as many inputs as outputs come before them.
static void add_moves(struct tir_text *text, uint32_t first, uint32_t outputs)
{
    for (uint32_t i = first; i < outputs; i++)
        tir_text_format(text, "mov.b32 $%" PRIu32 ", $%" PRIu32 "; ", i, outputs + i);
}

// A copy of register number `from` that ptxas does not see to be one, or equal to another one: each
// byte stays in its place, and the half of the selector that is not used counts the copies, from 1
// on: fences and tir_emit_in_place have 0.
static void add_permutation(struct emit *e, struct tir_text *text, const struct tir_value *of,
                            uint32_t to, uint32_t from)
{
    const uint32_t selector = (uint32_t)++e->slots[of->id].copies << 16 | 0x3210;
    tir_text_format(text, "prmt.b32 $%" PRIu32 ", $%" PRIu32 ", 0, 0x%" PRIx32 "; ", to, from,
                    selector);
}

// Output i begins as a sum that comes in, which is tied to it or moved. *arg: the input of that
// number, if there is one; gives how many there are. Of equal values ptxas makes one, and a copy
// for another sum where it is made, which may be while another product runs.
static uint32_t add_kept(struct emit *e, struct tir_text *text, struct tir_text *constraints,
                         struct tir_value *sum, enum tir_wgmma_opening opening, uint32_t i,
                         uint32_t input, V *arg)
{
    *arg = tir_emit_value(e, sum);
    if (opening != TIR_WGMMA_MOVES) {
        tir_text_format(constraints, "%" PRIu32 ",", i);
        return 1;
    }
    const V number = LLVMIsConstant(*arg) ? LLVMConstBitCast(*arg, e->ll->i32) : NULL;
    if (number && LLVMIsAConstantInt(number)) {
        const uint64_t bits = LLVMConstIntGetZExtValue(number);
        tir_text_format(text, "mov.b32 $%" PRIu32 ", %" PRIu64 "; ", i, bits);
        return 0;
    }
    bool again;
    const struct tir_value *of = tir_wgmma_register_of(e, sum, &again);
    if (again)
        add_permutation(e, text, of, i, input);
    else
        tir_text_format(text, "mov.b32 $%" PRIu32 ", $%" PRIu32 "; ", i, input);
    add_inputs(constraints, &sum, 1);
    return 1;
}

// The products of e->products, each of which adds to the sums of the one before it.
static void emit_products(struct emit *e)
{
    const struct tir_wgmma first = tir_wgmma_of(e->products.at[0]);
    const struct tir_inst *last = e->products.at[e->products.len - 1];
    const bool named = tir_emit_is_sum(e, last->results[0]);
    enum tir_wgmma_opening opening = tir_wgmma_opening(e, &first, last);
    if (named && opening == TIR_WGMMA_MOVES)
        opening = TIR_WGMMA_FENCES;
    struct tir_value **kept = first.registers + first.a_count;
    struct tir_text text, constraints, sums;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    tir_text_init(&sums, e->arena, 0);
    V args[TIR_ASM_INPUTS];
    const uint32_t outputs = named ? 0 : first.sums, ties = named ? 0 : first.kept;
    LLVMTypeRef type = add_outputs(e, &constraints, last->results, outputs,
                                   opening == TIR_WGMMA_MOVES ? "=&" : "=");
    uint32_t count = 0;
    for (uint32_t i = 0; i < ties; i++)
        count +=
            add_kept(e, &text, &constraints, kept[i], opening, i, outputs + count, args + count);
    if (named)
        tir_emit_add_begins(e, &text, last->results, kept, first.kept);
    if (opening != TIR_WGMMA_BEGINS)
        tir_text_add(&text, STR("wgmma.fence.sync.aligned; "));
    if (named)
        list_sums(e, &sums, last->results, first.sums);
    else
        list_registers(&sums, 0, first.sums);
    const bool moved = opening == TIR_WGMMA_MOVES || (ties && bitset_has(&e->moved, kept[0]->id));
    vec_foreach(const struct tir_inst *, it, &e->products) {
        const struct tir_wgmma p = tir_wgmma_of(*it);
        for (uint32_t i = 0; i < p.sums && moved; i++)
            bitset_insert(&e->moved, p.inst->results[i]->id);
        const struct numbers n = number(&p, outputs + count);
        count += add_arguments(e, &p, args + count, &constraints);
        const bool moves = p.steps > 1 || tir_attr_int(p.inst, TIR_ATTR_a_at, 0) ||
                           tir_attr_int(p.inst, TIR_ATTR_b_at, 0);
        tir_text_add(&text, moves ? STR("{ .reg .b64 a, b; ") : STR("{ "));
        for (uint32_t step = 0; step < p.steps; step++)
            add_step(&text, &p, &n, tir_text_str(&sums), step);
        tir_text_add(&text, STR("} "));
    }
    tir_text_add(&constraints, STR("~{memory}"));
    V v = tir_llvm_asm(e->ll, type, tir_text_str(&text), tir_text_str(&constraints),
                       TIR_ASM_EFFECT | TIR_ASM_CONVERGENT, args, count);
    for (uint32_t i = 0; i < outputs; i++)
        tir_emit_set(e, last->results[i], output_of(e, v, outputs, i));
    e->products.len = 0;
    e->product_inputs = 0;
}

static void emit_wgmma(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_wgmma p = tir_wgmma_of(inst);
    vec_push(e->arena, &e->products, inst);
    e->product_inputs += e->products.len > 1 ? 0 : p.kept;
    e->product_inputs += number(&p, 0).end;
    const struct tir_inst *next = continued_by(e, &p);
    if (next) {
        const struct tir_wgmma after = tir_wgmma_of(next);
        if (e->product_inputs + number(&after, 0).end <= TIR_ASM_INPUTS)
            return; // emitted with that one
    }
    emit_products(e);
}

// How a value goes through a wait. Constants are not in flight. A value without a use after the
// wait is kept until then, but not tied: a copy before the wait would read registers that products
// still write. So would a copy to where a loop or a branch gives sums on: the wait itself moves
// these. It moves back what the product has moved, too: ptxas 13.0 makes fewer instructions of
// both.
enum passage { TIED, MOVED, KEPT, PASSAGES, CONSTANT };

static enum passage passage_of(struct emit *e, const struct tir_inst *wait, const V *values,
                               const struct bitset *given, uint32_t i)
{
    const struct tir_value *v = wait->results[i];
    if (LLVMIsConstant(values[i]))
        return CONSTANT;
    if (!e->uses[v->id])
        return KEPT;
    const bool moved = bitset_has(&e->moved, wait->operands[i]->id);
    return moved || tir_wgmma_moves_on(e, given, v) ? MOVED : TIED;
}

// As many groups as may be in flight after a wait. Where one before it in its block has waited for
// more and fewer were started since, it waits for nothing; then it says the number that there are.
// ptxas (13.0) takes sums to be in flight until a wait for a number that leaves them out, and waits
// once more after one for 1 behind one for 0 (C7517).
static int64_t groups_after(const struct tir_inst *wait)
{
    int64_t groups = tir_attr_int(wait, TIR_ATTR_groups, 0), started = 0;
    for (const struct tir_inst *inst = wait->prev; inst; inst = inst->prev) {
        if (inst->region_count && tir_emit_handles_products(inst))
            return groups;
        if (tir_is_group(inst, TIR_OP_WAIT_GROUP, TIR_DONE_WGMMA))
            groups = TIR_MIN(groups, tir_attr_int(inst, TIR_ATTR_groups, 0) + started);
        started += tir_is_group(inst, TIR_OP_COMMIT_GROUP, TIR_DONE_WGMMA);
    }
    return groups;
}

void tir_emit_await(struct emit *e, const struct tir_inst *wait, V *values)
{
    const uint32_t count = wait->operand_count;
    V *args = arena_array(e->arena, V, count + 1);
    struct tir_value **of = arena_array(e->arena, struct tir_value *, count + 1);
    uint32_t *at = arena_array(e->arena, uint32_t, count + 1), all = 0, first[PASSAGES + 1];
    enum passage *passages = arena_array(e->arena, enum passage, count + 1);
    const struct bitset given = tir_wgmma_given_behind(e, wait);
    for (uint32_t i = 0; i < count; i++)
        passages[i] = passage_of(e, wait, values, &given, i);
    for (enum passage passage = 0; passage < PASSAGES; passage++) {
        first[passage] = all;
        for (uint32_t i = 0; i < count; i++)
            if (passages[i] == passage) {
                args[all] = values[i];
                of[all] = wait->operands[i];
                at[all++] = i;
            }
    }
    const uint32_t outputs = first[KEPT];
    struct tir_text text, constraints;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    LLVMTypeRef type =
        add_outputs(e, &constraints, of, outputs, outputs > first[MOVED] ? "=&" : "=");
    add_ties(&constraints, first[MOVED]);
    add_inputs(&constraints, of + first[MOVED], all - first[MOVED]);
    tir_text_add(&constraints, STR("~{memory}"));
    tir_text_format(&text, "wgmma.wait_group.sync.aligned %" PRId64 "; ", groups_after(wait));
    add_moves(&text, first[MOVED], outputs);
    V v = tir_llvm_asm(e->ll, type, tir_text_str(&text), tir_text_str(&constraints),
                       TIR_ASM_EFFECT | TIR_ASM_CONVERGENT, args, all);
    for (uint32_t i = 0; i < outputs; i++)
        values[at[i]] = output_of(e, v, outputs, i);
}

// Moves A to registers in front of a fence: LLVM knows of others which values lie in them. Sums of
// f16 that are A as they are go there by a permutation: ptxas takes a move for one register, then
// wants them where both products do, and may not find such registers (13.0: C7511).
static void emit_fence(struct emit *e, const struct tir_inst *fence, V *values)
{
    const uint32_t count = fence->operand_count;
    struct tir_text text, constraints;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    LLVMTypeRef type = add_outputs(e, &constraints, fence->operands, count, "=&");
    add_inputs(&constraints, fence->operands, count);
    tir_text_add(&constraints, STR("~{memory}"));
    for (uint32_t i = 0; i < count; i++) {
        const bool is_sum = tir_wgmma_is_made_by(e, fence->operands[i], TIR_OP_AWAIT);
        tir_text_format(&text,
                        is_sum ? "prmt.b32 $%" PRIu32 ", $%" PRIu32 ", 0, 0x3210; "
                               : "mov.b32 $%" PRIu32 ", $%" PRIu32 "; ",
                        i, count + i);
    }
    tir_text_add(&text, STR("wgmma.fence.sync.aligned;"));
    V v = tir_llvm_asm(e->ll, type, tir_text_str(&text), tir_text_str(&constraints),
                       TIR_ASM_EFFECT | TIR_ASM_CONVERGENT, values, count);
    for (uint32_t i = 0; i < count; i++)
        values[i] = output_of(e, v, count, i);
}

static void emit_passage(struct emit *e, const struct tir_inst *inst)
{
    V *values = arena_array(e->arena, V, inst->operand_count + 1);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        values[i] = tir_emit_value(e, inst->operands[i]);
    if (inst->op == TIR_OP_AWAIT) {
        tir_emit_pins(e, inst);
        tir_emit_await(e, inst, values);
    } else {
        emit_fence(e, inst, values);
    }
    for (uint32_t i = 0; i < inst->operand_count; i++)
        tir_emit_set(e, inst->results[i], values[i]);
    if (inst->op == TIR_OP_AWAIT)
        tir_emit_read_sums(e, inst);
}

void tir_emit_wgmma(struct emit *e, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_WGMMA:
        emit_wgmma(e, inst);
        return;
    case TIR_OP_AWAIT:
    case TIR_OP_WGMMA_FENCE:
        emit_passage(e, inst);
        return;
    default:
        tir_unreachable();
    }
}
