// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads of pixels in the order of images:
//
//     load(X[b, y, x, c:+64], pixels = 128, low = [-1, -1], high = [-1, -1], dy = r, dx = s)
//
// becomes a load with an index tile for each dimension but the last, which pixel_index makes of the
// first pixel. So it is a load like any other, and what it says of images stays known.
#include "front/lower/lower.h"

struct pixels {
    struct lower *l;
    const struct call *c;
    struct slice *s; // of the first pixel, and then of all
    int64_t count, corners[2][TIR_MAX_ITERS], strides[TIR_MAX_ITERS];
    uint32_t rank;
    bool has_strides;
    struct tir_value *offsets[TIR_PIXEL_DIMS];
};

static const char *const corner_names[] = {"low", "high"};
static const char *const offset_names[TIR_PIXEL_DIMS] = {"dz", "dy", "dx"};

void lower_pixel_names(struct lower *l, struct name_list *names)
{
    vec_push(l->arena, &names->names, "pixels");
    for (uint32_t i = 0; i < TIR_COUNT_OF(corner_names); i++)
        vec_push(l->arena, &names->names, corner_names[i]);
    vec_push(l->arena, &names->names, "strides");
    for (uint32_t i = 0; i < TIR_PIXEL_DIMS; i++)
        vec_push(l->arena, &names->names, offset_names[i]);
}

// What belongs to pixels, in a load without.
static bool has_none(struct lower *l, const struct call *c)
{
    struct name_list names = {0};
    lower_pixel_names(l, &names);
    vec_foreach(const char *, name, &names.names) {
        const struct ast_arg *arg = call_named(c, *name);
        if (!arg)
            continue;
        lower_error(l, arg->span, TIR_E_ARGUMENTS,
                    "`%s` is for pixels: `pixels = n` says how many are loaded", *name);
        return false;
    }
    return true;
}

static bool check_slice(struct pixels *p)
{
    const struct slice *s = p->s;
    bool fits = s->base->type->space == TIR_SPACE_GLOBAL && p->rank >= 3 &&
                p->rank <= 2 + TIR_PIXEL_DIMS && s->shown == s->type && s->box[p->rank - 1] > 0;
    for (uint32_t d = 0; fits && d + 1 < p->rank; d++)
        fits = s->box[d] == 0;
    if (!fits)
        lower_error(p->l, s->span, TIR_E_SLICE,
                    "pixels are loaded from a tensor of rank 3 to 5: `X[b, y, x, c:+64]` is the "
                    "first one, with some of its channels");
    return fits;
}

static bool read_corner(struct pixels *p, uint32_t which)
{
    const struct ast_arg *arg = call_named(p->c, corner_names[which]);
    uint32_t count;
    if (!arg) {
        lower_error(p->l, p->c->e->span, TIR_E_ARGUMENTS,
                    "a load of pixels has `low` and `high`, the corners of its base pixels");
        return false;
    }
    if (!lower_int_list(p->l, arg->value, p->corners[which], &count))
        return false;
    const struct tir_attr list = {.list = p->corners[which], .list_count = count};
    if (tir_corners_fit(p->rank, &list, &list, NULL))
        return true;
    lower_error(p->l, arg->value->span, TIR_E_ARGUMENTS,
                "`%s` has a number for each dimension between the first and the last, of %u bits "
                "for a tensor of rank %u",
                corner_names[which],
                p->rank == 3   ? 16
                : p->rank == 4 ? 8
                               : 5,
                p->rank);
    return false;
}

static bool read_strides(struct pixels *p)
{
    const struct ast_arg *arg = call_named(p->c, "strides");
    uint32_t count;
    if (!arg)
        return true;
    if (!lower_int_list(p->l, arg->value, p->strides, &count))
        return false;
    const struct tir_attr low = {.list = p->corners[0], .list_count = p->rank - 2};
    const struct tir_attr list = {.list = p->strides, .list_count = count};
    for (uint32_t d = 0; d < count; d++)
        p->has_strides |= p->strides[d] > 1;
    if (tir_corners_fit(p->rank, &low, &low, &list))
        return true;
    lower_error(p->l, arg->value->span, TIR_E_ARGUMENTS,
                "`strides` are 1 to %d for each dimension of the tensor, the first and the last 1",
                TIR_MAX_STRIDE);
    return false;
}

static bool read_offset(struct pixels *p, uint32_t which)
{
    const struct ast_arg *arg = call_named(p->c, offset_names[which]);
    struct tir_value *only[TIR_PIXEL_DIMS] = {NULL};
    if (!arg)
        return true;
    struct tir_value *by =
        convert_elem(p->l, arg->value->span, lower_expr(p->l, arg->value), TIR_I64);
    if (!by)
        return false;
    if (by->type->rank) {
        lower_error(p->l, arg->value->span, TIR_E_TYPE, "`%s` is one number, not %s",
                    offset_names[which], lower_type_name(p->l, by->type));
        return false;
    }
    p->offsets[which] = only[which] = by;
    if (tir_pixel_offsets_fit(p->rank, only))
        return true;
    if (which + p->rank < 2 + TIR_PIXEL_DIMS)
        lower_error(p->l, arg->span, TIR_E_ARGUMENTS, "a tensor of rank %u has no `%s`", p->rank,
                    offset_names[which]);
    else
        lower_error(p->l, arg->value->span, TIR_E_ARGUMENTS,
                    "`%s` is 0 to %lld for a tensor of rank %u", offset_names[which],
                    (long long)tir_most_pixel_offset(p->rank), p->rank);
    return false;
}

static bool read(struct pixels *p, const struct ast_arg *count)
{
    if (!check_slice(p) || !const_int(p->l, count->value, "the number of pixels", &p->count))
        return false;
    if (p->count < 1) {
        lower_error(p->l, count->value->span, TIR_E_ARGUMENTS, "%lld pixels; at least 1",
                    (long long)p->count);
        return false;
    }
    bool ok = read_corner(p, 0) && read_corner(p, 1) && read_strides(p);
    for (uint32_t i = 0; ok && i < TIR_PIXEL_DIMS; i++)
        ok = read_offset(p, i);
    return ok;
}

static struct tir_value *build_index(struct pixels *p, uint32_t axis, struct tir_value **operands)
{
    const struct tir_type *type = tir_type_tile(p->l->cx->types, TIR_I64, 1, &p->count);
    struct tir_value *v =
        build_one(p->l, TIR_OP_PIXEL_INDEX, type, operands, TIR_PIXEL_FIRST + p->rank - 1);
    tir_set_int(p->l->f, v->def, TIR_ATTR_axis, axis);
    tir_set_list(p->l->f, v->def, TIR_ATTR_low, p->corners[0], p->rank - 2);
    tir_set_list(p->l->f, v->def, TIR_ATTR_high, p->corners[1], p->rank - 2);
    if (p->has_strides)
        tir_set_list(p->l->f, v->def, TIR_ATTR_strides, p->strides, p->rank);
    return v;
}

bool lower_pixels(struct lower *l, const struct call *c, struct slice *s)
{
    const struct ast_arg *count = call_named(c, "pixels");
    struct pixels p = {.l = l, .c = c, .s = s, .rank = s->base->type->rank};
    if (!count)
        return has_none(l, c);
    if (!read(&p, count))
        return false;
    const uint32_t last = p.rank - 1;
    const int64_t shape[] = {p.count, s->box[last]};
    s->type = s->shown = lower_tile_type(l, s->span, s->base->type->elem, 2, shape);
    if (!s->type)
        return false;
    struct tir_value *operands[TIR_PIXEL_FIRST + TIR_MAX_RANK] = {[TIR_PIXEL_OF] = s->base};
    memcpy(operands + TIR_PIXEL_DZ, p.offsets, sizeof(p.offsets));
    for (uint32_t d = 0; d < last; d++) {
        operands[TIR_PIXEL_FIRST + d] = convert_elem(l, s->span, val_ir(s->indices[d]), TIR_I64);
        if (!operands[TIR_PIXEL_FIRST + d])
            return false;
    }
    for (uint32_t d = 0; d < last; d++) {
        s->indices[d] = build_index(&p, d, operands);
        s->box[d] = -1;
        s->axis[d] = 0;
    }
    s->axis[last] = 1;
    return true;
}
