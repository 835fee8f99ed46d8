// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine's rules for a lowered kernel, beyond the rules of the form. The passes keep them; a
// program written in lowered form may not, and then LLVM would call abort().

#include <inttypes.h>

#include "ir/walk.h"
#include "target/nvptx/nvptx.h"

#define MAX_PARTS 32        // values that one access or pack moves
#define MAX_LOCAL (1 << 19) // bytes of memory a thread may have

struct check {
    const struct tir_func *f;
    const struct tir_target *target;
    struct tir_diags *diags;
    bool failed;
};

static void refuse(struct check *c, const struct tir_inst *inst, const char *what)
{
    tir_error_at(c->diags, inst ? inst->span : c->f->span, TIR_E_CODEGEN, "%s: %s",
                 inst ? tir_ops[inst->op].name : c->f->name, what);
    c->failed = true;
}

// lacking: features of targets, one of which it would take.
static void refuse_target(struct check *c, const struct tir_inst *inst, const char *what,
                          uint32_t lacking)
{
    tir_error_at(c->diags, inst ? inst->span : c->f->span, TIR_E_UNSUPPORTED, "%s: %s",
                 inst ? tir_ops[inst->op].name : c->f->name, what);
    tir_note_at(c->diags, (struct tir_span){0}, "%s is the first target that can",
                tir_target_first_with(lacking));
    c->failed = true;
}

static bool is_one_elem(struct tir_value *const *values, uint32_t count)
{
    if (count == 0 || count > MAX_PARTS)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!tir_type_is_scalar(values[i]->type) || values[i]->type->elem != values[0]->type->elem)
            return false;
    return true;
}

static bool is_in(const struct tir_value *buffer, enum tir_space space)
{
    return buffer->type->space == space;
}

static bool is_offset(const struct tir_value *v)
{
    return tir_type_is_scalar(v->type) && tir_elem_is_int(v->type->elem) &&
           tir_elems[v->type->elem].bits >= 32;
}

static bool is_condition(const struct tir_value *v) // or absent
{
    return !v || (tir_type_is_scalar(v->type) && v->type->elem == TIR_BOOL);
}

static bool have_bits(struct tir_value *const *values, uint32_t count, uint32_t bits)
{
    for (uint32_t i = 0; i < count; i++)
        if (!tir_type_is_scalar(values[i]->type) || tir_elems[values[i]->type->elem].bits != bits)
            return false;
    return true;
}

static void check_alloc(struct check *c, const struct tir_inst *inst)
{
    const struct tir_type *type = inst->results[0]->type;
    int64_t bytes = tir_type_bytes(type);
    if (type->space == TIR_SPACE_LOCAL) {
        if (bytes < 1 || bytes > MAX_LOCAL)
            refuse(c, inst, "a local buffer has 1 to 524288 bytes");
        return;
    }
    int64_t offset = tir_attr_int(inst, TIR_ATTR_offset, -1);
    if (offset < 0 || bytes < 0 || offset > c->f->shared_bytes - bytes)
        refuse(c, inst, "the buffer does not lie in the kernel's shared memory");
}

static bool is_red_vector(const struct tir_target *target, const struct tir_inst *inst)
{
    uint32_t count;
    struct tir_value **values = tir_list(inst, &count);
    if (!is_one_elem(values, count) || count < 2 || !tir_is_pow2(count))
        return false;
    enum tir_elem elem = values[0]->type->elem;
    return count <= tir_target_red(target, elem) &&
           tir_attr_int(inst, TIR_ATTR_width, 0) == count * tir_elems[elem].bits / 8;
}

static void check_access(struct check *c, const struct tir_inst *inst)
{
    struct tir_value *const *operands = inst->operands;
    switch (inst->op) {
    case TIR_OP_LD:
        if (!is_offset(operands[1]) || !is_condition(operands[2]))
            refuse(c, inst, "it takes a buffer, an offset of 32 or 64 bits, and a bool");
        else if (!is_one_elem(inst->results, inst->result_count))
            refuse(c, inst, "the results must be 1 to 32 scalars of one type");
        return;
    case TIR_OP_ST:
        if (!is_offset(operands[1]) || !is_condition(operands[2]))
            refuse(c, inst, "it takes a buffer, an offset of 32 or 64 bits, and a bool");
        else if (!is_one_elem(operands + 3, inst->operand_count - 3))
            refuse(c, inst, "the values must be 1 to 32 scalars of one type");
        return;
    case TIR_OP_ATOM:
        if (is_in(operands[0], TIR_SPACE_LOCAL) || !is_offset(operands[1]) ||
            !is_condition(operands[3]) || !tir_type_is_scalar(operands[2]->type))
            refuse(
                c, inst,
                "it takes a tensor or a shared buffer, an offset of 32 or 64 bits, a scalar and a bool");
        return;
    case TIR_OP_RED:
        if (!is_in(operands[0], TIR_SPACE_GLOBAL) || !is_offset(operands[1]) ||
            !is_condition(operands[2]))
            refuse(c, inst, "it takes a tensor, an offset of 32 or 64 bits, and a bool");
        else if (!is_red_vector(c->target, inst))
            refuse(c, inst, "it adds 2 or 4 f32, or 2, 4 or 8 f16 or bf16, as the target can");
        return;
    case TIR_OP_CP_ASYNC:
        if (!is_in(operands[0], TIR_SPACE_SHARED) || !is_in(operands[2], TIR_SPACE_GLOBAL) ||
            !is_offset(operands[1]) || !is_offset(operands[3]) || !is_condition(operands[4]))
            refuse(c, inst, "it copies from a tensor to a shared buffer");
        return;
    default: // LDMATRIX
        if (!is_in(operands[0], TIR_SPACE_SHARED) || !is_offset(operands[1]))
            refuse(c, inst, "it loads from a shared buffer");
        return;
    }
}

static void check_mma(struct check *c, const struct tir_inst *inst)
{
    const bool wide = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_f64;
    const uint32_t bits = wide ? 64 : 32;
    if (!have_bits(inst->operands + TIR_MMA_REGISTERS, inst->operand_count - TIR_MMA_REGISTERS,
                   bits) ||
        (inst->operands[TIR_MMA_SA] && !have_bits(inst->operands, TIR_MMA_REGISTERS, 32)) ||
        !have_bits(inst->results, inst->result_count, bits))
        refuse(c, inst, "it takes and gives registers of 32 bits, of f64 of 64");
}

static void check_inst(struct check *c, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_ALLOC:
        check_alloc(c, inst);
        return;
    case TIR_OP_LD:
    case TIR_OP_ST:
    case TIR_OP_ATOM:
    case TIR_OP_RED:
    case TIR_OP_CP_ASYNC:
    case TIR_OP_LDMATRIX:
        check_access(c, inst);
        return;
    case TIR_OP_MMA:
        check_mma(c, inst);
        return;
    case TIR_OP_PACK:
    case TIR_OP_UNPACK:
        if (!is_one_elem(inst->operands, inst->operand_count) ||
            !is_one_elem(inst->results, inst->result_count) ||
            inst->operands[0]->type->elem == TIR_BOOL || inst->results[0]->type->elem == TIR_BOOL)
            refuse(c, inst, "the parts must be 1 to 32 scalars of one type, and no bools");
        return;
    default:
        break;
    }
    uint32_t lacking;
    const char *wrong = tir_nvptx_check_async(c->f, c->target, inst, &lacking);
    if (wrong && lacking)
        refuse_target(c, inst, wrong, lacking);
    else if (wrong)
        refuse(c, inst, wrong);
}

// Values are scalars of types the machine has, but for what bases are.
static void check_types(struct check *c, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++) {
        const struct tir_type *type = inst->results[i]->type;
        if (!tir_is_allocated(inst) && inst->op != TIR_OP_REMOTE && !tir_type_is_scalar(type))
            refuse(c, inst, "the result is no scalar");
    }
}

bool tir_nvptx_check(const struct tir_func *f, const struct tir_target *target,
                     struct tir_diags *diags)
{
    struct check c = {.f = f, .target = target, .diags = diags};
    if (f->form != TIR_FORM_LOWERED)
        refuse(&c, NULL, "the kernel is not in form lowered");
    if (f->shared_bytes < 0 || f->shared_bytes > target->shared_per_cta) {
        tir_error_at(diags, f->span, TIR_E_SHARED_LIMIT,
                     "%" PRId64 " bytes of shared memory, and %s has %" PRId64, f->shared_bytes,
                     target->name, target->shared_per_cta);
        c.failed = true;
    }
    uint64_t ctas = (uint64_t)f->cluster[0] * f->cluster[1] * f->cluster[2];
    if (f->cluster[0] && !(target->features & TIR_HAS_CLUSTER))
        refuse_target(&c, NULL, "the target has no clusters", TIR_HAS_CLUSTER);
    else if (f->cluster[0] && (f->cluster[0] > 16 || f->cluster[1] > 16 || ctas < 1 || ctas > 16))
        refuse(&c, NULL, "a cluster has 1 to 16 CTAs");
    if (f->preferred[0] && !(target->features & TIR_HAS_PREFERRED))
        refuse_target(&c, NULL, "the target has no preferred clusters", TIR_HAS_PREFERRED);
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i].value->type->space == TIR_SPACE_VALUE &&
            !tir_type_is_scalar(f->params[i].value->type))
            refuse(&c, NULL, "a parameter is neither a tensor nor a scalar the machine has");
    tir_foreach_inst(inst, f) {
        check_types(&c, inst);
        if (!c.failed)
            check_inst(&c, inst);
    }
    return !c.failed;
}
