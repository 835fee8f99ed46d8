// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes known at compile time: of dimensions, and of names that stand in sizes alone.
//
// Such a name follows from a dimension, and its value in the host block has its name. With N = 50
//     kernel k(X: f32[X_0]) where eq(X_0, mul(2, div(X_0, 2)))      // X: f32[2 * N]
// becomes
//     kernel k(X: f32[X_0]) where eq(X_0, 100)
// and a dimension whose size is demanded is known (specialize).
#include "compile/known.h"

#include "base/bitset.h"
#include "ir/walk.h"
#include "pass/pass.h"

bool tir_known_size(const struct tir_request *request, const struct tir_func *f, uint32_t dim,
                    int64_t *size)
{
    for (size_t i = 0; i < request->options.dim_count; i++)
        if (tir_str_is(request->options.dims[i].name, f->dims[dim].name))
            return tir_size_parse(request->options.dims[i].value, size);
    return tir_demanded_size(f, f->dims[dim].value, size);
}

// Is it part of a condition, as a name is that a size says?
static bool is_in_condition(const struct tir_func *f, const struct tir_inst *inst)
{
    const struct tir_inst *yield = tir_yield_of(f->host);
    struct bitset from = bitset_new(f->module->arena, f->value_count);
    for (uint32_t i = tir_conditions_at(f); yield && i < yield->operand_count; i++)
        bitset_insert(&from, yield->operands[i]->id);
    for (const struct tir_inst *at = f->host->last; at && at != inst; at = at->prev)
        if (at->result_count && bitset_has(&from, at->results[0]->id))
            for (uint32_t i = 0; i < at->operand_count; i++)
                bitset_insert(&from, at->operands[i]->id);
    return bitset_has(&from, inst->results[0]->id);
}

struct tir_value *tir_sized_name_next(const struct tir_func *f, const struct tir_value *last)
{
    const struct tir_inst *inst = last ? last->def->next : f->host->first;
    for (; inst; inst = inst->next)
        if (inst->result_count && inst->results[0]->name && is_in_condition(f, inst))
            return inst->results[0];
    return NULL;
}

static struct tir_value *name_called(const struct tir_func *f, tir_str name)
{
    struct tir_value *v = tir_sized_name_next(f, NULL);
    while (v && !tir_str_is(name, v->name))
        v = tir_sized_name_next(f, v);
    return v;
}

static bool has_dim(const struct tir_func *f, tir_str name)
{
    for (uint32_t i = 0; i < f->dim_count; i++)
        if (tir_str_is(name, f->dims[i].name))
            return true;
    return false;
}

// Binds the names of f that are given. False: a diagnostic was reported.
static bool bind_names(struct tir_context *cx, const struct tir_request *request,
                       struct tir_func *f)
{
    struct tir_pass_cx pass = {.scratch = &cx->scratch, .diags = &cx->diags};
    bool changed = false;
    for (size_t i = 0; i < request->options.dim_count; i++) {
        const tir_setting *given = &request->options.dims[i];
        struct tir_value *v = has_dim(f, given->name) ? NULL : name_called(f, given->name);
        int64_t size;
        if (!v)
            continue; // specialize binds it, or it is another kernel's
        if (!tir_size_parse(given->value, &size)) {
            tir_error_at(&cx->diags, f->span, TIR_E_ARGUMENTS, STR_FMT " cannot be '" STR_FMT "'",
                         STR_ARG(given->name), STR_ARG(given->value));
            return false;
        }
        tir_replace_uses(f, v, tir_const_index(f, size));
        changed = true;
    }
    return !changed || tir_pass_fold(f, &pass) != TIR_FAILED;
}

static bool is_in(const struct tir_module *m, tir_str name)
{
    vec_foreach(struct tir_func *const, f, &m->funcs)
        if (has_dim(*f, name) || name_called(*f, name))
            return true;
    return false;
}

bool tir_known_bind(struct tir_context *cx, const struct tir_request *request, struct tir_module *m)
{
    bool ok = true;
    for (size_t i = 0; i < request->options.dim_count; i++) {
        const tir_str name = request->options.dims[i].name;
        if (is_in(m, name))
            continue;
        tir_error_at(&cx->diags, (struct tir_span){0, 0}, TIR_E_NAME,
                     "no kernel has a dimension `%.*s`", (int)TIR_MIN(name.len, 100), name.ptr);
        ok = false;
    }
    vec_foreach(struct tir_func *const, f, &m->funcs)
        ok = ok && bind_names(cx, request, *f);
    return ok;
}
