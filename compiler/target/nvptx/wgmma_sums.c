// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "target/nvptx/wgmma_sums.h"

#include "ir/follow.h"
#include "ir/walk.h"

struct tir_wgmma tir_wgmma_of(const struct tir_inst *inst)
{
    uint32_t count;
    struct tir_wgmma p = {.inst = inst,
                          .registers = tir_list(inst, &count),
                          .steps = (uint32_t)tir_attr_int(inst, TIR_ATTR_steps, 1),
                          .sums = inst->result_count};
    p.a_count = inst->operands[TIR_WGMMA_A] ? 0 : 4 * p.steps;
    p.kept = count - p.a_count;
    return p;
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
        const struct tir_wgmma p = tir_wgmma_of(def);
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
        tir_foreach_inst_within(in, inst)
            if (in->op == TIR_OP_WAIT || tir_is_loop(in))
                return true;
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
    const bool single = product == sums_of(v).begin && tir_wgmma_of(product).steps == 1;
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

bool tir_wgmma_is_made_by(struct emit *e, const struct tir_value *v, enum tir_op op)
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

struct bitset tir_wgmma_given_behind(struct emit *e, const struct tir_inst *inst)
{
    struct bitset given = bitset_new(e->arena, e->f->value_count);
    while ((inst = inst->next)) {
        if (!inst->region_count)
            continue;
        tir_foreach_inst_within(in, inst) {
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
        tir_foreach_inst_within(in, inst)
            for (uint32_t i = 0; i < in->operand_count; i++)
                takes |= in->operands[i] && bitset_has(&made, in->operands[i]->id);
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
        const struct tir_wgmma p = tir_wgmma_of(inst);
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

bool tir_wgmma_moves_on(struct emit *e, const struct bitset *given, const struct tir_value *v)
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
        const struct bitset given = tir_wgmma_given_behind(e, inst);
        for (uint32_t i = 0; inst->op == TIR_OP_AWAIT && i < inst->operand_count; i++)
            if (inst->operands[i]->def == product &&
                tir_wgmma_moves_on(e, &given, inst->results[i]))
                return true;
        return false;
    }
    return false;
}

static bool is_renaming(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_PACK || inst->op == TIR_OP_UNPACK || inst->op == TIR_OP_BITCAST;
}

const struct tir_value *tir_wgmma_register_of(const struct emit *e, const struct tir_value *v,
                                              bool *again)
{
    *again = e->uses[v->id] > 1;
    for (const struct tir_inst *def = v->def; def && is_renaming(def); def = v->def) {
        for (uint32_t i = 0; i < def->operand_count; i++)
            *again |=
                def->operands[i]->kind != TIR_VALUE_CONST && e->uses[def->operands[i]->id] > 1;
        v = def->operands[0];
    }
    return v;
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

enum tir_wgmma_opening tir_wgmma_opening(struct emit *e, const struct tir_wgmma *p,
                                         const struct tir_inst *last)
{
    if (!p->kept || tir_wgmma_is_made_by(e, p->registers[p->a_count], TIR_OP_WGMMA))
        return TIR_WGMMA_BEGINS;
    uint32_t place;
    enum tir_wgmma_opening opening = TIR_WGMMA_BEGINS;
    bool is_carried = false, others;
    for (uint32_t i = p->a_count; i < p->a_count + p->kept; i++) {
        const struct tir_value *v = p->registers[i], *from = carried_sum_from(v);
        const bool is_given = v->def ? v->def->region_count : carrier_of(v, &place) != NULL;
        bool again;
        const struct tir_value *it = tir_wgmma_register_of(e, v, &again);
        const bool is_shared =
            again || v->kind == TIR_VALUE_CONST || LLVMIsConstant(tir_emit_value(e, v));
        if (!from && (is_given || is_shared || is_awaited_since(p->inst, it)))
            return TIR_WGMMA_MOVES;
        if (!from || from->kind != TIR_VALUE_CONST || e->uses[v->id] > 1)
            opening = TIR_WGMMA_FENCES;
        is_carried |= from && (!v->def || from->kind != TIR_VALUE_CONST);
    }
    return is_carried && is_moved_by_wait(e, last, &others) &&
                   (others || opening == TIR_WGMMA_BEGINS)
               ? TIR_WGMMA_MOVES
               : opening;
}
