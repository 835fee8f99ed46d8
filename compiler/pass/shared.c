// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Facts about buffers that several passes ask for.

#include "pass/shared.h"

struct tir_value *tir_buffer_root(struct tir_value *buffer)
{
    while (buffer->def && (buffer->def->op == TIR_OP_VIEW || buffer->def->op == TIR_OP_PERMUTE))
        buffer =
            buffer->def->op == TIR_OP_VIEW ? tir_ref_base(buffer->def) : buffer->def->operands[0];
    return buffer;
}

int64_t tir_buffer_bytes(const struct tir_type *t)
{
    int64_t elements = t->layout ? tir_layout_size(t->layout, TIR_AXIS_REG) : tir_type_count(t);
    return (elements * tir_elems[t->elem].bits + 7) / 8;
}

bool tir_convert_needs_scratch(const struct tir_type *from, const struct tir_type *to)
{
    return !tir_layout_same_owner(from->layout, to->layout);
}

bool tir_atomic_shares(const struct tir_func *f, const struct tir_inst *atomic, bool used)
{
    const struct tir_type *t = atomic->results[0]->type;
    return used && (tir_type_is_tile(t) ? t->layout->replica_count > 0 : f->grid_count == 0);
}

uint32_t tir_warps_along(const struct tir_layout *l, uint32_t axis)
{
    uint32_t warps = 1;
    for (uint32_t i = l->first[axis]; i < l->first[axis + 1]; i++)
        if (l->iters[i].axis == TIR_AXIS_WARP)
            warps *= l->iters[i].extent;
    return warps;
}
