// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the parts of the driver say what went wrong: one line in a tir_error, which tir_command_fail
// (command.h) prints.
#ifndef TIR_DRIVER_FAIL_H
#define TIR_DRIVER_FAIL_H

#include "base/base.h"

// Fills in *error and gives false, so that a failure is one statement: return tir_fail(...). What
// does not fit the message is cut at the end.
bool tir_fail(tir_error *error, tir_status status, const char *format, ...) TIR_PRINTF(3, 4);

#endif
