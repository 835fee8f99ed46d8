// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One launch of one kernel on its way to the device.
#ifndef TIR_RUNTIME_PACKING_H
#define TIR_RUNTIME_PACKING_H

#include "artifact.h"
#include "module.h"
#include "overlap.h"
#include "tir/tensor_map.h"
#include "watchdog.h"

// Where a named dimension was first seen.
struct origin {
    uint8_t known, param;
};

// A tensor is its address and a stride for each dimension.
enum {
    MAX_PARTS =
        TIR_MAX_PARAMS * (1 + TIR_MAX_RANK) + TIR_MAX_DIMS + TIR_MAX_MAPS + TIR_WATCHDOG_BYTES / 8
};

#define TIR_ANY_CONFIG UINT32_MAX

struct packing {
    const tir_rt_kernel *kernel;
    const tir_artifact_kernel *info;
    const tir_rt_device_info *device;
    tir_error *error;
    int64_t dims[TIR_MAX_DIMS];
    struct origin origins[TIR_MAX_DIMS];
    int64_t values[TIR_MAX_PARAMS]; // a scalar, the alignment of a tensor
    uint32_t facts;
    bool has_output, has_work;        // has_work: some output has elements
    uint16_t tensors[TIR_MAX_PARAMS]; // where in `block` a tensor begins
    size_t at;                        // bytes of `block` in use
    void *parts[MAX_PARTS + 1];       // parameters of the kernel in `block`
    uint32_t part_count;
    uint32_t variant; // the one that was picked
    int64_t cost;     // of it; 0: it has none
    _Alignas(TIR_MAP_ALIGN) uint8_t block[TIR_MAX_PARAM_BYTES];
    struct reach reach[TIR_MAX_PARAMS]; // of a tensor; no bytes: it has no elements
};

// Checks the arguments and the kernel's conditions, and packs them.
tir_status tir_packing_fill(struct packing *p, const tir_rt_kernel *kernel, const tir_rt_arg *args,
                            uint32_t count, tir_error *error);
// Picks the variant, the first that fits or the cheapest; wanted -1: of all of the configuration,
// else that one.
tir_status tir_packing_pick(struct packing *p, int32_t wanted, uint32_t config);
// Launches it. The report may be NULL. follows: it is a step after the first of one launch.
tir_status tir_packing_launch(struct packing *p, void *stream, const tir_rt_launch_options *options,
                              tir_rt_launch_report *report, bool follows);

// sequence.c: launches the cheapest of the configuration's sequences that fits and costs less than
// `below`. *done is false where there is none.
tir_status tir_sequence_launch(const struct packing *whole, const tir_rt_arg *args, void *stream,
                               const tir_rt_launch_options *options, uint32_t config, int64_t below,
                               bool *done);
// That sequence, refused if it does not fit.
tir_status tir_sequence_launch_one(const struct packing *whole, const tir_rt_arg *args,
                                   void *stream, const tir_rt_launch_options *options,
                                   uint32_t index);

#endif
