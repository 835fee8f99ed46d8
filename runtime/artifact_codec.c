// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Artifacts as bytes: the writer and the reader, from one description.
//
// Each record has one function that names its fields in order; it serves measuring, writing and
// reading alike, so the directions cannot drift apart. A `struct wire` says which of the three is
// going on. Reading treats every byte as hostile: sizes are checked against what is left before
// they are used, memory is bounded by the size of the input (compress.h), and after the first thing
// that is wrong nothing more is read. The layout is drawn in docs/artifact.md.
//
// An artifact can be opened without its texts: a launch needs the PTX of few entries, and nobody
// the receipt until somebody asks for it.

#include <limits.h>

#include "artifact.h"
#include "code_parts.h"
#include "compress.h"
#include "error.h"
#include "host.h"

enum {
    HEADER_BYTES = 24,
    ROW_BYTES = 24, // of the section table
    OP_BYTES = 12,  // of the formulas
    SECTION_ALIGN = 16
};

enum section {
    SECTION_INFO = 1,    // targets, kernels and parts of the PTX: the record stream
    SECTION_STRINGS = 2, // every string of INFO, each followed by a zero byte
    SECTION_PTX = 3,     // its parts, each as it is or as a frame of compress.h
    SECTION_CUBIN = 4,
    SECTION_RECEIPT = 5,  // text, followed by a zero byte
    SECTION_FORMULAS = 6, // the operations of all formulas of INFO; equal formulas are there once
    SECTION_LAST = SECTION_FORMULAS
};

// One block of a decoded artifact, in a list that is freed as a whole.
struct block {
    struct block *next;
    size_t size;
};

struct range {
    size_t at, size;
    enum tir_form form; // of a section
};

// The object into which tir_artifact_open returns a pointer.
struct decoded {
    tir_artifact_desc desc; // first, so that the two pointers convert
    tir_allocator allocator;
    struct block *blocks;
    const uint8_t *kept; // the sections that are not read yet
    struct range ptx, cubin, receipt;
    struct code_parts parts; // of the PTX
    size_t ptx_size;         // of its text
};

// The object was made writable by tir_artifact_open; only its users see it as const.
static struct decoded *decoded_of(const tir_artifact_desc *desc)
{
    return (struct decoded *)(uintptr_t)desc;
}

enum mode { MEASURE, WRITE, READ };

// Formulas that differ, one after the other.
struct formulas {
    tir_formula *at;
    uint32_t count, room, ops;
};

struct wire {
    enum mode mode;
    const char *wrong;         // READ: the first thing that was wrong
    uint8_t *out;              // WRITE: the whole artifact
    const uint8_t *in;         // READ: the whole artifact
    const char *kept;          // READ: what is copied of it
    struct range info;         // where the records are; `at` moves on, `size` is what is left
    struct range strings;      // WRITE and MEASURE: as info; READ: the whole section
    tir_allocator allocator;   // MEASURE
    struct formulas formulas;  // MEASURE and WRITE
    const tir_formula_op *ops; // READ: of all formulas
    uint32_t op_count;
    struct code_parts *parts;
    struct decoded *decoded; // READ
    bool no_memory;
};

// Known when this is compiled.
static bool is_little_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static void put_le(uint8_t *bytes, uint64_t value, size_t count)
{
    if (is_little_endian())
        memcpy(bytes, &value, count);
    else
        for (size_t i = 0; i < count; i++)
            bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_le(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0;
    if (is_little_endian())
        memcpy(&value, bytes, count);
    else
        for (size_t i = 0; i < count; i++)
            value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

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

// Memory of any contents that lives as long as the artifact, or NULL.
static void *keep_block(struct decoded *decoded, size_t size)
{
    size_t total = sizeof(struct block) + size;
    struct block *block = tir_host_alloc_raw(&decoded->allocator, total);
    if (!block)
        return NULL;
    *block = (struct block){decoded->blocks, total};
    decoded->blocks = block;
    return block + 1;
}

static void *new_block(struct wire *w, size_t count, size_t size)
{
    void *block = keep_block(w->decoded, count * size);
    if (!block) {
        w->no_memory = true;
        w->wrong = "out of memory";
    }
    return block;
}

// A counted array. Every record takes at least one byte, so a count above what is left is refused
// before memory is asked for. Records are read and written through a copy: `at` is const.
#define IO_ARRAY(w, T, at, count, limit, io)                                        \
    do {                                                                            \
        T *fresh = NULL;                                                            \
        io_u32(w, &(count));                                                        \
        if ((w)->mode == READ) {                                                    \
            if (!(w)->wrong && ((count) > (limit) || (count) > (w)->info.size))     \
                (w)->wrong = "a count is out of range";                             \
            fresh = (w)->wrong || !(count) ? NULL : new_block(w, count, sizeof(T)); \
            if (!fresh)                                                             \
                (count) = 0;                                                        \
        }                                                                           \
        for (uint32_t item = 0; item < (count) && !(w)->wrong; item++) {            \
            T record;                                                               \
            if (fresh)                                                              \
                memset(&record, 0, sizeof record);                                  \
            else                                                                    \
                record = (at)[item];                                                \
            io(w, &record);                                                         \
            if (fresh)                                                              \
                fresh[item] = record;                                               \
        }                                                                           \
        if ((w)->mode == READ)                                                      \
            (at) = fresh;                                                           \
    } while (0)

static bool same_formula(const tir_formula *a, const tir_formula *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
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

static void free_formulas(struct wire *w)
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

static void io_info(struct wire *w, tir_artifact_desc *desc)
{
    io_str(w, &desc->target);
    io_str(w, &desc->cubin_arch);
    IO_ARRAY(w, tir_artifact_kernel, desc->kernels, desc->kernel_count, TIR_MAX_KERNELS, io_kernel);
    IO_ARRAY(w, struct code_part, w->parts->at, w->parts->count, UINT32_MAX, io_part);
}

static size_t align_up(size_t at)
{
    return (at + SECTION_ALIGN - 1) / SECTION_ALIGN * SECTION_ALIGN;
}

// Where each section goes, given its size; returns the size of the whole.
static size_t place(struct range ranges[SECTION_LAST + 1])
{
    size_t at = HEADER_BYTES + SECTION_LAST * ROW_BYTES;
    for (int id = SECTION_INFO; id <= SECTION_LAST; id++) {
        ranges[id].at = align_up(at);
        at = ranges[id].at + ranges[id].size;
    }
    return align_up(at);
}

static void write_header(uint8_t *out, size_t total, const struct range *ranges)
{
    memcpy(out, "TIRA", 4);
    put_le(out + 4, TIR_ARTIFACT_VERSION, 4);
    put_le(out + 8, total, 8);
    put_le(out + 16, SECTION_LAST, 4);
    for (uint32_t id = SECTION_INFO; id <= SECTION_LAST; id++) {
        uint8_t *row = out + HEADER_BYTES + (id - 1) * ROW_BYTES;
        put_le(row, id, 4);
        put_le(row + 4, ranges[id].form, 4);
        put_le(row + 8, ranges[id].at, 8);
        put_le(row + 16, ranges[id].size, 8);
    }
}

// A section that is one piece of memory.
struct blob {
    enum section id;
    tir_str bytes;
    bool is_text;  // a zero byte follows
    bool is_parts; // it is compressed
    uint8_t *frame;
    size_t room;
};

// The blob's frame, if that is smaller. False: no memory.
static bool compress(const tir_allocator *allocator, struct blob *blob, struct range *range)
{
    range->size = blob->bytes.len ? blob->bytes.len + blob->is_text : 0;
    if (!range->size || blob->is_parts)
        return true;
    blob->room = range->size;
    blob->frame = tir_host_alloc(allocator, blob->room);
    if (!blob->frame)
        return false;
    size_t size = tir_compress(blob->bytes, blob->is_text, blob->frame, blob->room);
    if (size && size < range->size)
        *range = (struct range){.size = size, .form = TIR_FORM_ZSTD};
    return true;
}

static void write_blob(uint8_t *out, const struct range *range, const struct blob *blob)
{
    if (range->form == TIR_FORM_ZSTD)
        memcpy(out + range->at, blob->frame, range->size);
    else if (blob->bytes.len)
        memcpy(out + range->at, blob->bytes.ptr, blob->bytes.len);
}

static void write_formulas(uint8_t *out, const struct formulas *formulas)
{
    for (uint32_t i = 0; i < formulas->count; i++)
        for (uint32_t k = 0; k < formulas->at[i].count; k++, out += OP_BYTES) {
            put_le(out, (uint64_t)formulas->at[i].ops[k].code, 4);
            put_le(out + 4, (uint64_t)formulas->at[i].ops[k].value, 8);
        }
}

// The sections after `parts` are made, as bytes.
static tir_status write_all(const tir_artifact_desc *desc, struct code_parts *parts, tir_str packed,
                            const tir_allocator *allocator, uint8_t **bytes, size_t *size,
                            tir_error *error)
{
    tir_artifact_desc copy = *desc;
    struct wire w = {.mode = MEASURE, .parts = parts, .allocator = *allocator};
    io_info(&w, &copy);
    struct range ranges[SECTION_LAST + 1] = {
        [SECTION_INFO] = {.size = w.info.at},
        [SECTION_STRINGS] = {.size = w.strings.at},
        [SECTION_FORMULAS] = {.size = (size_t)w.formulas.ops * OP_BYTES},
    };
    if (w.strings.at > UINT32_MAX) {
        free_formulas(&w);
        return tir_error_set(error, TIR_ERR_INVALID, "the artifact's strings exceed 4 GiB");
    }
    struct blob blobs[] = {{.id = SECTION_PTX, .bytes = packed, .is_parts = true},
                           {.id = SECTION_CUBIN, .bytes = desc->cubin},
                           {.id = SECTION_RECEIPT, .bytes = desc->receipt, .is_text = true}};
    const size_t blob_count = sizeof blobs / sizeof *blobs;
    bool fits = !w.no_memory;
    for (size_t i = 0; i < blob_count && fits; i++)
        fits = compress(allocator, &blobs[i], &ranges[blobs[i].id]);
    size_t total = place(ranges);
    w.out = fits ? tir_host_alloc(allocator, total) : NULL;
    if (w.out) {
        w.mode = WRITE;
        w.info.at = ranges[SECTION_INFO].at;
        w.strings.at = w.strings.size = ranges[SECTION_STRINGS].at;
        io_info(&w, &copy);
        write_formulas(w.out + ranges[SECTION_FORMULAS].at, &w.formulas);
        write_header(w.out, total, ranges);
        for (size_t i = 0; i < blob_count; i++)
            write_blob(w.out, &ranges[blobs[i].id], &blobs[i]);
        *bytes = w.out;
        *size = total;
    }
    for (size_t i = 0; i < blob_count; i++)
        tir_host_free(allocator, blobs[i].frame, blobs[i].room);
    free_formulas(&w);
    return w.out ? TIR_OK
                 : tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for an artifact of %zu bytes",
                                 total);
}

TIR_API tir_status tir_artifact_encode(const tir_artifact_desc *desc,
                                       const tir_allocator *allocator, uint8_t **bytes,
                                       size_t *size, tir_error *error)
{
    *bytes = NULL;
    *size = 0;
    tir_status status = tir_artifact_check(desc, desc->ptx.len > 0, error);
    if (status)
        return status;
    const tir_allocator a = tir_host_allocator(allocator);
    const size_t len = desc->ptx.len, room = 2 * len + 1;
    struct code_parts parts = {0};
    char *text = tir_host_alloc_raw(&a, room); // with the zero byte that the text need not have
    if (!text)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory to compress %zu bytes", len);
    if (len)
        memcpy(text, desc->ptx.ptr, len);
    text[len] = 0;
    if (tir_parts_divide((tir_str){text, len}, &a, &parts)) {
        uint8_t *packed = (uint8_t *)text + len + 1;
        tir_str stored = {(const char *)packed,
                          tir_parts_pack(&parts, (tir_str){text, len}, packed)};
        status = write_all(desc, &parts, stored, &a, bytes, size, error);
    } else {
        status = tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory to divide %zu bytes", len);
    }
    tir_parts_free(&parts, &a);
    tir_host_free(&a, text, room);
    return status;
}

TIR_API void tir_artifact_bytes_free(uint8_t *bytes, size_t size, const tir_allocator *allocator)
{
    tir_allocator a = tir_host_allocator(allocator);
    tir_host_free(&a, bytes, size);
}

// Reads the section table. Unknown sections are skipped; each known one is there exactly once.
static const char *read_sections(const uint8_t *in, size_t size, struct range *ranges)
{
    uint32_t count = (uint32_t)get_le(in + 16, 4);
    if (get_le(in + 8, 8) != size)
        return "its size is not what its header says";
    if (count > (size - HEADER_BYTES) / ROW_BYTES)
        return "its section table ends early";
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *row = in + HEADER_BYTES + (size_t)i * ROW_BYTES;
        uint64_t id = get_le(row, 4), at = get_le(row + 8, 8), length = get_le(row + 16, 8);
        uint64_t form = get_le(row + 4, 4);
        if (at > size || length > size - at)
            return "a section lies outside it";
        if (id < SECTION_INFO || id > SECTION_LAST)
            continue;
        if (ranges[id].at)
            return "a section is there twice";
        if (at < HEADER_BYTES)
            return "a section lies in the header";
        const bool may_be_frame = id == SECTION_CUBIN || id == SECTION_RECEIPT;
        if (form > (may_be_frame ? TIR_FORM_ZSTD : TIR_FORM_STORED))
            return "a section has a form that it cannot have";
        ranges[id] = (struct range){(size_t)at, (size_t)length, (enum tir_form)form};
    }
    for (int id = SECTION_INFO; id <= SECTION_LAST; id++)
        if (!ranges[id].at)
            return "a section is missing";
    return NULL;
}

// ---- reading

static tir_status no_memory(tir_error *error)
{
    return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory to read an artifact");
}

static tir_status damaged(const char *wrong, tir_error *error)
{
    return tir_error_set(error, TIR_ERR_INVALID, "the artifact is damaged: %s", wrong);
}

// Copies the sections that are read later, or into which records point.
static void keep_sections(struct wire *w, struct range *ranges)
{
    static const enum section kept[] = {SECTION_STRINGS, SECTION_PTX, SECTION_CUBIN,
                                        SECTION_RECEIPT};
    const size_t count = sizeof kept / sizeof *kept;
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        at += ranges[kept[i]].size;
    uint8_t *copy = new_block(w, at, 1);
    at = 0;
    for (size_t i = 0; copy && i < count; i++) {
        struct range *range = &ranges[kept[i]];
        memcpy(copy + at, w->in + range->at, range->size);
        range->at = at;
        at += range->size;
    }
    w->decoded->kept = copy;
    w->kept = (const char *)copy;
}

static void read_formulas(struct wire *w, const struct range *range)
{
    const size_t count = range->size / OP_BYTES;
    const uint8_t *in = w->in + range->at;
    if (range->size % OP_BYTES || count > UINT32_MAX)
        w->wrong = "its formulas end early";
    tir_formula_op *ops = w->wrong ? NULL : new_block(w, count, sizeof *ops);
    for (size_t i = 0; ops && i < count; i++, in += OP_BYTES) {
        const uint32_t code = (uint32_t)get_le(in, 4);
        if (code > INT_MAX)
            w->wrong = "an enumeration is out of range";
        ops[i] = (tir_formula_op){(tir_formula_code)(code & INT_MAX), (int64_t)get_le(in + 4, 8)};
    }
    w->ops = ops;
    w->op_count = (uint32_t)count;
}

static void read_all(struct wire *w, const void *bytes, size_t size)
{
    struct range ranges[SECTION_LAST + 1] = {{0, 0}};
    struct decoded *d = w->decoded;
    w->in = bytes;
    w->wrong = read_sections(bytes, size, ranges);
    if (!w->wrong)
        keep_sections(w, ranges);
    if (!w->wrong)
        read_formulas(w, &ranges[SECTION_FORMULAS]);
    if (w->wrong)
        return;
    w->info = ranges[SECTION_INFO];
    w->strings = ranges[SECTION_STRINGS];
    w->parts = &d->parts;
    d->ptx = ranges[SECTION_PTX];
    d->cubin = ranges[SECTION_CUBIN];
    d->receipt = ranges[SECTION_RECEIPT];
    io_info(w, &d->desc);
    if (!w->wrong && w->info.size)
        w->wrong = "it has bytes after its last record";
    if (!w->wrong)
        w->wrong = tir_parts_measure(&d->parts, d->kept + d->ptx.at, d->ptx.size, &d->ptx_size);
}

// The contents of a section.
static tir_status read_blob(struct decoded *d, const struct range *range, tir_str *out,
                            tir_error *error)
{
    const uint8_t *stored = d->kept + range->at;
    *out = (tir_str){(const char *)stored, range->size};
    if (range->form == TIR_FORM_STORED)
        return TIR_OK;
    size_t size = tir_decompressed_size(stored, range->size);
    char *contents = size ? keep_block(d, size) : NULL;
    *out = (tir_str){"", 0};
    if (size && !contents)
        return no_memory(error);
    if (!size || !tir_decompress(stored, range->size, contents, size))
        return damaged("a section cannot be decompressed", error);
    *out = (tir_str){contents, size};
    return TIR_OK;
}

static bool is_needed(const struct code_part *part, const tir_str *entry)
{
    return !entry || !part->entry_count || tir_part_has(part, *entry);
}

// The texts of the parts that the entry needs, or all: their size, or 0 if no part has the entry.
static size_t measure_ptx(const struct decoded *d, const tir_str *entry)
{
    size_t size = 0;
    bool found = !entry;
    for (uint32_t i = 0; i < d->parts.count; i++)
        if (is_needed(&d->parts.at[i], entry)) {
            size += d->parts.at[i].size;
            found |= d->parts.at[i].entry_count > 0;
        }
    return found ? size : 0;
}

// Writes them, and a zero byte.
static tir_status read_ptx(const struct decoded *d, const tir_str *entry, char *out,
                           tir_error *error)
{
    const uint8_t *stored = d->kept + d->ptx.at;
    for (uint32_t i = 0; i < d->parts.count; i++) {
        const struct code_part *part = &d->parts.at[i];
        if (is_needed(part, entry)) {
            if (!tir_part_read(part, stored, out))
                return damaged("a part of the PTX cannot be decompressed", error);
            out += part->size;
        }
        stored += part->stored;
    }
    *out = 0;
    return TIR_OK;
}

tir_status tir_artifact_open(const void *bytes, size_t size, const tir_allocator *allocator,
                             const tir_artifact_desc **out, tir_error *error)
{
    const tir_allocator a = tir_host_allocator(allocator);
    struct wire w = {.mode = READ};
    *out = NULL;
    if (size < HEADER_BYTES || memcmp(bytes, "TIRA", 4) != 0)
        return tir_error_set(error, TIR_ERR_INVALID, "these bytes are not an artifact");
    uint32_t version = (uint32_t)get_le((const uint8_t *)bytes + 4, 4);
    if (version != TIR_ARTIFACT_VERSION)
        return tir_error_set(error, TIR_ERR_UNSUPPORTED,
                             "the artifact has version %u, this library reads version %u", version,
                             TIR_ARTIFACT_VERSION);
    w.decoded = tir_host_alloc(&a, sizeof *w.decoded);
    if (!w.decoded)
        return no_memory(error);
    w.decoded->allocator = a;
    read_all(&w, bytes, size);
    tir_artifact_desc *desc = &w.decoded->desc;
    tir_status status = w.no_memory ? no_memory(error) : w.wrong ? damaged(w.wrong, error) : TIR_OK;
    if (!status)
        status = read_blob(w.decoded, &w.decoded->cubin, &desc->cubin, error);
    if (!status)
        status = tir_artifact_check(desc, w.decoded->parts.count > 0, error);
    if (status)
        tir_artifact_free(desc, allocator);
    else
        *out = desc;
    return status;
}

bool tir_artifact_has_ptx(const tir_artifact_desc *desc)
{
    return decoded_of(desc)->parts.count > 0;
}

tir_status tir_artifact_read_ptx(const tir_artifact_desc *desc, const tir_str *entry,
                                 const tir_allocator *allocator, tir_str *out, tir_error *error)
{
    const struct decoded *d = decoded_of(desc);
    const size_t size = measure_ptx(d, entry);
    *out = (tir_str){NULL, 0};
    if (!size)
        return TIR_OK;
    char *text = tir_host_alloc_raw(allocator, size + 1);
    if (!text)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for %zu bytes of PTX", size);
    tir_status status = read_ptx(d, entry, text, error);
    if (status)
        tir_host_free(allocator, text, size + 1);
    else
        *out = (tir_str){text, size};
    return status;
}

tir_status tir_artifact_read_receipt(const tir_artifact_desc *desc, tir_error *error)
{
    struct decoded *d = decoded_of(desc);
    tir_str text;
    if (d->desc.receipt.ptr)
        return TIR_OK;
    tir_status status = read_blob(d, &d->receipt, &text, error);
    if (!status && text.len && memchr(text.ptr, 0, text.len) != text.ptr + text.len - 1)
        status = damaged("a text does not end where its section ends", error);
    d->desc.receipt = status || !text.len ? (tir_str){"", 0} : (tir_str){text.ptr, text.len - 1};
    return status;
}

TIR_API tir_status tir_artifact_decode(const void *bytes, size_t size,
                                       const tir_allocator *allocator,
                                       const tir_artifact_desc **out, tir_error *error)
{
    tir_status status = tir_artifact_open(bytes, size, allocator, out, error);
    if (status)
        return status;
    struct decoded *d = decoded_of(*out);
    char *text = keep_block(d, d->ptx_size + 1);
    status = text ? read_ptx(d, NULL, text, error) : no_memory(error);
    d->desc.ptx = (tir_str){text, d->ptx_size};
    if (!status)
        status = tir_artifact_read_receipt(*out, error);
    if (status) {
        tir_artifact_free(*out, allocator);
        *out = NULL;
    }
    return status;
}

TIR_API void tir_artifact_free(const tir_artifact_desc *desc, const tir_allocator *allocator)
{
    if (!desc)
        return;
    tir_allocator a = tir_host_allocator(allocator);
    struct decoded *decoded = decoded_of(desc);
    for (struct block *block = decoded->blocks, *next; block; block = next) {
        next = block->next;
        tir_host_free(&a, block, block->size);
    }
    tir_host_free(&a, decoded, sizeof *decoded);
}
