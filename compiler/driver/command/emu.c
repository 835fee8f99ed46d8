// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc emu: one launch of a PTX kernel on the emulator, or one for each schedule of --explore.
//
// Every round has a device of its own, so that each starts from the same memory and the same
// addresses. The rounds end with the first that goes wrong; its schedule is printed, and given with
// --schedule it replays that round exactly.
#include <stdio.h>
#include <stdlib.h>

#include "driver/command/command.h"
#include "driver/emu/args.h"
#include "driver/emu/runtime.h"
#include "driver/file.h"
#include "driver/say.h"
#include "driver/value/npy.h"
#include "driver/value/number.h"

enum { MAX_PARAMS = 32764 }; // bytes; what the PTX ISA allows

struct emu {
    struct tir_arena *arena;
    const struct tir_options *options;
    tir_error *error;
    const char *path, *kernel;
    char *ptx;
    size_t ptx_size;
    struct tir_emu_args args;
    tir_rt_ptx_launch launch;
    const char *schedule;          // of the last round; NULL: the default
    struct tir_timeline *timeline; // or NULL
    uint32_t rounds;               // that ran

    // Of one round.
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
    tir_rt_buffer **buffers; // one for each argument; NULL for numbers
    uint8_t params[MAX_PARAMS];
    struct place {
        uint32_t count; // parameters so far, this one included
        size_t offset, size;
        size_t used, align; // by arguments, and the largest alignment among them
    } place;
};

// ---- the command line

// "4", "4,2" or "4,2,1".
static bool read_shape(struct emu *e, enum tir_option option, uint32_t shape[3])
{
    const char *text = e->options->text[option];
    for (int i = 0; text && i < 3 && *text; i++) {
        size_t len = strcspn(text, ",");
        int64_t value;
        if (!tir_parse_int((tir_str){text, len}, &value) || value < 1 || value > INT32_MAX)
            break;
        shape[i] = (uint32_t)value;
        text += len + (text[len] == ',');
    }
    return !text || !*text ||
           tir_fail(e->error, TIR_ERR_INVALID, "%s: X, X,Y or X,Y,Z is needed, numbers from 1",
                    e->options->text[option]);
}

static bool read_launch(struct emu *e)
{
    const struct tir_options *o = e->options;
    e->launch = (tir_rt_ptx_launch)TIR_RT_PTX_LAUNCH_INIT;
    e->kernel = o->text[TIR_OPTION_KERNEL];
    if (!e->kernel)
        return tir_fail(e->error, TIR_ERR_INVALID, "%s: --kernel=NAME is needed, an entry of it",
                        e->path);
    if (o->text[TIR_OPTION_CLUSTER])
        for (int i = 0; i < 3; i++)
            e->launch.cluster[i] = 1;
    if (o->integer[TIR_OPTION_SHARED] > UINT32_MAX)
        return tir_fail(e->error, TIR_ERR_INVALID, "--shared: more than there is");
    e->launch.cooperative = o->given[TIR_OPTION_COOPERATIVE];
    e->launch.dynamic_shared = (uint32_t)o->integer[TIR_OPTION_SHARED];
    return read_shape(e, TIR_OPTION_GRID, e->launch.grid) &&
           read_shape(e, TIR_OPTION_BLOCK, e->launch.block) &&
           read_shape(e, TIR_OPTION_CLUSTER, e->launch.cluster);
}

// ---- one round

// The current parameter has all its bytes, but for padding at the end of a struct.
static bool is_full(const struct emu *e)
{
    const struct place *p = &e->place;
    return p->size - p->used < p->align ||
           tir_fail(e->error, TIR_ERR_INVALID,
                    "parameter %u of %s has %zu bytes, the arguments for it %zu", p->count - 1,
                    e->kernel, p->size, p->used);
}

// Goes on to the next parameter. `*found` is false where there is none, which the error says.
static bool next_param(struct emu *e, bool *found)
{
    struct place *p = &e->place;
    if (p->count && !is_full(e))
        return false;
    tir_status status =
        tir_rt_ptx_param(e->module, e->kernel, p->count, &p->offset, &p->size, e->error);
    *found = !status;
    if (status)
        return status == TIR_ERR_INVALID;
    *p = (struct place){p->count + 1, p->offset, p->size, 0, 1};
    if (p->offset + p->size > MAX_PARAMS)
        return tir_fail(e->error, TIR_ERR_INVALID, "more than %d bytes of parameters", MAX_PARAMS);
    e->launch.params_size = p->offset + p->size;
    return true;
}

// An argument is a parameter, or, of one that is a struct, the next member.
static bool put(struct emu *e, const char *word, const void *value, size_t size, size_t align)
{
    struct place *p = &e->place;
    size_t at = (p->used + align - 1) / align * align;
    if (!p->count || at + size > p->size) {
        bool found;
        if (!next_param(e, &found))
            return false;
        if (!found)
            return false;
        at = 0;
    }
    if (size > p->size)
        return tir_fail(e->error, TIR_ERR_INVALID, "%s has %zu bytes, parameter %u of %s has %zu",
                        word, size, p->count - 1, e->kernel, p->size);
    memcpy(e->params + p->offset + at, value, size);
    p->used = at + size;
    p->align = TIR_MAX(p->align, align);
    return true;
}

static bool upload(struct emu *e, uint32_t i)
{
    const struct tir_emu_arg *arg = &e->args.at[i];
    const struct tir_tensor *t = &arg->tensor;
    if (!arg->is_buffer)
        return true;
    return !tir_rt_buffer_create(e->device, t->size, &e->buffers[i], e->error) &&
           (arg->spec.fill == TIR_FILL_DEFAULT ||
            !tir_rt_buffer_write(e->buffers[i], 0, t->bytes, t->size, NULL, e->error));
}

static uint64_t address_of(const struct emu *e, uint32_t i)
{
    const struct tir_tensor *t = &e->args.at[i].tensor;
    return tir_rt_buffer_address(e->buffers[i]) + (uint64_t)t->offset * tir_elem_size(t->elem);
}

static bool put_arg(struct emu *e, uint32_t i)
{
    const struct tir_emu_arg *arg = &e->args.at[i];
    if (arg->is_hidden)
        return true;
    if (arg->is_map) {
        uint8_t bytes[TIR_TENSOR_MAP_BYTES];
        const uint32_t of = arg->map.of;
        return tir_emu_map_encode(&arg->map, arg->word, &e->args.at[of].tensor, address_of(e, of),
                                  bytes, e->error) &&
               put(e, arg->word, bytes, sizeof(bytes), 64);
    }
    if (arg->is_buffer) {
        uint64_t address = address_of(e, i);
        return put(e, arg->word, &address, sizeof(address), sizeof(address));
    }
    const uint32_t size = tir_elem_size(arg->scalar.elem);
    return put(e, arg->word, &arg->scalar.bits, size,
               size); // little endian: the low bytes come first
}

static bool round_trip(struct emu *e, FILE *log)
{
    bool more;
    e->place = (struct place){0};
    e->launch.params_size = 0;
    e->launch.params = e->params;
    if (!tir_emu_runtime(e->options, e->schedule, log, e->timeline, &e->runtime, e->error) ||
        tir_rt_device_open(e->runtime, "emu", &e->device, e->error) ||
        tir_rt_module_load_ptx(e->device, (tir_str){e->ptx, e->ptx_size}, &e->module, e->error))
        return false;
    for (uint32_t i = 0; i < e->args.count; i++)
        if (!upload(e, i))
            return false;
    for (uint32_t i = 0; i < e->args.count; i++)
        if (!put_arg(e, i))
            return false;
    if (!next_param(e, &more))
        return false;
    if (more)
        return tir_fail(e->error, TIR_ERR_INVALID, "%s: parameter %u has no argument", e->kernel,
                        e->place.count - 1);
    return !tir_rt_launch_ptx(e->module, NULL, e->kernel, &e->launch, e->error);
}

static bool download(struct emu *e)
{
    for (uint32_t i = 0; i < e->args.count; i++) {
        struct tir_emu_arg *arg = &e->args.at[i];
        if (!arg->is_buffer)
            continue;
        if (!arg->result.bytes && !tir_tensor_clone(&arg->result, &arg->tensor, e->error))
            return false;
        if (tir_rt_buffer_read(e->buffers[i], 0, arg->result.bytes, arg->result.size, NULL,
                               e->error) ||
            (arg->spec.save && !tir_npy_save(arg->spec.save, &arg->result, e->error)))
            return false;
    }
    return true;
}

static void end_round(struct emu *e)
{
    for (uint32_t i = 0; i < e->args.count; i++) {
        tir_rt_buffer_destroy(e->buffers[i]);
        e->buffers[i] = NULL;
    }
    tir_rt_module_destroy(e->module);
    tir_rt_device_destroy(e->device);
    tir_runtime_destroy(e->runtime);
    e->module = NULL;
    e->device = NULL;
    e->runtime = NULL;
}

static bool run(struct emu *e)
{
    const struct tir_options *o = e->options;
    uint64_t seed = tir_options_seed(o);
    FILE *log = o->given[TIR_OPTION_JSON] ? stderr : stdout;
    e->buffers = arena_array(e->arena, tir_rt_buffer *, o->args.len);
    if (!read_launch(e) ||
        !tir_emu_args_parse(e->arena, o->args.at + 1, o->args.len - 1, seed, &e->args, e->error) ||
        !tir_file_read(e->path, (size_t)1 << 30, &e->ptx, &e->ptx_size, e->error))
        return false;
    for (uint32_t i = 0; i < tir_emu_rounds(o); i++) {
        end_round(e);
        e->schedule = tir_emu_schedule(e->arena, o, i);
        e->rounds++;
        if (!round_trip(e, log))
            return false;
    }
    return download(e);
}

// ---- what came out

static void print_text(const struct emu *e, struct tir_text *out)
{
    const tir_rt_ptx_launch *l = &e->launch;
    tir_text_format(out, "%s on emu: grid %u x %u x %u, block %u x %u x %u", e->kernel, l->grid[0],
                    l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
    tir_text_format(out, e->rounds > 1 ? ", %u schedules\n" : "\n", e->rounds);
    for (uint32_t i = 0; i < e->args.count; i++) {
        const struct tir_emu_arg *arg = &e->args.at[i];
        if (!arg->is_buffer)
            continue;
        size_t type = strcspn(arg->word + 4, "=-");
        tir_text_format(out, "%u: %.*s =", i, (int)type, arg->word + 4);
        tir_tensor_glimpse(out, &arg->result);
    }
}

static void print_json(const struct emu *e, bool passed, struct tir_text *out)
{
    const tir_rt_ptx_launch *l = &e->launch;
    tir_text_add(out, STR("{\"kernel\":"));
    tir_text_json(out, tir_str_of(e->kernel));
    tir_text_format(
        out, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"rounds\":%u,\"schedule\":", l->grid[0],
        l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], e->rounds);
    tir_text_json(out, tir_str_of(e->schedule ? e->schedule : "lazy"));
    tir_text_format(out, ",\"pass\":%s", passed ? "true" : "false");
    if (!passed) {
        tir_text_add(out, STR(",\"message\":"));
        tir_text_json(out, tir_str_of(e->error->message));
        tir_text_add(out, STR(",\"findings\":"));
        for (const char *c = tir_emu_findings_text(e->arena, e->device, 1); *c;
             c++) // all on one line
            if (*c != '\n')
                tir_text_char(out, *c);
    }
    tir_text_add(out, STR("}\n"));
}

static struct emu *begin(struct tir_arena *arena, const struct tir_options *options,
                         tir_error *error)
{
    struct emu *e = arena_new(arena, struct emu);
    e->arena = arena;
    e->options = options;
    e->error = error;
    e->path = options->args.at[0];
    return e;
}

static void end(struct emu *e)
{
    end_round(e);
    tir_emu_args_release(&e->args);
    free(e->ptx);
}

bool tir_emu_trace(struct tir_arena *arena, const struct tir_options *options,
                   struct tir_timeline *timeline, tir_error *error)
{
    struct emu *e = begin(arena, options, error);
    e->timeline = timeline;
    const bool done = run(e);
    end(e);
    return done;
}

enum tir_exit tir_command_emu(struct tir_arena *arena, const struct tir_options *options)
{
    tir_error error;
    if (!options->args.len) {
        fputs("tirc: emu needs a file; tirc emu --help says more\n", stderr);
        return TIR_EXIT_USAGE;
    }
    struct emu *e = begin(arena, options, &error);
    bool json = options->given[TIR_OPTION_JSON], passed = run(e);
    bool launched = passed || (e->rounds && error.status == TIR_ERR_DEVICE);
    struct tir_text text;
    tir_text_init(&text, arena, 0);
    if (launched && json)
        print_json(e, passed, &text);
    else if (passed)
        print_text(e, &text);
    tir_say_text(stdout, tir_text_str(&text));
    enum tir_exit status = passed ? TIR_EXIT_FINE : tir_emu_complain(arena, e->device, &error);
    if (passed) // hints
        tir_emu_print_findings(arena, e->device);
    if (!passed && launched && options->given[TIR_OPTION_EXPLORE])
        tir_say(stderr, "tirc: in round %u of %u; --schedule=%s replays it", e->rounds,
                tir_emu_rounds(options), e->schedule ? e->schedule : "lazy");
    end(e);
    return status;
}
