// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A small artifact that uses every feature of the format, for the runtime's tests.

#include "sample.h"

static const tir_str dims[] = {
    [DIM_M] = {"M", 1},
    [DIM_N] = {"N", 1},
    [DIM_K] = {"K", 1},
};

static const tir_artifact_param params[] = {
    [PARAM_A] = {.name = {"A", 1},
                 .element = TIR_ELEMENT_BF16,
                 .rank = 2,
                 .extents = {{.dim = DIM_M}, {.dim = DIM_K}}},
    [PARAM_B] = {.name = {"B", 1},
                 .element = TIR_ELEMENT_BF16,
                 .rank = 3,
                 .extents = {{.dim = TIR_EXTENT_FIXED, .fixed = 4},
                             {.dim = DIM_N},
                             {.dim = DIM_K}}},
    [PARAM_D] = {.name = {"D", 1},
                 .element = TIR_ELEMENT_F32,
                 .direction = TIR_DIRECTION_OUT,
                 .rank = 2,
                 .extents = {{.dim = DIM_M}, {.dim = DIM_N}}},
    [PARAM_STEP] = {.name = {"step", 4}, .kind = TIR_PARAM_SCALAR, .element = TIR_ELEMENT_I32},
    [PARAM_SCALE] = {.name = {"scale", 5}, .kind = TIR_PARAM_SCALAR, .element = TIR_ELEMENT_F32},
};

static const tir_artifact_meta metas[] = {
    {{"BM", 2}, {"128", 3}},
    {{"BN", 2}, {"256", 3}},
};

static const tir_artifact_fixed fixed[] = {{{"P", 1}, 4}};

static const tir_artifact_name names[] = {
    {{"H", 1}, FORMULA(DIM(DIM_K), CONST(2), DO(DIV))},
};

static const tir_artifact_condition conditions[] = {
    {FORMULA(SCALAR(PARAM_STEP), CONST(0), DO(GT)), {"step > 0", 8}},
};

#define TILES_M FORMULA(DIM(DIM_M), CONST(128), DO(CEILDIV))
#define TILES_N FORMULA(DIM(DIM_N), CONST(256), DO(CEILDIV))
#define ONE     FORMULA(CONST(1))

static const tir_artifact_map maps[] = {
    {.param = PARAM_A, .swizzle = 128, .box = {128, 64}},
    {.param = PARAM_B, .swizzle = 0, .box = {1, 256, 8}, .stride = {3}},
};

static const tir_artifact_role roles[] = {{{"load", 4}, 0, 1}, {{"math", 4}, 4, 4}};

static const tir_artifact_barrier barriers[] = {
    {.name = {"full", 4}, .offset = 98240, .count = 4, .arrivals = 1},
    {.name = {"done", 4}, .offset = 98272, .count = 1},
};

static const tir_artifact_variant variants[] = {
    [VARIANT_FAST] = {.entry = {"gemm_fast", 9},
                      .facts = TIR_FACT_INDEX32 | TIR_FACT_VECTOR16,
                      .when = FORMULA(DIM(DIM_K), CONST(64), DO(MOD), DO(NOT)),
                      .threads = 256,
                      .cluster = {2, 1, 1},
                      .static_shared = 1024,
                      .dynamic_shared = 98304,
                      .grid = {FORMULA(DIM(DIM_M), CONST(128), DO(CEILDIV), DIM(DIM_N), CONST(256),
                                       DO(CEILDIV), DO(MUL)),
                               ONE, ONE},
                      .persistent = 1,
                      .ctas_per_sm = 2,
                      .maps = maps,
                      .map_count = COUNT(maps),
                      .roles = roles,
                      .role_count = COUNT(roles),
                      .barriers = barriers,
                      .barrier_count = COUNT(barriers)},
    [VARIANT_WIDE] = {.entry = {"gemm_wide", 9},
                      .facts = TIR_FACT_UNIT_INNER,
                      .config = 1,
                      .threads = 128,
                      .dynamic_shared = 32768,
                      .watchdog = 1,
                      .grid = {TILES_M, TILES_N, ONE}},
    [VARIANT_ANY] = {.entry = {"gemm_any", 8}, .threads = 64, .grid = {TILES_M, TILES_N, ONE}},
};

static const tir_str configs[] = {{"BM=128, BN=256", 14}, {"BM=64, BN=128", 13}};

static const tir_artifact_choice choices[] = {
    {(const int64_t[]){16, 512, 128}, 3, 0},
    {(const int64_t[]){256, 16, 4096}, 3, 1},
    {(const int64_t[]){256, 512, 64}, 3, 1},
};

static const tir_artifact_tuned tuned[] = {
    {{"Fake GPU 1", 10}, 5, choices, 1},
    {{"Fake GPU 0", 10}, 5, choices, COUNT(choices)},
};

static const tir_artifact_param copy_params[] = {
    {.name = {"X", 1}, .element = TIR_ELEMENT_U8, .rank = 1, .extents = {{.dim = 0}}},
    {.name = {"Y", 1},
     .element = TIR_ELEMENT_U8,
     .direction = TIR_DIRECTION_INOUT,
     .rank = 1,
     .extents = {{.dim = 0}}},
};

static const tir_str copy_dims[] = {{"n", 1}};

static const tir_artifact_variant copy_variants[] = {
    {.entry = {"copy", 4},
     .threads = 32,
     .waits = 1,
     .grid = {FORMULA(DIM(0), CONST(32), DO(CEILDIV)), ONE, ONE}},
};

// Y = X by way of memory of its own.
static const tir_artifact_scratch relay_scratch[] = {
    {.name = {"S", 1}, .element = TIR_ELEMENT_U8, .rank = 1, .extents = {FORMULA(DIM(0))}},
};
static const uint32_t relay_first[] = {0, 2}, relay_second[] = {2, 1};
static const tir_artifact_step relay_steps[] = {
    {.kernel = KERNEL_STEP, .args = relay_first, .arg_count = 2},
    {.kernel = KERNEL_STEP, .args = relay_second, .arg_count = 2},
};
static const tir_artifact_sequence relay_sequences[] = {
    {.name = {"relay", 5},
     .scratch = relay_scratch,
     .scratch_count = COUNT(relay_scratch),
     .steps = relay_steps,
     .step_count = COUNT(relay_steps)},
};

static const tir_artifact_kernel kernels[] = {
    {.name = {"gemm", 4},
     .dims = dims,
     .dim_count = COUNT(dims),
     .params = params,
     .param_count = COUNT(params),
     .metas = metas,
     .meta_count = COUNT(metas),
     .fixed = fixed,
     .fixed_count = COUNT(fixed),
     .names = names,
     .name_count = COUNT(names),
     .conditions = conditions,
     .condition_count = COUNT(conditions),
     .variants = variants,
     .variant_count = COUNT(variants),
     .configs = configs,
     .config_count = COUNT(configs),
     .tuned = tuned,
     .tuned_count = COUNT(tuned)},
    {.name = {"copy", 4},
     .dims = copy_dims,
     .dim_count = COUNT(copy_dims),
     .params = copy_params,
     .param_count = COUNT(copy_params),
     .variants = copy_variants,
     .variant_count = COUNT(copy_variants)},
    [KERNEL_RELAY] = {.name = {"relay", 5},
                      .dims = copy_dims,
                      .dim_count = COUNT(copy_dims),
                      .params = copy_params,
                      .param_count = COUNT(copy_params),
                      .sequences = relay_sequences,
                      .sequence_count = COUNT(relay_sequences)},
    [KERNEL_STEP] = {.name = {"relay__step", 11},
                     .dims = copy_dims,
                     .dim_count = COUNT(copy_dims),
                     .params = copy_params,
                     .param_count = COUNT(copy_params),
                     .variants = copy_variants,
                     .variant_count = COUNT(copy_variants),
                     .is_step = 1},
};

static const char ptx[] = ".version 7.8\n.target sm_80\n.address_size 64\n"
                          ".visible .entry gemm_fast()\n{ ret; }\n"
                          ".visible .entry gemm_wide()\n{ ret; }\n"
                          ".visible .entry gemm_any()\n{ ret; }\n"
                          ".visible .entry copy()\n{ ret; }\n";

const tir_artifact_desc sample = {
    .target = {"sm_80", 5},
    .ptx = {ptx, sizeof ptx - 1},
    .cubin_arch = {"sm_90", 5},
    .cubin = {"\177ELF\0cubin", 10},
    .receipt = {"gemm: mma.sync\n", 15},
    .kernels = kernels,
    .kernel_count = COUNT(kernels),
};
