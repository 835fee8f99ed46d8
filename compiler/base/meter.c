// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counting steps.

#include "base/meter.h"

enum { STEPS_BETWEEN = 4096 }; // questions to the host

bool tir_meter_ask(struct tir_meter *meter)
{
    if (!meter)
        return true;
    meter->ask_at = meter->steps + STEPS_BETWEEN;
    if (meter->is_cancelled && meter->is_cancelled(meter->user))
        meter->is_stopped = true;
    return !meter->is_stopped;
}

bool tir_meter_take(struct tir_meter *meter, uint64_t steps)
{
    if (!meter)
        return true;
    meter->steps += steps;
    if (meter->limit && meter->steps > meter->limit)
        meter->is_stopped = true;
    return meter->steps < meter->ask_at ? !meter->is_stopped : tir_meter_ask(meter);
}
