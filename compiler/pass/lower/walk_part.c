// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, shared memory: parts of a buffer that single threads copy or multiply, as bytes from
// its beginning.

#include "pass/lower/walk.h"

struct lower_part tir_lower_part_of(struct lower *lo, struct tir_value *buffer)
{
    struct lower_walk *w = tir_lower_walk_begin(lo, buffer, NULL);
    for (uint32_t d = 0; d < buffer->type->rank; d++)
        w->dims[d].tile_dim = (int32_t)d;
    struct lower_part part = {.base = tir_lower_walk_to_alloc(lo, w, buffer), .bits = w->bits};
    part.memory = w->memory;
    for (uint32_t d = 0; d < part.memory->rank; d++) {
        part.dims[d] = (struct lower_part_dim){.dim = w->dims[d].tile_dim,
                                               .size = 1,
                                               .start = w->dims[d].start,
                                               .divisor = w->dims[d].divisor};
        if (part.dims[d].dim >= 0)
            part.dims[d].size = buffer->type->shape[part.dims[d].dim];
    }
    return part;
}

void tir_lower_part_move(struct lower *lo, struct lower_part *part, uint32_t dim,
                         struct tir_value *by, uint64_t divisor, int64_t size)
{
    for (uint32_t d = 0; d < part->memory->rank; d++)
        if (part->dims[d].dim == (int32_t)dim) {
            part->dims[d].start = tir_lower_add(lo, &lo->b, part->dims[d].start, by);
            part->dims[d].divisor = tir_gcd(part->dims[d].divisor, divisor);
            part->dims[d].size = size;
        }
}

bool tir_lower_part_adds(const struct lower_part *part)
{
    const struct tir_layout *m = part->memory;
    for (uint32_t d = 0; d < m->rank; d++) {
        const struct lower_part_dim *dim = &part->dims[d];
        uint32_t iters = m->first[d + 1] - m->first[d];
        if (!dim->start || iters <= 1)
            continue;
        // No digit below the outermost may carry: each is 0 in the start, or in what is added.
        uint64_t inner = (uint64_t)tir_layout_weight(m, d, m->first[d]);
        bool within = dim->divisor % (uint64_t)dim->size == 0 &&
                      m->iters[m->first[d + 1] - 1].extent % (uint64_t)dim->size == 0;
        if (dim->divisor % inner && !within)
            return false;
    }
    return true;
}

// Each digit of a start, of which `divisor` is a divisor, adds so many bytes or a multiple.
static uint64_t digit_bytes(const struct lower_part *part, uint32_t d, uint32_t i)
{
    const struct tir_layout *m = part->memory;
    uint64_t weight = (uint64_t)tir_layout_weight(m, d, i), extent = m->iters[i].extent;
    uint64_t unit = (uint64_t)m->iters[i].stride * part->bits / 8, divisor = part->dims[d].divisor;
    if (divisor % weight)
        return unit;
    bool outermost = i == m->first[d];
    uint64_t digit = divisor / weight;
    if (!outermost)
        digit = digit % extent ? tir_gcd(digit, extent) : 0;
    return digit * unit;
}

uint64_t tir_lower_part_divisor(const struct lower_part *part)
{
    const struct tir_layout *m = part->memory;
    const struct tir_inst *def = part->base->def;
    uint64_t divisor = // of an alias of another CTA too
        def ? (uint64_t)tir_alias_offset(def->op == TIR_OP_REMOTE ? def->operands[0] : part->base)
            : 0;
    for (uint32_t d = 0; d < m->rank; d++)
        for (uint32_t i = m->first[d]; part->dims[d].start && i < m->first[d + 1]; i++)
            divisor = tir_gcd(divisor, digit_bytes(part, d, i));
    return divisor;
}

struct tir_value *tir_lower_part_start(struct lower *lo, const struct lower_part *part)
{
    struct tir_value *starts[TIR_MAX_RANK];
    for (uint32_t d = 0; d < part->memory->rank; d++)
        starts[d] = part->dims[d].start;
    return tir_lower_unswizzled(lo, &lo->b, part->memory, part->bits, starts);
}

int64_t tir_lower_part_byte(const struct lower_part *part, const int64_t coord[TIR_MAX_RANK])
{
    int64_t at[TIR_MAX_RANK] = {0};
    for (uint32_t d = 0; d < part->memory->rank; d++)
        at[d] = part->dims[d].dim >= 0 ? coord[part->dims[d].dim] : 0;
    return (int64_t)tir_layout_find(part->memory, at).at[TIR_AXIS_REG] * part->bits / 8;
}
