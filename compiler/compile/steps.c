// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sequences: a kernel of several tiles loops becomes a kernel for each of them.
//
//     kernel f(A: f32[M, K], D: out f32[M]) {
//         scratch P: f32[4, M];
//         for (z, m) in tiles(4, M by 64) { ... P[z, m:+64] = ... A ...; }
//         for m in tiles(M by 64) { D[m:+64] = ... P ...; }
//     }
// is launched as
//     kernel f__step1(A: f32[M, K], P: out f32[4, M]) { for (z, m) in tiles ... }
//     kernel f__step2(D: out f32[M], P: f32[4, M])    { for m in tiles ... }
//
// Launches overlap (emit.c): a step after the first waits for the one before, where the target can
// do that, so that its CTAs are there when that one ends. A step that needs nothing of the one
// before it, and leaves alone what that one reads, runs beside it, so its CTAs take the place of
// those that have ended: `step(last, beside)` after `step(middle, leads)`.
//
// From there on a step is a kernel like any other. Its parameters are the tensors that it uses,
// with the direction of that use; its variants follow from them; it can be launched by its name.
// Only arithmetic stands outside the loops, and each step computes what it needs of that again.

#include "compile/compile.h"

#include "compile/variants.h"
#include "ir/walk.h"

static uint32_t count_loops(const struct tir_func *f)
{
    uint32_t loops = 0;
    for (const struct tir_inst *inst = f->body->first; inst; inst = inst->next)
        loops += inst->op == TIR_OP_TILES;
    return loops;
}

bool tir_compile_has_steps(const struct tir_func *f)
{
    return count_loops(f) > 1 || f->scratch_count;
}

// The clone of a kernel that becomes one of its steps.
struct split {
    struct tir_arena *arena;
    struct tir_func *f;
    uint32_t *uses;            // by value id
    uint32_t *args;            // what its parameters were
    struct tir_value **values; // arguments of its body: the parameters, then the dimensions
    uint32_t value_count;
};

// Removes what nothing uses any more.
static void sweep(struct split *s, struct tir_block *block)
{
    for (struct tir_inst *inst = block->last, *prev; inst; inst = prev) {
        prev = inst->prev;
        bool used = !tir_has_trait(inst, TIR_PURE);
        for (uint32_t i = 0; i < inst->result_count; i++)
            used |= s->uses[inst->results[i]->id] > 0;
        if (used)
            continue;
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i])
                s->uses[inst->operands[i]->id]--;
        tir_remove(inst);
    }
}

// How the loop uses a tensor.
static enum tir_direction direction_of(const struct tir_func *f, const struct tir_value *tensor)
{
    bool reads = false, writes = false;
    tir_foreach_inst(inst, f) {
        if (!tir_ops[inst->op].has_ref || tir_ref_base(inst) != tensor)
            continue;
        reads |= tir_has_trait(inst, TIR_READS);
        writes |= tir_has_trait(inst, TIR_WRITES);
    }
    return !writes ? TIR_IN : reads ? TIR_INOUT : TIR_OUT;
}

static void push_value(struct split *s, struct tir_value *v)
{
    v->index = s->value_count;
    s->values[s->value_count++] = v;
}

static bool names_dim(const struct tir_param *p, uint32_t dim)
{
    for (uint32_t d = 0; d < p->value->type->rank; d++)
        if (p->dims[d].dim == (int32_t)dim)
            return true;
    return false;
}

static bool scratch_names(const struct tir_func *whole, uint32_t index, uint32_t dim)
{
    for (uint32_t d = 0; d < whole->scratch[index].value->type->rank; d++)
        if (tir_scratch_extent(whole, index, d) == whole->dims[dim].value)
            return true;
    return false;
}

// Which parameters the step has: those it uses, and, for a dimension that it uses and none of them
// states, the first that does.
static void choose_params(const struct split *s, const struct tir_func *whole, bool *kept)
{
    const struct tir_func *f = s->f;
    for (uint32_t i = 0; i < f->param_count; i++)
        kept[i] = s->uses[f->params[i].value->id] > 0;
    for (uint32_t dim = 0; dim < f->dim_count; dim++) {
        bool stated = s->uses[f->dims[dim].value->id] == 0;
        for (uint32_t i = 0; i < f->scratch_count; i++)
            stated |= s->uses[f->scratch[i].value->id] && scratch_names(whole, i, dim);
        for (uint32_t i = 0; i < f->param_count; i++)
            stated |= kept[i] && names_dim(&f->params[i], dim);
        for (uint32_t i = 0; i < f->param_count && !stated; i++)
            if (names_dim(&f->params[i], dim))
                stated = kept[i] = true;
    }
}

static const char *extent_name(const struct split *s, const char *scratch, uint32_t d)
{
    const struct tir_func *f = s->f;
    struct tir_interner *names = f->module->names;
    const char *name = tir_intern(names, tir_str_format(s->arena, "%s_%u", scratch, d));
    bool is_taken = false;
    for (uint32_t i = 0; i < f->param_count; i++)
        is_taken |= f->params[i].name == name;
    for (uint32_t i = 0; i < f->dim_count; i++)
        is_taken |= f->dims[i].name == name;
    for (uint32_t i = 0; i < f->scratch_count; i++)
        is_taken |= f->scratch[i].name == name;
    return is_taken ? extent_name(s, name, d) : name;
}

// A scratch tensor as a parameter. A size that is computed becomes a dimension of its own.
static struct tir_param scratch_param(struct split *s, const struct tir_func *whole, uint32_t index)
{
    struct tir_func *f = s->f;
    const struct tir_scratch *scratch = &f->scratch[index];
    struct tir_param p = {
        .name = scratch->name, .value = scratch->value, .span = scratch->span, .is_scratch = true};
    p.direction = direction_of(f, scratch->value);
    for (uint32_t d = 0; d < scratch->value->type->rank; d++) {
        const struct tir_value *extent = tir_scratch_extent(whole, index, d);
        p.dims[d].dim = -1;
        if (tir_is_const_int(extent, &p.dims[d].constant))
            continue;
        uint32_t dim = 0;
        while (dim < whole->dim_count && whole->dims[dim].value != extent)
            dim++;
        p.dims[d].dim = (int32_t)dim;
        if (dim < whole->dim_count)
            continue;
        p.dims[d].dim = (int32_t)f->dim_count;
        f->dims[f->dim_count].name = extent_name(s, scratch->name, d);
        f->dims[f->dim_count].value = tir_block_add_arg(
            f, f->body, tir_type_scalar(f->module->types, TIR_I64), f->dims[f->dim_count].name);
        f->dim_count++;
    }
    return p;
}

// The dimensions are those that parameters state, in the order in which they do, as where a kernel
// of these parameters is read.
static void renumber_dims(struct split *s)
{
    struct tir_func *f = s->f;
    struct tir_dim *dims = arena_array(s->arena, struct tir_dim, f->dim_count);
    int32_t *numbers = arena_array(s->arena, int32_t, f->dim_count); // plus 1; 0: not stated yet
    int32_t count = 0;
    for (uint32_t i = 0; i < f->param_count; i++)
        for (uint32_t d = 0; d < f->params[i].value->type->rank; d++) {
            int32_t *dim = &f->params[i].dims[d].dim;
            if (*dim < 0)
                continue;
            if (!numbers[*dim]) {
                dims[count] = f->dims[*dim];
                numbers[*dim] = ++count;
            }
            *dim = numbers[*dim] - 1;
        }
    for (uint32_t dim = 0; dim < f->dim_count; dim++)
        assert(numbers[dim] || !s->uses[f->dims[dim].value->id]);
    f->dims = dims;
    f->dim_count = (uint32_t)count;
}

// The signature: what the step uses of the parameters, then of the scratch tensors.
static void make_signature(struct split *s, const struct tir_func *whole)
{
    struct tir_func *f = s->f;
    uint32_t most = f->param_count + f->scratch_count, count = 0;
    bool *kept = arena_array(s->arena, bool, most + 1);
    struct tir_param *params = arena_array(s->arena, struct tir_param, most + 1);
    struct tir_dim *dims =
        arena_array(s->arena, struct tir_dim, f->dim_count + whole->extent_count);
    memcpy(dims, f->dims, f->dim_count * sizeof(*dims));
    f->dims = dims;
    choose_params(s, whole, kept);
    for (uint32_t i = 0; i < f->param_count; i++) {
        if (!kept[i])
            continue;
        s->args[count] = i;
        params[count] = f->params[i];
        if (params[count].value->type->space == TIR_SPACE_GLOBAL)
            params[count].direction = direction_of(f, params[count].value);
        count++;
    }
    for (uint32_t i = 0; i < f->scratch_count; i++)
        if (s->uses[f->scratch[i].value->id]) {
            s->args[count] = whole->param_count + i;
            params[count++] = scratch_param(s, whole, i);
        }
    f->params = params;
    f->param_count = count;
    f->scratch = NULL;
    f->scratch_count = 0;
    renumber_dims(s);
    s->values = arena_array(s->arena, struct tir_value *, count + f->dim_count);
    for (uint32_t i = 0; i < count; i++)
        push_value(s, f->params[i].value);
    for (uint32_t i = 0; i < f->dim_count; i++)
        push_value(s, f->dims[i].value);
    f->body->args = s->values;
    f->body->arg_count = s->value_count;
}

static void drop_extents(struct tir_func *f)
{
    struct tir_inst *yield = tir_yield_of(f->host);
    for (uint32_t i = f->extent_count; yield && i < yield->operand_count; i++)
        yield->operands[i - f->extent_count] = yield->operands[i];
    if (yield)
        yield->operand_count -= f->extent_count;
    f->extent_count = 0;
}

static enum tir_step_place place_of(const struct tir_func *whole, uint32_t index)
{
    uint32_t loops = count_loops(whole);
    if (loops == 1)
        return TIR_STEP_NONE;
    return index == 0 ? TIR_STEP_FIRST : index + 1 < loops ? TIR_STEP_MIDDLE : TIR_STEP_LAST;
}

static struct tir_func *split_off(struct tir_compilation *c, struct tir_func *whole,
                                  const struct tir_inst *loop, uint32_t index, uint32_t *args)
{
    struct split s = {.arena = &c->cx.arena, .f = tir_func_clone_with(whole, loop), .args = args};
    s.f->name =
        tir_intern(&c->cx.names, tir_str_format(s.arena, "%s__step%u", whole->name, index + 1));
    s.f->step = place_of(whole, index);
    if (tir_compile_sharers(whole, loop) == 1)
        memset(s.f->cluster, 0, sizeof(s.f->cluster));
    drop_extents(s.f);
    s.uses = tir_count_uses(s.arena, s.f);
    sweep(&s, s.f->body);
    sweep(&s, s.f->host);
    make_signature(&s, whole);
    return s.f;
}

// Does one of two steps write a tensor that the other one uses?
static bool is_shared(const struct tir_func *a, const uint32_t *args_of_a, const struct tir_func *b,
                      const uint32_t *args_of_b)
{
    for (uint32_t i = 0; i < a->param_count; i++)
        for (uint32_t k = 0; k < b->param_count; k++)
            if (args_of_a[i] == args_of_b[k] &&
                a->params[i].value->type->space == TIR_SPACE_GLOBAL &&
                (a->params[i].direction != TIR_IN || b->params[k].direction != TIR_IN))
                return true;
    return false;
}

// Does the step say itself when it waits, and when the next one may begin?
static bool is_paced_by_hand(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_GRIDDEPCONTROL)
            return true;
    return false;
}

// Which steps run beside the one before them. That one itself waits before it begins, so what is in
// front of it has ended.
static void choose_paces(const struct tir_sequence *sequence, struct tir_func **steps)
{
    for (uint32_t i = 1; i < sequence->step_count; i++) {
        if (steps[i - 1]->pace != TIR_PACE_ALONE || is_paced_by_hand(steps[i - 1]) ||
            is_paced_by_hand(steps[i]) ||
            is_shared(steps[i - 1], sequence->steps[i - 1].args, steps[i], sequence->steps[i].args))
            continue;
        steps[i - 1]->pace = TIR_PACE_LEADS;
        steps[i]->pace = TIR_PACE_BESIDE;
    }
}

bool tir_compile_sequence(struct tir_compilation *c, uint32_t kernel, struct tir_func *f,
                          tir_formula cost)
{
    bool is_partial = c->request.options.run_pass.len || c->request.options.stop_after.len;
    struct tir_kernel_code *code = &c->kernels.at[kernel];
    if (is_partial && (code->count || code->sequences.len))
        return true; // of a program between passes the first configuration
    struct tir_sequence sequence = {.whole = f, .cost = cost};
    struct tir_func *steps[TIR_MAX_STEPS];
    for (const struct tir_inst *inst = f->body->first; inst; inst = inst->next) {
        if (inst->op != TIR_OP_TILES)
            continue;
        if (sequence.step_count == TIR_MAX_STEPS || f->scratch_count > TIR_MAX_SCRATCH) {
            tir_error_at(&c->cx.diags, inst->span, TIR_E_LIMIT,
                         "a kernel has at most %d tiles loops and %d scratch tensors",
                         TIR_MAX_STEPS, TIR_MAX_SCRATCH);
            return false;
        }
        const uint32_t i = sequence.step_count++;
        steps[i] = split_off(c, f, inst, i, sequence.steps[i].args);
    }
    choose_paces(&sequence, steps);
    for (uint32_t i = 0; i < sequence.step_count; i++) {
        sequence.steps[i].kernel = c->kernels.len;
        struct tir_kernel_code part = tir_kernel_new(&c->cx, steps[i]);
        part.is_step = true;
        tir_compile_variants(&c->cx, &c->request, &part, steps[i], (tir_formula){0});
        vec_push(&c->cx.arena, &c->kernels, part);
    }
    vec_push(&c->cx.arena, &c->kernels.at[kernel].sequences, sequence);
    return true;
}
