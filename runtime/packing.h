// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One launch of one kernel on its way to the device.
#ifndef TIR_RUNTIME_PACKING_H
#define TIR_RUNTIME_PACKING_H

#include "artifact.h"
#include "module.h"
#include "overlap.h"
#include "plan.h"
#include "tir/tensor_map.h"
#include "watchdog.h"

// A tensor is its address and a stride for each dimension.
enum {
    TIR_BASE_PARTS = TIR_MAX_PARAMS * (1 + TIR_MAX_RANK) + TIR_MAX_DIMS,
    TIR_MAX_PARTS = TIR_BASE_PARTS + TIR_MAX_MAPS + TIR_WATCHDOG_BYTES / 8,
};

// What launches of a kernel have in common: where the parameters of all variants lie in the block,
// and plans. A plan is what was decided for arguments of certain shapes, strides and alignments.
struct launch_layout {
    uint16_t at[TIR_BASE_PARTS];    // of each part
    uint16_t param[TIR_MAX_PARAMS]; // of each parameter's first part
    uint64_t decisive;              // 1 << parameter for each scalar that a formula uses
    struct tensor_place {
        uint8_t param, rank;
        uint16_t at; // of its address
    } tensors[TIR_MAX_PARAMS];
    uint8_t scalars[TIR_MAX_PARAMS], outputs[TIR_MAX_PARAMS]; // outputs: tensors that are written
    uint32_t tensor_count, scalar_count, output_count;
    uint32_t part_count;
    bool has_plans;
    struct plans plans;
};

// Of each scratch tensor, in bytes.
enum { SCRATCH_ALIGN = 256 };

#define TIR_ANY_CONFIG UINT32_MAX

// Where a named dimension was first seen.
struct origin {
    uint8_t known, param;
};

struct packing {
    const tir_rt_kernel *kernel;
    const tir_artifact_kernel *info;
    const tir_rt_device_info *device;
    tir_error *error;
    int64_t dims[TIR_MAX_DIMS];
    struct origin origins[TIR_MAX_DIMS];
    int64_t values[TIR_MAX_PARAMS]; // a scalar, the alignment of a tensor
    uint32_t facts;
    bool has_output, has_work; // has_work: some output has elements
    bool is_tuned;             // its configuration was chosen by measurement
    struct plan *plan;         // whose variant, tensor maps and grid these are, or NULL
    uint32_t key_words;        // of `key`, that of the arguments; 0: they have none
    uint32_t part_count;
    uint32_t variant; // the one that was picked; from their count on a sequence
    uint64_t misfits; // 1 << variant for each whose tensor maps do not exist
    int64_t cost;     // of it; 0: it has none
    uint32_t grid[3];
    size_t params_size;
    void **parts;   // parameters of the kernel in `block`, and NULL; of one without maps not all
    uint8_t *block; // of the plan or, without one, `own_block`; of `parts` the same
    // From here on nothing is set at first.
    uint64_t key[TIR_PLAN_KEY_WORDS];
    struct reach reach[TIR_MAX_PARAMS]; // no bytes: it is a scalar or has no elements
    void *own_parts[TIR_MAX_PARTS + 1];
    _Alignas(TIR_MAP_ALIGN) uint8_t own_block[TIR_MAX_PARAM_BYTES];
};

// pack.c

void tir_layout_init(struct launch_layout *layout, const tir_artifact_kernel *info,
                     const tir_allocator *allocator);
void tir_layout_finish(struct launch_layout *layout);

// The key of these arguments for a plan, but for its first word, and the addresses of the tensors,
// by parameter. False: they are not simple, and may be wrong.
bool tir_packing_key(struct packing *p, const tir_rt_arg *args, uint64_t data[TIR_MAX_PARAMS]);
// Writes those addresses, and the scalars, over what the block of the plan has of the parameters
// that all variants have. False: a scalar is wrong.
bool tir_packing_args(struct packing *p, const tir_rt_arg *args, const uint64_t *data);
// Checks the arguments and the kernel's conditions, and packs them.
tir_status tir_packing_fill(struct packing *p, const tir_rt_kernel *kernel, const tir_rt_arg *args,
                            uint32_t count, tir_error *error);
// A tensor as it was packed.
struct footprint tir_packing_footprint(const struct packing *p, uint32_t index);
// Where the variant's tensor maps begin in the block.
static inline size_t tir_packing_maps_at(const struct packing *p,
                                         const tir_artifact_variant *variant)
{
    return p->params_size - (variant->watchdog ? TIR_WATCHDOG_BYTES : 0) -
           (size_t)variant->map_count * TIR_TENSOR_MAP_BYTES;
}
// Refuses tensors that share memory where the kernel writes one of them.
tir_status tir_packing_overlap(const struct packing *p);

// launch.c

// Picks the variant by its conditions, the first that fits or the cheapest; wanted -1: of all of
// the configuration, else that one.
tir_status tir_packing_pick(struct packing *p, int32_t wanted, uint32_t config);
// Picks, until the tensor maps of the variant exist, as far as they are known.
tir_status tir_packing_find(struct packing *p, int32_t wanted, uint32_t config);
// Makes the tensor maps of the picked variant and loads it. *fits false: they do not exist, and it
// will not be picked again.
tir_status tir_packing_settle(struct packing *p, bool *fits);
// The configuration that was measured to be the fastest for these sizes, or TIR_ANY_CONFIG.
uint32_t tir_packing_config(const struct packing *p);
// Picks and settles, until one fits.
tir_status tir_packing_choose(struct packing *p, int32_t wanted, uint32_t config);
// A launch by itself, a step after the first of one launch, or one right behind a step that was
// launched.
enum launch_place { LAUNCH_ALONE, LAUNCH_LATER, LAUNCH_NEXT };
// Launches it. The report may be NULL.
tir_status tir_packing_launch(struct packing *p, void *stream, const tir_rt_launch_options *options,
                              tir_rt_launch_report *report, enum launch_place place);

// recall.c: plans.

// Words of a plan beside its parameters.
uint32_t tir_packing_head_words(const tir_artifact_kernel *info);

enum recall_use { RECALL_LAUNCH, RECALL_STEP };

// Packs arguments for which there is a plan, into the plan, which tir_packing_done gives back.
// False: there is none, or they need a closer look; then tir_packing_fill is next. `wanted` is that
// of the launch options.
bool tir_packing_recall(struct packing *p, const tir_rt_kernel *kernel, const tir_rt_arg *args,
                        uint32_t count, int32_t wanted, enum recall_use use, tir_error *error);
// Gives the plan back, if it has one.
void tir_packing_done(struct packing *p);
// Makes a plan of a launch that tir_packing_recall knew nothing of.
void tir_packing_remember(const struct packing *p);

// sequence.c: launches the cheapest of the configuration's sequences that fits and costs less than
// `below`, and sets the variant to its number. *done is false where there is none.
tir_status tir_sequence_launch(struct packing *whole, const tir_rt_arg *args, void *stream,
                               const tir_rt_launch_options *options, uint32_t config, int64_t below,
                               bool *done);
// What that sequence would launch: calls `visit` with the variant of each step, until it fails.
tir_status tir_sequence_steps(const struct packing *whole, const tir_rt_arg *args, uint32_t config,
                              int64_t below,
                              tir_status (*visit)(void *user, const tir_rt_kernel *kernel,
                                                  uint32_t variant, tir_error *error),
                              void *user, bool *done);
// The sequence of that number, refused if it does not fit: *done is false then.
tir_status tir_sequence_launch_one(const struct packing *whole, const tir_rt_arg *args,
                                   void *stream, const tir_rt_launch_options *options,
                                   uint32_t index, bool *done);

#endif
