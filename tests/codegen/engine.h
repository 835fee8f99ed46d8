// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For tests of kernels that use the asynchronous engines: lowered text or built IR in, a launch on
// the emulator with tensor maps, as the runtime would make them from the kernel's list.
#ifndef TESTS_CODEGEN_ENGINE_H
#define TESTS_CODEGEN_ENGINE_H

#include "codegen.h"

#include "../emu/rig.h"
#include "front/front.h"
#include "target/nvptx/tensor_maps.h"
#include "tir/tensor_map.h"

struct engine_tensor {
    uint64_t address;
    uint64_t dims[TIR_MAX_RANK];
};
struct engine {
    struct ir_unit u;
    struct rig r;
    tir_str ptx;
    struct engine_tensor tensors[8]; // of the kernel's parameters, in order
    uint32_t tensor_count;
};

// No inserted waits, nothing serialised, no spills.
static inline void assemble_clean(struct ir_unit *u, const char *arch, tir_str ptx)
{
    const char *path = tir_ptxas_find(&u->cx.arena);
    struct tir_ptxas_result result;
    if (!path ||
        !tir_ptxas_run(&u->cx.arena, path, tir_target_find(tir_str_of(arch)), ptx, &result))
        return;
    if (!result.ok || strstr(result.log.ptr, "(C75") || strstr(result.log.ptr, "(C76"))
        fail_msg("ptxas for %s: %s", arch, result.log.ptr);
    for (uint32_t i = 0; i < result.kernel_count; i++)
        assert_int_equal(result.kernels[i].spill_bytes, 0);
}

// Compiles u's only kernel and loads it.
static inline void engine_load(struct engine *t)
{
    t->ptx = compile_for(&t->u, "sm_90a");
    assemble_clean(&t->u, "sm_90a", t->ptx);
    rig_open(&t->r);
    rig_load(&t->r, t->ptx.ptr);
}

static inline void parse_kernel(struct ir_unit *u, const char *source)
{
    tir_context_init(&u->cx, NULL);
    struct tir_front_options options = {0};
    if (!tir_front_module(&u->cx, STR("test.tir"), tir_str_of(source), &options, &u->m)) {
        struct tir_text text;
        tir_text_init(&text, &u->cx.arena, 0);
        tir_diags_render(&u->cx.diags, TIR_DIAG_TEXT, &text);
        fail_msg("%s", tir_text_str(&text).ptr);
    }
    u->f = u->m->funcs.at[0];
}

// The target refuses the kernel, and says so.
static inline void expect_refused(const char *source, const char *arch, const char *message)
{
    struct ir_unit u;
    parse_kernel(&u, source);
    if (tir_nvptx_check(u.f, tir_target_find(tir_str_of(arch)), &u.cx.diags))
        fail_msg("%s takes %s", arch, source);
    struct tir_text text;
    tir_text_init(&text, &u.cx.arena, 0);
    tir_diags_render(&u.cx.diags, TIR_DIAG_TEXT, &text);
    assert_has(tir_text_str(&text), message);
    tir_context_finish(&u.cx);
}

static inline void engine_open(struct engine *t, const char *source)
{
    memset(t, 0, sizeof *t);
    parse_kernel(&t->u, source);
    engine_load(t);
}

static inline void engine_close(struct engine *t)
{
    rig_close(&t->r);
    tir_context_finish(&t->u.cx);
}

// The next tensor of the kernel, dense; dims: outermost first. data NULL: uninitialised.
static inline uint64_t engine_tensor(struct engine *t, const void *data, size_t bytes,
                                     const uint64_t *dims, uint32_t rank)
{
    struct engine_tensor *tensor = &t->tensors[t->tensor_count++];
    memcpy(tensor->dims, dims, rank * sizeof *dims);
    return tensor->address = rig_buffer(&t->r, data, bytes);
}

static inline uint64_t engine_stride(const struct engine_tensor *tensor, uint32_t rank, uint32_t d)
{
    uint64_t stride = 1;
    for (uint32_t i = d + 1; i < rank; i++)
        stride *= tensor->dims[i];
    return stride;
}

static inline tir_tensor_map_type engine_map_type(enum tir_elem elem)
{
    switch (elem) {
    case TIR_F16:
        return TIR_TENSOR_MAP_F16;
    case TIR_BF16:
        return TIR_TENSOR_MAP_BF16;
    case TIR_F32:
        return TIR_TENSOR_MAP_F32;
    case TIR_I16:
        return TIR_TENSOR_MAP_U16;
    case TIR_I32:
        return TIR_TENSOR_MAP_S32;
    case TIR_U32:
        return TIR_TENSOR_MAP_U32;
    default:
        assert_int_equal(tir_elems[elem].bits, 8);
        return TIR_TENSOR_MAP_U8;
    }
}

static inline void engine_param_map(struct engine *t, const struct tir_tensor_map_use *use)
{
    const struct tir_value *v = t->u.f->params[use->param].value;
    const struct engine_tensor *tensor = &t->tensors[use->param];
    uint32_t rank = use->rank, size = tir_elems[v->type->elem].bits / 8;
    tir_tensor_map map = {.type = engine_map_type(v->type->elem),
                          .swizzle = use->swizzle == 128  ? TIR_TENSOR_MAP_SWIZZLE_128
                                     : use->swizzle == 64 ? TIR_TENSOR_MAP_SWIZZLE_64
                                     : use->swizzle == 32 ? TIR_TENSOR_MAP_SWIZZLE_32
                                                          : TIR_TENSOR_MAP_SWIZZLE_NONE,
                          .rank = rank,
                          .address = tensor->address};
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t d = rank - 1 - i;
        map.dims[i] = tensor->dims[d];
        map.steps[i] = (uint32_t)use->stride[d];
        map.box[i] = (uint32_t)use->box[d] * map.steps[i];
        if (i)
            map.strides[i - 1] = engine_stride(tensor, rank, d) * size;
    }
    uint8_t bytes[TIR_TENSOR_MAP_BYTES];
    if (tir_tensor_map_encode(&map, bytes, &t->r.error))
        fail_msg("%s", t->r.error.message);
    t->r.params_size = (t->r.params_size + 63) / 64 * 64;
    memcpy(t->r.params + t->r.params_size, bytes, sizeof bytes);
    t->r.params_size += sizeof bytes;
}

// Launches with the tensors there are, then forgets their parameters but keeps the buffers. The
// kernel has no scalars.
static inline void engine_run(struct engine *t, uint32_t grid)
{
    const struct tir_func *f = t->u.f;
    uint64_t dims[8] = {0};
    assert_int_equal(t->tensor_count, f->param_count);
    for (uint32_t i = 0; i < f->param_count; i++) {
        uint32_t rank = f->params[i].value->type->rank;
        rig_param_u64(&t->r, t->tensors[i].address);
        for (uint32_t d = 0; d < rank; d++) {
            rig_param_u64(&t->r, engine_stride(&t->tensors[i], rank, d));
            if (f->params[i].dims[d].dim >= 0)
                dims[f->params[i].dims[d].dim] = t->tensors[i].dims[d];
        }
    }
    for (uint32_t i = 0; i < f->dim_count; i++)
        rig_param_u64(&t->r, dims[i]);
    struct tir_tensor_maps maps = tir_tensor_maps(&t->u.cx.arena, f);
    for (uint32_t i = 0; i < maps.len; i++)
        engine_param_map(t, &maps.at[i]);
    t->r.shared_bytes = (uint32_t)f->shared_bytes;
    t->r.cluster = f->cluster[0];
    rig_run(&t->r, f->name, grid, f->threads);
}

#endif
