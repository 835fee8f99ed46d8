// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The names of a variant's warps and mbarriers in the source.

#include "name.h"

#include <stddef.h>

const tir_artifact_role *tir_name_role(const tir_artifact_variant *variant, uint32_t warp)
{
    for (uint32_t i = 0; i < variant->role_count; i++)
        if (warp - variant->roles[i].first < variant->roles[i].warps)
            return &variant->roles[i];
    return NULL;
}

const tir_artifact_barrier *tir_name_barrier(const tir_artifact_variant *variant, uint32_t offset,
                                             uint32_t *index)
{
    for (uint32_t i = 0; i < variant->barrier_count; i++) {
        *index = (offset - variant->barriers[i].offset) / 8;
        if (offset >= variant->barriers[i].offset && *index < variant->barriers[i].count)
            return &variant->barriers[i];
    }
    return NULL;
}
