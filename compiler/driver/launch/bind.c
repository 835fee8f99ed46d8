// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Binding: names to dimensions and parameters, sizes from files, then tensors made and filled.
#include "driver/launch/bind.h"

#include <stdlib.h>

#include "driver/source.h"
#include "driver/value/element.h"
#include "driver/value/number.h"
#include "driver/value/random.h"

struct binder {
    struct tir_arena *arena;
    struct tir_bind *out;
    tir_error *error;
};

// The same message, after the name that it is about.
static bool about(struct binder *b, tir_str name)
{
    tir_error cause = *b->error;
    return tir_fail(b->error, cause.status, STR_FMT ": %s", STR_ARG(name), cause.message);
}

// ---- names

static bool no_such_name(struct binder *b, tir_str name)
{
    const tir_artifact_kernel *kernel = b->out->kernel;
    struct tir_nearest near = tir_nearest_to(name, name.len < 2 ? 0 : 2); // all are near one letter
    for (uint32_t i = 0; i < kernel->dim_count; i++)
        tir_nearest_try(&near, kernel->dims[i]);
    for (uint32_t i = 0; i < kernel->param_count; i++)
        tir_nearest_try(&near, kernel->params[i].name);
    for (uint32_t i = 0; i < kernel->name_count; i++)
        tir_nearest_try(&near, kernel->names[i].name);
    for (uint32_t i = 0; i < kernel->meta_count; i++)
        if (tir_str_equal(name, kernel->metas[i].name))
            return tir_fail(b->error, TIR_ERR_INVALID,
                            "%.*s is a compile-time parameter: write -D %.*s=VALUE", STR_ARG(name),
                            STR_ARG(name));
    if (near.name.ptr)
        return tir_fail(b->error, TIR_ERR_INVALID,
                        STR_FMT " has no dimension or parameter " STR_FMT "; did you mean " STR_FMT
                                "?",
                        STR_ARG(kernel->name), STR_ARG(name), STR_ARG(near.name));
    struct tir_text sizes; // X: f32[2 * N] has X_0, from which N follows
    tir_text_init(&sizes, b->arena, 0);
    for (uint32_t i = 0; i < kernel->dim_count; i++)
        tir_text_format(&sizes, "%s" STR_FMT, i ? ", " : "", STR_ARG(kernel->dims[i]));
    for (uint32_t i = 0; i < kernel->name_count; i++)
        tir_text_format(&sizes, ", " STR_FMT, STR_ARG(kernel->names[i].name));
    return tir_fail(b->error, TIR_ERR_INVALID,
                    STR_FMT " has no dimension or parameter " STR_FMT "%s%s", STR_ARG(kernel->name),
                    STR_ARG(name), sizes.len ? "; its dimensions are " : "",
                    sizes.len ? sizes.ptr : "");
}

static bool bind_dim(struct binder *b, uint32_t dim, tir_str name, tir_str value)
{
    if (b->out->known[dim])
        return tir_fail(b->error, TIR_ERR_INVALID, STR_FMT " is given twice", STR_ARG(name));
    if (!tir_parse_int(value, &b->out->dims[dim]) || b->out->dims[dim] < 0)
        return tir_fail(b->error, TIR_ERR_INVALID,
                        STR_FMT "=" STR_FMT ": a dimension is a whole number from 0", STR_ARG(name),
                        STR_ARG(value));
    return b->out->known[dim] = true;
}

static bool bind_param(struct binder *b, struct tir_bound *p, tir_str name, tir_str value)
{
    if (p->given)
        return tir_fail(b->error, TIR_ERR_INVALID, STR_FMT " is given twice", STR_ARG(name));
    p->given = true;
    const enum tir_elem elem = tir_elem_of_element(p->param->element);
    if (p->param->kind == TIR_PARAM_SCALAR)
        return tir_scalar_parse(elem, value, &p->scalar, b->error) || about(b, name);
    if (!tir_tensor_spec_parse(b->arena, value.ptr, elem, &p->spec, b->error))
        return about(b, name);
    if (p->param->direction == TIR_DIRECTION_OUT && p->spec.fill == TIR_FILL_FILE) {
        p->spec.fill = TIR_FILL_DEFAULT;
        p->spec.save = p->spec.file;
    }
    if (p->spec.stride_count && p->spec.stride_count != p->param->rank)
        return tir_fail(b->error, TIR_ERR_INVALID, STR_FMT " has %u dimensions, but %u strides",
                        STR_ARG(name), p->param->rank, p->spec.stride_count);
    return true;
}

// A dimension whose size the kernel states (`where N == 64`): it may be said again.
static bool check_fixed(struct binder *b, const tir_artifact_fixed *fixed, tir_str value)
{
    int64_t size;
    return (tir_parse_int(value, &size) && size == fixed->size) ||
           tir_fail(b->error, TIR_ERR_INVALID,
                    STR_FMT "=" STR_FMT ": " STR_FMT " needs " STR_FMT " == %lld",
                    STR_ARG(fixed->name), STR_ARG(value), STR_ARG(b->out->kernel->name),
                    STR_ARG(fixed->name), (long long)fixed->size);
}

// A name that follows from dimensions.
static bool bind_name(struct binder *b, uint32_t i, tir_str name, tir_str value)
{
    if (b->out->named[i])
        return tir_fail(b->error, TIR_ERR_INVALID, STR_FMT " is given twice", STR_ARG(name));
    if (!tir_parse_int(value, &b->out->names[i]) || b->out->names[i] < 0)
        return tir_fail(b->error, TIR_ERR_INVALID,
                        STR_FMT "=" STR_FMT ": a dimension is a whole number from 0", STR_ARG(name),
                        STR_ARG(value));
    return b->out->named[i] = true;
}

static bool bind_word(struct binder *b, const char *word)
{
    const tir_artifact_kernel *kernel = b->out->kernel;
    tir_str name, value;
    tir_source_split(word, &name, &value);
    if (!name.len || !word[name.len])
        return tir_fail(b->error, TIR_ERR_INVALID, "%s: NAME=VALUE is needed", word);
    for (uint32_t i = 0; i < kernel->dim_count; i++)
        if (tir_str_equal(name, kernel->dims[i]))
            return bind_dim(b, i, name, value);
    for (uint32_t i = 0; i < kernel->param_count; i++)
        if (tir_str_equal(name, kernel->params[i].name))
            return bind_param(b, &b->out->params[i], name, value);
    for (uint32_t i = 0; i < kernel->fixed_count; i++)
        if (tir_str_equal(name, kernel->fixed[i].name))
            return check_fixed(b, &kernel->fixed[i], value);
    for (uint32_t i = 0; i < kernel->name_count; i++)
        if (tir_str_equal(name, kernel->names[i].name))
            return bind_name(b, i, name, value);
    return no_such_name(b, name);
}

// ---- sizes

// One dimension of a file against the extent that it fills.
static bool match_extent(struct binder *b, const struct tir_bound *p, uint32_t axis)
{
    const tir_extent *extent = &p->param->extents[axis];
    int64_t size = p->file.npy.shape[axis];
    bool named = extent->dim != TIR_EXTENT_FIXED;
    if (named && !b->out->known[extent->dim]) {
        b->out->known[extent->dim] = true;
        b->out->dims[extent->dim] = size;
    }
    int64_t want = named ? b->out->dims[extent->dim] : extent->fixed;
    return size == want ||
           tir_fail(b->error, TIR_ERR_INVALID,
                    STR_FMT ": dimension %u of %s is %lld, but " STR_FMT " is %lld",
                    STR_ARG(p->param->name), axis, p->spec.file, (long long)size,
                    STR_ARG(named ? b->out->kernel->dims[extent->dim] : STR("the kernel's")),
                    (long long)want);
}

static bool open_file(struct binder *b, struct tir_bound *p)
{
    if (!tir_npy_open(p->spec.file, &p->file, b->error))
        return false;
    if (p->file.npy.rank != p->param->rank)
        return tir_fail(b->error, TIR_ERR_INVALID, STR_FMT " has %u dimensions, %s has %u",
                        STR_ARG(p->param->name), p->param->rank, p->spec.file, p->file.npy.rank);
    for (uint32_t axis = 0; axis < p->file.npy.rank; axis++)
        if (!match_extent(b, p, axis))
            return false;
    return true;
}

// The sides of a condition `left == right`; false: it is none.
static bool sides_of(const tir_formula *condition, tir_formula *left, tir_formula *right)
{
    const tir_formula_op *ops = condition->ops;
    uint32_t last = condition->count - 1, needed = 1;
    if (condition->count < 3 || ops[last].code != TIR_FORMULA_EQ)
        return false;
    for (uint32_t i = last; i-- > 0;) { // backwards, what an operation takes stands before it
        bool is_leaf = ops[i].code <= TIR_FORMULA_SCALAR || ops[i].code == TIR_FORMULA_ALIGN ||
                       ops[i].code == TIR_FORMULA_BEGIN;
        needed += is_leaf ? 0 : ops[i].code == TIR_FORMULA_NOT ? 1 : 2;
        if (--needed)
            continue;
        *left = (tir_formula){ops, i};
        *right = (tir_formula){ops + i, last - i};
        return i > 0;
    }
    return false;
}

static bool is_known(const struct binder *b, const tir_formula *formula)
{
    for (uint32_t i = 0; i < formula->count; i++) {
        int64_t value = formula->ops[i].value;
        if ((formula->ops[i].code == TIR_FORMULA_DIM && !b->out->known[value]) ||
            (formula->ops[i].code == TIR_FORMULA_SCALAR && !b->out->params[value].given) ||
            formula->ops[i].code == TIR_FORMULA_ALIGN || formula->ops[i].code == TIR_FORMULA_BEGIN)
            return false;
    }
    return true;
}

// The only dimension of a formula that is unknown; false: there is none, or several.
static bool one_unknown(const struct binder *b, const tir_formula *formula, uint32_t *dim)
{
    bool found = false;
    for (uint32_t i = 0; i < formula->count; i++) {
        int64_t value = formula->ops[i].value;
        if (formula->ops[i].code != TIR_FORMULA_DIM || b->out->known[value])
            continue;
        if (found && *dim != (uint32_t)value)
            return false;
        *dim = (uint32_t)value;
        found = true;
    }
    return found;
}

// A side as a line in the dimension: its values at 0 and 1, of sums of the dimension times what is
// known. Of a curve, or a quotient, they say nothing.
static bool is_line(struct binder *b, const tir_formula *side, uint32_t dim, const int64_t *scalars,
                    int64_t values[2])
{
    for (uint32_t i = 0, uses = 0; i < side->count; i++) {
        uses += side->ops[i].code == TIR_FORMULA_DIM && side->ops[i].value == dim;
        if (side->ops[i].code > TIR_FORMULA_MUL || uses > 1)
            return false;
    }
    for (int64_t at = 0; at < 2; at++) {
        b->out->dims[dim] = at;
        if (tir_formula_eval(side, b->out->dims, scalars, &values[at], NULL))
            return false;
    }
    return true;
}

// The size of the dimension with which known == side; false: none follows.
static bool solve(struct binder *b, const tir_formula *known, const tir_formula *side, uint32_t dim,
                  const int64_t *scalars, int64_t *size)
{
    int64_t line[2], value, slope;
    if (!is_known(b, known) || !is_line(b, side, dim, scalars, line) ||
        tir_formula_eval(known, b->out->dims, scalars, &value, NULL) ||
        __builtin_sub_overflow(line[1], line[0], &slope) || slope == 0 ||
        __builtin_sub_overflow(value, line[0], &value) || (slope == -1 && value == INT64_MIN) ||
        value % slope)
        return false; // the launch says what is wrong
    *size = value / slope;
    return *size >= 0;
}

static bool begins_with(const tir_formula *formula, uint32_t at, const tir_formula *part)
{
    for (uint32_t i = 0; i < part->count; i++)
        if (at + i >= formula->count || formula->ops[at + i].code != part->ops[i].code ||
            formula->ops[at + i].value != part->ops[i].value)
            return false;
    return true;
}

// The formula, with the numbers of names that are given in the places of what they follow from:
// X_0 == 2 * (X_0 / 2) of X: f32[2 * N] is X_0 == 2 * 50. What is whole in postfix order is so
// wherever it stands. A name may be part of what a later one follows from.
static tir_formula with_names(struct binder *b, tir_formula formula)
{
    for (uint32_t n = b->out->kernel->name_count; n-- > 0;) {
        const tir_formula *part = &b->out->kernel->names[n].value;
        tir_formula_op *ops = arena_array(b->arena, tir_formula_op, formula.count);
        uint32_t count = 0;
        if (!b->out->named[n])
            continue;
        for (uint32_t i = 0; i < formula.count;) {
            const bool here = begins_with(&formula, i, part);
            ops[count++] =
                here ? (tir_formula_op){TIR_FORMULA_CONST, b->out->names[n]} : formula.ops[i];
            i += here ? part->count : 1;
        }
        formula = (tir_formula){ops, count};
    }
    return formula;
}

// Whether left == right says the size of the only dimension in them that is unknown.
static bool follow(struct binder *b, const tir_formula *left, const tir_formula *right,
                   const int64_t *scalars)
{
    uint32_t dim = 0, other = 0;
    const bool on_left = one_unknown(b, left, &dim), on_right = one_unknown(b, right, &other);
    int64_t size;
    if (on_left == on_right || !(on_left ? solve(b, right, left, dim, scalars, &size)
                                         : solve(b, left, right, other, scalars, &size)))
        return false;
    dim = on_left ? dim : other;
    b->out->dims[dim] = size;
    return b->out->known[dim] = true;
}

// Dimensions that follow from others and from names that are given: X: f32[2 * N], Y: f32[N + 1],
// where K == 2 * H. Of a name that is a quotient, as N is, a condition says that nothing is left.
static void follow_conditions(struct binder *b)
{
    const tir_artifact_kernel *kernel = b->out->kernel;
    int64_t scalars[TIR_MAX_PARAMS] = {0};
    for (uint32_t i = 0; i < kernel->param_count; i++)
        scalars[i] = b->out->params[i].scalar.i;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < kernel->condition_count; i++) {
            tir_formula left, right;
            const tir_formula holds = with_names(b, kernel->conditions[i].holds);
            if (sides_of(&holds, &left, &right) && follow(b, &left, &right, scalars))
                again = true;
        }
        for (uint32_t i = 0; i < kernel->name_count; i++) {
            tir_formula_op given = {TIR_FORMULA_CONST, b->out->names[i]};
            if (b->out->named[i] &&
                follow(b, &kernel->names[i].value, &(tir_formula){&given, 1}, scalars))
                again = true;
        }
    }
}

// Names that are given are what the sizes say.
static bool names_agree(struct binder *b)
{
    const tir_artifact_kernel *kernel = b->out->kernel;
    int64_t scalars[TIR_MAX_PARAMS] = {0}, value;
    for (uint32_t i = 0; i < kernel->param_count; i++)
        scalars[i] = b->out->params[i].scalar.i;
    for (uint32_t i = 0; i < kernel->name_count; i++)
        if (b->out->named[i] && is_known(b, &kernel->names[i].value) &&
            !tir_formula_eval(&kernel->names[i].value, b->out->dims, scalars, &value, NULL) &&
            value != b->out->names[i])
            return tir_fail(b->error, TIR_ERR_INVALID,
                            STR_FMT "=%lld, but the sizes of the tensors make it %lld",
                            STR_ARG(kernel->names[i].name), (long long)b->out->names[i],
                            (long long)value);
    return true;
}

// A dimension that is one side of a condition, whose other side is known and no size: it is
// negative, or overflows. False, with an error that says so.
static bool is_possible(struct binder *b, uint32_t unknown)
{
    const tir_artifact_kernel *kernel = b->out->kernel;
    int64_t scalars[TIR_MAX_PARAMS] = {0}, value;
    for (uint32_t i = 0; i < kernel->param_count; i++)
        scalars[i] = b->out->params[i].scalar.i;
    for (uint32_t i = 0; i < kernel->condition_count; i++) {
        uint32_t dim = 0;
        tir_formula sides[2];
        const tir_formula holds = with_names(b, kernel->conditions[i].holds);
        if (!sides_of(&holds, &sides[0], &sides[1]) || !one_unknown(b, &holds, &dim) ||
            dim != unknown)
            continue;
        const tir_formula *other = &sides[sides[0].count == 1];
        if (sides[0].count != 1 && sides[1].count != 1)
            continue;
        if (!is_known(b, other))
            continue;
        const bool overflows = tir_formula_eval(other, b->out->dims, scalars, &value, NULL);
        if (overflows || value < 0)
            return tir_fail(b->error, TIR_ERR_INVALID, STR_FMT ": " STR_FMT " gives a size that %s",
                            STR_ARG(kernel->name), STR_ARG(kernel->conditions[i].text),
                            overflows ? "overflows, or divides by zero" : "is negative");
    }
    return true;
}

// Says everything that is missing at once, with a command line that would do.
static bool nothing_missing(struct binder *b, const char *path)
{
    const tir_artifact_kernel *kernel = b->out->kernel;
    struct tir_text names, example;
    tir_text_init(&names, b->arena, 0);
    tir_text_init(&example, b->arena, 0);
    for (uint32_t i = 0; i < kernel->dim_count; i++)
        if (!b->out->known[i]) {
            if (!is_possible(b, i))
                return false;
            tir_text_format(&names, "%s" STR_FMT, names.len ? ", " : "", STR_ARG(kernel->dims[i]));
            tir_text_format(&example, " " STR_FMT "=512", STR_ARG(kernel->dims[i]));
        }
    for (uint32_t i = 0; i < kernel->param_count; i++)
        if (kernel->params[i].kind == TIR_PARAM_SCALAR && !b->out->params[i].given) {
            tir_str name = kernel->params[i].name;
            tir_text_format(&names, "%s" STR_FMT, names.len ? ", " : "", STR_ARG(name));
            tir_text_format(&example, " " STR_FMT "=1", STR_ARG(name));
        }
    return !names.len || tir_fail(b->error, TIR_ERR_INVALID,
                                  STR_FMT " needs values for %s; for example: tirc run %s%s",
                                  STR_ARG(kernel->name), names.ptr, path, example.ptr);
}

// ---- tensors

// True when no two elements share a place: by rising stride, each dimension steps over what the
// ones before it span.
static bool apart(const struct tir_tensor *t)
{
    bool done[TIR_MAX_RANK] = {false};
    int64_t span = 1;
    for (uint32_t n = 0; n < t->rank; n++) {
        uint32_t least = TIR_MAX_RANK;
        for (uint32_t i = 0; i < t->rank; i++)
            if (!done[i] && (least == TIR_MAX_RANK || t->strides[i] < t->strides[least]))
                least = i;
        done[least] = true;
        if (t->shape[least] <= 1)
            continue;
        if (t->strides[least] < span)
            return false;
        span += (t->shape[least] - 1) * t->strides[least];
    }
    return true;
}

static bool make_tensor(struct binder *b, struct tir_bound *p, uint64_t seed)
{
    const tir_artifact_param *param = p->param;
    int64_t shape[TIR_MAX_RANK];
    for (uint32_t i = 0; i < param->rank; i++)
        shape[i] = param->extents[i].dim == TIR_EXTENT_FIXED ? param->extents[i].fixed
                                                             : b->out->dims[param->extents[i].dim];
    if (!tir_tensor_make(&p->tensor, tir_elem_of_element(param->element), param->rank, shape,
                         p->spec.stride_count ? p->spec.strides : NULL, p->spec.pad, p->spec.offset,
                         b->error))
        return about(b, param->name);
    if (tir_param_is_output(param) && p->tensor.count && !apart(&p->tensor))
        return tir_fail(b->error, TIR_ERR_INVALID, STR_FMT ": elements of an output overlap",
                        STR_ARG(param->name));
    if (p->file.file && !tir_npy_load(&p->file, &p->tensor, b->error))
        return about(b, param->name);
    if (param->direction != TIR_DIRECTION_OUT || p->spec.fill != TIR_FILL_DEFAULT)
        tir_tensor_fill(&p->tensor, &p->spec, tir_random_key(seed, param->name));
    tir_npy_close(&p->file);
    return true;
}

static bool read_words(struct binder *b, const tir_artifact_kernel *kernel,
                       const char *const *words, uint32_t count)
{
    *b->out = (struct tir_bind){.kernel = kernel};
    for (uint32_t i = 0; i < kernel->param_count; i++)
        b->out->params[i].param = &kernel->params[i];
    for (uint32_t i = 0; i < count; i++)
        if (!bind_word(b, words[i]))
            return false;
    return true;
}

static bool find_sizes(struct binder *b)
{
    follow_conditions(b);
    return names_agree(b);
}

bool tir_bind_sizes(struct tir_arena *arena, const tir_artifact_kernel *kernel,
                    const char *const *words, uint32_t count, struct tir_bind *out,
                    tir_error *error)
{
    struct binder b = {arena, out, error};
    return read_words(&b, kernel, words, count) && find_sizes(&b);
}

bool tir_bind_make(struct tir_arena *arena, const tir_artifact_kernel *kernel, const char *path,
                   const char *const *words, uint32_t count, uint64_t seed, struct tir_bind *out,
                   tir_error *error)
{
    struct binder b = {arena, out, error};
    if (!read_words(&b, kernel, words, count))
        return false;
    for (uint32_t i = 0; i < kernel->param_count; i++)
        if (out->params[i].spec.fill == TIR_FILL_FILE && !open_file(&b, &out->params[i]))
            return false;
    if (!find_sizes(&b) || !nothing_missing(&b, path))
        return false;
    for (uint32_t i = 0; i < kernel->param_count; i++)
        if (kernel->params[i].kind == TIR_PARAM_TENSOR && !make_tensor(&b, &out->params[i], seed))
            return false;
    return true;
}

void tir_bind_release(struct tir_bind *bind)
{
    for (uint32_t i = 0; i < TIR_MAX_PARAMS; i++) {
        tir_tensor_free(&bind->params[i].tensor);
        tir_npy_close(&bind->params[i].file);
    }
}
