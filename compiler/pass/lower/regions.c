// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, control flow: a tile that a loop carries or a branch gives becomes its registers.
//
// Bytes go round in words of four, since a register of the machine holds one or four of them.

#include "ir/walk.h"
#include "pass/lower/lower.h"

struct tir_value *tir_lower_joined(struct lower *lo, const struct tir_type *type,
                                   struct tir_value *const *parts, uint32_t count)
{
    struct tir_inst *def = parts[0]->def;
    bool is_whole = def && def->op == TIR_OP_UNPACK && def->result_count == count &&
                    def->operands[0]->type == type;
    for (uint32_t i = 0; is_whole && i < count; i++)
        is_whole = parts[i] == def->results[i];
    return is_whole ? def->operands[0] : tir_build1(&lo->b, TIR_OP_PACK, type, parts, count);
}

enum { BYTES = 4 }; // of a word

// How many registers of a carried tile go together.
static uint32_t together(const struct tir_type *t)
{
    bool is_bytes = tir_type_is_tile(t) && tir_elems[t->elem].bits == 8 && t->elem != TIR_BOOL;
    return is_bytes && tir_lower_register_count(t) % BYTES == 0 ? BYTES : 1;
}

static uint32_t carried_count(const struct tir_type *t)
{
    return tir_lower_register_count(t) / together(t);
}

static const struct tir_type *carried_type(struct lower *lo, const struct tir_type *t)
{
    return together(t) > 1 ? lo->i32 : tir_type_scalar(lo->types, t->elem);
}

// The registers of a tile from what is carried of it.
static void take_apart(struct lower *lo, struct tir_builder *b, const struct tir_value *tile,
                       struct tir_value *const *carried, struct tir_value **registers)
{
    const struct tir_type *elem = tir_type_scalar(lo->types, tile->type->elem);
    const struct tir_type *types[BYTES] = {elem, elem, elem, elem};
    for (uint32_t i = 0, n = together(tile->type); i < carried_count(tile->type); i++) {
        struct tir_value *word = carried[i];
        if (n > 1)
            memcpy(registers + i * n, tir_build(b, TIR_OP_UNPACK, &word, 1, types, n, 0)->results,
                   n * sizeof(*registers));
        else
            registers[i] = word;
    }
}

static uint32_t expanded(const struct tir_value *const *values, uint32_t count)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += carried_count(values[i]->type);
    return total;
}

// The registers of values[0..count), given the types that say how many each has.
static struct tir_value **expand(struct lower *lo, struct tir_value **values,
                                 struct tir_value *const *like, uint32_t count, uint32_t *total)
{
    *total = expanded((const struct tir_value *const *)like, count);
    struct tir_value **out =
        arena_array(lo->f->module->arena, struct tir_value *, *total + TIR_FOR_INIT);
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t r = 0, step = together(like[i]->type);
             r < step * carried_count(like[i]->type); r += step) {
            struct tir_value *parts[BYTES];
            for (uint32_t k = 0; k < step; k++)
                parts[k] = tir_lower_register(lo, values[i], r + k);
            out[n++] = step > 1 ? tir_lower_joined(lo, lo->i32, parts, step) : parts[0];
        }
    return out;
}

// Its registers are taken apart in front of `next`; NULL: at the end of the block.
static void set_carried(struct lower *lo, struct tir_block *block, struct tir_inst *next,
                        struct tir_value *tile, struct tir_value *const *carried)
{
    struct tir_builder b =
        next ? tir_builder_before(lo->f, next) : tir_builder_at_end(lo->f, block);
    struct tir_value **registers =
        tir_lower_new_registers(lo, tir_lower_register_count(tile->type));
    take_apart(lo, &b, tile, carried, registers);
    tir_lower_set_registers(lo, tile, registers);
}

static void expand_results(struct lower *lo, struct tir_inst *inst)
{
    uint32_t total = expanded((const struct tir_value *const *)inst->results, inst->result_count);
    struct tir_value **results = arena_array(lo->f->module->arena, struct tir_value *, total + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < inst->result_count; i++) {
        struct tir_value *old = inst->results[i];
        if (!tir_type_is_tile(old->type)) {
            old->index = n;
            results[n++] = old;
            continue;
        }
        uint32_t count = carried_count(old->type);
        struct tir_value **carried = tir_lower_new_registers(lo, count);
        for (uint32_t r = 0; r < count; r++) {
            struct tir_value *v = arena_new(lo->f->module->arena, struct tir_value);
            *v = (struct tir_value){.type = carried_type(lo, old->type),
                                    .kind = TIR_VALUE_RESULT,
                                    .id = lo->f->value_count++,
                                    .index = n,
                                    .def = inst,
                                    .name = old->name};
            carried[r] = results[n++] = v;
        }
        set_carried(lo, inst->block, inst->next, old, carried);
    }
    inst->results = results;
    inst->result_count = n;
}

static void expand_args(struct lower *lo, struct tir_block *block)
{
    struct tir_value **old = block->args;
    uint32_t count = block->arg_count;
    block->args = NULL;
    block->arg_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t carried_registers = carried_count(old[i]->type);
        struct tir_value **carried = tir_lower_new_registers(lo, carried_registers);
        const struct tir_type *type = carried_type(lo, old[i]->type);
        for (uint32_t r = 0; r < carried_registers; r++)
            carried[r] = tir_block_add_arg(lo->f, block, type, old[i]->name);
        if (tir_type_is_tile(old[i]->type)) {
            set_carried(lo, block, block->first, old[i], carried);
        } else { // keep the value that uses already point to
            assert(block->args);
            old[i]->index = carried[0]->index;
            block->args[old[i]->index] = old[i];
        }
    }
}

void tir_lower_regions(struct lower *lo, struct tir_inst *inst)
{
    // Operands first: their registers are those of before the loop.
    uint32_t fixed = tir_fixed_count(inst), total;
    if (inst->op != TIR_OP_IF) {
        struct tir_value **init =
            expand(lo, inst->operands + fixed, inst->results, inst->operand_count - fixed, &total);
        struct tir_value **operands =
            arena_array(lo->f->module->arena, struct tir_value *, fixed + total + 1);
        memcpy(operands, inst->operands, fixed * sizeof(*operands));
        memcpy(operands + fixed, init, total * sizeof(*operands));
        for (uint32_t r = 0; r < inst->region_count; r++)
            expand_args(lo, inst->regions[r]);
        inst->operands = operands;
        inst->operand_count = fixed + total;
    }
    // A yield expands by the types of what it yields to, so the results come last.
    struct tir_value **old_results = inst->results;
    uint32_t old_count = inst->result_count;
    for (uint32_t r = 0; r < inst->region_count; r++) {
        tir_lower_block(lo, inst->regions[r]);
        if (lo->failed)
            return;
        struct tir_inst *yield = tir_yield_of(inst->regions[r]);
        bool gives_results = inst->op != TIR_OP_WHILE || r == 1;
        if (yield && gives_results) {
            lo->b = tir_builder_before(lo->f, yield);
            yield->operands = expand(lo, yield->operands, old_results, old_count, &total);
            yield->operand_count = total;
        }
    }
    expand_results(lo, inst);
}
