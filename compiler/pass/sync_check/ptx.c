// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on inline PTX: what its text says that it does to memory and to other threads.
//
//     ptx("popc.b32 $0, $1;", x, out = u32)          // computes: as if it were an operation
//     ptx("ld.shared.u32 $0, [$1];", at, out = u32)  // goes to memory, where is not known
//     ptx("bar.sync 0;")                             // orders

#include "pass/sync_check/sync_check.h"

#include <ctype.h>
#include <string.h>

static bool goes_on(unsigned char c)
{
    return c == '_' || isalnum(c);
}

// Whether the name begins an instruction of the text.
static bool holds(tir_str text, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i + len <= text.len; i++) {
        unsigned char before = i ? (unsigned char)text.ptr[i - 1] : ' ';
        unsigned char after = i + len < text.len ? (unsigned char)text.ptr[i + len] : ' ';
        if (!memcmp(text.ptr + i, name, len) && before != '.' && !goes_on(before) &&
            !goes_on(after))
            return true;
    }
    return false;
}

bool tir_sync_ptx_orders(const struct tir_inst *inst)
{
    static const char *const names[] = {"bar", "barrier", "mbarrier", "fence", "membar",
                                        "ld",  "st",      "atom",     "red",   "cp"};
    for (uint32_t i = 0; inst->op == TIR_OP_PTX && i < TIR_COUNT_OF(names); i++)
        if (holds(tir_attr_find(inst, TIR_ATTR_text)->text, names[i]))
            return true;
    return false;
}

// PTX names what it reads and writes in memory in brackets. Operands of wgmma have descriptors.
bool tir_sync_ptx_computes(const struct tir_inst *inst)
{
    static const char *const names[] = {"wgmma", "tcgen05", "call", "exit", "ret"};
    if (inst->op != TIR_OP_PTX || !inst->result_count || tir_sync_ptx_orders(inst))
        return false;
    const tir_str text = tir_attr_find(inst, TIR_ATTR_text)->text;
    for (uint32_t i = 0; i < TIR_COUNT_OF(names); i++)
        if (holds(text, names[i]))
            return false;
    return !memchr(text.ptr, '[', text.len);
}
