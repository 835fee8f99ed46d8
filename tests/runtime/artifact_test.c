// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Artifacts: round trip, refusals, hostile bytes, failing allocations.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "sample.h"

static void assert_text(tir_str a, tir_str b)
{
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.ptr, b.ptr, a.len);
}

static void encode(const tir_artifact_desc *desc, uint8_t **bytes, size_t *size)
{
    tir_error error = {0};
    if (tir_artifact_encode(desc, NULL, bytes, size, &error))
        fail_msg("%s", error.message);
}

static void test_round_trip(void **state)
{
    (void)state;
    uint8_t *bytes, *again;
    size_t size, again_size;
    const tir_artifact_desc *desc;
    tir_error error = {0};
    encode(&sample, &bytes, &size);
    if (tir_artifact_decode(bytes, size, NULL, &desc, &error))
        fail_msg("%s", error.message);
    // The bytes were copied: what was decoded does not change with them.
    encode(desc, &again, &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    memset(bytes, 0xff, size);

    assert_text(desc->ptx, sample.ptx);
    assert_int_equal(desc->ptx.ptr[desc->ptx.len], 0);
    assert_text(desc->cubin, sample.cubin);
    assert_text(desc->receipt, sample.receipt);
    assert_text(desc->target, sample.target);
    const tir_artifact_kernel *kernel = &desc->kernels[0];
    assert_text(kernel->name, TEXT("gemm"));
    assert_int_equal(kernel->param_count, 5);
    assert_int_equal(kernel->params[PARAM_B].extents[0].fixed, 4);
    assert_int_equal(kernel->params[PARAM_B].extents[2].dim, DIM_K);
    assert_int_equal(kernel->params[PARAM_D].direction, TIR_DIRECTION_OUT);
    assert_text(kernel->metas[1].value, TEXT("256"));
    assert_int_equal(kernel->fixed_count, 1);
    assert_text(kernel->fixed[0].name, TEXT("P"));
    assert_int_equal(kernel->fixed[0].size, 4);
    assert_int_equal(kernel->name_count, 1);
    assert_text(kernel->names[0].name, TEXT("H"));
    assert_int_equal(kernel->names[0].value.count, 3);
    assert_text(kernel->conditions[0].text, TEXT("step > 0"));
    const tir_artifact_variant *variant = &kernel->variants[VARIANT_FAST];
    assert_text(variant->entry, TEXT("gemm_fast"));
    assert_int_equal(variant->entry.ptr[variant->entry.len], 0);
    assert_int_equal(variant->facts, TIR_FACT_INDEX32 | TIR_FACT_VECTOR16);
    assert_int_equal(variant->when.count, 4);
    assert_int_equal(variant->cluster[0], 2);
    assert_int_equal(variant->dynamic_shared, 98304);
    assert_int_equal(variant->grid[0].ops[4].value, 256);
    assert_int_equal(variant->ctas_per_sm, 2);
    assert_int_equal(variant->map_count, 2);
    assert_int_equal(variant->maps[0].swizzle, 128);
    assert_int_equal(variant->maps[1].param, PARAM_B);
    assert_int_equal(variant->maps[1].box[1], 256);
    assert_int_equal(variant->maps[1].stride[0], 3);
    assert_int_equal(variant->watchdog, 0);
    assert_text(variant->roles[1].name, TEXT("math"));
    assert_int_equal(variant->roles[1].first, 4);
    assert_int_equal(variant->barrier_count, 2);
    assert_text(variant->barriers[0].name, TEXT("full"));
    assert_int_equal(variant->barriers[0].count, 4);
    assert_int_equal(variant->barriers[1].offset, 98272);
    assert_int_equal(kernel->variants[VARIANT_WIDE].config, 1);
    assert_int_equal(kernel->config_count, 2);
    assert_text(kernel->configs[1], TEXT("BM=64, BN=128"));
    assert_int_equal(kernel->tuned_count, 2);
    assert_text(kernel->tuned[1].device, TEXT("Fake GPU 0"));
    assert_int_equal(kernel->tuned[1].multiprocessors, 5);
    assert_int_equal(kernel->tuned[1].choice_count, 3);
    assert_int_equal(kernel->tuned[1].choices[1].dims[DIM_K], 4096);
    assert_int_equal(kernel->tuned[1].choices[1].config, 1);
    const tir_artifact_kernel *relay = &desc->kernels[KERNEL_RELAY];
    assert_int_equal(relay->variant_count, 0);
    assert_int_equal(relay->is_step, 0);
    assert_int_equal(desc->kernels[KERNEL_STEP].is_step, 1);
    const tir_artifact_sequence *sequence = &relay->sequences[0];
    assert_text(sequence->name, TEXT("relay"));
    assert_text(sequence->scratch[0].name, TEXT("S"));
    assert_int_equal(sequence->scratch[0].element, TIR_ELEMENT_U8);
    assert_int_equal(sequence->scratch[0].extents[0].count, 1);
    assert_int_equal(sequence->step_count, 2);
    assert_int_equal(sequence->steps[1].kernel, KERNEL_STEP);
    assert_int_equal(sequence->steps[1].args[0], 2);
    tir_artifact_free(desc, NULL);
    tir_artifact_bytes_free(bytes, size, NULL);
    tir_artifact_bytes_free(again, again_size, NULL);
}

static void test_param_block(void **state)
{
    (void)state;
    // A and D: 8 + 2 * 8; B: 8 + 3 * 8; step 4, scale 4; three dimensions of 8.
    const tir_artifact_kernel *gemm = &sample.kernels[0];
    assert_int_equal(tir_artifact_param_bytes(gemm, &gemm->variants[VARIANT_ANY]),
                     24 + 32 + 24 + 4 + 4 + 24);
    // Two maps from the next multiple of 64.
    assert_int_equal(tir_artifact_param_bytes(gemm, &gemm->variants[VARIANT_FAST]), 128 + 2 * 128);
    tir_artifact_param params[] = {
        {.kind = TIR_PARAM_SCALAR, .element = TIR_ELEMENT_I8},
        {.kind = TIR_PARAM_SCALAR, .element = TIR_ELEMENT_I16},
        {.kind = TIR_PARAM_TENSOR, .element = TIR_ELEMENT_I8},
        {.kind = TIR_PARAM_SCALAR, .element = TIR_ELEMENT_BOOL},
    };
    tir_artifact_kernel kernel = {.params = params, .param_count = 4};
    tir_artifact_variant variant = {.map_count = 0};
    assert_int_equal(tir_artifact_param_bytes(&kernel, &variant), 8 + 8 + 1);
    kernel.dim_count = 1;
    assert_int_equal(tir_artifact_param_bytes(&kernel, &variant), 24 + 8);
    variant.map_count = 1;
    assert_int_equal(tir_artifact_param_bytes(&kernel, &variant), 64 + 128);
    variant.watchdog = 1;
    assert_int_equal(tir_artifact_param_bytes(&kernel, &variant), 64 + 128 + 24);
    variant.map_count = kernel.dim_count = 0;
    assert_int_equal(tir_artifact_param_bytes(&kernel, &variant), 24 + 24);
}

// Bytes that are cut or changed may still be an artifact; they are never a crash, and whatever
// decodes keeps the rules: it encodes again.
static void try_bytes(const uint8_t *bytes, size_t size)
{
    struct counting counting = {.countdown = -1};
    tir_allocator allocator = counting_allocator(&counting);
    const tir_artifact_desc *desc;
    // An exact copy on the heap lets the sanitizer see a read past the end.
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    tir_error error = {0};
    tir_status status = tir_artifact_decode(copy, size, &allocator, &desc, &error);
    free(copy);
    if (status == TIR_OK) {
        uint8_t *again;
        size_t again_size;
        encode(desc, &again, &again_size);
        tir_artifact_bytes_free(again, again_size, NULL);
        tir_artifact_free(desc, &allocator);
    } else {
        assert_null(desc);
        assert_int_equal(status, error.status);
        assert_true(error.message[0]);
    }
    assert_int_equal(counting.live, 0);
}

static void test_truncated(void **state)
{
    (void)state;
    uint8_t *bytes;
    size_t size;
    const tir_artifact_desc *desc;
    encode(&sample, &bytes, &size);
    for (size_t length = 0; length < size; length++) {
        try_bytes(bytes, length);
        assert_int_not_equal(tir_artifact_decode(bytes, length, NULL, &desc, NULL), TIR_OK);
        if (length < 24)
            continue;
        // A header that agrees with the cut gets further in.
        uint8_t saved[8];
        memcpy(saved, bytes + 8, 8);
        for (int i = 0; i < 8; i++)
            bytes[8 + i] = (uint8_t)((uint64_t)length >> 8 * i);
        try_bytes(bytes, length);
        memcpy(bytes + 8, saved, 8);
    }
    tir_artifact_bytes_free(bytes, size, NULL);
}

static void test_changed_bytes(void **state)
{
    (void)state;
    static const uint8_t flips[] = {0x01, 0x80, 0xff, 0x10};
    uint8_t *bytes;
    size_t size;
    encode(&sample, &bytes, &size);
    for (size_t i = 0; i < size; i++)
        for (size_t flip = 0; flip < sizeof flips; flip++) {
            bytes[i] ^= flips[flip];
            try_bytes(bytes, size);
            bytes[i] ^= flips[flip];
        }
    // Larger damage: four bytes at a time.
    for (size_t i = 0; i + 4 <= size; i += 4) {
        uint8_t saved[4];
        memcpy(saved, bytes + i, 4);
        memset(bytes + i, 0xff, 4);
        try_bytes(bytes, size);
        memset(bytes + i, 0, 4);
        try_bytes(bytes, size);
        memcpy(bytes + i, saved, 4);
    }
    tir_artifact_bytes_free(bytes, size, NULL);
}

static void test_failing_allocation(void **state)
{
    (void)state;
    bool done = false;
    for (int n = 1; !done; n++) {
        struct counting counting = {.countdown = n};
        tir_allocator allocator = counting_allocator(&counting);
        uint8_t *bytes = NULL;
        size_t size = 0;
        const tir_artifact_desc *desc = NULL;
        tir_status status = tir_artifact_encode(&sample, &allocator, &bytes, &size, NULL);
        if (!status)
            status = tir_artifact_decode(bytes, size, &allocator, &desc, NULL);
        done = status == TIR_OK;
        if (!done)
            assert_int_equal(status, TIR_ERR_NO_MEMORY);
        tir_artifact_free(desc, &allocator);
        tir_artifact_bytes_free(bytes, size, &allocator);
        assert_int_equal(counting.live, 0);
        assert_true(n < 1000);
    }
}

static void assert_refused(const tir_artifact_desc *desc, const char *part)
{
    uint8_t *bytes;
    size_t size;
    tir_error error = {0};
    assert_int_equal(tir_artifact_encode(desc, NULL, &bytes, &size, &error), TIR_ERR_INVALID);
    assert_null(bytes);
    if (!strstr(error.message, part))
        fail_msg("'%s' does not say '%s'", error.message, part);
}

// Each case breaks one rule of one copy of the sample.
static void test_refusals(void **state)
{
    (void)state;
    tir_artifact_variant variant;
    tir_artifact_map maps[TIR_MAX_MAPS + 1];
    tir_artifact_role roles[2];
    tir_artifact_barrier barriers[2];
    tir_artifact_param params[5];
    tir_artifact_tuned tuned[2];
    tir_artifact_choice choices[3];
    int64_t sizes[3];
    tir_artifact_name names[2];
    tir_artifact_kernel kernel;
    tir_artifact_desc desc;
    const tir_formula_op unknown_dim[] = {DIM(3)}, float_scalar[] = {SCALAR(PARAM_SCALE)};
    const tir_formula_op underflow[] = {CONST(1), DO(ADD)}, two[] = {CONST(1), CONST(2)};
    const tir_formula_op align_scalar[] = {{TIR_FORMULA_ALIGN, PARAM_STEP}};
    const tir_formula_op align_none[] = {{TIR_FORMULA_ALIGN, 5}};
    const tir_formula_op begin_scalar[] = {{TIR_FORMULA_BEGIN, PARAM_STEP}};
    const tir_formula_op no_cell[] = {CONST(1), {TIR_FORMULA_SET, TIR_MAX_CELLS}};
    const tir_formula_op unset[] = {CONST(1), {TIR_FORMULA_SET, 0}, {TIR_FORMULA_GET, 1}};
    const tir_formula_op nothing[] = {CONST(1), {TIR_FORMULA_SET, 0}};
    const tir_str same_dims[] = {{"M", 1}, {"N", 1}, {"M", 1}};
    tir_formula_op deep[TIR_MAX_STACK + 1];
    for (uint32_t i = 0; i <= TIR_MAX_STACK; i++)
        deep[i] = (tir_formula_op)CONST(1);

#define CASE(change, message)                                \
    do {                                                     \
        desc = sample;                                       \
        kernel = sample.kernels[0];                          \
        memcpy(params, kernel.params, sizeof params);        \
        variant = kernel.variants[0];                        \
        for (int m = 0; m <= TIR_MAX_MAPS; m++)              \
            maps[m] = variant.maps[m % 2];                   \
        variant.maps = maps;                                 \
        memcpy(roles, variant.roles, sizeof roles);          \
        variant.roles = roles;                               \
        memcpy(barriers, variant.barriers, sizeof barriers); \
        variant.barriers = barriers;                         \
        memcpy(tuned, kernel.tuned, sizeof tuned);           \
        memcpy(choices, tuned[1].choices, sizeof choices);   \
        memcpy(sizes, choices[1].dims, sizeof sizes);        \
        choices[1].dims = sizes;                             \
        tuned[1].choices = choices;                          \
        kernel.tuned = tuned;                                \
        names[0] = kernel.names[0];                          \
        kernel.names = names;                                \
        kernel.params = params;                              \
        kernel.variants = &variant;                          \
        kernel.variant_count = 1;                            \
        desc.kernels = &kernel;                              \
        desc.kernel_count = 1;                               \
        change;                                              \
        assert_refused(&desc, message);                      \
    } while (0)
    CASE(desc.target.len = 0, "names no target");
    CASE((desc.ptx.len = 0, desc.cubin.len = 0), "neither PTX nor a cubin");
    CASE(desc.cubin.len = 0, "do not go together");
    CASE(desc.receipt = TEXT("a\0b"), "not text");
    CASE((desc.kernels = (tir_artifact_kernel[]){kernel, kernel}, desc.kernel_count = 2),
         "same name");
    CASE(kernel.name.len = 0, "no proper name");
    CASE(kernel.variant_count = 0, "no variant");
    CASE(kernel.param_count = 3, "names a parameter that does not exist");
    CASE(kernel.dims = same_dims, "same name");
    CASE(params[PARAM_B].name = TEXT("A"), "same name");
    CASE(params[PARAM_B].rank = 7, "too many dimensions");
    CASE(params[PARAM_B].extents[0].fixed = -1, "negative extent");
    CASE(params[PARAM_B].extents[1].dim = 3, "does not exist");
    CASE(params[PARAM_A].extents[2].dim = 1, "beyond its rank");
    CASE(params[PARAM_STEP].direction = TIR_DIRECTION_OUT, "not a plain input");
    CASE(params[PARAM_STEP].element = TIR_ELEMENT_F16, "not an integer scalar");
    CASE(params[PARAM_SCALE].element = TIR_ELEMENT_E2M1, "less than a byte");
    CASE(params[PARAM_SCALE].element = TIR_ELEMENT_COUNT, "unknown element");
    CASE((params[PARAM_A].extents[1].dim = DIM_M, params[PARAM_B].extents[2].dim = DIM_M),
         "not the extent of any tensor");
    CASE(kernel.fixed = ((const tir_artifact_fixed[]){{TEXT("P"), -1}}), "a fixed dimension");
    CASE(kernel.fixed = ((const tir_artifact_fixed[]){{TEXT("not one"), 1}}), "a fixed dimension");
    CASE(kernel.fixed_count = TIR_MAX_DIMS + 1, "more than 32 fixed dimensions");
    CASE(names[0].name = TEXT("not one"), "no proper name or formula");
    CASE(names[0].value.count = 0, "no proper name or formula");
    CASE(names[0].name = TEXT("K"), "a name is a dimension");
    CASE((names[1] = names[0], kernel.name_count = 2), "two names are the same");
    CASE(names[0].value = ((tir_formula){unknown_dim, 1}), "does not exist");
    CASE(kernel.name_count = TIR_MAX_DIMS + 1, "more than 32 names in sizes");
    CASE(variant.threads = 0, "1 to 1024 threads");
    CASE(variant.threads = 1025, "1 to 1024 threads");
    CASE(variant.facts = 8, "a fact");
    CASE(variant.ctas_per_sm = 0, "per multiprocessor");
    CASE(variant.cluster[1] = 0, "cluster");
    CASE(variant.cluster[1] = 16, "cluster");
    CASE(variant.preferred[0] = 4, "a cluster is not of 1 to 16 CTAs");
    CASE((variant.preferred[0] = 3, variant.preferred[1] = variant.preferred[2] = 1),
         "a preferred cluster is not made of clusters");
    CASE((variant.preferred[0] = variant.preferred[2] = 2, variant.preferred[1] = 1),
         "a preferred cluster is not made of clusters");
    CASE((variant.preferred[0] = 4, variant.preferred[1] = variant.preferred[2] = 1),
         "a variant with preferred clusters is persistent"); // it is
    CASE(variant.grid[2].count = 0, "no grid");
    CASE(variant.map_count = TIR_MAX_MAPS + 1, "more than 16 tensor maps");
    CASE(variant.role_count = TIR_MAX_ROLES + 1, "more than 32 roles");
    CASE(variant.watchdog = 2, "a watchdog nor none");
    CASE(variant.waits = 3, "waits for the launch before it in no known way");
    CASE(variant.cooperative = 1, "neither is cooperative nor not"); // it is persistent
    CASE(roles[0].name.len = 0, "a role has no proper name");
    CASE(roles[1].warps = 29, "not 1 to 32 warps");
    CASE(roles[1].warps = 0, "not 1 to 32 warps");
    CASE(barriers[0].name.len = 0, "a barrier has no proper name");
    CASE(barriers[0].offset = 4, "no place in shared memory");
    CASE(barriers[0].count = 9, "no place in shared memory");
    CASE(barriers[1].offset = 98304, "no place in shared memory");
    CASE(maps[0].param = 5, "no tensor that has one");
    CASE(maps[0].param = PARAM_STEP, "no tensor that has one");
    CASE(params[PARAM_A].element = TIR_ELEMENT_E2M1, "no tensor that has one");
    CASE(maps[0].swizzle = 16, "a swizzle of not");
    CASE(maps[0].box[0] = 0, "a tensor map's box");
    CASE(maps[0].box[0] = 257, "a tensor map's box");
    CASE(maps[0].box[2] = 1, "a tensor map's box");
    CASE(maps[0].box[1] = 72, "within the swizzle");
    CASE(maps[1].box[2] = 4, "no multiple of 16 bytes");
    CASE(maps[1].stride[0] = 9, "a tensor map's strides");
    CASE(maps[1].stride[1] = 2, "a tensor map's strides"); // of 256 elements
    CASE(maps[1].stride[2] = 2, "a tensor map's strides");
    CASE(maps[1].stride[3] = 2, "a tensor map's strides");
    CASE(maps[0].pixels = 64, "0 to 1024 pixels"); // of rank 2
    CASE((maps[1].pixels = 1025, maps[1].box[1] = 1), "0 to 1024 pixels");
    CASE(maps[1].pixels = 64, "has a box of several");
    CASE((maps[1].pixels = 64, maps[1].box[1] = 1, maps[1].low[0] = 1 << 15), "corners");
    CASE((maps[1].pixels = 64, maps[1].box[1] = 1, maps[1].high[1] = 1), "corners");
    CASE(maps[1].high[0] = 1, "corners");
    CASE(variant.config = 2, "a configuration that does not exist");
    CASE(kernel.config_count = TIR_MAX_CONFIGS + 1, "more than 64 configurations");
    CASE(kernel.configs = ((const tir_str[]){TEXT("a\0b"), TEXT("c")}), "not text");
    CASE(kernel.config_count = 1, "a choice is of a configuration");
    CASE(kernel.tuned_count = TIR_MAX_TUNED + 1, "too many devices");
    CASE(tuned[1].device.len = 0, "a device without a name");
    CASE(tuned[1].choice_count = TIR_MAX_CHOICES + 1, "or too many");
    CASE(tuned[1].device = tuned[0].device, "for a device twice");
    CASE(choices[0].config = 2, "a choice is of a configuration");
    CASE(choices[0].dim_count = 2, "not as many sizes");
    CASE(sizes[1] = -1, "a negative size");
    CASE(sizes[1] = 513, "not in order");
    CASE((sizes[1] = 512, sizes[2] = 64), "not in order");
    CASE((variant.when = (tir_formula){unknown_dim, 1}), "does not exist");
    CASE((variant.when = (tir_formula){float_scalar, 1}), "not an integer scalar");
    CASE((variant.when = (tir_formula){align_scalar, 1}), "alignment of a scalar");
    CASE((variant.when = (tir_formula){align_none, 1}), "does not exist");
    CASE((variant.when = (tir_formula){begin_scalar, 1}), "alignment of a scalar");
    CASE((variant.when = (tir_formula){underflow, 2}), "not there");
    CASE((variant.when = (tir_formula){no_cell, 2}), "cell that does not exist");
    CASE((variant.when = (tir_formula){unset, 3}), "before it is set");
    CASE((variant.when = (tir_formula){nothing, 2}), "leaves no value");
    CASE((variant.when = (tir_formula){two, 2}), "more than one");
    CASE((variant.when = (tir_formula){deep, TIR_MAX_STACK + 1}), "more than 16 values");
#undef CASE
}

// Each case breaks one rule of the sample's sequence.
static void test_sequence_refusals(void **state)
{
    (void)state;
    const tir_artifact_kernel *relay = &sample.kernels[KERNEL_RELAY];
    const tir_formula_op unknown_dim[] = {DIM(1)};
    tir_artifact_desc desc;
    tir_artifact_kernel kernels[4];
    tir_artifact_sequence sequence;
    tir_artifact_scratch scratch;
    tir_artifact_step step;
    uint32_t args[2];
#define CASE(change, message)                            \
    do {                                                 \
        desc = sample;                                   \
        memcpy(kernels, sample.kernels, sizeof kernels); \
        sequence = relay->sequences[0];                  \
        scratch = sequence.scratch[0];                   \
        step = sequence.steps[0];                        \
        memcpy(args, step.args, sizeof args);            \
        step.args = args;                                \
        sequence.scratch = &scratch;                     \
        sequence.steps = &step;                          \
        sequence.step_count = 1;                         \
        kernels[KERNEL_RELAY].sequences = &sequence;     \
        desc.kernels = kernels;                          \
        change;                                          \
        assert_refused(&desc, message);                  \
    } while (0)
    CASE(sequence.name.len = 0, "a sequence has no proper name");
    CASE(sequence.step_count = 0, "no steps");
    CASE(sequence.step_count = TIR_MAX_STEPS + 1, "too many");
    CASE(sequence.scratch_count = TIR_MAX_SCRATCH + 1, "too many scratch");
    CASE((sequence.cost = (tir_formula){unknown_dim, 1}), "does not exist");
    CASE(scratch.name.len = 0, "a scratch tensor has no proper name");
    CASE(scratch.rank = 0, "element type or rank");
    CASE(scratch.element = TIR_ELEMENT_COUNT, "element type or rank");
    CASE(scratch.rank = 2, "as many extents as dimensions");
    CASE((scratch.extents[0] = (tir_formula){unknown_dim, 1}), "does not exist");
    CASE(scratch.element = TIR_ELEMENT_I8, "an argument of another type");
    CASE(step.kernel = 4, "of no kernel that is one");
    CASE(step.kernel = KERNEL_COPY, "of no kernel that is one");
    CASE(step.arg_count = 1, "has not its arguments");
    CASE(args[1] = 3, "what is not there");
    CASE(kernels[KERNEL_STEP].is_step = 2, "neither a step nor none");
    CASE((kernels[KERNEL_STEP].sequences = &sequence, kernels[KERNEL_STEP].sequence_count = 1),
         "of no kernel that is one");
    CASE(kernels[KERNEL_RELAY].sequence_count = 0, "no variant");
    CASE(kernels[KERNEL_RELAY].sequence_count = TIR_MAX_SEQUENCES + 1, "more than 16 sequences");
#undef CASE
}

enum {
    SECTION_INFO,
    SECTION_STRINGS,
    SECTION_PTX,
    SECTION_CUBIN,
    SECTION_RECEIPT,
    SECTION_FORMULAS
};

// A field of a row of the section table.
static uint8_t *field_of(uint8_t *bytes, int section, int offset)
{
    return bytes + 24 + 24 * section + offset;
}

static void assert_damaged(const uint8_t *bytes, size_t size, const char *part)
{
    const tir_artifact_desc *desc;
    tir_error error = {0};
    assert_int_equal(tir_artifact_decode(bytes, size, NULL, &desc, &error), TIR_ERR_INVALID);
    if (!strstr(error.message, part))
        fail_msg("'%s' does not say '%s'", error.message, part);
}

// Text like that of a program: lines that differ in a number.
static tir_str long_text(char *text, size_t room)
{
    size_t len = 0;
    for (int i = 0; len + 40 < room; i++)
        len += (size_t)snprintf(text + len, room - len, "\tadd.s32 \t%%r%d, %%r%d, 1;\n", i + 1, i);
    return (tir_str){text, len};
}

// Large sections are smaller in the file, and damage to them is found.
static void test_compressed(void **state)
{
    (void)state;
    enum { ROOM = 100000 };
    char *text = malloc(ROOM);
    uint8_t *bytes;
    size_t size;
    const tir_artifact_desc *desc;
    tir_artifact_desc large = sample;
    large.ptx = large.cubin = large.receipt = long_text(text, ROOM);
    encode(&large, &bytes, &size);
    assert_true(size < large.ptx.len);
    assert_int_equal(tir_artifact_decode(bytes, size, NULL, &desc, NULL), TIR_OK);
    assert_text(desc->ptx, large.ptx);
    assert_int_equal(desc->ptx.ptr[desc->ptx.len], 0);
    assert_text(desc->cubin, large.cubin);
    assert_text(desc->receipt, large.receipt);
    tir_artifact_free(desc, NULL);

    for (int section = SECTION_PTX; section <= SECTION_RECEIPT; section++) {
        uint64_t at = 0;
        const uint8_t form = section != SECTION_PTX; // parts are frames of their own
        assert_int_equal(*field_of(bytes, section, 4), form);
        memcpy(&at, field_of(bytes, section, 8), 4);
        for (int i = 0; i < 4000; i += 61) {
            bytes[at + i] ^= 0x20;
            assert_damaged(bytes, size, "cannot be decompressed");
            bytes[at + i] ^= 0x20;
        }
        *field_of(bytes, section, 4) = 2;
        assert_damaged(bytes, size, "a form that it cannot have");
        *field_of(bytes, section, 4) = form;
    }
    *field_of(bytes, SECTION_STRINGS, 4) = 1;
    assert_damaged(bytes, size, "a form that it cannot have");
    tir_artifact_bytes_free(bytes, size, NULL);
    free(text);
}

// Equal formulas are in the file once, and records may only refer to what is there.
static void test_formulas(void **state)
{
    (void)state;
    static const tir_formula_op ops[] = {DIM(DIM_M), CONST(12345678), DO(ADD)};
    static const tir_formula_op same[] = {DIM(DIM_M), CONST(12345678), DO(ADD)};
    static const tir_formula_op other[] = {DIM(DIM_M), CONST(12345678), DO(SUB)};
    const tir_artifact_desc *desc;
    uint8_t *bytes;
    size_t size, sizes[2];
    for (int i = 0; i < 2; i++) {
        tir_artifact_kernel kernel = sample.kernels[0];
        tir_artifact_variant variant = kernel.variants[VARIANT_ANY];
        tir_artifact_desc with = sample;
        variant.cost = (tir_formula){ops, 3};
        variant.grid[1] = (tir_formula){i ? other : same, 3};
        kernel.variants = &variant;
        kernel.variant_count = 1;
        with.kernels = &kernel;
        with.kernel_count = 1;
        encode(&with, &bytes, &size);
        memcpy(&sizes[i], field_of(bytes, SECTION_FORMULAS, 16), 8);
        assert_int_equal(tir_artifact_decode(bytes, size, NULL, &desc, NULL), TIR_OK);
        const tir_artifact_variant *read = &desc->kernels[0].variants[0];
        assert_int_equal(read->cost.count, 3);
        assert_int_equal(read->cost.ops[1].value, 12345678);
        assert_int_equal(read->grid[1].ops[2].code, i ? TIR_FORMULA_SUB : TIR_FORMULA_ADD);
        assert_int_equal(read->cost.ops == read->grid[1].ops, !i);
        tir_artifact_free(desc, NULL);
        if (i)
            break;
        tir_artifact_bytes_free(bytes, size, NULL);
    }
    assert_int_equal(sizes[1] - sizes[0], 3 * 12);
    uint8_t *length = field_of(bytes, SECTION_FORMULAS, 16);
    *length -= 12;
    assert_damaged(bytes, size, "a formula lies outside its section");
    *length -= 1;
    assert_damaged(bytes, size, "its formulas end early");
    tir_artifact_bytes_free(bytes, size, NULL);
}

// Many formulas are a frame.
static void test_long_formulas(void **state)
{
    (void)state;
    enum { OPS = 401 };
    tir_formula_op ops[OPS] = {CONST(1)};
    for (int i = 1; i < OPS; i++)
        ops[i] = i % 2 ? (tir_formula_op)CONST(1) : (tir_formula_op)DO(ADD);
    tir_artifact_kernel kernel = sample.kernels[0];
    tir_artifact_variant variant = kernel.variants[VARIANT_ANY];
    tir_artifact_desc with = sample;
    variant.cost = (tir_formula){ops, OPS};
    kernel.variants = &variant;
    kernel.variant_count = 1;
    with.kernels = &kernel;
    with.kernel_count = 1;
    uint8_t *bytes;
    size_t size;
    uint64_t at = 0, length = 0;
    const tir_artifact_desc *desc;
    encode(&with, &bytes, &size);
    assert_int_equal(*field_of(bytes, SECTION_FORMULAS, 4), 1);
    memcpy(&at, field_of(bytes, SECTION_FORMULAS, 8), 8);
    memcpy(&length, field_of(bytes, SECTION_FORMULAS, 16), 8);
    assert_true(length < OPS * 12 / 10);
    assert_int_equal(tir_artifact_decode(bytes, size, NULL, &desc, NULL), TIR_OK);
    const tir_formula *read = &desc->kernels[0].variants[0].cost;
    assert_int_equal(read->count, OPS);
    for (int i = 0; i < OPS; i++)
        assert_true(read->ops[i].code == ops[i].code && read->ops[i].value == ops[i].value);
    tir_artifact_free(desc, NULL);
    bytes[at + length - 1] ^= 0x20; // of the checksum
    assert_damaged(bytes, size, "cannot be decompressed");
    bytes[at + length - 1] ^= 0x20;
    *field_of(bytes, SECTION_FORMULAS, 4) = 0;
    assert_damaged(bytes, size, "its formulas end early");
    *field_of(bytes, SECTION_FORMULAS, 4) = 2;
    assert_damaged(bytes, size, "a form that it cannot have");
    tir_artifact_bytes_free(bytes, size, NULL);
}

// A frame of zeros: the size of the contents, then blocks that repeat one byte (RFC 8878, 3.1.1).
static size_t frame_of_zeros(uint8_t *frame, uint32_t blocks, uint32_t block)
{
    const uint32_t contents = blocks * block;
    memcpy(frame, (uint8_t[]){0x28, 0xb5, 0x2f, 0xfd, 0xa0}, 5);
    for (int i = 0; i < 4; i++)
        frame[5 + i] = (uint8_t)(contents >> 8 * i);
    for (uint32_t b = 0; b < blocks; b++) {
        const uint32_t head = block << 3 | 1 << 1 | (b + 1 == blocks);
        for (int i = 0; i < 3; i++)
            frame[9 + 4 * b + i] = (uint8_t)(head >> 8 * i);
        frame[9 + 4 * b + 3] = 0;
    }
    return 9 + 4 * blocks;
}

// A file cannot ask for much more memory than it has bytes, and no writer makes one that does.
static void test_compressed_too_far(void **state)
{
    (void)state;
    enum { MANY = 16 << 20 };
    static const struct {
        uint32_t blocks, block;
        bool fits;
    } cases[] = {{1, 4096, true}, {4, 4096, true}, {4, 128 << 10, false}};
    uint8_t *bytes, frame[64];
    size_t size;
    tir_artifact_desc large = sample;
    for (uint32_t i = 0; i < COUNT(cases); i++) {
        const size_t length = frame_of_zeros(frame, cases[i].blocks, cases[i].block);
        large.cubin = (tir_str){(const char *)frame, length};
        encode(&large, &bytes, &size);
        *field_of(bytes, SECTION_CUBIN, 4) = 1;
        const tir_artifact_desc *desc;
        if (cases[i].fits) {
            assert_int_equal(tir_artifact_decode(bytes, size, NULL, &desc, NULL), TIR_OK);
            assert_int_equal(desc->cubin.len, cases[i].blocks * cases[i].block);
            tir_artifact_free(desc, NULL);
        } else {
            assert_damaged(bytes, size, "cannot be decompressed");
        }
        tir_artifact_bytes_free(bytes, size, NULL);
    }
    char *text = calloc(1, MANY);
    large.cubin = (tir_str){text, MANY};
    encode(&large, &bytes, &size);
    assert_int_equal(*field_of(bytes, SECTION_CUBIN, 4), 0);
    tir_artifact_bytes_free(bytes, size, NULL);
    free(text);
}

// The seed that fuzzing starts from is the sample in the form of today. If it is not, write_sample
// writes it anew.
static void test_seed(void **state)
{
    (void)state;
    FILE *file = fopen(SEED, "rb");
    assert_non_null(file);
    uint8_t seed[8192], *bytes, *again;
    const size_t length = fread(seed, 1, sizeof seed, file);
    fclose(file);
    size_t size, again_size;
    const tir_artifact_desc *desc;
    tir_error error = {0};
    if (tir_artifact_decode(seed, length, NULL, &desc, &error))
        fail_msg("%s", error.message);
    encode(desc, &again, &again_size);
    encode(&sample, &bytes, &size);
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    tir_artifact_free(desc, NULL);
    tir_artifact_bytes_free(bytes, size, NULL);
    tir_artifact_bytes_free(again, again_size, NULL);
}

static void test_version(void **state)
{
    (void)state;
    uint8_t *bytes;
    size_t size;
    const tir_artifact_desc *desc;
    tir_error error = {0};
    encode(&sample, &bytes, &size);
    bytes[4]++;
    assert_int_equal(tir_artifact_decode(bytes, size, NULL, &desc, &error), TIR_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "version 21"));
    tir_artifact_bytes_free(bytes, size, NULL);
}

// Every value of an enumeration has a name of its own, and every other value a harmless one.
static void test_names(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TIR_ELEMENT_COUNT; i++) {
        assert_true(tir_element_bits((tir_element)i) >= 4);
        assert_string_not_equal(tir_element_name((tir_element)i), "?");
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(tir_element_name((tir_element)i),
                                    tir_element_name((tir_element)j));
    }
    assert_string_equal(tir_element_name(TIR_ELEMENT_COUNT), "?");
    assert_int_equal(tir_element_bits(TIR_ELEMENT_COUNT), 0);
    assert_string_equal(tir_status_name(TIR_OK), "TIR_OK");
    for (int i = TIR_ERR_DIAGNOSED; i <= TIR_ERR_INTERNAL; i++)
        assert_memory_equal(tir_status_name((tir_status)i), "TIR_ERR_", 8);
    assert_string_equal(tir_status_name((tir_status)99), "unknown tir_status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_param_block),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_compressed_too_far),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_long_formulas),
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_sequence_refusals),
        cmocka_unit_test(test_failing_allocation),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
