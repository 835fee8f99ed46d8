// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of the statuses every call returns.

#include "tir/base.h"

TIR_API const char *tir_status_name(tir_status status)
{
    switch (status) {
    case TIR_OK:
        return "TIR_OK";
    case TIR_ERR_DIAGNOSED:
        return "TIR_ERR_DIAGNOSED";
    case TIR_ERR_INVALID:
        return "TIR_ERR_INVALID";
    case TIR_ERR_NO_MEMORY:
        return "TIR_ERR_NO_MEMORY";
    case TIR_ERR_IO:
        return "TIR_ERR_IO";
    case TIR_ERR_UNSUPPORTED:
        return "TIR_ERR_UNSUPPORTED";
    case TIR_ERR_NO_DRIVER:
        return "TIR_ERR_NO_DRIVER";
    case TIR_ERR_DEVICE:
        return "TIR_ERR_DEVICE";
    case TIR_ERR_INTERNAL:
        return "TIR_ERR_INTERNAL";
    case TIR_ERR_STOPPED:
        return "TIR_ERR_STOPPED";
    }
    return "unknown tir_status";
}
