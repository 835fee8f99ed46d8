// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps among the parameters of a PTX kernel.
#include "driver/emu/map.h"

#include "driver/value/number.h"

static bool bad(tir_error *error, const char *word, const char *what)
{
    return tir_fail(error, TIR_ERR_INVALID, "%s: %s", word, what);
}

// "64x128"
static bool read_list(tir_str text, int64_t *out, uint32_t *count)
{
    size_t at = 0;
    for (*count = 0; *count < TIR_TENSOR_MAP_RANK; ++*count) {
        size_t end = at;
        while (end < text.len && text.ptr[end] != 'x')
            end++;
        if (!tir_parse_int((tir_str){text.ptr + at, end - at}, &out[*count]) || out[*count] < 1)
            return false;
        at = end + 1;
        if (end == text.len) {
            ++*count;
            return true;
        }
    }
    return false;
}

// The modes and how their values are spelled; the enums count in this order.
static const char *const swizzles[] = {"none", "32", "64", "128", NULL};
static const char *const interleaves[] = {"none", "16", "32", NULL};
static const char *const fills[] = {"zero", "nan", NULL};

static bool read_mode(tir_str text, const char *const *names, int *out)
{
    for (int i = 0; names[i]; i++)
        if (tir_str_is(text, names[i])) {
            *out = i;
            return true;
        }
    return false;
}

// One "name=value".
static bool read_field(tir_str name, tir_str value, struct tir_emu_map *out)
{
    int mode = 0;
    bool known = true;
    if (tir_str_is(name, "box"))
        return read_list(value, out->box, &out->box_count);
    if (tir_str_is(name, "step"))
        return read_list(value, out->steps, &out->step_count);
    if (tir_str_is(name, "swizzle")) {
        known = read_mode(value, swizzles, &mode);
        out->map.swizzle = (tir_tensor_map_swizzle)mode;
    } else if (tir_str_is(name, "interleave")) {
        known = read_mode(value, interleaves, &mode);
        out->map.interleave = (tir_tensor_map_interleave)mode;
    } else if (tir_str_is(name, "fill")) {
        known = read_mode(value, fills, &mode);
        out->map.fill = (tir_tensor_map_fill)mode;
    } else {
        return false;
    }
    return known;
}

bool tir_emu_map_parse(const char *word, struct tir_emu_map *out, tir_error *error)
{
    const char *at = word + strlen("tmap:");
    size_t len = strcspn(at, ":");
    int64_t of;
    *out = (struct tir_emu_map){.of = 0};
    if (!tir_parse_int((tir_str){at, len}, &of) || of < 0 || of > INT32_MAX)
        return bad(error, word, "a tensor map is tmap:ARGUMENT:box=64x128");
    out->of = (uint32_t)of;
    for (at += len; *at; at += len) {
        at++;
        len = strcspn(at, ":");
        size_t name = strcspn(at, "=:");
        if (name >= len ||
            !read_field((tir_str){at, name}, (tir_str){at + name + 1, len - name - 1}, out))
            return bad(error, word,
                       "a tensor map has box=64x128, step=1x2, swizzle=none|32|64|128, "
                       "interleave=none|16|32, fill=zero|nan");
    }
    return out->box_count || bad(error, word, "the box of a tensor map is needed, as box=64x128");
}

static bool type_of(enum tir_elem elem, tir_tensor_map_type *out)
{
    static const struct {
        enum tir_elem elem;
        tir_tensor_map_type type;
    } types[] = {
        {TIR_BOOL, TIR_TENSOR_MAP_U8},   {TIR_I8, TIR_TENSOR_MAP_U8},
        {TIR_U8, TIR_TENSOR_MAP_U8},     {TIR_E4M3, TIR_TENSOR_MAP_U8},
        {TIR_E5M2, TIR_TENSOR_MAP_U8},   {TIR_UE8M0, TIR_TENSOR_MAP_U8},
        {TIR_E3M2, TIR_TENSOR_MAP_U8},   {TIR_E2M3, TIR_TENSOR_MAP_U8},
        {TIR_UE4M3, TIR_TENSOR_MAP_U8},  {TIR_I16, TIR_TENSOR_MAP_U16},
        {TIR_U16, TIR_TENSOR_MAP_U16},   {TIR_I32, TIR_TENSOR_MAP_S32},
        {TIR_U32, TIR_TENSOR_MAP_U32},   {TIR_I64, TIR_TENSOR_MAP_S64},
        {TIR_U64, TIR_TENSOR_MAP_U64},   {TIR_F16, TIR_TENSOR_MAP_F16},
        {TIR_BF16, TIR_TENSOR_MAP_BF16}, {TIR_TF32, TIR_TENSOR_MAP_TF32},
        {TIR_F32, TIR_TENSOR_MAP_F32},   {TIR_F64, TIR_TENSOR_MAP_F64},
    };
    for (size_t i = 0; i < TIR_COUNT_OF(types); i++)
        if (types[i].elem == elem) {
            *out = types[i].type;
            return true;
        }
    return false;
}

bool tir_emu_map_encode(const struct tir_emu_map *map, const char *word,
                        const struct tir_tensor *tensor, uint64_t address,
                        uint8_t bytes[TIR_TENSOR_MAP_BYTES], tir_error *error)
{
    tir_tensor_map m = map->map;
    const uint32_t rank = m.rank = tensor->rank;
    m.address = address;
    if (rank > TIR_TENSOR_MAP_RANK || map->box_count != rank ||
        (map->step_count && map->step_count != rank))
        return bad(error, word, "as many numbers as the buffer has dimensions are needed");
    if (!type_of(tensor->elem, &m.type))
        return bad(error, word, "there are no tensor maps of these elements");
    if (rank && tensor->shape[rank - 1] > 1 && tensor->strides[rank - 1] != 1)
        return bad(error, word, "the last dimension of the buffer is not contiguous");
    for (uint32_t i = 0; i < rank; i++) { // a map begins with the last one
        const uint32_t dim = rank - 1 - i;
        m.dims[i] = (uint64_t)tensor->shape[dim];
        m.box[i] = map->box[dim] > UINT32_MAX ? UINT32_MAX : (uint32_t)map->box[dim];
        m.steps[i] = map->step_count ? (uint32_t)map->steps[dim] : 1;
        if (i)
            m.strides[i - 1] = (uint64_t)tensor->strides[dim] * tir_elem_size(tensor->elem);
    }
    tir_error why;
    return tir_tensor_map_encode(&m, bytes, &why) == TIR_OK || bad(error, word, why.message);
}
