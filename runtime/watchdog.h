// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The records that a kernel with a watchdog writes before it ends itself, and their report.
//
// Such a kernel gets three more parameters: the page, the claim and the time limit of a wait in
// nanoseconds. A warp with an overdue wait writes a record to the page, if its cluster has claimed
// it, and removes the record if the wait ends after all. After another quarter of the limit it
// queries the mbarrier's pending arrivals, which changes the mbarrier, and after yet another
// quarter it traps. The page is memory of the host, which survives the loss of the device. The
// claim, memory of the device, is three u32: 0, or 1 more than the linear number of a cluster;
// whether a warp is querying; how many have queried. The page has one record for each warp of a
// cluster: number 32 r + w for CTA r of the cluster and warp w.
//
//      0   u32  source line, 0xffffffff: not known, 0: no record. Written last
//      4   u32  offset of the mbarrier in dynamic shared memory
//      8   u32  the parity of the wait
//     12   u32  arrivals that were pending when this warp queried
//     16   u32  warps that had queried then, including this one; 0: it has not queried
//     20   u32  0
//     24   u32  the claim
//     28   u32  milliseconds that the wait has taken
#ifndef TIR_RUNTIME_WATCHDOG_H
#define TIR_RUNTIME_WATCHDOG_H

#include "device.h"

enum {
    TIR_WATCHDOG_CLAIM = 12,
    TIR_WATCHDOG_RECORD = 32,
    TIR_WATCHDOG_PAGE = 16 * 32 * TIR_WATCHDOG_RECORD,
};

struct watchdog { // of one variant on one device, whose list it is in
    struct watchdog *next;
    const tir_artifact_kernel *kernel;
    const tir_artifact_variant *variant;
    struct device_page page;
    uint64_t claim;
};

// The watchdog of a variant that has one. The caller destroys it, before the device.
tir_status tir_watchdog_create(tir_rt_device *device, const tir_artifact_kernel *kernel,
                               const tir_artifact_variant *variant, struct watchdog **out,
                               tir_error *error);
void tir_watchdog_destroy(tir_rt_device *device, struct watchdog *watchdog); // NULL is fine

// Writes the parameters of a launch: TIR_WATCHDOG_BYTES.
void tir_watchdog_params(const struct watchdog *watchdog, uint32_t limit_ms, uint8_t *params);

// After a fault: puts the first line of the report into `error`, if a kernel has ended itself.
void tir_watchdog_explain(tir_rt_device *device, tir_error *error);

// The report as tir_rt_emu_findings gives it.
size_t tir_watchdog_report(tir_rt_device *device, uint32_t json, char *text, size_t size);

#endif
