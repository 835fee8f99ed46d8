// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layout algebra: building, normal form, and the maps in both directions.

#include "ir/layout.h"

#include "ir/type_table.h"

// Drops extent-1 iterators and merges neighbours that count on without a gap.
static uint32_t merge_iters(struct tir_iter *iters, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct tir_iter it = iters[i];
        if (it.extent == 1)
            continue;
        struct tir_iter *outer = kept ? &iters[kept - 1] : NULL;
        if (outer && outer->axis == it.axis && outer->stride == it.extent * it.stride) {
            outer->extent *= it.extent;
            outer->stride = it.stride;
        } else {
            iters[kept++] = it;
        }
    }
    return kept;
}

static void normalize(struct tir_layout *l)
{
    struct tir_iter all[TIR_MAX_ITERS];
    uint32_t total = 0;
    for (uint32_t d = 0; d < l->rank; d++) {
        uint32_t count = l->first[d + 1] - l->first[d];
        memcpy(all + total, l->iters + l->first[d], count * sizeof(*all));
        count = merge_iters(all + total, count);
        l->first[d] = total; // first[d + 1] still marks the old position of the next dimension
        total += count;
    }
    l->first[l->rank] = total;
    l->iter_count = total;
    memset(l->iters, 0, sizeof(l->iters));
    memcpy(l->iters, all, total * sizeof(*all));
    l->replica_count = merge_iters(l->replicas, l->replica_count);
    memset(l->replicas + l->replica_count, 0,
           (TIR_MAX_ITERS - l->replica_count) * sizeof(*l->replicas));
}

// Iterators of one axis must nest: sorted by stride, each starts where the smaller ones end. In
// memory (register axis) there may be gaps, which are padding.
static bool axis_nests(const struct tir_layout *l, enum tir_axis axis)
{
    struct tir_iter found[2 * TIR_MAX_ITERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->iter_count + l->replica_count; i++) {
        struct tir_iter it = i < l->iter_count ? l->iters[i] : l->replicas[i - l->iter_count];
        if (it.axis != axis)
            continue;
        if (it.stride == 0)
            return false;
        uint32_t at = count++;
        for (; at > 0 && found[at - 1].stride > it.stride; at--)
            found[at] = found[at - 1];
        found[at] = it;
    }
    for (uint32_t i = 1; i < count; i++) {
        uint64_t end = (uint64_t)found[i - 1].stride * found[i - 1].extent;
        if (axis == TIR_AXIS_REG ? found[i].stride < end : found[i].stride % end != 0)
            return false;
    }
    return true;
}

static bool is_layout(const struct tir_layout *l)
{
    for (uint32_t d = 0; d < l->rank; d++) {
        int64_t product = 1;
        for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++)
            product *= l->iters[i].extent;
        if (product != l->shape[d])
            return false;
    }
    for (uint32_t i = 0; i < l->replica_count; i++)
        if (l->replicas[i].axis == TIR_AXIS_REG)
            return false;
    bool swizzles = l->swizzle == 0 || l->swizzle == 32 || l->swizzle == 64 || l->swizzle == 128;
    return swizzles && axis_nests(l, TIR_AXIS_REG) && axis_nests(l, TIR_AXIS_LANE) &&
           axis_nests(l, TIR_AXIS_WARP) && tir_layout_size(l, TIR_AXIS_LANE) <= 32;
}

const struct tir_layout *tir_layout_get(struct tir_types *types, const struct tir_layout *like)
{
    struct tir_layout l;
    memset(&l, 0, sizeof(l)); // padding too: layouts are compared by bytes
    l.rank = like->rank;
    memcpy(l.shape, like->shape, like->rank * sizeof(*l.shape));
    l.iter_count = like->iter_count;
    memcpy(l.iters, like->iters, like->iter_count * sizeof(*l.iters));
    memcpy(l.first, like->first, (like->rank + 1) * sizeof(*l.first));
    l.replica_count = like->replica_count;
    memcpy(l.replicas, like->replicas, like->replica_count * sizeof(*l.replicas));
    l.swizzle = like->swizzle;
    normalize(&l);
    if (!is_layout(&l))
        return NULL;

    uint64_t hash = tir_hash_bytes(&l, sizeof(l), 0);
    struct tir_layout_node *head = tir_map_get(&types->layouts, hash);
    for (struct tir_layout_node *node = head; node; node = node->next)
        if (memcmp(&node->layout, &l, sizeof(l)) == 0)
            return &node->layout;
    struct tir_layout_node *node = arena_new(types->arena, struct tir_layout_node);
    node->layout = l;
    node->next = head;
    tir_map_set(&types->layouts, hash, node);
    return &node->layout;
}

const struct tir_layout *tir_layout_from_iters(struct tir_types *types, uint32_t rank,
                                               const int64_t *shape, const struct tir_iter *iters,
                                               uint32_t iter_count, const struct tir_iter *replicas,
                                               uint32_t replica_count, uint32_t swizzle)
{
    if (rank > TIR_MAX_RANK || iter_count > TIR_MAX_ITERS || replica_count > TIR_MAX_ITERS)
        return NULL;
    struct tir_layout l = {.rank = rank, .replica_count = replica_count, .swizzle = swizzle};
    for (uint32_t d = 0; d < rank; d++) {
        l.shape[d] = shape[d];
        l.first[d] = l.iter_count;
        int64_t product = 1;
        while (product < shape[d] && l.iter_count < iter_count) {
            if (iters[l.iter_count].extent == 0)
                return NULL;
            product *= iters[l.iter_count].extent;
            l.iters[l.iter_count] = iters[l.iter_count];
            l.iter_count++;
        }
    }
    l.first[rank] = l.iter_count;
    for (uint32_t i = 0; i < replica_count; i++)
        l.replicas[i] = replicas[i];
    for (uint32_t i = l.iter_count; i < iter_count; i++)
        if (iters[i].extent != 1)
            return NULL;
    return tir_layout_get(types, &l);
}

// The maps.

int64_t tir_layout_weight(const struct tir_layout *l, uint32_t d, uint32_t i)
{
    int64_t weight = 1;
    for (uint32_t inner = i + 1; inner < l->first[d + 1]; inner++)
        weight *= l->iters[inner].extent;
    return weight;
}

void tir_layout_coord(const struct tir_layout *l, struct tir_layout_at at,
                      int64_t coord[TIR_MAX_RANK])
{
    for (uint32_t d = 0; d < l->rank; d++) {
        coord[d] = 0;
        for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++) {
            const struct tir_iter *it = &l->iters[i];
            coord[d] = coord[d] * it->extent + at.at[it->axis] / it->stride % it->extent;
        }
    }
}

struct tir_layout_at tir_layout_find(const struct tir_layout *l, const int64_t coord[TIR_MAX_RANK])
{
    struct tir_layout_at at = {{0}};
    for (uint32_t d = 0; d < l->rank; d++) {
        int64_t rest = coord[d];
        for (uint32_t i = l->first[d + 1]; i-- > l->first[d];) {
            const struct tir_iter *it = &l->iters[i];
            at.at[it->axis] += (uint32_t)(rest % it->extent) * it->stride;
            rest /= it->extent;
        }
    }
    return at;
}

uint32_t tir_layout_size(const struct tir_layout *l, enum tir_axis axis)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < l->iter_count; i++)
        if (l->iters[i].axis == axis)
            last += (l->iters[i].extent - 1) * l->iters[i].stride;
    for (uint32_t i = 0; i < l->replica_count; i++)
        if (l->replicas[i].axis == axis)
            last += (l->replicas[i].extent - 1) * l->replicas[i].stride;
    return last + 1;
}

// Are positions 0 .. n of the axis all there, each for one element or replica?
static bool covers(const struct tir_layout *l, enum tir_axis axis, uint32_t n)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < l->iter_count; i++)
        product *= l->iters[i].axis == axis ? l->iters[i].extent : 1;
    for (uint32_t i = 0; i < l->replica_count; i++)
        product *= l->replicas[i].axis == axis ? l->replicas[i].extent : 1;
    return product == n && tir_layout_size(l, axis) == n;
}

bool tir_layout_is_spread(const struct tir_layout *l, uint32_t warps)
{
    return !l->swizzle && covers(l, TIR_AXIS_REG, tir_layout_size(l, TIR_AXIS_REG)) &&
           covers(l, TIR_AXIS_LANE, 32) && covers(l, TIR_AXIS_WARP, warps);
}

bool tir_layout_is_memory(const struct tir_layout *l)
{
    bool is_memory = !l->replica_count;
    for (uint32_t i = 0; i < l->iter_count; i++)
        is_memory = is_memory && l->iters[i].axis == TIR_AXIS_REG;
    return is_memory;
}

int64_t tir_buffer_bytes(const struct tir_type *t)
{
    int64_t elements = t->layout ? tir_layout_size(t->layout, TIR_AXIS_REG) : tir_type_count(t);
    return (elements * tir_elems[t->elem].bits + 7) / 8;
}

uint64_t tir_layout_byte(const struct tir_layout *l, uint64_t element, uint32_t elem_bits)
{
    uint64_t byte = element * elem_bits / 8;
    uint64_t chunks = l->swizzle / 16; // 16-byte chunks in a row of the pattern; 0: none
    return chunks ? byte ^ (byte >> 7 & (chunks - 1)) << 4 : byte;
}

bool tir_layout_same_owner(const struct tir_layout *a, const struct tir_layout *b)
{
    for (uint32_t d = 0; d < a->rank; d++) {
        uint32_t i = a->first[d], j = b->first[d];
        for (;;) {
            while (i < a->first[d + 1] && a->iters[i].axis == TIR_AXIS_REG)
                i++;
            while (j < b->first[d + 1] && b->iters[j].axis == TIR_AXIS_REG)
                j++;
            if (i == a->first[d + 1] || j == b->first[d + 1])
                break;
            const struct tir_iter *x = &a->iters[i], *y = &b->iters[j];
            if (x->axis != y->axis || x->stride != y->stride || x->extent != y->extent ||
                tir_layout_weight(a, d, i) != tir_layout_weight(b, d, j))
                return false;
            i++, j++;
        }
        if (i != a->first[d + 1] || j != b->first[d + 1])
            return false;
    }
    return true;
}

// Layouts from layouts.

// Register strides that are dense again after some register iterators went away.
static void compact_registers(struct tir_layout *l)
{
    uint32_t next = 1;
    bool assigned[TIR_MAX_ITERS] = {false};
    for (uint32_t done = 0; done < l->iter_count; done++) {
        uint32_t best = TIR_MAX_ITERS;
        for (uint32_t i = 0; i < l->iter_count; i++)
            if (l->iters[i].axis == TIR_AXIS_REG && !assigned[i] &&
                (best == TIR_MAX_ITERS || l->iters[i].stride < l->iters[best].stride))
                best = i;
        if (best == TIR_MAX_ITERS)
            return;
        assigned[best] = true;
        l->iters[best].stride = next;
        next *= l->iters[best].extent;
    }
}

const struct tir_layout *tir_layout_slice(struct tir_types *types, const struct tir_layout *l,
                                          uint32_t axis)
{
    struct tir_layout out = {.rank = l->rank, .replica_count = l->replica_count};
    memcpy(out.shape, l->shape, sizeof(out.shape));
    memcpy(out.replicas, l->replicas, sizeof(out.replicas));
    out.shape[axis] = 1;
    for (uint32_t d = 0; d < l->rank; d++) {
        out.first[d] = out.iter_count;
        for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++) {
            if (d != axis)
                out.iters[out.iter_count++] = l->iters[i];
            else if (l->iters[i].axis != TIR_AXIS_REG)
                out.replicas[out.replica_count++] = l->iters[i];
        }
    }
    out.first[l->rank] = out.iter_count;
    compact_registers(&out);
    return tir_layout_get(types, &out);
}

const struct tir_layout *tir_layout_permute(struct tir_types *types, const struct tir_layout *l,
                                            const int64_t *order)
{
    struct tir_layout out = *l;
    uint32_t count = 0;
    for (uint32_t d = 0; d < l->rank; d++) {
        uint32_t from = (uint32_t)order[d];
        out.shape[d] = l->shape[from];
        out.first[d] = count;
        for (uint32_t i = l->first[from]; i < l->first[from + 1]; i++)
            out.iters[count++] = l->iters[i];
    }
    out.first[l->rank] = count;
    return tir_layout_get(types, &out);
}

void tir_transposition(uint32_t rank, int64_t *order)
{
    for (uint32_t d = 0; d < rank; d++)
        order[d] = d;
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
}

const struct tir_type *tir_type_transpose(struct tir_types *types, const struct tir_type *t)
{
    int64_t order[TIR_MAX_RANK];
    struct tir_type transposed = *t;
    tir_transposition(t->rank, order);
    for (uint32_t d = 0; d < t->rank; d++)
        transposed.shape[d] = t->shape[order[d]];
    transposed.layout = t->layout ? tir_layout_permute(types, t->layout, order) : NULL;
    return tir_type_get(types, &transposed);
}

const struct tir_layout *tir_layout_before(struct tir_types *types, const struct tir_layout *of,
                                           uint32_t d, const struct tir_layout *l)
{
    struct tir_layout out = {.rank = l->rank + 1, .shape = {of->shape[d]}, .swizzle = l->swizzle};
    for (uint32_t i = of->first[d]; i < of->first[d + 1]; i++)
        out.iters[out.iter_count++] = of->iters[i];
    for (uint32_t k = 0; k < l->rank; k++) {
        out.shape[1 + k] = l->shape[k];
        out.first[1 + k] = out.iter_count;
        for (uint32_t i = l->first[k]; i < l->first[k + 1]; i++)
            out.iters[out.iter_count++] = l->iters[i];
    }
    out.first[out.rank] = out.iter_count;
    return tir_layout_get(types, &out);
}

const struct tir_layout *tir_layout_of_index(struct tir_types *types, uint32_t rank,
                                             const int64_t *shape, const struct tir_layout *access,
                                             uint32_t at)
{
    for (uint32_t d = 0; d < access->rank; d++)
        if (d < at || d >= at + rank || shape[d - at] != access->shape[d])
            access = tir_layout_slice(types, access, d);
    return tir_layout_reshape(types, access, rank, shape);
}

const struct tir_layout *tir_layout_part(struct tir_types *types, const struct tir_layout *l,
                                         const int64_t *shape)
{
    struct tir_layout out = {.rank = l->rank, .replica_count = l->replica_count};
    memcpy(out.replicas, l->replicas, sizeof(out.replicas));
    for (uint32_t d = 0; d < l->rank; d++) {
        struct tir_iter kept[TIR_MAX_ITERS];
        uint32_t count = 0;
        int64_t left = shape[d];
        for (uint32_t i = l->first[d + 1]; i-- > l->first[d];) {
            struct tir_iter it = l->iters[i];
            if (left % it.extent && (it.axis != TIR_AXIS_REG || left > it.extent))
                return NULL;
            if (left == 1 && it.axis != TIR_AXIS_REG)
                return NULL; // only some threads would have it
            it.extent = (uint32_t)TIR_MIN(left, (int64_t)it.extent);
            left /= it.extent;
            kept[count++] = it;
        }
        out.shape[d] = shape[d];
        out.first[d] = out.iter_count;
        while (count)
            out.iters[out.iter_count++] = kept[--count];
    }
    out.first[l->rank] = out.iter_count;
    compact_registers(&out);
    return tir_layout_get(types, &out);
}

const struct tir_layout *tir_layout_narrow(struct tir_types *types, const struct tir_layout *l,
                                           int64_t columns)
{
    struct tir_layout out = *l;
    const uint32_t last = l->rank - 1;
    uint32_t i = l->first[last];
    while (i < l->iter_count && l->iters[i].axis != TIR_AXIS_REG)
        i++;
    const int64_t all = i < l->iter_count ? l->iters[i].extent * columns : 0;
    if (!all || all % l->shape[last])
        return NULL;
    out.iters[i].extent = (uint32_t)(all / l->shape[last]);
    out.shape[last] = columns;
    compact_registers(&out);
    return tir_layout_get(types, &out);
}

const struct tir_layout *tir_layout_repeat(struct tir_types *types, const struct tir_layout *l,
                                           const int64_t *shape)
{
    struct tir_layout out = *l;
    uint32_t count = 0, registers = tir_layout_size(l, TIR_AXIS_REG);
    if (l->iter_count + l->rank > TIR_MAX_ITERS)
        return NULL;
    for (uint32_t d = 0; d < l->rank; d++) {
        uint32_t times = (uint32_t)(shape[d] / l->shape[d]);
        out.shape[d] = shape[d];
        out.first[d] = count;
        out.iters[count++] = (struct tir_iter){times, registers, TIR_AXIS_REG};
        registers *= times;
        for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++)
            out.iters[count++] = l->iters[i];
    }
    out.first[l->rank] = out.iter_count = count;
    return tir_layout_get(types, &out);
}

// Layouts from a purpose.

const struct tir_layout *tir_layout_blocked(struct tir_types *types, uint32_t rank,
                                            const int64_t *shape, const uint32_t *order,
                                            const uint32_t *warp_order, uint32_t vector,
                                            uint32_t patch, uint32_t warps)
{
    // Per dimension: what the vector, the lanes, the warps and the repetition take of it.
    uint32_t vec[TIR_MAX_RANK], vec_stride[TIR_MAX_RANK], lane[TIR_MAX_RANK], warp[TIR_MAX_RANK];
    uint32_t lane_stride[TIR_MAX_RANK], warp_stride[TIR_MAX_RANK], rest_stride[TIR_MAX_RANK];
    uint64_t left[TIR_MAX_RANK];
    uint32_t lanes = 1, used_warps = 1, registers = 1;
    for (uint32_t k = 0; k < rank; k++) {
        uint32_t d = order[k];
        vec[d] = k < 2 ? (uint32_t)tir_gcd((uint64_t)shape[d], k == 0 ? vector : patch) : 1;
        vec_stride[d] = registers;
        left[d] = (uint64_t)shape[d] / vec[d];
        lane[d] = (uint32_t)tir_gcd(left[d], 32 / lanes);
        left[d] /= lane[d];
        lane_stride[d] = lanes;
        lanes *= lane[d];
        registers *= vec[d];
    }
    for (uint32_t k = 0; k < rank; k++) {
        uint32_t d = warp_order[k];
        warp[d] = (uint32_t)tir_gcd(left[d], warps / used_warps);
        left[d] /= warp[d];
        warp_stride[d] = used_warps;
        used_warps *= warp[d];
    }
    for (uint32_t k = 0; k < rank; k++) {
        rest_stride[order[k]] = registers;
        registers *= (uint32_t)left[order[k]];
    }
    struct tir_layout l = {.rank = rank};
    for (uint32_t d = 0; d < rank; d++) {
        l.shape[d] = shape[d];
        l.first[d] = l.iter_count;
        l.iters[l.iter_count++] =
            (struct tir_iter){(uint32_t)left[d], rest_stride[d], TIR_AXIS_REG};
        l.iters[l.iter_count++] = (struct tir_iter){warp[d], warp_stride[d], TIR_AXIS_WARP};
        l.iters[l.iter_count++] = (struct tir_iter){lane[d], lane_stride[d], TIR_AXIS_LANE};
        l.iters[l.iter_count++] = (struct tir_iter){vec[d], vec_stride[d], TIR_AXIS_REG};
    }
    l.first[rank] = l.iter_count;
    l.replicas[l.replica_count++] = (struct tir_iter){32 / lanes, lanes, TIR_AXIS_LANE};
    l.replicas[l.replica_count++] =
        (struct tir_iter){warps / used_warps, used_warps, TIR_AXIS_WARP};
    return tir_layout_get(types, &l);
}

const struct tir_layout *tir_layout_copy(struct tir_types *types, uint32_t rank,
                                         const int64_t *shape, uint32_t elements, uint32_t warps)
{
    uint32_t order[TIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        order[d] = rank - 1 - d;
    return tir_layout_blocked(types, rank, shape, order, order, elements, 1, warps);
}

const struct tir_layout *tir_layout_mma(struct tir_types *types, const int64_t shape[2],
                                        uint32_t warps_m, uint32_t warps_n, bool down,
                                        uint32_t warps)
{
    // PTX ISA, "Matrix fragments for mma.m16n8k16": c0 c1 are row lane / 4, c2 c3 eight rows below.
    uint32_t columns = (uint32_t)shape[1] / warps_n / 8;
    struct tir_layout l = {
        .rank = 2,
        .shape = {shape[0], shape[1]},
        .iter_count = 8,
        .first = {0, 4, 8},
        .iters = {{warps_m, down ? 1 : warps_n, TIR_AXIS_WARP},
                  {(uint32_t)shape[0] / warps_m / 16, 4 * columns, TIR_AXIS_REG},
                  {2, 2, TIR_AXIS_REG},
                  {8, 4, TIR_AXIS_LANE},
                  {warps_n, down ? warps_m : 1, TIR_AXIS_WARP},
                  {columns, 4, TIR_AXIS_REG},
                  {4, 1, TIR_AXIS_LANE},
                  {2, 1, TIR_AXIS_REG}},
        .replica_count = 1,
        .replicas = {{warps / (warps_m * warps_n), warps_m * warps_n, TIR_AXIS_WARP}}};
    return tir_layout_get(types, &l);
}

const struct tir_layout *tir_layout_wgmma(struct tir_types *types, const int64_t shape[2],
                                          uint32_t groups_m, uint32_t groups_n, uint32_t warps)
{
    // PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16", matrix D: warp w of the warpgroup
    // has rows 16 w .. 16 w + 15, d[4 j + 2 h + c] is row lane / 4 + 8 h, column 8 j + 2 (lane % 4)
    // + c.
    uint32_t columns = (uint32_t)shape[1] / groups_n / 8, groups = groups_m * groups_n;
    struct tir_layout l = {
        .rank = 2,
        .shape = {shape[0], shape[1]},
        .iter_count = 9,
        .first = {0, 5, 9},
        .iters = {{groups_m, 4, TIR_AXIS_WARP},
                  {(uint32_t)shape[0] / groups_m / 64, 4 * columns, TIR_AXIS_REG},
                  {4, 1, TIR_AXIS_WARP},
                  {2, 2, TIR_AXIS_REG},
                  {8, 4, TIR_AXIS_LANE},
                  {groups_n, 4 * groups_m, TIR_AXIS_WARP},
                  {columns, 4, TIR_AXIS_REG},
                  {4, 1, TIR_AXIS_LANE},
                  {2, 1, TIR_AXIS_REG}},
        .replica_count = 1,
        .replicas = {{warps / (4 * groups), 4 * groups, TIR_AXIS_WARP}}};
    return warps % (4 * groups) ? NULL : tir_layout_get(types, &l);
}

const struct tir_layout *tir_layout_wgmma_a(struct tir_types *types, const int64_t shape[2],
                                            uint32_t elem_bits, uint32_t groups_m, uint32_t warps)
{
    // PTX ISA, "Register fragments for wgmma.mma_async", matrix A: a register is row lane / 4 (or 8
    // rows below, every other one), its elements follow each other, lanes of a row side by side.
    uint32_t together = 32 / elem_bits, columns = (uint32_t)shape[1] / (4 * together);
    struct tir_layout l = {
        .rank = 2,
        .shape = {shape[0], shape[1]},
        .iter_count = 8,
        .first = {0, 5, 8},
        .iters = {{groups_m, 4, TIR_AXIS_WARP},
                  {(uint32_t)shape[0] / groups_m / 64, 2 * together * columns, TIR_AXIS_REG},
                  {4, 1, TIR_AXIS_WARP},
                  {2, together, TIR_AXIS_REG},
                  {8, 4, TIR_AXIS_LANE},
                  {columns, 2 * together, TIR_AXIS_REG},
                  {4, 1, TIR_AXIS_LANE},
                  {together, 1, TIR_AXIS_REG}},
        .replica_count = 1,
        .replicas = {{warps / (4 * groups_m), 4 * groups_m, TIR_AXIS_WARP}}};
    return warps % (4 * groups_m) ? NULL : tir_layout_get(types, &l);
}

const struct tir_layout *tir_layout_turned_bytes(struct tir_types *types, const int64_t shape[2],
                                                 uint32_t warps)
{
    // Eight lanes have two rows each, four lanes four columns each: what ldmatrix.trans gives of
    // pairs of bytes, and what stmatrix stores.
    const uint32_t down = (uint32_t)shape[0] / 16, across = (uint32_t)shape[1] / 16;
    const uint32_t beside = (uint32_t)tir_gcd(across, warps);
    const uint32_t above = (uint32_t)tir_gcd(down, warps / TIR_MAX(1, beside));
    if (shape[0] % 16 || shape[1] % 16 || above * beside != warps)
        return NULL;
    struct tir_layout l = {.rank = 2,
                           .shape = {shape[0], shape[1]},
                           .iter_count = 8,
                           .first = {0, 4, 8},
                           .iters = {{above, beside, TIR_AXIS_WARP},
                                     {down / above, 8 * (across / beside), TIR_AXIS_REG},
                                     {8, 4, TIR_AXIS_LANE},
                                     {2, 1, TIR_AXIS_REG},
                                     {beside, 1, TIR_AXIS_WARP},
                                     {across / beside, 8, TIR_AXIS_REG},
                                     {4, 1, TIR_AXIS_LANE},
                                     {4, 2, TIR_AXIS_REG}}};
    return tir_layout_get(types, &l);
}

uint32_t tir_wgmma_row_groups(const int64_t shape[2], uint32_t warps)
{
    uint32_t groups = warps / 4, rows = groups;
    while (rows > 1 && (groups % rows || shape[0] % (64 * rows)))
        rows--;
    bool fits = rows && warps % 4 == 0 && shape[0] % (64 * rows) == 0 &&
                shape[1] % (8 * (groups / rows)) == 0;
    return fits ? rows : 0;
}

const struct tir_layout *tir_layout_memory(struct tir_types *types, uint32_t rank,
                                           const int64_t *shape, uint32_t elem_bits,
                                           uint32_t swizzle)
{
    struct tir_layout l = {.rank = rank, .swizzle = swizzle};
    uint32_t atom = rank ? (uint32_t)shape[rank - 1] : 1; // columns that lie together
    if (swizzle) {
        if (rank < 2 || shape[rank - 1] * elem_bits % (swizzle * 8) != 0)
            return NULL;
        atom = swizzle * 8 / elem_bits;
    }
    uint64_t stride[TIR_MAX_RANK] = {0}, next = 1;
    for (uint32_t d = rank; d-- > 0;) {
        stride[d] = d + 1 == rank ? 1 : d + 2 == rank ? atom : next;
        next *= (uint64_t)shape[d];
        if (next > UINT32_MAX)
            return NULL;
    }
    for (uint32_t d = 0; d < rank; d++) {
        l.shape[d] = shape[d];
        l.first[d] = l.iter_count;
        if (d + 1 == rank) {
            uint32_t rows = rank > 1 ? (uint32_t)shape[d - 1] : 1;
            l.iters[l.iter_count++] =
                (struct tir_iter){(uint32_t)shape[d] / atom, rows * atom, TIR_AXIS_REG};
            l.iters[l.iter_count++] = (struct tir_iter){atom, 1, TIR_AXIS_REG};
        } else {
            l.iters[l.iter_count++] =
                (struct tir_iter){(uint32_t)shape[d], (uint32_t)stride[d], TIR_AXIS_REG};
        }
    }
    l.first[rank] = l.iter_count;
    return tir_layout_get(types, &l);
}

uint32_t tir_layout_swizzle_for(int64_t row_bytes)
{
    uint32_t swizzle = 128;
    while (swizzle >= 32 && row_bytes % swizzle)
        swizzle /= 2;
    return swizzle >= 32 ? swizzle : 0;
}

static void print_iters(struct tir_text *out, const struct tir_iter *iters, uint32_t count)
{
    static const char *const axis_names[TIR_AXIS_COUNT] = {"", "@laneid", "@warpid"};
    tir_text_char(out, '(');
    for (uint32_t i = 0; i < count; i++)
        tir_text_format(out, i ? ", %u" : "%u", iters[i].extent);
    tir_text_add(out, STR(") : ("));
    for (uint32_t i = 0; i < count; i++)
        tir_text_format(out, i ? ", %u%s" : "%u%s", iters[i].stride, axis_names[iters[i].axis]);
    tir_text_char(out, ')');
}

void tir_layout_print(struct tir_text *out, const struct tir_layout *l)
{
    tir_text_add(out, STR("S["));
    print_iters(out, l->iters, l->iter_count);
    tir_text_char(out, ']');
    if (l->replica_count) {
        tir_text_add(out, STR(" + R["));
        print_iters(out, l->replicas, l->replica_count);
        tir_text_char(out, ']');
    }
    if (l->swizzle)
        tir_text_format(out, " swizzle(%u)", l->swizzle);
}
