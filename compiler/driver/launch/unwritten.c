// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of outputs that a kernel does not write.
//
// Outputs begin as 0xFF bytes. An element that has them afterwards was not written, or was given
// just this value. Where there is such an element, here or in the reference, both run again with
// outputs that begin as other bytes: what still has those was not written.
#include "driver/launch/unwritten.h"

enum { FIRST = 0xFF, SECOND = 0xA5 };

static bool is_tracked(const struct tir_session *s, uint32_t param)
{
    const struct tir_bound *p = &s->bind.params[param];
    return tir_param_is_output(p->param) && !s->starts[param].bytes && p->tensor.count > 0;
}

static bool holds(const uint8_t *element, uint32_t size, uint8_t byte)
{
    for (uint32_t i = 0; i < size; i++)
        if (element[i] != byte)
            return false;
    return true;
}

static bool holds_anywhere(const struct tir_tensor *t, uint8_t byte)
{
    struct tir_cursor c = tir_cursor_first(t);
    for (int64_t i = 0; i < t->count; i++, tir_cursor_next(&c))
        if (holds(c.at, tir_elem_size(t->elem), byte))
            return true;
    return false;
}

static bool is_suspicious(const struct tir_session *s)
{
    for (uint32_t i = 0; i < s->info->param_count; i++)
        if (is_tracked(s, i) && (holds_anywhere(&s->bind.params[i].tensor, FIRST) ||
                                 holds_anywhere(&s->wants[i], FIRST)))
            return true;
    return false;
}

// The results of one run: of the device, and of the reference.
struct results {
    struct tir_tensor got[TIR_MAX_PARAMS], want[TIR_MAX_PARAMS];
};

static void exchange(struct tir_session *s, struct results *other)
{
    for (uint32_t i = 0; i < s->info->param_count; i++) {
        if (!tir_param_is_output(s->bind.params[i].param))
            continue;
        struct tir_tensor got = s->bind.params[i].tensor, want = s->wants[i];
        s->bind.params[i].tensor = other->got[i];
        s->wants[i] = other->want[i];
        other->got[i] = got;
        other->want[i] = want;
    }
}

static bool begin_as(struct tir_tensor *out, const struct tir_tensor *like,
                     const struct tir_tensor *start, tir_error *error)
{
    if (start->bytes)
        return tir_tensor_clone(out, start, error);
    if (!tir_tensor_clone(out, like, error))
        return false;
    memset(out->bytes, SECOND, out->size);
    return true;
}

static bool prepare(struct tir_session *s, struct results *second)
{
    for (uint32_t i = 0; i < s->info->param_count; i++) {
        const struct tir_bound *p = &s->bind.params[i];
        if (tir_param_is_output(p->param) &&
            (!begin_as(&second->got[i], &p->tensor, &s->starts[i], s->error) ||
             !begin_as(&second->want[i], &p->tensor, &s->starts[i], s->error) ||
             tir_rt_buffer_write(s->buffers[i], 0, second->got[i].bytes, second->got[i].size, NULL,
                                 s->error)))
            return false;
    }
    return true;
}

static bool run_again(struct tir_session *s, struct results *second)
{
    tir_rt_launch_report report;
    if (!prepare(s, second) || !tir_session_launch(s, s->kernel, -1, &report, NULL) ||
        tir_rt_device_synchronize(s->device, s->error))
        return false;
    exchange(s, second);
    bool done = tir_session_read(s) && tir_session_reference(s);
    exchange(s, second);
    return done;
}

static void count_unwritten(const struct tir_session *s, const struct results *second,
                            uint32_t param, struct tir_unwritten *out)
{
    const struct tir_tensor *got = &s->bind.params[param].tensor;
    const uint32_t size = tir_elem_size(got->elem);
    struct tir_cursor a = tir_cursor_first(got), b = tir_cursor_first(&second->got[param]);
    struct tir_cursor c = tir_cursor_first(&s->wants[param]);
    struct tir_cursor d = tir_cursor_first(&second->want[param]);
    out->on_device = true;
    for (int64_t i = 0; i < got->count; i++) {
        const bool here = holds(a.at, size, FIRST) && holds(b.at, size, SECOND);
        const bool there = holds(c.at, size, FIRST) && holds(d.at, size, SECOND);
        if ((here || there) && out->count++ == 0)
            memcpy(out->first, a.index, sizeof(out->first));
        out->on_device &= !there;
        tir_cursor_next(&a);
        tir_cursor_next(&b);
        tir_cursor_next(&c);
        tir_cursor_next(&d);
    }
}

bool tir_unwritten_find(struct tir_session *s, struct tir_unwritten out[TIR_MAX_PARAMS])
{
    memset(out, 0, TIR_MAX_PARAMS * sizeof(*out));
    if (!is_suspicious(s))
        return true;
    struct results *second = arena_new(s->arena, struct results);
    bool done = run_again(s, second);
    for (uint32_t i = 0; i < s->info->param_count; i++) {
        if (done && is_tracked(s, i))
            count_unwritten(s, second, i, &out[i]);
        tir_tensor_free(&second->got[i]);
        tir_tensor_free(&second->want[i]);
    }
    return done;
}
