// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tables of targets and of costs.

#include "machine/target.h"

#include "ir/ir.h"

// Features without their prefix, for the rows alone.
enum {
#define FEATURE(id, ...) id = TIR_HAS_##id,
#include "machine/feature.def"
};

const struct tir_cost tir_costs[TIR_CARD_COUNT] = {
#define CARD(id, name, ...) [TIR_CARD_##id] = {.card = name, __VA_ARGS__},
#include "machine/cost.def"
};

int64_t tir_products_a_cycle(const struct tir_cost *cost, enum tir_elem elem)
{
    return elem == TIR_F64 ? cost->products_of_f64
                           : 16 * cost->products / TIR_MAX(8, tir_elems[elem].bits);
}

const struct tir_target tir_targets[] = {
#define TARGET(id, ...) {.name = id, __VA_ARGS__},
#include "machine/target.def"
};
const uint32_t tir_target_count = TIR_COUNT_OF(tir_targets);

const struct tir_target *tir_target_find(tir_str name)
{
    for (uint32_t i = 0; i < tir_target_count; i++)
        if (tir_str_is(name, tir_targets[i].name))
            return &tir_targets[i];
    return NULL;
}

int64_t tir_tensor_columns(const struct tir_target *target)
{
    return target->features & TIR_HAS_TCGEN05 ? TIR_TMEM_COLUMNS : 0;
}

uint32_t tir_target_ctas(const struct tir_target *target, int64_t shared, uint32_t threads)
{
    const int64_t of_system = target->shared_per_sm - target->shared_per_cta; // in each CTA
    const int64_t by_shared = target->shared_per_sm / (shared + of_system);
    const int64_t by_warps = target->warps_per_sm / TIR_MAX(threads / 32, 1);
    return (uint32_t)TIR_MAX(1, TIR_MIN(TIR_MIN(by_shared, by_warps), target->ctas_per_sm));
}

uint32_t tir_target_ctas_of(const struct tir_target *target, const struct tir_func *f)
{
    const uint32_t ctas = tir_target_ctas(target, f->shared_bytes, f->threads);
    return f->persistent ? TIR_MIN(ctas, f->persistent) : ctas;
}

// PTX 9.7.13.6: f16x2 has no target note above sm_80; vectors, at most 16 bytes.
uint32_t tir_target_red(const struct tir_target *target, enum tir_elem elem)
{
    const bool is_half = elem == TIR_F16 || elem == TIR_BF16;
    if (!is_half && elem != TIR_F32)
        return 1;
    if (target->features & RED_VECTORS)
        return 128 / tir_elems[elem].bits;
    return elem == TIR_F16 ? 2 : 1;
}

// "sm_121": 121; 0: not such a name.
static uint32_t capability_of(tir_str device)
{
    uint32_t number = 0;
    if (device.len < 4 || device.len > 8 || memcmp(device.ptr, "sm_", 3) != 0)
        return 0;
    for (size_t i = 3; i < device.len; i++) {
        if (device.ptr[i] < '0' || device.ptr[i] > '9')
            return 0;
        number = number * 10 + (uint32_t)(device.ptr[i] - '0');
    }
    return number;
}

// Does its code run on that capability alone?
static bool is_exact(const struct tir_target *target)
{
    return target->name[strlen(target->name) - 1] == 'a';
}

const struct tir_target *tir_target_for(tir_str device)
{
    const uint32_t capability = capability_of(device);
    const struct tir_target *best = NULL;
    for (uint32_t i = 0; i < tir_target_count; i++) {
        const struct tir_target *target = &tir_targets[i];
        if (is_exact(target) ? target->capability == capability : target->capability <= capability)
            best = target;
    }
    return best;
}

bool tir_target_runs_on(const struct tir_target *code, const struct tir_target *gpu)
{
    if (is_exact(code))
        return strcmp(code->name, gpu->name) == 0;
    return code->capability <= gpu->capability;
}

uint32_t tir_target_feature(tir_str name)
{
    static const char *const names[] = {
#define FEATURE(id, ...) #id,
#include "machine/feature.def"
    };
    for (uint32_t i = 0; i < TIR_FEATURE_COUNT; i++) {
        size_t at = 0;
        while (at < name.len && names[i][at] &&
               (name.ptr[at] >= 'a' && name.ptr[at] <= 'z' ? name.ptr[at] - 'a' + 'A'
                                                           : name.ptr[at]) == names[i][at])
            at++;
        if (at == name.len && !names[i][at])
            return UINT32_C(1) << i;
    }
    return 0;
}

const char *tir_target_first_with(uint32_t features)
{
    const struct tir_target *target = tir_targets;
    while (!(target->features & features))
        target++;
    return target->name;
}
