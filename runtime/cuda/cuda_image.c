// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Images as modules of the driver.
//
// PTX goes to the driver whole. Its linker (cuLinkCreate), the one call that gives the cubin back,
// assembles PTX as a unit to be linked: ptxas then ignores `setmaxnreg` (C7504) and waits for each
// wgmma (C7509), which halves the speed of a product.

#include <string.h>

#include "cuda/cuda_device.h"
#include "error.h"

// Keeps the first line of the driver's log that names an error, else the first line.
static void add_log(tir_error *error, const char *log)
{
    const char *line = strstr(log, "error");
    while (line && line > log && line[-1] != '\n')
        line--;
    if (!line)
        line = log;
    const int length = (int)strcspn(line, "\n");
    const tir_error cause = *error;
    if (length)
        tir_error_set_native(error, cause.status, cause.native, "%s: %.*s", cause.message, length,
                             line);
}

tir_status tir_cuda_load_image(struct cuda_device *d, const char *image, cu_module *out,
                               tir_error *error)
{
    char log[4096] = "";
    unsigned int options[] = {TIR_CU_JIT_ERROR_LOG_BUFFER, TIR_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    tir_status status;
    CU_CALL_IN(d, status, error, cuModuleLoadDataEx, out, image, 2, options, values);
    if (status && error && log[0])
        add_log(error, log);
    return status;
}
