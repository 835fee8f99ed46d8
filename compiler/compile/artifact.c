// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The artifact: what the runtime must know of each kernel, and the code.

#include "compile/compile.h"
#include "compile/configs.h"

#include "compile/formula.h"
#include "compile/known.h"
#include "ir/walk.h"
#include "target/nvptx/tensor_maps.h"

// Elements of tensors and scalars have one of the same name in the artifact.
static const tir_element elements[TIR_ELEM_COUNT] = {
#define NONE(id)
#define BOOLEAN(id)                     [TIR_##id] = TIR_ELEMENT_##id,
#define SIGNED(id)                      [TIR_##id] = TIR_ELEMENT_##id,
#define UNSIGNED(id)                    [TIR_##id] = TIR_ELEMENT_##id,
#define FLOAT(id)                       [TIR_##id] = TIR_ELEMENT_##id,
#define ELEM(id, name, bits, kind, ...) kind(id)
#include "ir/elems.def"
};

static void fill_params(struct tir_compilation *c, const struct tir_func *f,
                        tir_artifact_kernel *kernel)
{
    struct tir_arena *arena = &c->cx.arena;
    tir_str *dims = arena_array(arena, tir_str, f->dim_count + 1);
    for (uint32_t i = 0; i < f->dim_count; i++)
        dims[i] = tir_str_of(f->dims[i].name);
    tir_artifact_param *params = arena_array(arena, tir_artifact_param, f->param_count + 1);
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct tir_param *p = &f->params[i];
        const struct tir_type *type = p->value->type;
        bool is_tensor = type->space == TIR_SPACE_GLOBAL;
        params[i].name = tir_str_of(p->name);
        params[i].kind = is_tensor ? TIR_PARAM_TENSOR : TIR_PARAM_SCALAR;
        params[i].element = elements[type->elem];
        params[i].direction = is_tensor ? p->direction : TIR_DIRECTION_IN;
        params[i].rank = is_tensor ? type->rank : 0;
        for (uint32_t d = 0; d < params[i].rank; d++)
            params[i].extents[d] = p->dims[d].dim >= 0
                                       ? (tir_extent){(uint32_t)p->dims[d].dim, 0}
                                       : (tir_extent){TIR_EXTENT_FIXED, p->dims[d].constant};
    }
    tir_artifact_meta *metas = arena_array(arena, tir_artifact_meta, f->meta_count + 1);
    for (uint32_t i = 0; i < f->meta_count; i++)
        metas[i] = (tir_artifact_meta){tir_str_of(f->metas[i].name), f->metas[i].value};
    kernel->dims = dims;
    kernel->dim_count = f->dim_count;
    kernel->params = params;
    kernel->param_count = f->param_count;
    kernel->metas = metas;
    kernel->meta_count = f->meta_count;
}

// Where the source states a value; nowhere: the kernel.
static struct tir_span span_of(const struct tir_func *f, const struct tir_value *v)
{
    return v->def && v->def->span.begin ? v->def->span : f->span;
}

typedef VEC(tir_formula_op) op_list;

// Adds a condition to those already in ops.
static void demand(struct tir_compilation *c, op_list *ops, const tir_formula_op *one,
                   uint32_t count)
{
    bool first = !ops->len;
    for (uint32_t i = 0; i < count; i++)
        vec_push(&c->cx.arena, ops, one[i]);
    if (!first)
        vec_push(&c->cx.arena, ops, ((tir_formula_op){TIR_FORMULA_AND, 0}));
}

// The conditions that choose this variant, all together.
static bool fill_when(struct tir_compilation *c, const struct tir_func *f, tir_formula *when)
{
    const struct tir_inst *yield = tir_yield_of(f->host);
    op_list ops = {0};
    for (uint32_t i = 0; i < f->when_count; i++) {
        const struct tir_value *v = yield->operands[yield->operand_count - f->when_count + i];
        tir_formula one;
        if (!tir_compile_formula(&c->cx, f, v, f->span, &one))
            return false;
        demand(c, &ops, one.ops, one.count);
    }
    for (uint32_t i = 0; i < f->param_count; i++) {
        const tir_formula_op aligned[] = {
            {TIR_FORMULA_ALIGN, i}, {TIR_FORMULA_CONST, f->params[i].aligned}, {TIR_FORMULA_GE, 0}};
        const tir_formula_op begins[] = {
            {TIR_FORMULA_BEGIN, i}, {TIR_FORMULA_CONST, f->params[i].begins}, {TIR_FORMULA_GE, 0}};
        if (f->params[i].aligned)
            demand(c, &ops, aligned, TIR_COUNT_OF(aligned));
        if (f->params[i].begins)
            demand(c, &ops, begins, TIR_COUNT_OF(begins));
    }
    *when = (tir_formula){ops.at, ops.len};
    return true;
}

static void fill_maps(struct tir_compilation *c, const struct tir_func *f,
                      tir_artifact_variant *variant)
{
    struct tir_tensor_maps uses = tir_tensor_maps(&c->cx.arena, f);
    tir_artifact_map *maps = arena_array(&c->cx.arena, tir_artifact_map, uses.len + 1);
    for (uint32_t i = 0; i < uses.len; i++) {
        maps[i].param = uses.at[i].param;
        maps[i].swizzle = uses.at[i].swizzle;
        maps[i].bits = uses.at[i].bits;
        for (uint32_t d = 0; d < uses.at[i].rank; d++) {
            maps[i].box[d] = (uint32_t)uses.at[i].box[d];
            maps[i].stride[d] = (uint32_t)uses.at[i].stride[d];
        }
        maps[i].pixels = uses.at[i].pixels;
        for (uint32_t d = 0; d < TIR_PIXEL_DIMS; d++) {
            maps[i].low[d] = (int32_t)uses.at[i].low[d];
            maps[i].high[d] = (int32_t)uses.at[i].high[d];
        }
    }
    variant->maps = maps;
    variant->map_count = uses.len;
}

static tir_str name_or(const char *name, const char *other)
{
    return tir_str_of(name ? name : other);
}

// How many arrive at a phase of the barriers of this buffer; 0: nothing says it.
static uint32_t arrivals_of(const struct tir_func *f, const struct tir_value *buffer)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_MBARRIER_INIT && inst->operands[TIR_BAR] == buffer)
            return (uint32_t)tir_attr_int(inst, TIR_ATTR_arrivals, 0);
    return 0;
}

// The names of its warps and mbarriers in messages.
static void fill_names(struct tir_compilation *c, const struct tir_func *f,
                       tir_artifact_variant *variant)
{
    struct tir_arena *arena = &c->cx.arena;
    tir_artifact_role *roles = arena_array(arena, tir_artifact_role, f->role_count + 1);
    VEC(tir_artifact_barrier) barriers = {0};
    for (uint32_t i = 0; i < f->role_count; i++)
        roles[i] = (tir_artifact_role){f->roles[i].name, f->roles[i].first, f->roles[i].warps};
    tir_foreach_inst(inst, f) {
        if (inst->op == TIR_OP_ALLOC && barriers.len < TIR_MAX_BARRIERS &&
            tir_result(inst)->type->elem == TIR_MBARRIER) {
            const struct tir_value *buffer = tir_result(inst);
            vec_push(
                arena, &barriers,
                ((tir_artifact_barrier){.name = name_or(buffer->name, "mbarrier"),
                                        .offset = (uint32_t)tir_attr_int(inst, TIR_ATTR_offset, 0),
                                        .count = (uint32_t)(tir_type_bytes(buffer->type) / 8),
                                        .arrivals = arrivals_of(f, buffer)}));
        }
    }
    variant->roles = roles;
    variant->role_count = TIR_MIN(f->role_count, TIR_MAX_ROLES);
    variant->barriers = barriers.at;
    variant->barrier_count = barriers.len;
}

static bool fill_variant(struct tir_compilation *c, const struct tir_func *f,
                         tir_artifact_variant *variant)
{
    if (tir_compile_is_outline(c)) {
        *variant =
            (tir_artifact_variant){.entry = tir_str_of(f->name), .facts = f->facts, .is_open = 1};
        return fill_when(c, f, &variant->when);
    }
    *variant = (tir_artifact_variant){
        .entry = tir_str_of(f->name),
        .facts = f->facts,
        .threads = f->threads,
        .watchdog = c->request.options.watchdog && tir_nvptx_can_watch(f, &c->request.target),
        .cluster = {f->cluster[0], f->cluster[1], f->cluster[2]},
        .preferred = {f->preferred[0], f->preferred[1], f->preferred[2]},
        .dynamic_shared = (uint32_t)f->shared_bytes,
        .persistent = f->persistent != 0,
        .ctas_per_sm = f->persistent,
        .waits = !tir_nvptx_waits(f, &c->request.target) ? TIR_WAITS_NOT
                 : f->pace == TIR_PACE_BESIDE            ? TIR_WAITS_LAST
                                                         : TIR_WAITS_FIRST,
        .cooperative = tir_nvptx_is_cooperative(f)};
    fill_maps(c, f, variant);
    fill_names(c, f, variant);
    const struct tir_inst *yield = tir_yield_of(f->host);
    tir_formula_op *units = arena_array(&c->cx.arena, tir_formula_op, TIR_COUNT_OF(variant->grid));
    for (uint32_t i = 0; i < TIR_COUNT_OF(variant->grid); i++) {
        units[i] = (tir_formula_op){TIR_FORMULA_CONST, TIR_MAX(1, f->cluster[i])};
        variant->grid[i] = (tir_formula){&units[i], 1}; // one CTA, or one cluster
        if (yield && i < f->grid_count &&
            !tir_compile_formula(&c->cx, f, yield->operands[i], span_of(f, yield->operands[i]),
                                 &variant->grid[i]))
            return false;
    }
    return fill_when(c, f, &variant->when);
}

static bool fill_conditions(struct tir_compilation *c, const struct tir_func *f,
                            tir_artifact_kernel *kernel)
{
    const struct tir_inst *yield = tir_yield_of(f->host);
    uint32_t first = tir_conditions_at(f);
    uint32_t count = yield ? yield->operand_count - first - f->when_count : 0;
    tir_artifact_condition *conditions =
        arena_array(&c->cx.arena, tir_artifact_condition, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct tir_value *holds = yield->operands[first + i];
        int64_t constant;
        if (tir_is_const_int(holds, &constant) && constant)
            continue; // folded: always true
        struct tir_span span = span_of(f, holds);
        tir_artifact_condition *condition = &conditions[kernel->condition_count];
        if (!tir_compile_formula(&c->cx, f, holds, span, &condition->holds))
            return false;
        tir_str text = holds->def && holds->def->span.begin
                           ? tir_source_text(c->cx.diags.sources, holds->def->span)
                           : STR("");
        condition->text = text.len ? text : STR("a condition of the kernel");
        kernel->condition_count++;
    }
    kernel->conditions = conditions;
    return true;
}

// What became of each dimension: which one it is now, or the size that was bound to it.
static const struct tir_param_dim *map_dims(struct tir_compilation *c,
                                            const struct tir_kernel_code *code)
{
    const struct tir_func *f = tir_kernel_head(code);
    struct tir_param_dim *map =
        arena_array(&c->cx.arena, struct tir_param_dim, code->dim_count + 1);
    for (uint32_t p = 0; p < f->param_count; p++)
        for (uint32_t d = 0; d < f->params[p].value->type->rank; d++)
            if (code->params[p].dims[d].dim >= 0)
                map[code->params[p].dims[d].dim] = f->params[p].dims[d];
    return map;
}

// The dimensions whose sizes were bound, by the names that the source has for them.
static void fill_fixed(struct tir_compilation *c, const struct tir_kernel_code *code,
                       const struct tir_param_dim *map, tir_artifact_kernel *kernel)
{
    tir_artifact_fixed *fixed = arena_array(&c->cx.arena, tir_artifact_fixed, code->dim_count + 1);
    for (uint32_t i = 0; i < code->dim_count; i++)
        if (map[i].dim < 0)
            fixed[kernel->fixed_count++] =
                (tir_artifact_fixed){tir_str_of(code->dims[i].name), map[i].constant};
    kernel->fixed = fixed;
}

static bool is_named_before(const tir_artifact_name *names, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (tir_str_equal(names[i].name, tir_str_of(name)))
            return true;
    return false;
}

// The names that follow from dimensions: the host block has their values.
static bool fill_source_names(struct tir_compilation *c, const struct tir_func *f,
                              tir_artifact_kernel *kernel)
{
    VEC(tir_artifact_name) names = {0};
    for (const struct tir_value *v = NULL; (v = tir_sized_name_next(f, v));) {
        tir_artifact_name name = {0};
        if (names.len == TIR_MAX_DIMS || is_named_before(names.at, names.len, v->name))
            continue;
        if (!tir_compile_formula(&c->cx, f, v, f->span, &name.value))
            return false;
        name.name = tir_str_of(v->name);
        vec_push(&c->cx.arena, &names, name);
    }
    kernel->names = names.at;
    kernel->name_count = names.len;
    return true;
}

static tir_formula map_formula(struct tir_compilation *c, tir_formula formula,
                               const struct tir_param_dim *map)
{
    bool is_mapped = false;
    for (uint32_t i = 0; i < formula.count; i++)
        is_mapped |= formula.ops[i].code == TIR_FORMULA_DIM &&
                     map[formula.ops[i].value].dim != formula.ops[i].value;
    if (!is_mapped)
        return formula; // variants of a configuration share it
    tir_formula_op *ops = arena_array(&c->cx.arena, tir_formula_op, formula.count + 1);
    for (uint32_t i = 0; i < formula.count; i++) {
        ops[i] = formula.ops[i];
        if (ops[i].code != TIR_FORMULA_DIM)
            continue;
        const struct tir_param_dim *dim = &map[ops[i].value];
        ops[i] = dim->dim >= 0 ? (tir_formula_op){TIR_FORMULA_DIM, dim->dim}
                               : (tir_formula_op){TIR_FORMULA_CONST, dim->constant};
    }
    return (tir_formula){ops, formula.count};
}

static bool fill_scratch(struct tir_compilation *c, const struct tir_func *f, uint32_t index,
                         const struct tir_param_dim *map, tir_artifact_scratch *scratch)
{
    const struct tir_scratch *from = &f->scratch[index];
    scratch->name = tir_str_of(from->name);
    scratch->element = elements[from->value->type->elem];
    scratch->rank = from->value->type->rank;
    for (uint32_t d = 0; d < scratch->rank; d++) {
        const struct tir_value *extent = tir_scratch_extent(f, index, d);
        tir_formula formula;
        if (!tir_compile_formula(&c->cx, f, extent, span_of(f, extent), &formula))
            return false;
        scratch->extents[d] = map_formula(c, formula, map);
    }
    return true;
}

static bool fill_sequence(struct tir_compilation *c, const struct tir_sequence *from,
                          const struct tir_param_dim *map, tir_artifact_sequence *sequence)
{
    const struct tir_func *f = from->whole;
    struct tir_arena *arena = &c->cx.arena;
    tir_artifact_scratch *scratch = arena_array(arena, tir_artifact_scratch, f->scratch_count + 1);
    tir_artifact_step *steps = arena_array(arena, tir_artifact_step, from->step_count + 1);
    for (uint32_t i = 0; i < f->scratch_count; i++)
        if (!fill_scratch(c, f, i, map, &scratch[i]))
            return false;
    for (uint32_t i = 0; i < from->step_count; i++) {
        const struct tir_step *step = &from->steps[i];
        steps[i] = (tir_artifact_step){
            .kernel = step->kernel,
            .args = step->args,
            .arg_count = tir_kernel_head(&c->kernels.at[step->kernel])->param_count};
    }
    *sequence = (tir_artifact_sequence){.name = tir_str_of(f->name),
                                        .cost = map_formula(c, from->cost, map),
                                        .scratch = scratch,
                                        .scratch_count = f->scratch_count,
                                        .steps = steps,
                                        .step_count = from->step_count};
    return true;
}

// The configurations that were compiled, by their numbers; each variant and each sequence says
// which of them it is one of.
static void fill_configs(struct tir_compilation *c, const struct tir_kernel_code *code,
                         const struct tir_param_dim *map, tir_artifact_variant *variants,
                         tir_artifact_sequence *sequences, tir_artifact_kernel *kernel)
{
    const uint32_t all = code->count + code->sequences.len;
    tir_str *texts = arena_array(&c->cx.arena, tir_str, all);
    const struct tir_func **configs = arena_array(&c->cx.arena, const struct tir_func *, all);
    for (uint32_t v = 0, s = 0; v + s < all;) {
        const struct tir_func *f = v < code->count ? code->variants[v] : NULL;
        const struct tir_func *whole = s < code->sequences.len ? code->sequences.at[s].whole : NULL;
        bool is_variant = !whole || (f && f->config < whole->config);
        const struct tir_func *one = is_variant ? f : whole;
        uint32_t last = kernel->config_count;
        if (!one->config)
            break;
        if (!last || configs[last - 1]->config != one->config) {
            configs[last] = one;
            texts[last] = tir_compile_config_text(&c->cx.arena, one);
            kernel->config_count++;
        }
        *(is_variant ? &variants[v++].config : &sequences[s++].config) = kernel->config_count - 1;
    }
    kernel->configs = texts;
    if (kernel->config_count > 1)
        tir_compile_tuned_fill(&c->tuned, code->name, configs, kernel->config_count, map, kernel);
}

static bool fill_kernel(struct tir_compilation *c, const struct tir_kernel_code *code,
                        tir_artifact_kernel *kernel)
{
    *kernel = (tir_artifact_kernel){.name = tir_str_of(code->name),
                                    .variant_count = code->count,
                                    .sequence_count = code->sequences.len,
                                    .is_step = code->is_step};
    fill_params(c, tir_kernel_head(code), kernel);
    const struct tir_param_dim *map = map_dims(c, code);
    fill_fixed(c, code, map, kernel);
    tir_artifact_sequence *sequences =
        arena_array(&c->cx.arena, tir_artifact_sequence, code->sequences.len + 1);
    for (uint32_t i = 0; i < code->sequences.len; i++)
        if (!fill_sequence(c, &code->sequences.at[i], map, &sequences[i]))
            return false;
    kernel->sequences = sequences;
    tir_artifact_variant *variants =
        arena_array(&c->cx.arena, tir_artifact_variant, code->count + 1);
    for (uint32_t i = 0; i < code->count; i++)
        if (fill_variant(c, code->variants[i], &variants[i]))
            variants[i].cost = map_formula(c, code->costs[i], map);
        else
            return false;
    kernel->variants = variants;
    fill_configs(c, code, map, variants, sequences, kernel);
    return fill_source_names(c, tir_kernel_head(code), kernel) &&
           fill_conditions(c, tir_kernel_head(code), kernel);
}

tir_status tir_compile_artifact_make(struct tir_compilation *c, tir_output output)
{
    tir_artifact_kernel *kernels =
        arena_array(&c->cx.arena, tir_artifact_kernel, c->kernels.len + 1);
    for (uint32_t i = 0; i < c->kernels.len; i++)
        if (!fill_kernel(c, &c->kernels.at[i], &kernels[i]))
            return TIR_ERR_DIAGNOSED;
    tir_str cubin = c->outputs[TIR_OUTPUT_CUBIN];
    tir_artifact_desc desc = {.target = tir_str_of(c->request.target.name),
                              .ptx = c->outputs[TIR_OUTPUT_PTX],
                              .cubin_arch = cubin.len ? tir_str_of(c->request.cubin.name) : STR(""),
                              .cubin = cubin,
                              .receipt = tir_compile_receipt_text(c),
                              .kernels = kernels,
                              .kernel_count = c->kernels.len};
    tir_status status = tir_artifact_encode(&desc, &c->request.options.allocator, &c->artifact,
                                            &c->artifact_size, &c->error);
    if (status == TIR_OK)
        c->outputs[output] = (tir_str){(const char *)c->artifact, c->artifact_size};
    if (status != TIR_ERR_INVALID)
        return status;
    // A limit of the format: the source asks for more than an artifact holds.
    tir_error_at(&c->cx.diags,
                 c->kernels.len ? tir_kernel_head(&c->kernels.at[0])->span
                                : (struct tir_span){0, 0},
                 TIR_E_LIMIT, "%s", c->error.message);
    return TIR_ERR_DIAGNOSED;
}
