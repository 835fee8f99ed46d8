// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter's entry: binds arguments, checks dimensions and conditions, walks the grid.
//
// Nothing here returns errors upwards: a failure anywhere jumps to tir_interp_run, as running out
// of memory does, so the code that computes stays as plain as the meaning it defines.

#include "interp/state.h"

static void *scalars(struct interp *in)
{
    return arena_array(&in->arena, union tir_number, in->max_lanes);
}

TIR_NORETURN void tir_interp_fail(struct interp *in, const struct tir_inst *inst, tir_status status,
                                  const char *format, ...)
{
    struct tir_text text;
    tir_text_init(&text, &in->scratch, sizeof in->error->message);
    struct tir_span span = inst ? inst->span : in->f->span;
    struct tir_diags *diags = in->f->module->diags;
    if (span.begin && diags && diags->sources) {
        struct tir_position p = tir_source_locate(diags->sources, span.begin);
        if (p.file)
            tir_text_format(&text, STR_FMT ":%u:%u: ", STR_ARG(p.file->name), p.line, p.column);
    }
    va_list args;
    va_start(args, format);
    tir_text_vformat(&text, format, args);
    va_end(args);
    in->status = status;
    if (in->error) {
        size_t len = TIR_MIN(text.len, sizeof in->error->message - 1);
        *in->error = (tir_error){.status = status};
        memcpy(in->error->message, text.ptr, len);
    }
    longjmp(*in->escape, 1);
}

static TIR_NORETURN void out_of_memory(void *user)
{
    struct interp *in = user;
    static const char message[] = "out of memory";
    in->status = TIR_ERR_NO_MEMORY;
    if (in->error) {
        *in->error = (tir_error){.status = in->status};
        memcpy(in->error->message, message, sizeof message);
    }
    longjmp(*in->escape, 1);
}

union tir_number *tir_interp_write(struct interp *in, const struct tir_value *v)
{
    struct slot *slot = &in->slots[v->id];
    if (!slot->at)
        slot->at = v->type->rank
                       ? arena_array(&in->arena, union tir_number, (size_t)tir_type_count(v->type))
                       : scalars(in);
    return v->type->rank ? slot->at : slot->at + in->window;
}

static void fill_constant(struct interp *in, const struct tir_value *v)
{
    union tir_number *at = tir_interp_write(in, v) - (v->type->rank ? 0 : in->window), x;
    if (tir_elem_is_float(v->type->elem))
        x.f = v->constant.f;
    else
        x.i = v->constant.i;
    uint32_t count = v->type->rank ? (uint32_t)tir_type_count(v->type) : in->max_lanes;
    for (uint32_t i = 0; i < count; i++)
        at[i] = x;
}

const union tir_number *tir_interp_read(struct interp *in, const struct tir_value *v)
{
    struct slot *slot = &in->slots[v->id];
    if (!slot->at) {
        if (v->kind != TIR_VALUE_CONST)
            tir_interp_fail(in, v->def, TIR_ERR_INVALID, "a value is used that was never computed");
        fill_constant(in, v);
    }
    return v->type->rank ? slot->at : slot->at + in->window;
}

const struct buffer *tir_interp_buffer(struct interp *in, const struct tir_inst *inst,
                                       const struct tir_value *v)
{
    if (!in->slots[v->id].buffer)
        tir_interp_fail(in, inst, TIR_ERR_INVALID, "a buffer is used before it exists");
    return in->slots[v->id].buffer;
}

union tir_number tir_interp_uniform(struct interp *in, const struct tir_inst *inst,
                                    const struct tir_value *v)
{
    const union tir_number *at = tir_interp_read(in, v);
    uint32_t first = 0;
    while (first + 1 < in->lanes && !in->active[first])
        first++;
    for (uint32_t i = first; i < in->lanes; i++)
        if (in->active[i] && at[i].i != at[first].i)
            tir_interp_fail(in, inst, TIR_ERR_INVALID,
                            "'%s' works on tiles, but here it depends on the thread",
                            tir_ops[inst->op].name);
    return at[first];
}

void tir_interp_copy(struct interp *in, const struct tir_inst *inst, const struct tir_value *to,
                     const struct tir_value *from)
{
    bool all = in->active_count == in->lanes;
    if (!all && (to->type->rank || tir_type_is_buffer(to->type)))
        tir_interp_fail(in, inst, TIR_ERR_INVALID, "a tile under divergent control flow");
    if (tir_type_is_buffer(to->type)) {
        in->slots[to->id].buffer = in->slots[from->id].buffer;
        return;
    }
    const union tir_number *src = tir_interp_read(in, from);
    union tir_number *dst = tir_interp_write(in, to);
    uint32_t count = count_of(in, to->type);
    if (all && dst != src)
        memcpy(dst, src, count * sizeof *dst);
    for (uint32_t i = 0; !all && i < count; i++)
        if (in->active[i])
            dst[i] = src[i];
}

// Elementwise operations: number.h says what one element gives.
static void elementwise(struct interp *in, const struct tir_inst *inst)
{
    enum tir_rule rule = tir_ops[inst->op].rule;
    if (rule != TIR_RULE_SAME && rule != TIR_RULE_COMPARE && rule != TIR_RULE_SELECT)
        tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED,
                        "'%s' is a machine operation: run it on the emulator or a GPU",
                        tir_ops[inst->op].name);
    const struct tir_value *result = inst->results[0];
    enum tir_elem elem = inst->operands[inst->operand_count - 1]->type->elem;
    const union tir_number *from[3];
    uint32_t step[3];
    for (uint32_t k = 0; k < inst->operand_count; k++) {
        from[k] = tir_interp_read(in, inst->operands[k]);
        step[k] = inst->operands[k]->type->rank == result->type->rank;
        if (!step[k])
            tir_interp_uniform(in, inst, inst->operands[k]);
    }
    union tir_number *to = tir_interp_write(in, result);
    uint32_t count = count_of(in, result->type);
    for (uint32_t i = 0; i < count; i++) {
        union tir_number x[3];
        for (uint32_t k = 0; k < inst->operand_count; k++)
            x[k] = from[k][i * step[k]];
        if (!tir_number_apply(inst->op, elem, x, &to[i]))
            tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED, "'%s' on %s cannot be interpreted",
                            tir_ops[inst->op].name, tir_elems[elem].name);
    }
}

static void (*const run_op[TIR_OP_COUNT])(struct interp *in, const struct tir_inst *inst) = {
#define X(op, name) [TIR_OP_##op] = tir_interp_##name,
    INTERP_OPS(X)
#undef X
};

// The steps of an instruction: large tiles count more.
static uint64_t work_of(const struct tir_inst *inst)
{
    return 1 + (inst->result_count ? (uint64_t)tir_type_count(inst->results[0]->type) / 64 : 0);
}

void tir_interp_block(struct interp *in, const struct tir_block *block)
{
    tir_interp_until(in, block->first, NULL);
}

void tir_interp_until(struct interp *in, const struct tir_inst *inst, const struct tir_inst *end)
{
    for (; inst != end; inst = inst->next) {
        in->steps += work_of(inst);
        if (in->steps > in->step_limit)
            tir_interp_fail(in, inst, TIR_ERR_INVALID, "gave up after %llu steps",
                            (unsigned long long)in->step_limit);
        if (in->active_count < in->lanes && tir_has_tile(inst))
            tir_interp_fail(in, inst, TIR_ERR_INVALID, "a tile under divergent control flow");
        if (inst->op == TIR_OP_PTX)
            tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED, "inline PTX cannot be interpreted");
        struct tir_arena_mark mark = tir_arena_mark(&in->scratch);
        if (run_op[inst->op])
            run_op[inst->op](in, inst);
        else
            elementwise(in, inst);
        tir_arena_release(&in->scratch, mark);
    }
}

// Arguments.

static void bind_tensor(struct interp *in, uint32_t index, const struct tir_interp_arg *arg,
                        int64_t *dims)
{
    const struct tir_func *f = in->f;
    const struct tir_param *p = &f->params[index];
    struct buffer *b = arena_new(&in->arena, struct buffer);
    *b = (struct buffer){.data = arg->data, .elem = arg->elem, .rank = arg->rank};
    int64_t elements = 1;
    for (uint32_t d = 0; d < arg->rank; d++) {
        int64_t size = b->shape[d] = arg->shape[d];
        b->stride[d] = arg->strides[d];
        elements = size && elements ? elements : 0;
        if (size < 0)
            tir_interp_fail(in, NULL, TIR_ERR_INVALID, "'%s' has a negative size", p->name);
        int32_t dim = p->dims[d].dim;
        int64_t want = dim < 0 ? p->dims[d].constant : dims[dim];
        if (dim >= 0 && want < 0)
            dims[dim] = size;
        else if (size != want)
            tir_interp_fail(in, NULL, TIR_ERR_INVALID, "dimension %u of '%s' is %lld%s%s, not %lld",
                            d, p->name, (long long)want, dim < 0 ? "" : ", as ",
                            dim < 0 ? "" : f->dims[dim].name, (long long)size);
    }
    if (!b->data && elements)
        tir_interp_fail(in, NULL, TIR_ERR_INVALID, "'%s' has no data", p->name);
    in->slots[p->value->id].buffer = b;
}

static void bind_number(struct interp *in, const struct tir_value *v, union tir_number x)
{
    union tir_number *at = tir_interp_write(in, v);
    for (uint32_t i = 0; i < in->max_lanes; i++)
        at[i] = x;
}

static void bind_args(struct interp *in, const struct tir_interp_arg *args, uint32_t count)
{
    const struct tir_func *f = in->f;
    if (count != f->param_count)
        tir_interp_fail(in, NULL, TIR_ERR_INVALID, "kernel '%s' takes %u arguments, got %u",
                        f->name, f->param_count, count);
    int64_t *dims = arena_array(&in->arena, int64_t, f->dim_count);
    for (uint32_t i = 0; i < f->dim_count; i++)
        dims[i] = -1;
    for (uint32_t i = 0; i < count; i++) {
        const struct tir_type *type = f->params[i].value->type;
        if (args[i].elem != type->elem || args[i].rank != type->rank)
            tir_interp_fail(in, NULL, TIR_ERR_INVALID, "'%s' is a %s of rank %u, got %s of rank %u",
                            f->params[i].name, tir_elems[type->elem].name, type->rank,
                            args[i].elem < TIR_ELEM_COUNT ? tir_elems[args[i].elem].name : "?",
                            args[i].rank);
        if (tir_type_is_buffer(type)) {
            bind_tensor(in, i, &args[i], dims);
            continue;
        }
        uint64_t bits = 0; // little-endian, as every host and device here
        memcpy(&bits, args[i].data, (tir_elems[type->elem].bits + 7) / 8);
        bind_number(in, f->params[i].value, tir_number_decode(type->elem, bits));
    }
    for (uint32_t i = 0; i < f->dim_count; i++) {
        if (dims[i] < 0)
            tir_interp_fail(in, NULL, TIR_ERR_INVALID, "no tensor has the dimension '%s'",
                            f->dims[i].name);
        bind_number(in, f->dims[i].value, (union tir_number){.i = dims[i]});
    }
}

// Memory for a scratch tensor, filled with unwritten elements.
static void make_scratch(struct interp *in, uint32_t index)
{
    const struct tir_scratch *scratch = &in->f->scratch[index];
    const struct tir_type *type = scratch->value->type;
    struct buffer *b = arena_new(&in->arena, struct buffer);
    *b = (struct buffer){.elem = type->elem, .rank = type->rank};
    int64_t count = 1, bits;
    for (uint32_t d = type->rank; d-- > 0;) {
        b->shape[d] = tir_interp_read(in, tir_scratch_extent(in->f, index, d))->i;
        b->stride[d] = count;
        if (b->shape[d] < 0 || !tir_mul_checked(count, b->shape[d], &count))
            tir_interp_fail(in, NULL, TIR_ERR_INVALID, "dimension %u of '%s' is %lld", d,
                            scratch->name, (long long)b->shape[d]);
    }
    if (!tir_mul_checked(count, tir_elems[type->elem].bits, &bits))
        tir_interp_fail(in, NULL, TIR_ERR_INVALID, "'%s' has %lld elements", scratch->name,
                        (long long)count);
    size_t size = (size_t)(bits / 8 + 1);
    b->data = memset(tir_arena_alloc(&in->arena, size), 0xff, size);
    in->slots[scratch->value->id].buffer = b;
}

// Evaluates the host block: the grid, the scratch tensors, the conditions of the where clauses.
static void run_host(struct interp *in)
{
    const struct tir_func *f = in->f;
    const struct tir_inst *yield = f->host ? tir_yield_of(f->host) : NULL;
    if (!yield)
        return;
    tir_interp_block(in, f->host);
    for (uint32_t i = 0; i < yield->operand_count; i++) {
        int64_t x = tir_interp_read(in, yield->operands[i])[0].i;
        if (i < f->grid_count)
            in->grid[i] = x;
        else if (i >= tir_conditions_at(f) && !x)
            tir_interp_fail(in, yield->operands[i]->def, TIR_ERR_INVALID,
                            "a condition of kernel '%s' does not hold", f->name);
    }
    for (uint32_t i = 0; i < f->scratch_count; i++)
        make_scratch(in, i);
}

static void run_cta(struct interp *in)
{
    if (in->shared)
        memset(in->shared, 0xff, (size_t)in->f->shared_bytes);
    in->active_count = in->lanes;
    memset(in->active, 1, in->lanes);
    tir_interp_block(in, in->f->body);
}

static void run_kernel(struct interp *in, const struct tir_interp_arg *args, uint32_t count)
{
    const struct tir_func *f = in->f;
    in->slots = arena_array(&in->arena, struct slot, f->value_count);
    const struct tir_inst *last = f->body->last;
    bool roles = last && last->op == TIR_OP_ROLE;
    in->threads = (f->grid_count || roles) && f->threads;
    in->max_lanes = in->threads ? f->threads : 1;
    in->lanes = in->active_count = 1;
    in->active = arena_array(&in->arena, uint8_t, in->max_lanes);
    in->active[0] = 1;
    bind_args(in, args, count);
    run_host(in);
    if (in->only_conditions)
        return;
    in->lanes = in->max_lanes;
    if (tir_interp_syncs_grid(f)) {
        tir_interp_grid(in);
        return;
    }
    if (f->shared_bytes > 0)
        in->shared = tir_arena_alloc(&in->arena, (size_t)f->shared_bytes);
    for (in->cta[2] = 0; in->cta[2] < in->grid[2]; in->cta[2]++)
        for (in->cta[1] = 0; in->cta[1] < in->grid[1]; in->cta[1]++)
            for (in->cta[0] = 0; in->cta[0] < in->grid[0]; in->cta[0]++)
                run_cta(in);
}

// Apart from tir_interp_run, so that nothing the caller still needs changes after setjmp.
static void run_protected(struct interp *in, const struct tir_interp_arg *args, uint32_t count)
{
    jmp_buf escape;
    in->escape = &escape;
    if (!setjmp(escape))
        run_kernel(in, args, count);
    in->escape = NULL;
}

tir_status tir_interp_run(struct tir_func *f, const struct tir_interp_arg *args, uint32_t count,
                          const struct tir_interp_options *options, tir_error *error)
{
    struct interp in = {.f = f, .grid = {1, 1, 1}, .error = error, .status = TIR_OK};
    in.options = options;
    in.step_limit = options && options->step_limit ? options->step_limit : UINT64_C(1) << 32;
    in.only_conditions = options && options->only_conditions;
    const tir_allocator *allocator = options ? options->allocator : NULL;
    tir_arena_init(&in.arena, allocator, out_of_memory, &in);
    tir_arena_init(&in.scratch, allocator, out_of_memory, &in);
    run_protected(&in, args, count);
    tir_arena_finish(&in.scratch);
    tir_arena_finish(&in.arena);
    return in.status;
}
