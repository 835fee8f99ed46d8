// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rules an artifact keeps, checked on the decoded structures.
//
// Both directions pass through here: encode refuses to write what decode would refuse to read, so
// that a compiler bug shows where it is made. A rule is one line that returns why it is broken.

#include <stdbool.h>
#include <string.h>

#include "artifact.h"
#include "error.h"
#include "formula.h"
#include "tir/tensor_map.h"

// What a list with more entries than the limit has; NULL: it has no more.
#define TEXT_OF(number) #number
#define AT_MOST(count, limit, what) \
    ((count) > (limit) ? "more than " TEXT_OF(limit) " " what : NULL)

static bool same(tir_str a, tir_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

// A name: not empty, printable, no spaces.
static bool is_name(tir_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] <= ' ' || s.ptr[i] == 127)
            return false;
    return s.len > 0 && s.len < 4096;
}

static bool is_text(tir_str s)
{
    return s.len == 0 || (s.ptr && !memchr(s.ptr, 0, s.len));
}

static const char *check_param(const tir_artifact_param *param, const tir_artifact_kernel *kernel)
{
    if (!is_name(param->name))
        return "a parameter has no proper name";
    if ((uint32_t)param->element >= TIR_ELEMENT_COUNT)
        return "a parameter has an unknown element type";
    if ((uint32_t)param->direction > TIR_DIRECTION_INOUT)
        return "a parameter has an unknown direction";
    if ((uint32_t)param->kind > TIR_PARAM_SCALAR)
        return "a parameter has an unknown kind";
    if (param->kind == TIR_PARAM_SCALAR) {
        if (param->rank || param->direction != TIR_DIRECTION_IN)
            return "a scalar parameter is not a plain input";
        if (param->element == TIR_ELEMENT_E2M1)
            return "a scalar parameter has less than a byte";
    }
    if (param->rank > TIR_MAX_RANK)
        return "a tensor has too many dimensions";
    for (uint32_t i = 0; i < TIR_MAX_RANK; i++) {
        const tir_extent *extent = &param->extents[i];
        if (i >= param->rank && (extent->dim || extent->fixed))
            return "a parameter has extents beyond its rank";
        if (i < param->rank && extent->dim != TIR_EXTENT_FIXED &&
            (extent->dim >= kernel->dim_count || extent->fixed))
            return "a tensor names a dimension that does not exist";
        if (extent->fixed < 0)
            return "a tensor has a negative extent";
    }
    return NULL;
}

static bool dim_is_inferable(uint32_t dim, const tir_artifact_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->param_count; i++)
        for (uint32_t d = 0; d < kernel->params[i].rank; d++)
            if (kernel->params[i].extents[d].dim == dim)
                return true;
    return false;
}

// Names that follow from dimensions.
static const char *check_source_names(const tir_artifact_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->name_count; i++) {
        const tir_artifact_name *n = &kernel->names[i];
        if (!is_name(n->name) || !n->value.count)
            return "a name has no proper name or formula";
        for (uint32_t j = 0; j < kernel->dim_count; j++)
            if (same(n->name, kernel->dims[j]))
                return "a name is a dimension";
        for (uint32_t j = 0; j < i; j++)
            if (same(n->name, kernel->names[j].name))
                return "two names are the same";
        const char *wrong = tir_formula_check(&n->value, kernel);
        if (wrong)
            return wrong;
    }
    return NULL;
}

static const char *check_interface(const tir_artifact_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        const char *wrong = check_param(&kernel->params[i], kernel);
        if (wrong)
            return wrong;
        for (uint32_t j = 0; j < i; j++)
            if (same(kernel->params[i].name, kernel->params[j].name))
                return "two parameters have the same name";
    }
    for (uint32_t i = 0; i < kernel->dim_count; i++) {
        if (!is_name(kernel->dims[i]))
            return "a dimension has no proper name";
        if (!dim_is_inferable(i, kernel))
            return "a dimension is not the extent of any tensor";
        for (uint32_t j = 0; j < i; j++)
            if (same(kernel->dims[i], kernel->dims[j]))
                return "two dimensions have the same name";
    }
    for (uint32_t i = 0; i < kernel->meta_count; i++)
        if (!is_name(kernel->metas[i].name) || !is_text(kernel->metas[i].value))
            return "a meta value is not text";
    for (uint32_t i = 0; i < kernel->fixed_count; i++)
        if (!is_name(kernel->fixed[i].name) || kernel->fixed[i].size < 0)
            return "a fixed dimension has no proper name or size";
    return check_source_names(kernel);
}

static bool is_no_cluster(const uint32_t c[3])
{
    return !c[0] && !c[1] && !c[2];
}

static bool is_cluster(const uint32_t c[3])
{
    return c[0] && c[1] && c[2] && c[0] <= 16 && c[1] <= 16 && c[2] <= 16 &&
           c[0] * c[1] * c[2] <= 16;
}

static const char *check_cluster(const tir_artifact_variant *variant)
{
    const uint32_t *c = variant->cluster, *p = variant->preferred;
    if ((!is_no_cluster(c) && !is_cluster(c)) || (!is_no_cluster(p) && !is_cluster(p)))
        return "a cluster is not of 1 to 16 CTAs";
    if (p[0] && (!c[0] || p[0] % c[0] || p[1] % c[1] || p[2] != c[2]))
        return "a preferred cluster is not made of clusters";
    if (p[0] && (variant->persistent || variant->cooperative))
        return "a variant with preferred clusters is persistent or cooperative";
    return NULL;
}

static const char *check_pixels(const tir_artifact_map *map, uint32_t rank)
{
    static const int32_t limits[] = {[3] = 1 << 15, [4] = 1 << 7, [5] = 1 << 4};
    if (map->pixels > 1024 || (map->pixels && (rank < 3 || rank > 5)))
        return "a tensor map has not 0 to 1024 pixels of a tensor of 3 to 5 dimensions";
    for (uint32_t d = 0; map->pixels && d + 1 < rank; d++)
        if (map->box[d] != 1)
            return "a tensor map of pixels has a box of several";
    for (uint32_t i = 0; i < 3; i++) {
        const int32_t limit = map->pixels && i + 2 < rank ? limits[rank] : 0;
        const int32_t low = map->low[i], high = map->high[i];
        if (limit ? low < -limit || low >= limit || high < -limit || high >= limit : low || high)
            return "a tensor map's corners are not of 16, 8 or 5 bits";
    }
    return NULL;
}

static const char *check_map(const tir_artifact_map *map, const tir_artifact_kernel *kernel)
{
    const tir_artifact_param *param =
        map->param < kernel->param_count ? &kernel->params[map->param] : NULL;
    if (!param || param->kind != TIR_PARAM_TENSOR || !param->rank ||
        param->element == TIR_ELEMENT_E2M1)
        return "a tensor map is of no tensor that has one";
    if (map->swizzle != 0 && map->swizzle != 32 && map->swizzle != 64 && map->swizzle != 128)
        return "a tensor map has a swizzle of not 0, 32, 64 or 128 bytes";
    const bool rounds = map->bits == TIR_MAP_TF32 && param->element == TIR_ELEMENT_F32;
    if (map->bits && !rounds &&
        ((map->bits != 4 && map->bits != 6) || tir_element_bits(param->element) != 8 ||
         map->box[param->rank - 1] != 128))
        return "a tensor map's elements are neither rounded f32 nor 128 of 4 or 6 bits, in bytes";
    for (uint32_t i = 0; i < TIR_MAX_RANK; i++)
        if (i < param->rank ? map->box[i] < 1 || map->box[i] > 256 : map->box[i] != 0)
            return "a tensor map's box is not of 1 to 256 elements along each dimension";
    for (uint32_t i = 0; i < TIR_MAX_RANK; i++)
        if (map->stride[i] > (i + 1 < param->rank ? 8 : 1) || map->box[i] * map->stride[i] > 256)
            return "a tensor map's strides are not of 1 to 8 within 256 elements";
    uint32_t row = map->box[param->rank - 1] * tir_element_bits(param->element) / 8;
    if (row % 16 || (map->swizzle && row > map->swizzle))
        return "a row of a tensor map's box is no multiple of 16 bytes within the swizzle";
    return check_pixels(map, param->rank);
}

static const char *check_names(const tir_artifact_variant *variant)
{
    for (uint32_t i = 0; i < variant->role_count; i++) {
        const tir_artifact_role *role = &variant->roles[i];
        if (!is_name(role->name) || role->first >= 32 || role->warps < 1 ||
            role->warps > 32 - role->first)
            return "a role has no proper name or not 1 to 32 warps";
    }
    for (uint32_t i = 0; i < variant->barrier_count; i++) {
        const tir_artifact_barrier *barrier = &variant->barriers[i];
        if (!is_name(barrier->name) || barrier->offset % 8 || !barrier->count ||
            barrier->offset > variant->dynamic_shared ||
            barrier->count > (variant->dynamic_shared - barrier->offset) / 8)
            return "a barrier has no proper name or no place in shared memory";
    }
    return NULL;
}

// What an open variant has is what a launch chooses by; its code is not there yet.
static const char *check_open(const tir_artifact_variant *variant)
{
    const uint32_t *c = variant->cluster;
    if (variant->threads || c[0] || c[1] || c[2] || variant->static_shared ||
        variant->dynamic_shared || variant->grid[0].count || variant->grid[1].count ||
        variant->grid[2].count || variant->persistent || variant->ctas_per_sm ||
        variant->map_count || variant->watchdog || variant->role_count || variant->barrier_count ||
        variant->waits || variant->cooperative || variant->preferred[0] || variant->preferred[1] ||
        variant->preferred[2])
        return "an open variant has what comes with its code";
    return NULL;
}

static const char *check_code(const tir_artifact_variant *variant,
                              const tir_artifact_kernel *kernel)
{
    if (variant->threads < 1 || variant->threads > 1024)
        return "a variant has not 1 to 1024 threads";
    if (variant->dynamic_shared > 1u << 20 || variant->static_shared > 1u << 20)
        return "a variant uses more than 1 MiB of shared memory";
    if (variant->persistent > 1)
        return "a variant is neither persistent nor not";
    if (variant->ctas_per_sm > 64 || (variant->persistent && !variant->ctas_per_sm))
        return "a variant has a wrong number of CTAs per multiprocessor";
    const char *wrong = check_cluster(variant);
    for (int i = 0; i < 3 && !wrong; i++)
        wrong = variant->grid[i].count ? tir_formula_check(&variant->grid[i], kernel)
                                       : "a variant has no grid";
    if (!wrong)
        wrong = AT_MOST(variant->map_count, TIR_MAX_MAPS, "tensor maps of a variant");
    if (!wrong)
        wrong = AT_MOST(variant->role_count, TIR_MAX_ROLES, "roles of a variant");
    if (!wrong)
        wrong = AT_MOST(variant->barrier_count, TIR_MAX_BARRIERS, "barriers of a variant");
    if (!wrong && variant->watchdog > 1)
        wrong = "a variant neither has a watchdog nor none";
    if (!wrong && variant->waits > TIR_WAITS_LAST)
        wrong = "a variant waits for the launch before it in no known way";
    if (!wrong && variant->cooperative > !variant->persistent)
        wrong = "a variant neither is cooperative nor not, or is persistent too";
    if (!wrong)
        wrong = check_names(variant);
    for (uint32_t i = 0; i < variant->map_count && !wrong; i++)
        wrong = check_map(&variant->maps[i], kernel);
    return wrong;
}

// Variants of a configuration mostly have one formula for what they cost, which is checked once.
static bool is_shared(const tir_formula *cost, const tir_formula *before)
{
    return before && cost->ops == before->ops && cost->count == before->count;
}

// before: what the variant before it costs, or NULL.
static const char *check_variant(const tir_artifact_variant *variant, const tir_formula *before,
                                 const tir_artifact_kernel *kernel)
{
    if (!is_name(variant->entry))
        return "a variant has no entry name";
    if (variant->config && variant->config >= kernel->config_count)
        return "a variant is of a configuration that does not exist";
    if (variant->facts & ~(uint32_t)TIR_FACT_ALL)
        return "a variant needs a fact this version does not know";
    if (variant->is_open > 1)
        return "a variant is neither open nor not";
    const char *wrong = tir_formula_check(&variant->when, kernel);
    if (!wrong && !is_shared(&variant->cost, before))
        wrong = tir_formula_check(&variant->cost, kernel);
    if (!wrong)
        wrong = variant->is_open ? check_open(variant) : check_code(variant, kernel);
    if (!wrong && tir_artifact_param_bytes(kernel, variant) > TIR_MAX_PARAM_BYTES)
        wrong = "a variant has more than 4096 bytes of parameters";
    return wrong;
}

int tir_choice_compare(const tir_artifact_choice *choice, const int64_t *dims)
{
    for (uint32_t i = 0; i < choice->dim_count; i++)
        if (choice->dims[i] != dims[i])
            return choice->dims[i] < dims[i] ? -1 : 1;
    return 0;
}

static const char *check_choices(const tir_artifact_tuned *tuned, const tir_artifact_kernel *kernel)
{
    for (uint32_t i = 0; i < tuned->choice_count; i++) {
        const tir_artifact_choice *choice = &tuned->choices[i];
        if (choice->config >= kernel->config_count)
            return "a choice is of a configuration that does not exist";
        if (choice->dim_count != kernel->dim_count)
            return "a choice has not as many sizes as there are dimensions";
        for (uint32_t d = 0; d < choice->dim_count; d++)
            if (choice->dims[d] < 0)
                return "a choice has a negative size";
        if (i > 0 && tir_choice_compare(choice - 1, choice->dims) >= 0)
            return "choices are not in order";
    }
    return NULL;
}

static const char *check_tuned(const tir_artifact_kernel *kernel)
{
    const char *wrong = NULL;
    for (uint32_t i = 0; i < kernel->config_count; i++)
        if (!is_text(kernel->configs[i]))
            return "a configuration is not text";
    if (kernel->tuned_count > TIR_MAX_TUNED)
        return "there are choices for too many devices";
    for (uint32_t i = 0; i < kernel->tuned_count && !wrong; i++) {
        const tir_artifact_tuned *tuned = &kernel->tuned[i];
        if (!tuned->device.len || !is_text(tuned->device) || tuned->choice_count > TIR_MAX_CHOICES)
            return "choices are for a device without a name, or too many";
        for (uint32_t j = 0; j < i; j++)
            if (same(tuned->device, kernel->tuned[j].device) &&
                tuned->multiprocessors == kernel->tuned[j].multiprocessors)
                return "there are choices for a device twice";
        wrong = check_choices(tuned, kernel);
    }
    return wrong;
}

static const char *check_scratch(const tir_artifact_scratch *scratch,
                                 const tir_artifact_kernel *kernel)
{
    if (!is_name(scratch->name) || (uint32_t)scratch->element >= TIR_ELEMENT_COUNT ||
        scratch->rank < 1 || scratch->rank > TIR_MAX_RANK)
        return "a scratch tensor has no proper name, element type or rank";
    for (uint32_t i = 0; i < TIR_MAX_RANK; i++) {
        const tir_formula *extent = &scratch->extents[i];
        if ((i < scratch->rank) != (extent->count > 0))
            return "a scratch tensor has not as many extents as dimensions";
        const char *wrong = tir_formula_check(extent, kernel);
        if (wrong)
            return wrong;
    }
    return NULL;
}

// A step's arguments must fit its parameters; extents are compared at each launch.
static const char *check_step(const tir_artifact_step *step, const tir_artifact_sequence *sequence,
                              const tir_artifact_kernel *kernel, const tir_artifact_desc *desc)
{
    const tir_artifact_kernel *to =
        step->kernel < desc->kernel_count ? &desc->kernels[step->kernel] : NULL;
    if (!to || !to->is_step || to->sequence_count || step->arg_count != to->param_count)
        return "a step is of no kernel that is one, or has not its arguments";
    for (uint32_t i = 0; i < step->arg_count; i++) {
        uint32_t arg = step->args[i];
        tir_artifact_param given = {.kind = TIR_PARAM_TENSOR};
        if (arg < kernel->param_count) {
            given = kernel->params[arg];
        } else if (arg - kernel->param_count < sequence->scratch_count) {
            given.element = sequence->scratch[arg - kernel->param_count].element;
            given.rank = sequence->scratch[arg - kernel->param_count].rank;
        } else {
            return "a step is given what is not there";
        }
        if (given.kind != to->params[i].kind || given.element != to->params[i].element ||
            given.rank != to->params[i].rank)
            return "a step is given an argument of another type";
    }
    return NULL;
}

static const char *check_sequence(const tir_artifact_sequence *sequence,
                                  const tir_artifact_kernel *kernel, const tir_artifact_desc *desc)
{
    if (!is_name(sequence->name))
        return "a sequence has no proper name";
    if (!sequence->step_count || sequence->step_count > TIR_MAX_STEPS ||
        sequence->scratch_count > TIR_MAX_SCRATCH)
        return "a sequence has no steps, or too many, or too many scratch tensors";
    if (sequence->config && sequence->config >= kernel->config_count)
        return "a sequence is of a configuration that does not exist";
    const char *wrong = tir_formula_check(&sequence->cost, kernel);
    for (uint32_t i = 0; i < sequence->scratch_count && !wrong; i++)
        wrong = check_scratch(&sequence->scratch[i], kernel);
    for (uint32_t i = 0; i < sequence->step_count && !wrong; i++)
        wrong = check_step(&sequence->steps[i], sequence, kernel, desc);
    return wrong;
}

static const char *check_counts(const tir_artifact_kernel *kernel)
{
    const char *const wrong[] = {
        AT_MOST(kernel->param_count, TIR_MAX_PARAMS, "parameters"),
        AT_MOST(kernel->dim_count, TIR_MAX_DIMS, "dimensions"),
        AT_MOST(kernel->fixed_count, TIR_MAX_DIMS, "fixed dimensions"),
        AT_MOST(kernel->name_count, TIR_MAX_DIMS, "names in sizes"),
        AT_MOST(kernel->meta_count, TIR_MAX_METAS, "metas"),
        AT_MOST(kernel->condition_count, TIR_MAX_CONDITIONS, "conditions"),
        AT_MOST(kernel->variant_count, TIR_MAX_VARIANTS, "variants"),
        AT_MOST(kernel->sequence_count, TIR_MAX_SEQUENCES, "sequences"),
        AT_MOST(kernel->config_count, TIR_MAX_CONFIGS, "configurations"),
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (wrong[i])
            return wrong[i];
    return NULL;
}

static const char *check_kernel(const tir_artifact_kernel *kernel)
{
    if (!is_name(kernel->name))
        return "it has no proper name";
    const char *wrong = check_counts(kernel);
    if (!wrong)
        wrong = check_interface(kernel);
    for (uint32_t i = 0; i < kernel->condition_count && !wrong; i++) {
        const tir_artifact_condition *condition = &kernel->conditions[i];
        if (!condition->holds.count || !condition->text.len || !is_text(condition->text))
            return "a condition has no formula or no text";
        wrong = tir_formula_check(&condition->holds, kernel);
    }
    for (uint32_t i = 0; i < kernel->variant_count && !wrong; i++)
        wrong =
            check_variant(&kernel->variants[i], i ? &kernel->variants[i - 1].cost : NULL, kernel);
    if (!wrong)
        wrong = check_tuned(kernel);
    if (!wrong && kernel->variant_count == 0 && kernel->sequence_count == 0)
        wrong = "it has no variant";
    if (!wrong && (kernel->is_step > 1 || (kernel->is_step && kernel->sequence_count)))
        wrong = "it is neither a step nor none";
    return wrong;
}

static void count_variants(const tir_artifact_desc *desc, uint32_t *all, uint32_t *open)
{
    *all = *open = 0;
    for (uint32_t i = 0; i < desc->kernel_count; i++)
        for (uint32_t v = 0; v < desc->kernels[i].variant_count; v++, ++*all)
            *open += desc->kernels[i].variants[v].is_open;
}

// Variants of an outline have no code, and all others do.
static const char *check_outline(const tir_artifact_desc *desc, bool has_ptx)
{
    uint32_t all, open;
    count_variants(desc, &all, &open);
    if (open && (open < all || has_ptx || desc->cubin.len))
        return "only some variants are open, or there is code for them";
    return NULL;
}

static const char *check_images(const tir_artifact_desc *desc, bool has_ptx)
{
    uint32_t all, open = 0;
    if (!is_name(desc->target))
        return "the artifact names no target";
    if (desc->kernel_count > TIR_MAX_KERNELS)
        return "the artifact has too many kernels";
    if (!has_ptx && !desc->cubin.len)
        count_variants(desc, &all, &open);
    if (!has_ptx && !desc->cubin.len && !open)
        return "the artifact has neither PTX nor a cubin";
    if (!is_text(desc->ptx) || !is_text(desc->receipt))
        return "the PTX or the receipt is not text";
    if (desc->cubin.len ? !is_name(desc->cubin_arch) : desc->cubin_arch.len > 0)
        return "the cubin and its architecture do not go together";
    return NULL;
}

tir_status tir_artifact_check(const tir_artifact_desc *desc, bool has_ptx, tir_error *error)
{
    const char *wrong = check_images(desc, has_ptx);
    if (wrong)
        return tir_error_set(error, TIR_ERR_INVALID, "%s", wrong);
    for (uint32_t i = 0; i < desc->kernel_count; i++) {
        const tir_artifact_kernel *kernel = &desc->kernels[i];
        wrong = check_kernel(kernel);
        for (uint32_t j = 0; j < i && !wrong; j++)
            if (same(kernel->name, desc->kernels[j].name))
                wrong = "another kernel has the same name";
        for (uint32_t j = 0; j < kernel->sequence_count && !wrong; j++)
            wrong = check_sequence(&kernel->sequences[j], kernel, desc);
        if (wrong)
            return tir_error_set(error, TIR_ERR_INVALID, "kernel %.*s: %s",
                                 kernel->name.len < 64 ? (int)kernel->name.len : 64,
                                 kernel->name.ptr ? kernel->name.ptr : "", wrong);
    }
    wrong = check_outline(desc, has_ptx);
    return wrong ? tir_error_set(error, TIR_ERR_INVALID, "%s", wrong) : TIR_OK;
}

TIR_API size_t tir_artifact_param_bytes(const tir_artifact_kernel *kernel,
                                        const tir_artifact_variant *variant)
{
    size_t at = 0;
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        const tir_artifact_param *param = &kernel->params[i];
        size_t size = param->kind == TIR_PARAM_SCALAR ? tir_element_bits(param->element) / 8
                                                      : sizeof(int64_t);
        at = (at + size - 1) / size * size + size + param->rank * sizeof(int64_t);
    }
    if (kernel->dim_count)
        at = (at + 7) / 8 * 8 + kernel->dim_count * sizeof(int64_t);
    if (variant->map_count)
        at = (at + TIR_MAP_ALIGN - 1) / TIR_MAP_ALIGN * TIR_MAP_ALIGN +
             variant->map_count * TIR_TENSOR_MAP_BYTES;
    if (variant->watchdog)
        at = (at + 7) / 8 * 8 + TIR_WATCHDOG_BYTES;
    return at;
}
