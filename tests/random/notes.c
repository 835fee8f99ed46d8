// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "notes.h"

#include "entries.h"

static const char product[] = "wgmma.mma_async";

bool notes_take(struct tir_arena *arena, const char *arch, tir_str ptx, struct notes *out)
{
    const char *path = tir_ptxas_find(arena);
    struct tir_ptxas_result result;
    *out = (struct notes){.kernels = 0};
    if (!path)
        return false;
    if (!ptx.len || !strstr(ptx.ptr, product))
        return true;
    if (!tir_ptxas_run(arena, path, tir_target_find(tir_str_of(arch)), ptx, &result))
        return false;
    if (!result.ok)
        out->note = result.reason;
    for (uint32_t i = 0; i < result.kernel_count; i++) {
        const struct tir_ptxas_kernel *k = &result.kernels[i];
        if (!entries_have(ptx, k->name, product))
            continue;
        out->kernels++;
        if (!out->note.len && (k->notes.len || k->stack_bytes > out->spilled))
            out->of = k->name;
        if (!out->note.len && k->notes.len)
            out->note = k->notes.at[0];
        out->spilled = TIR_MAX(out->spilled, k->stack_bytes);
    }
    return true;
}
