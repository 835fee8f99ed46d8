// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "notes.h"

#include "entries.h"

static const char product[] = "wgmma.mma_async";

// A fence more, for sums of f16, which are packed: one instruction. Other notes are of waits.
static bool is_mild(tir_str note)
{
    static const char code[] = "C7519";
    return note.len >= sizeof(code) - 1 && !memcmp(note.ptr, code, sizeof(code) - 1);
}

// Of a kernel; one that is not mild, if there is one.
static tir_str note_of(const struct tir_ptxas_kernel *k)
{
    vec_foreach(const tir_str, note, &k->notes)
        if (!is_mild(*note))
            return *note;
    return k->notes.len ? k->notes.at[0] : (tir_str){NULL, 0};
}

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
        const tir_str note = note_of(k);
        const bool is_worse = note.len && (!out->note.len || is_mild(out->note));
        out->kernels++;
        if (is_worse || (!out->note.len && k->stack_bytes > out->spilled))
            out->of = k->name;
        if (is_worse)
            out->note = note;
        out->spilled = TIR_MAX(out->spilled, k->stack_bytes);
    }
    return true;
}
