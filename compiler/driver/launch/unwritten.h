// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of outputs that a kernel does not write.
#ifndef TIR_DRIVER_LAUNCH_UNWRITTEN_H
#define TIR_DRIVER_LAUNCH_UNWRITTEN_H

#include "driver/launch/session.h"

struct tir_unwritten {
    int64_t count;
    int64_t first[TIR_MAX_RANK]; // index of the first one, where there is one
    bool on_device;              // the reference writes all of them
};

// By parameter, for outputs without stated contents before the launch; `inout` tensors have
// contents. After tir_session_read and tir_session_reference, whose results stay as they are.
bool tir_unwritten_find(struct tir_session *s, struct tir_unwritten out[TIR_MAX_PARAMS]);

#endif
