// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counts the steps of a compilation, and tells whether it may go on.
//
// Steps depend on the source and the options alone, so a limit says the same on every machine. The
// host is asked whether to go on each few thousand of them.
#ifndef TIR_BASE_METER_H
#define TIR_BASE_METER_H

#include "base/base.h"

struct tir_meter {
    uint64_t steps, limit; // limit 0: none
    uint64_t ask_at;
    bool (*is_cancelled)(void *user); // NULL: never
    void *user;
    bool is_stopped; // for good
};

// Takes this many steps. False: no more. meter NULL: unlimited.
bool tir_meter_take(struct tir_meter *meter, uint64_t steps);
// Asks the host at once. False: no more.
bool tir_meter_ask(struct tir_meter *meter);

#endif
