// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on any program the front end accepts: a result or an error, within its limits of
// steps and memory. The same inputs give the same bytes twice.

#include "interp/interp.h"

#include <stdlib.h>

#include "front/front.h"
#include "protect.h"

enum { LARGEST = 64, MEMORY = 64 << 20 };

// An allocator with so many bytes to give.
static void *limited_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    size_t *left = user;
    if (new_size > *left + old_size)
        return NULL;
    *left += old_size - new_size;
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

// Sizes 3, 4, 5, ... for named dimensions; false: a stated one is too large.
static bool make_args(struct tir_context *cx, const struct tir_func *f, struct tir_interp_arg *args,
                      size_t *bytes)
{
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct tir_param *p = &f->params[i];
        int64_t count = 1;
        args[i].elem = p->value->type->elem;
        args[i].rank = p->value->type->rank;
        for (uint32_t d = args[i].rank; d-- > 0;) {
            int64_t size = p->dims[d].dim < 0 ? p->dims[d].constant : 3 + p->dims[d].dim;
            if (size > LARGEST || (count *= size) > LARGEST * LARGEST)
                return false;
            args[i].shape[d] = size;
            args[i].strides[d] = count / (size ? size : 1);
        }
        bytes[i] = (size_t)count * (tir_elems[args[i].elem].bits + 7) / 8;
        args[i].data = arena_array(&cx->arena, uint8_t, bytes[i] + 1);
        memset(args[i].data, 0x3f, bytes[i]);
    }
    return true;
}

static void interpret(struct tir_context *cx, struct tir_func *f)
{
    struct tir_interp_arg *once = arena_array(&cx->arena, struct tir_interp_arg, f->param_count);
    struct tir_interp_arg *twice = arena_array(&cx->arena, struct tir_interp_arg, f->param_count);
    size_t *bytes = arena_array(&cx->arena, size_t, f->param_count);
    if (!make_args(cx, f, once, bytes) || !make_args(cx, f, twice, bytes))
        return;
    size_t left[] = {MEMORY, MEMORY};
    tir_allocator allocators[] = {{limited_resize, &left[0]}, {limited_resize, &left[1]}};
    struct tir_interp_options options = {.step_limit = 20000, .allocator = &allocators[0]};
    tir_error error = {0};
    tir_status status = tir_interp_run(f, once, f->param_count, &options, &error);
    FUZZ_CHECK((status == TIR_OK) == (error.message[0] == '\0'));
    options.allocator = &allocators[1];
    FUZZ_CHECK(tir_interp_run(f, twice, f->param_count, &options, NULL) == status);
    FUZZ_CHECK(left[0] == MEMORY && left[1] == MEMORY);
    for (uint32_t i = 0; i < f->param_count; i++)
        FUZZ_CHECK(!memcmp(once[i].data, twice[i].data, bytes[i]));
}

static void run(struct tir_context *cx, struct tir_source_file *file)
{
    struct tir_module *m;
    if (!tir_front_module(cx, file->name, file->text, NULL, &m))
        return;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        interpret(cx, m->funcs.at[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_protect(data, size, run);
    return 0;
}
