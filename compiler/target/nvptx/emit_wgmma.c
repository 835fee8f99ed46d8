// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products on warpgroups.
//
// LLVM has no intrinsic for them, so one operation becomes one piece of inline PTX with all its
// steps, whose descriptors are stepped on inside. The accumulators go in and out of it in the same
// registers ("0", "1", ... tie inputs to outputs), and through the loop as phis, so no instruction
// moves them. `await` ties them through the wait in the same way: LLVM orders nothing else after
// it. A in registers is an input of the wait, too.
//
// LLVM does not know that the registers of a product in flight are written, or read, until a wait:
// it may copy them, or give them to other values that are dead by then. So an accumulator that is
// still needed afterwards is copied, and A in registers is moved, in front of a fence in the same
// piece. What loops and branches give may share registers with other values that they give: as an
// accumulator it is moved in front of the fence, and what they give of a product is moved by its
// wait. Only sums that a loop carries, and nothing but products adds to, stay where they are. Where
// two begin with equal values, ptxas copies one of them where they are made: what is made in front
// of a wait is moved behind it.
//
// A product that adds to the sums of the one before it, with nothing but arithmetic between them,
// is one piece of inline PTX with it. To LLVM each of its operands costs more than an addition.

#include "base/bitset.h"
#include "ir/effect.h"
#include "ir/follow.h"
#include "ir/walk.h"
#include "machine/product.h"
#include "target/nvptx/emit.h"

#include <inttypes.h>

#define MOST_STEP 0x3fff // what addresses of descriptors have room for

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
    if (a_step < 0 || a_step > MOST_STEP || b_step < 0 || b_step > MOST_STEP)
        return "a step stays within shared memory";
    if (row->tail != TAIL_TURNED &&
        (tir_attr_int(inst, TIR_ATTR_a_trans, 0) || tir_attr_int(inst, TIR_ATTR_b_trans, 0)))
        return "only elements of 16 bits can be transposed";
    if (!inst->operands[TIR_WGMMA_A] && tir_attr_int(inst, TIR_ATTR_a_trans, 0))
        return "A in registers cannot be transposed";
    return NULL;
}

struct product { // one operation
    const struct tir_inst *inst;
    const struct wgmma_row *row;
    struct tir_value **registers;
    uint32_t steps, sums; // instructions; accumulators
    uint32_t a_count;     // registers of A in all steps
    uint32_t kept;        // accumulators that come in: all or none
    const char *sum;      // their type in PTX
};

struct numbers { // of asm operands: the first register of A, the descriptors, the scale
    uint32_t a, b_desc, a_desc, scale, end;
};

static struct product product_of(const struct tir_inst *inst)
{
    uint32_t count;
    struct product p = {.inst = inst,
                        .row = row_of(inst),
                        .registers = tir_list(inst, &count),
                        .steps = (uint32_t)tir_attr_int(inst, TIR_ATTR_steps, 1),
                        .sums = inst->result_count};
    p.a_count = inst->operands[TIR_WGMMA_A] ? 0 : 4 * p.steps;
    p.kept = count - p.a_count;
    bool halves = 4 * p.sums == (uint32_t)tir_attr_int(inst, TIR_ATTR_cols, 0);
    p.sum = p.row->tail == TAIL_NONE ? "s32" : halves ? "f16" : "f32";
    return p;
}

static void list_registers(struct tir_text *text, uint32_t first, uint32_t count)
{
    tir_text_add(text, STR("{"));
    for (uint32_t i = 0; i < count; i++)
        tir_text_format(text, "%s$%" PRIu32, i ? "," : "", first + i);
    tir_text_add(text, STR("}"));
}

// The scale of a step as an operand, or NULL: it is operand number p->scale.
static const char *scale_text(const struct product *p, uint32_t step)
{
    int known = step ? 1 : tir_emit_known(p->inst->operands[TIR_WGMMA_SCALE]);
    if (known >= 0)
        return known ? "1" : "0";
    return NULL;
}

// The operands of a product that come behind so many others.
static struct numbers number(const struct product *p, uint32_t first)
{
    struct numbers n = {.a = first, .b_desc = first + p->a_count};
    n.a_desc = n.b_desc + 1;
    n.scale = n.a_desc + !p->a_count;
    n.end = n.scale + !scale_text(p, 0);
    return n;
}

static void add_descriptor(struct tir_text *text, const char *name, uint32_t operand, uint32_t step)
{
    if (step)
        tir_text_format(text, "%s", name);
    else
        tir_text_format(text, "$%" PRIu32, operand);
}

// sums: the list of the accumulators.
static void add_step(struct tir_text *text, const struct product *p, const struct numbers *n,
                     tir_str sums, uint32_t step)
{
    int64_t a_step = tir_attr_int(p->inst, TIR_ATTR_a_step, 0) * step;
    int64_t b_step = tir_attr_int(p->inst, TIR_ATTR_b_step, 0) * step;
    if (step && !p->a_count)
        tir_text_format(text, "add.s64 a, $%" PRIu32 ", %" PRId64 "; ", n->a_desc, a_step);
    if (step)
        tir_text_format(text, "add.s64 b, $%" PRIu32 ", %" PRId64 "; ", n->b_desc, b_step);
    tir_text_format(text, "wgmma.mma_async.sync.aligned.m64n%" PRId64 "k%" PRId64 ".%s.%s.%s ",
                    tir_attr_int(p->inst, TIR_ATTR_cols, 0),
                    tir_attr_int(p->inst, TIR_ATTR_depth, 0), p->sum, p->row->elem,
                    elem_of_b(p->inst, p->row));
    tir_text_add(text, sums);
    tir_text_add(text, STR(", "));
    if (p->a_count)
        list_registers(text, n->a + 4 * step, 4);
    else
        add_descriptor(text, "a", n->a_desc, step);
    tir_text_add(text, STR(", "));
    add_descriptor(text, "b", n->b_desc, step);
    const char *scale = scale_text(p, step);
    if (scale)
        tir_text_format(text, ", %s", scale);
    else
        tir_text_format(text, ", $%" PRIu32, n->scale);
    if (p->row->tail != TAIL_NONE)
        tir_text_add(text, STR(", 1, 1"));
    if (p->row->tail == TAIL_TURNED && !p->a_count)
        tir_text_format(text, ", %" PRId64, tir_attr_int(p->inst, TIR_ATTR_a_trans, 0));
    if (p->row->tail == TAIL_TURNED)
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

// The sums that some value is: the first of the products that make them, through waits and products
// that add to them, and what that one adds to, or NULL.
struct sums {
    const struct tir_inst *begin;
    const struct tir_value *to;
};

static struct sums sums_of(const struct tir_value *v)
{
    struct sums sums = {NULL, v};
    while (sums.to && sums.to->def) {
        const struct tir_inst *def = sums.to->def;
        if (def->op == TIR_OP_AWAIT) {
            sums.to = def->operands[sums.to->index];
            continue;
        }
        if (def->op != TIR_OP_WGMMA)
            break;
        const struct product p = product_of(def);
        sums.begin = def;
        sums.to = p.kept ? p.registers[p.a_count + sums.to->index] : NULL;
    }
    return sums;
}

V tir_emit_in_place(struct emit *e, V sums)
{
    const LLVMTypeRef type = LLVMTypeOf(sums);
    V v = LLVMBuildBitCast(e->b, sums, e->ll->i32, "");
    v = tir_llvm_asm(e->ll, e->ll->i32, STR("prmt.b32 $0, $1, 0, 0x3210;"), STR("=r,r"), 0, &v, 1);
    return LLVMBuildBitCast(e->b, v, type, "");
}

// Does the code between a product and a wait for it loop? Waits for mbarriers do.
static bool is_loop_between(const struct tir_inst *product, const struct tir_inst *wait)
{
    for (const struct tir_inst *inst = wait->prev; inst != product; inst = inst->prev) {
        if (!inst)
            return true; // it starts in another block
        tir_foreach_inst_within(in, inst) if (in->op == TIR_OP_WAIT || tir_is_loop(in)) return true;
    }
    return false;
}

// NO: ptxas makes pairs of the sum v, which a wait gives, in front of that.
static enum tir_answer ask_other(void *user, struct tir_value *v)
{
    (void)user;
    if (!v->def || v->def->op != TIR_OP_AWAIT)
        return v->def && v->def->op == TIR_OP_WHERE ? TIR_IF_OPERANDS : TIR_YES;
    const struct tir_inst *product = v->def->operands[v->index]->def;
    if (!product || product->op != TIR_OP_WGMMA)
        return TIR_YES;
    const bool single = product == sums_of(v).begin && product_of(product).steps == 1;
    return single || is_loop_between(product, v->def) ? TIR_NO : TIR_YES;
}

bool tir_emit_pairs_early(const struct emit *e, struct tir_value *v)
{
    const enum tir_answer answer = ask_other(NULL, v);
    if (answer != TIR_IF_OPERANDS)
        return answer == TIR_NO;
    struct tir_follow other;
    tir_follow_init(&other, e->arena, ask_other, NULL);
    return !tir_follows(&other, v);
}

// The loop that carries v, or NULL; *place: as which of its values.
static const struct tir_inst *carrier_of(const struct tir_value *v, uint32_t *place)
{
    const struct tir_inst *owner = v->def || !v->block ? NULL : v->block->owner;
    if (!owner || !tir_is_loop(owner) || v->index < (owner->op == TIR_OP_FOR))
        return NULL; // or it is the counter
    *place = v->index - (owner->op == TIR_OP_FOR);
    return owner;
}

// What the sum v begins with in front of the loop that carries it, or that gives it in the end, if
// each round gives on, in its place, what products in it add to it; else NULL.
static const struct tir_value *carried_sum_from(const struct tir_value *v)
{
    if (v->def && tir_is_loop(v->def)) {
        const struct tir_block *body = v->def->regions[v->def->region_count - 1];
        v = body->args[v->index + (v->def->op == TIR_OP_FOR)];
    }
    uint32_t place;
    const struct tir_inst *loop = carrier_of(v, &place);
    if (!loop || v->block != loop->regions[loop->region_count - 1])
        return NULL;
    const bool is_sum = sums_of(tir_yield_of(v->block)->operands[place]).to == v;
    return is_sum ? loop->operands[tir_carried_at(loop) + place] : NULL;
}

typedef VEC(const struct tir_value *) source_list;

// Adds the values that v is one of, as a loop or a branch gives it; false: none does.
static bool add_sources(struct emit *e, const struct tir_value *v, source_list *work)
{
    uint32_t place = v->index;
    const struct tir_inst *owner = v->def ? v->def : carrier_of(v, &place);
    const bool is_loop = owner && tir_is_loop(owner);
    if (!is_loop && (!owner || owner->op != TIR_OP_IF))
        return false;
    if (is_loop)
        vec_push(e->arena, work, owner->operands[tir_carried_at(owner) + place]);
    for (uint32_t r = owner->op == TIR_OP_WHILE; r < owner->region_count; r++)
        vec_push(e->arena, work, tir_yield_of(owner->regions[r])->operands[place]);
    return true;
}

// Does an operation `op` make v, or what a loop or a branch may give as it?
static bool is_made_by(struct emit *e, const struct tir_value *v, enum tir_op op)
{
    struct bitset seen = bitset_new(e->arena, e->f->value_count);
    source_list work = {0};
    vec_push(e->arena, &work, v);
    while (work.len) {
        v = vec_pop(&work);
        if (v->kind == TIR_VALUE_CONST || !bitset_insert(&seen, v->id) || add_sources(e, v, &work))
            continue;
        if (v->def && v->def->op == op)
            return true;
    }
    return false;
}

// The values that the instructions in regions behind inst, and loops as they begin, give on.
static struct bitset given_behind(struct emit *e, const struct tir_inst *inst)
{
    struct bitset given = bitset_new(e->arena, e->f->value_count);
    while ((inst = inst->next)) {
        if (!inst->region_count)
            continue;
        tir_foreach_inst_within(in, inst)
        {
            if (!in->region_count && in->op != TIR_OP_YIELD)
                continue;
            for (uint32_t i = 0; i < in->operand_count; i++)
                if (in->operands[i])
                    bitset_insert(&given, in->operands[i]->id);
        }
    }
    return given;
}

// Is v needed in its block after `begin`, or what pure operations make of it, which LLVM may move
// there?
static bool is_needed_after(struct emit *e, const struct tir_value *v, const struct tir_inst *begin)
{
    struct bitset made = bitset_new(e->arena, e->f->value_count);
    bitset_insert(&made, v->id);
    bool is_after = false;
    for (const struct tir_inst *inst = begin->block->first; inst; inst = inst->next) {
        bool takes = false;
        tir_foreach_inst_within(in, inst) for (uint32_t i = 0; i < in->operand_count; i++) takes |=
            in->operands[i] && bitset_has(&made, in->operands[i]->id);
        if (takes && is_after)
            return true;
        for (uint32_t i = 0; takes && tir_has_trait(inst, TIR_PURE) && i < inst->result_count; i++)
            bitset_insert(&made, inst->results[i]->id);
        is_after |= inst == begin;
    }
    return false;
}

// Does a product in its block add to v, which has been awaited?
static bool is_added_to(const struct tir_value *v)
{
    for (const struct tir_inst *inst = v->def->next; inst; inst = inst->next) {
        if (inst->op != TIR_OP_WGMMA)
            continue;
        const struct product p = product_of(inst);
        for (uint32_t i = 0; i < p.kept; i++)
            if (p.registers[p.a_count + i] == v)
                return true;
    }
    return false;
}

// Does the block around a wait give v, which has been awaited, on, and may it be in the register of
// a value that is needed while the product runs, or in another one than where the next product adds
// to it? Not if only the sums go on with what was in its place.
static bool is_given_on(struct emit *e, const struct tir_value *v)
{
    const struct tir_block *block = v->def->block;
    const struct tir_inst *yield = tir_yield_of(block), *owner = block->owner;
    const struct sums sums = sums_of(v);
    for (uint32_t i = 0; yield && i < yield->operand_count; i++) {
        if (yield->operands[i] != v)
            continue;
        if (!tir_is_loop(owner) || !sums.begin || sums.begin->block != block || !sums.to ||
            is_added_to(v))
            return true;
        const struct tir_value *old = block->args[i + (owner->op == TIR_OP_FOR)];
        const bool is_it = sums.to == old && e->uses[old->id] == 1;
        const bool is_of_it = sums.to->def && tir_uses_value(sums.to->def, old) &&
                              !is_needed_after(e, old, sums.begin);
        if (!is_it && !is_of_it)
            return true;
    }
    return false;
}

// Is v, which has been awaited, moved by its wait? given: behind that.
static bool moves_on(struct emit *e, const struct bitset *given, const struct tir_value *v)
{
    return bitset_has(given, v->id) || is_given_on(e, v);
}

// Does the wait for the sums of `product`, which others in its block may add to first, move one of
// them on? *others: whether there are some.
static bool is_moved_by_wait(struct emit *e, const struct tir_inst *product, bool *others)
{
    *others = false;
    for (const struct tir_inst *inst = product->next; inst; inst = inst->next) {
        if (!tir_uses_value(inst, product->results[0]))
            continue;
        if (inst->op == TIR_OP_WGMMA) {
            product = inst;
            *others = true;
            continue;
        }
        const struct bitset given = given_behind(e, inst);
        for (uint32_t i = 0; inst->op == TIR_OP_AWAIT && i < inst->operand_count; i++)
            if (inst->operands[i]->def == product && moves_on(e, &given, inst->results[i]))
                return true;
        return false;
    }
    return false;
}

// Is there a wait between what makes v, in the block of a product, and that?
static bool is_awaited_since(const struct tir_inst *product, const struct tir_value *v)
{
    if (!v->def || v->def->block != product->block)
        return false;
    for (const struct tir_inst *inst = product->prev; inst != v->def; inst = inst->prev)
        if (inst->op == TIR_OP_AWAIT)
            return true;
    return false;
}

// What stands in front of products for the accumulators that they add to: nothing, where they are
// in flight, or only products have written them since they were numbers; a fence, in front of which
// LLVM copies those that are needed again; moves and a fence, for what loops and branches give,
// which LLVM may put into one register with other values that they give, and for what was made in
// front of a wait. If a wait moves a sum back
// to where a loop carries it, LLVM may copy it wherever something adds to it: then it is moved,
// too, unless there is one such place, in front of a fence.
enum opening { BEGINS, FENCES, MOVES };

// last: of the products in one piece, of which p is the first.
static enum opening opening_of(struct emit *e, const struct product *p, const struct tir_inst *last)
{
    if (!p->kept || is_made_by(e, p->registers[p->a_count], TIR_OP_WGMMA))
        return BEGINS;
    uint32_t place;
    enum opening opening = BEGINS;
    bool is_carried = false, others;
    for (uint32_t i = p->a_count; i < p->a_count + p->kept; i++) {
        const struct tir_value *v = p->registers[i], *from = carried_sum_from(v);
        const bool is_given = v->def ? v->def->region_count : carrier_of(v, &place) != NULL;
        if (!from && (is_given || is_awaited_since(p->inst, v)))
            return MOVES;
        if (!from || from->kind != TIR_VALUE_CONST || e->uses[v->id] > 1)
            opening = FENCES;
        is_carried |= from && (!v->def || from->kind != TIR_VALUE_CONST);
    }
    return is_carried && is_moved_by_wait(e, last, &others) && (others || opening == BEGINS)
               ? MOVES
               : opening;
}

// The product behind this one that alone takes its sums, with only arithmetic between them, or
// NULL.
static const struct tir_inst *continued_by(const struct emit *e, const struct product *p)
{
    const struct tir_inst *next = p->inst->next;
    while (next && tir_has_trait(next, TIR_PURE) && !next->region_count)
        next = next->next;
    if (!next || next->op != TIR_OP_WGMMA)
        return NULL;
    const struct product after = product_of(next);
    if (after.kept != p->sums)
        return NULL;
    for (uint32_t i = 0; i < p->sums; i++)
        if (after.registers[after.a_count + i] != p->inst->results[i] ||
            e->uses[p->inst->results[i]->id] > 1)
            return NULL;
    return next;
}

// Adds what a product takes beside accumulators to the arguments.
static uint32_t add_arguments(struct emit *e, const struct product *p, V *args,
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

// The products of e->products, each of which adds to the sums of the one before it.
static void emit_products(struct emit *e)
{
    const struct product first = product_of(e->products.at[0]);
    const struct tir_inst *last = e->products.at[e->products.len - 1];
    const enum opening opening = opening_of(e, &first, last);
    struct tir_value **kept = first.registers + first.a_count;
    struct tir_text text, constraints, sums;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    tir_text_init(&sums, e->arena, 0);
    V args[TIR_ASM_INPUTS];
    LLVMTypeRef type =
        add_outputs(e, &constraints, last->results, first.sums, opening == MOVES ? "=&" : "=");
    for (uint32_t i = 0; i < first.kept; i++)
        args[i] = tir_emit_value(e, kept[i]);
    if (opening == MOVES) {
        add_moves(&text, 0, first.kept);
        add_inputs(&constraints, kept, first.kept);
    } else {
        add_ties(&constraints, first.kept);
    }
    if (opening != BEGINS)
        tir_text_add(&text, STR("wgmma.fence.sync.aligned; "));
    list_registers(&sums, 0, first.sums);
    uint32_t count = first.kept;
    const bool moved = opening == MOVES || (first.kept && bitset_has(&e->moved, kept[0]->id));
    vec_foreach(const struct tir_inst *, it, &e->products) {
        const struct product p = product_of(*it);
        for (uint32_t i = 0; i < p.sums && moved; i++)
            bitset_insert(&e->moved, p.inst->results[i]->id);
        const struct numbers n = number(&p, first.sums + count);
        count += add_arguments(e, &p, args + count, &constraints);
        tir_text_add(&text, p.steps > 1 ? STR("{ .reg .b64 a, b; ") : STR("{ "));
        for (uint32_t step = 0; step < p.steps; step++)
            add_step(&text, &p, &n, tir_text_str(&sums), step);
        tir_text_add(&text, STR("} "));
    }
    tir_text_add(&constraints, STR("~{memory}"));
    V v = tir_llvm_asm(e->ll, type, tir_text_str(&text), tir_text_str(&constraints),
                       TIR_ASM_EFFECT | TIR_ASM_CONVERGENT, args, count);
    for (uint32_t i = 0; i < first.sums; i++)
        tir_emit_set(e, last->results[i], output_of(e, v, first.sums, i));
    e->products.len = 0;
    e->product_inputs = 0;
}

static void emit_wgmma(struct emit *e, const struct tir_inst *inst)
{
    const struct product p = product_of(inst);
    vec_push(e->arena, &e->products, inst);
    e->product_inputs += e->products.len > 1 ? 0 : p.kept;
    e->product_inputs += number(&p, 0).end;
    const struct tir_inst *next = continued_by(e, &p);
    if (next) {
        const struct product after = product_of(next);
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
    return moved || moves_on(e, given, v) ? MOVED : TIED;
}

// As many groups as may be in flight after a wait. Where one before it in its block has waited for
// more and fewer were started since, it waits for nothing; then it says the number that there are.
// ptxas (13.0) takes sums to be in flight until a wait for a number that leaves them out, and waits
// once more after one for 1 behind one for 0 (C7517).
static int64_t groups_after(const struct tir_inst *wait)
{
    const int64_t groups = tir_attr_int(wait, TIR_ATTR_groups, 0);
    int64_t started = 0;
    for (const struct tir_inst *inst = wait->prev; inst; inst = inst->prev) {
        if (inst->region_count && tir_emit_handles_products(inst))
            return groups;
        if (tir_is_group(inst, TIR_OP_WAIT_GROUP, TIR_DONE_WGMMA))
            return TIR_MIN(groups, tir_attr_int(inst, TIR_ATTR_groups, 0) + started);
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
    const struct bitset given = given_behind(e, wait);
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
        const bool is_sum = is_made_by(e, fence->operands[i], TIR_OP_AWAIT);
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
