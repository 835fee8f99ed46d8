// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The records of artifacts, and their formulas.
//
// Each record has one function that names its fields in order; it serves measuring, writing and
// reading alike, so the directions cannot drift apart. A `struct wire` says which of the three is
// going on. Reading treats every byte as hostile: sizes are checked against what is left before
// they are used, and after the first thing that is wrong nothing more is read.

#include <limits.h>

#include "artifact_wire.h"

// The next `count` bytes of the records.
static uint64_t io_le(struct wire *w, uint64_t value, size_t count)
{
    struct range *r = &w->info;
    if (w->mode == READ) {
        if (w->wrong || count > r->size) {
            w->wrong = w->wrong ? w->wrong : "its records end early";
            return 0;
        }
        value = get_le(w->in + r->at, count);
        r->size -= count;
    } else if (w->mode == WRITE) {
        put_le(w->out + r->at, value, count);
    }
    r->at += count;
    return value;
}

static void io_u32(struct wire *w, uint32_t *value)
{
    *value = (uint32_t)io_le(w, *value, 4);
}

static void io_i32(struct wire *w, int32_t *value)
{
    *value = (int32_t)(uint32_t)io_le(w, (uint32_t)*value, 4);
}

static void io_i64(struct wire *w, int64_t *value)
{
    *value = (int64_t)io_le(w, (uint64_t)*value, 8);
}

// An enum travels as u32; its range is checked later, so it must survive the trip unchanged.
#define IO_ENUM(w, field)                                  \
    do {                                                   \
        uint32_t raw = (uint32_t)(field);                  \
        io_u32(w, &raw);                                   \
        if (raw > INT_MAX)                                 \
            (w)->wrong = "an enumeration is out of range"; \
        else                                               \
            memcpy(&(field), &raw, sizeof raw);            \
    } while (0)

// A string: offset and length within STRINGS.
static void io_str(struct wire *w, tir_str *s)
{
    uint32_t at = (uint32_t)(w->strings.at), len = (uint32_t)s->len;
    if (w->mode != READ) {
        at -= (uint32_t)w->strings.size; // size holds where the section begins
        io_u32(w, &at);
        io_u32(w, &len);
        if (w->mode == WRITE && len)
            memcpy(w->out + w->strings.at, s->ptr, len);
        if (w->mode == WRITE)
            w->out[w->strings.at + len] = 0;
        w->strings.at += (size_t)len + 1;
        return;
    }
    io_u32(w, &at);
    io_u32(w, &len);
    *s = (tir_str){"", 0};
    if (w->wrong)
        return;
    if (at >= w->strings.size || len >= w->strings.size - at) {
        w->wrong = "a string lies outside its section";
        return;
    }
    const char *text = w->kept + w->strings.at + at;
    if (memchr(text, 0, (size_t)len + 1) != text + len)
        w->wrong = "a string does not end where it says";
    else
        *s = (tir_str){text, len};
}

void *tir_decoded_block(struct decoded *decoded, size_t size)
{
    size_t total = sizeof(struct block) + size;
    struct block *block = tir_host_alloc_raw(&decoded->allocator, total);
    if (!block)
        return NULL;
    *block = (struct block){decoded->blocks, total};
    decoded->blocks = block;
    return block + 1;
}

void *tir_wire_block(struct wire *w, size_t count, size_t size)
{
    void *block = tir_decoded_block(w->decoded, count * size);
    if (!block) {
        w->no_memory = true;
        w->wrong = "out of memory";
    }
    return block;
}

// A counted array. Every record takes at least one byte, so a count above what is left is refused
// before memory is asked for. Records are read and written through a copy: `at` is const.
#define IO_ARRAY(w, T, at, count, limit, io)                                             \
    do {                                                                                 \
        T *fresh = NULL;                                                                 \
        io_u32(w, &(count));                                                             \
        if ((w)->mode == READ) {                                                         \
            if (!(w)->wrong && ((count) > (limit) || (count) > (w)->info.size))          \
                (w)->wrong = "a count is out of range";                                  \
            fresh = (w)->wrong || !(count) ? NULL : tir_wire_block(w, count, sizeof(T)); \
            if (!fresh)                                                                  \
                (count) = 0;                                                             \
        }                                                                                \
        for (uint32_t item = 0; item < (count) && !(w)->wrong; item++) {                 \
            T record;                                                                    \
            if (fresh)                                                                   \
                memset(&record, 0, sizeof record);                                       \
            else                                                                         \
                record = (at)[item];                                                     \
            io(w, &record);                                                              \
            if (fresh)                                                                   \
                fresh[item] = record;                                                    \
        }                                                                                \
        if ((w)->mode == READ)                                                           \
            (at) = fresh;                                                                \
    } while (0)

static bool same_formula(const tir_formula *a, const tir_formula *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count && a->ops != b->ops; i++)
        if (a->ops[i].code != b->ops[i].code || a->ops[i].value != b->ops[i].value)
            return false;
    return true;
}

// Where the formula's operations are: where an equal one is, or behind all that were there.
static uint32_t place_formula(struct wire *w, const tir_formula *formula)
{
    struct formulas *f = &w->formulas;
    uint32_t at = 0;
    for (uint32_t i = 0; i < f->count; at += f->at[i++].count)
        if (same_formula(&f->at[i], formula))
            return at;
    if (f->count == f->room) {
        const uint32_t room = f->room ? 2 * f->room : 64;
        void *more = w->allocator.resize(w->allocator.user, f->at, f->room * sizeof *f->at,
                                         room * sizeof *f->at);
        w->no_memory |= !more;
        if (!more)
            return 0;
        f->at = more;
        f->room = room;
    }
    f->at[f->count++] = *formula;
    f->ops += formula->count;
    return at;
}

void tir_wire_free_formulas(struct wire *w)
{
    tir_host_free(&w->allocator, w->formulas.at, w->formulas.room * sizeof *w->formulas.at);
}

static void io_formula(struct wire *w, tir_formula *formula)
{
    uint32_t at = w->mode != READ && formula->count ? place_formula(w, formula) : 0;
    io_u32(w, &at);
    io_u32(w, &formula->count);
    if (w->mode != READ)
        return;
    if (!w->wrong &&
        (formula->count > TIR_MAX_FORMULA || at > w->op_count || formula->count > w->op_count - at))
        w->wrong = "a formula lies outside its section";
    if (w->wrong)
        formula->count = 0;
    formula->ops = formula->count ? w->ops + at : NULL;
}

static void io_param(struct wire *w, tir_artifact_param *param)
{
    io_str(w, &param->name);
    IO_ENUM(w, param->kind);
    IO_ENUM(w, param->element);
    IO_ENUM(w, param->direction);
    io_u32(w, &param->rank);
    for (uint32_t i = 0; i < param->rank && i < TIR_MAX_RANK; i++) {
        io_u32(w, &param->extents[i].dim);
        io_i64(w, &param->extents[i].fixed);
    }
}

static void io_meta(struct wire *w, tir_artifact_meta *meta)
{
    io_str(w, &meta->name);
    io_str(w, &meta->value);
}

static void io_fixed(struct wire *w, tir_artifact_fixed *fixed)
{
    io_str(w, &fixed->name);
    io_i64(w, &fixed->size);
}

static void io_name(struct wire *w, tir_artifact_name *name)
{
    io_str(w, &name->name);
    io_formula(w, &name->value);
}

static void io_condition(struct wire *w, tir_artifact_condition *condition)
{
    io_formula(w, &condition->holds);
    io_str(w, &condition->text);
}

static void io_map(struct wire *w, tir_artifact_map *map)
{
    io_u32(w, &map->param);
    io_u32(w, &map->swizzle);
    io_u32(w, &map->bits);
    for (int i = 0; i < TIR_MAX_RANK; i++)
        io_u32(w, &map->box[i]);
    for (int i = 0; i < TIR_MAX_RANK; i++)
        io_u32(w, &map->stride[i]);
    io_u32(w, &map->pixels);
    for (int i = 0; i < 3; i++)
        io_i32(w, &map->low[i]);
    for (int i = 0; i < 3; i++)
        io_i32(w, &map->high[i]);
}

static void io_role(struct wire *w, tir_artifact_role *role)
{
    io_str(w, &role->name);
    io_u32(w, &role->first);
    io_u32(w, &role->warps);
}

static void io_barrier(struct wire *w, tir_artifact_barrier *barrier)
{
    io_str(w, &barrier->name);
    io_u32(w, &barrier->offset);
    io_u32(w, &barrier->count);
    io_u32(w, &barrier->arrivals);
}

static void io_variant(struct wire *w, tir_artifact_variant *variant)
{
    io_str(w, &variant->entry);
    io_u32(w, &variant->facts);
    io_formula(w, &variant->when);
    io_formula(w, &variant->cost);
    io_u32(w, &variant->config);
    io_u32(w, &variant->threads);
    for (int i = 0; i < 3; i++)
        io_u32(w, &variant->cluster[i]);
    io_u32(w, &variant->static_shared);
    io_u32(w, &variant->dynamic_shared);
    for (int i = 0; i < 3; i++)
        io_formula(w, &variant->grid[i]);
    io_u32(w, &variant->persistent);
    io_u32(w, &variant->ctas_per_sm);
    IO_ARRAY(w, tir_artifact_map, variant->maps, variant->map_count, TIR_MAX_MAPS, io_map);
    io_u32(w, &variant->watchdog);
    IO_ARRAY(w, tir_artifact_role, variant->roles, variant->role_count, TIR_MAX_ROLES, io_role);
    IO_ARRAY(w, tir_artifact_barrier, variant->barriers, variant->barrier_count, TIR_MAX_BARRIERS,
             io_barrier);
    io_u32(w, &variant->is_open);
    io_u32(w, &variant->waits);
    io_u32(w, &variant->cooperative);
    for (int i = 0; i < 3; i++)
        io_u32(w, &variant->preferred[i]);
}

static void io_choice(struct wire *w, tir_artifact_choice *choice)
{
    IO_ARRAY(w, int64_t, choice->dims, choice->dim_count, TIR_MAX_DIMS, io_i64);
    io_u32(w, &choice->config);
}

static void io_tuned(struct wire *w, tir_artifact_tuned *tuned)
{
    io_str(w, &tuned->device);
    io_u32(w, &tuned->multiprocessors);
    IO_ARRAY(w, tir_artifact_choice, tuned->choices, tuned->choice_count, TIR_MAX_CHOICES,
             io_choice);
}

static void io_scratch(struct wire *w, tir_artifact_scratch *scratch)
{
    io_str(w, &scratch->name);
    IO_ENUM(w, scratch->element);
    io_u32(w, &scratch->rank);
    for (uint32_t i = 0; i < scratch->rank && i < TIR_MAX_RANK; i++)
        io_formula(w, &scratch->extents[i]);
}

static void io_step(struct wire *w, tir_artifact_step *step)
{
    io_u32(w, &step->kernel);
    IO_ARRAY(w, uint32_t, step->args, step->arg_count, TIR_MAX_PARAMS, io_u32);
}

static void io_sequence(struct wire *w, tir_artifact_sequence *sequence)
{
    io_str(w, &sequence->name);
    io_formula(w, &sequence->cost);
    io_u32(w, &sequence->config);
    IO_ARRAY(w, tir_artifact_scratch, sequence->scratch, sequence->scratch_count, TIR_MAX_SCRATCH,
             io_scratch);
    IO_ARRAY(w, tir_artifact_step, sequence->steps, sequence->step_count, TIR_MAX_STEPS, io_step);
}

static void io_kernel(struct wire *w, tir_artifact_kernel *kernel)
{
    io_str(w, &kernel->name);
    IO_ARRAY(w, tir_str, kernel->dims, kernel->dim_count, TIR_MAX_DIMS, io_str);
    IO_ARRAY(w, tir_artifact_param, kernel->params, kernel->param_count, TIR_MAX_PARAMS, io_param);
    IO_ARRAY(w, tir_artifact_meta, kernel->metas, kernel->meta_count, TIR_MAX_METAS, io_meta);
    IO_ARRAY(w, tir_artifact_fixed, kernel->fixed, kernel->fixed_count, TIR_MAX_DIMS, io_fixed);
    IO_ARRAY(w, tir_artifact_name, kernel->names, kernel->name_count, TIR_MAX_DIMS, io_name);
    IO_ARRAY(w, tir_artifact_condition, kernel->conditions, kernel->condition_count,
             TIR_MAX_CONDITIONS, io_condition);
    IO_ARRAY(w, tir_artifact_variant, kernel->variants, kernel->variant_count, TIR_MAX_VARIANTS,
             io_variant);
    IO_ARRAY(w, tir_str, kernel->configs, kernel->config_count, TIR_MAX_CONFIGS, io_str);
    IO_ARRAY(w, tir_artifact_tuned, kernel->tuned, kernel->tuned_count, TIR_MAX_TUNED, io_tuned);
    IO_ARRAY(w, tir_artifact_sequence, kernel->sequences, kernel->sequence_count, TIR_MAX_SEQUENCES,
             io_sequence);
    io_u32(w, &kernel->is_step);
}

static void io_part(struct wire *w, struct code_part *part)
{
    IO_ARRAY(w, tir_str, part->entries, part->entry_count, UINT32_MAX, io_str);
    IO_ENUM(w, part->form);
    io_i64(w, &part->stored);
}

void tir_wire_info(struct wire *w, tir_artifact_desc *desc)
{
    io_str(w, &desc->target);
    io_str(w, &desc->cubin_arch);
    IO_ARRAY(w, tir_artifact_kernel, desc->kernels, desc->kernel_count, TIR_MAX_KERNELS, io_kernel);
    IO_ARRAY(w, struct code_part, w->parts->at, w->parts->count, UINT32_MAX, io_part);
}

void tir_wire_write_formulas(struct wire *w, uint8_t *out)
{
    const struct formulas *formulas = &w->formulas;
    for (uint32_t i = 0; i < formulas->count; i++)
        for (uint32_t k = 0; k < formulas->at[i].count; k++, out += OP_BYTES) {
            put_le(out, (uint64_t)formulas->at[i].ops[k].code, 4);
            put_le(out + 4, (uint64_t)formulas->at[i].ops[k].value, 8);
        }
}

void tir_wire_read_formulas(struct wire *w, const uint8_t *in, size_t size)
{
    const size_t count = size / OP_BYTES;
    if (size % OP_BYTES || count > UINT32_MAX)
        w->wrong = "its formulas end early";
    tir_formula_op *ops = w->wrong ? NULL : tir_wire_block(w, count, sizeof *ops);
    for (size_t i = 0; ops && i < count; i++, in += OP_BYTES) {
        const uint32_t code = (uint32_t)get_le(in, 4);
        if (code > INT_MAX)
            w->wrong = "an enumeration is out of range";
        ops[i] = (tir_formula_op){(tir_formula_code)(code & INT_MAX), (int64_t)get_le(in + 4, 8)};
    }
    w->ops = ops;
    w->op_count = (uint32_t)count;
}
