// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules: kernels become LLVM IR and PTX in parallel.
//
// LLVM takes nearly all the time of a compile, and its contexts are independent. So the kernels are
// dealt out to a few units, each with a context, an arena and diagnostics of its own, which are
// compiled side by side, on as many threads as there are processors. The texts are then joined
// under the first one's header.

#include "target/nvptx/nvptx.h"

#include <time.h>

#include "base/parallel.h"
#include "base/vec.h"
#include "ir/walk.h"
#include "target/nvptx/emit.h"

struct job {
    struct tir_nvptx *nvptx;
    struct tir_arena *arena;
    struct tir_diags *diags;
    struct tir_func *const *funcs;
    uint32_t count, unit_count;      // unit i has kernel i, and every unit_count-th after it
    uint32_t order[TIR_NVPTX_UNITS]; // in which units are begun
    const struct tir_nvptx_options *options;
    struct tir_nvptx_result *result;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// Emission kind 3, "directives only", is what C's enum lacks: .loc and .file without a debug
// target.
static void start_debug(const struct job *job, struct tir_llvm *ll, struct tir_arena *arena)
{
    struct tir_position at = tir_source_locate(job->diags->sources, job->funcs[0]->span.begin);
    if (!at.file)
        return;
    LLVMDIBuilderRef debug = ll->debug = LLVMCreateDIBuilder(ll->module);
    LLVMMetadataRef file = tir_llvm_file(ll, arena, at.file->name);
    LLVMDIBuilderCreateCompileUnit(debug, LLVMDWARFSourceLanguageC, file, "tirc", 4, true, "", 0, 0,
                                   "", 0, (LLVMDWARFEmissionKind)3, 0, false, false, "", 0, "", 0);
    V version = LLVMConstInt(ll->i32, LLVMDebugMetadataVersion(), false);
    LLVMAddModuleFlag(ll->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
                      LLVMValueAsMetadata(version));
}

bool tir_nvptx_can_watch(const struct tir_func *f, const struct tir_target *target)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_WAIT && target->features & TIR_HAS_MBARRIER_TX)
            return true;
    return false;
}

bool tir_nvptx_overlaps(const struct tir_func *f, const struct tir_target *target)
{
    if (f->step == TIR_STEP_NONE || !(target->features & TIR_HAS_CLUSTER))
        return false;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_GRIDDEPCONTROL) // written by hand
            return false;
    return true;
}

bool tir_nvptx_waits(const struct tir_func *f, const struct tir_target *target)
{
    return tir_nvptx_overlaps(f, target);
}

bool tir_nvptx_is_cooperative(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_GRID_SYNC)
            return true;
    return false;
}

// One unit, and its place in the job.
struct turn {
    const struct job *job;
    struct tir_nvptx_unit *unit;
    uint32_t first;
};

static void build_unit(const struct turn *turn)
{
    const struct job *job = turn->job;
    struct tir_nvptx_unit *unit = turn->unit;
    unit->ok = tir_llvm_init(&unit->ll, job->options->target);
    if (!unit->ok)
        return;
    unit->ll.watchdog = job->options->watchdog;
    if (job->options->line_info && job->count)
        start_debug(job, &unit->ll, &unit->arena);
    for (uint32_t i = turn->first; i < job->count; i += job->unit_count)
        unit->ok &= tir_emit_kernel(&unit->ll, &unit->arena, &unit->diags, job->funcs[i]);
    if (unit->ll.debug)
        LLVMDIBuilderFinalize(unit->ll.debug);
}

static bool build(void *user)
{
    const struct turn *turn = user;
    if (setjmp(turn->unit->out_of_memory)) {
        turn->unit->no_memory = true;
        return false;
    }
    double start = now_ms();
    build_unit(turn);
    turn->unit->build_ms = now_ms() - start;
    return turn->unit->ok;
}

static bool optimize(void *user)
{
    const struct turn *turn = user;
    struct tir_nvptx_unit *unit = turn->unit;
    if (turn->job->options->verify && !tir_llvm_verify(&unit->ll))
        return false;
    double start = now_ms();
    bool ok = tir_llvm_optimize(&unit->ll);
    unit->llvm_ms = now_ms() - start;
    return ok;
}

static bool generate(void *user)
{
    struct tir_nvptx_unit *unit = ((const struct turn *)user)->unit;
    double start = now_ms();
    bool ok = tir_llvm_generate(&unit->ll);
    if (ok)
        tir_llvm_drop(&unit->ll);
    unit->ptx_ms = now_ms() - start;
    return ok;
}

static void run_unit(void *user, uint32_t place)
{
    const struct job *job = user;
    uint32_t i = job->order[place];
    struct turn turn = {job, &job->nvptx->units[i], i};
    struct tir_llvm *ll = &turn.unit->ll;
    struct tir_meter *meter = &turn.unit->meter;
    bool ok = tir_meter_ask(meter) && tir_llvm_protect(ll, build, &turn) && tir_meter_ask(meter) &&
              tir_llvm_protect(ll, optimize, &turn) && tir_meter_ask(meter);
    if (ok && job->options->want_llvm) // of one module, which is compiled on the caller's thread
        job->result->llvm = tir_llvm_text(ll, job->arena);
    turn.unit->ok = ok && tir_llvm_protect(ll, generate, &turn);
    turn.unit->end = now_ms();
}

static void run_any(void *user, uint32_t place)
{
    const struct job *job = user;
    if (place < job->unit_count)
        run_unit(user, place);
    else
        job->options->beside(job->options->user, place - job->unit_count);
}

static TIR_NORETURN void jump_out(void *user)
{
    struct tir_nvptx_unit *unit = user;
    longjmp(unit->out_of_memory, 1);
}

// The largest units first, so that no thread is left with one at the end.
static void order_units(struct job *job)
{
    uint32_t sizes[TIR_NVPTX_UNITS] = {0};
    for (uint32_t i = 0; i < job->count; i++)
        tir_foreach_inst(inst, job->funcs[i])
            sizes[i % job->unit_count]++;
    for (uint32_t i = 0; i < job->unit_count; i++) {
        uint32_t at = i;
        for (; at > 0 && sizes[job->order[at - 1]] < sizes[i]; at--)
            job->order[at] = job->order[at - 1];
        job->order[at] = i;
    }
}

static bool run_units(struct job *job)
{
    order_units(job);
    struct tir_nvptx_unit *units = job->nvptx->units;
    for (uint32_t i = 0; i < job->unit_count; i++) {
        tir_arena_init(&units[i].arena, &job->arena->allocator, jump_out, &units[i]);
        tir_diags_init(&units[i].diags, &units[i].arena, job->diags->sources);
        if (job->options->meter)
            units[i].meter = *job->options->meter;
    }
    tir_side_by_side(tir_processors(), job->unit_count + job->options->beside_count, run_any, job);
    bool ok = true;
    double last = 0;
    for (uint32_t i = 0; i < job->unit_count; i++) {
        const struct tir_nvptx_unit *unit = &units[i];
        if (unit->no_memory)
            tir_arena_give_up(job->arena);
        if (unit->meter.is_stopped)
            job->options->meter->is_stopped = true;
        ok = ok && unit->ok;
        if (unit->end < last)
            continue;
        last = unit->end;
        job->result->build_ms = unit->build_ms;
        job->result->llvm_ms = unit->llvm_ms;
        job->result->ptx_ms = unit->ptx_ms;
    }
    return ok;
}

// The text of a module after its header (.version, .target, .address_size).
static tir_str without_header(tir_str ptx)
{
    static const char last[] = ".address_size 64\n";
    for (size_t i = 0; i + sizeof(last) <= ptx.len; i++)
        if (!memcmp(ptx.ptr + i, last, sizeof(last) - 1))
            return (tir_str){ptx.ptr + i + sizeof(last) - 1, ptx.len - i - (sizeof(last) - 1)};
    return ptx;
}

typedef VEC(tir_str) line_list;

static bool has_line(const line_list *lines, tir_str line)
{
    vec_foreach(const tir_str, it, lines)
        if (tir_str_equal(*it, line))
            return true;
    return false;
}

// Adds a unit's text line by line, leaving out declarations that an earlier unit has made.
static void add_text(struct job *job, struct tir_text *out, tir_str ptx, line_list *declared)
{
    static const char shared[] = ".extern .shared";
    while (ptx.len) {
        const char *end = memchr(ptx.ptr, '\n', ptx.len);
        tir_str line = {ptx.ptr, end ? (size_t)(end - ptx.ptr) + 1 : ptx.len};
        bool declares = line.len >= sizeof(shared) && !memcmp(line.ptr, shared, sizeof(shared) - 1);
        if (!declares || !has_line(declared, line))
            tir_text_add(out, line);
        if (declares)
            vec_push(job->arena, declared, line);
        ptx.ptr += line.len;
        ptx.len -= line.len;
    }
}

static void join(struct job *job)
{
    struct tir_text text;
    line_list declared = {0};
    tir_text_init(&text, job->arena, 0);
    for (uint32_t i = 0; i < job->unit_count; i++) {
        tir_str ptx = tir_llvm_ptx(&job->nvptx->units[i].ll);
        add_text(job, &text, i ? without_header(ptx) : ptx, &declared);
    }
    job->result->ptx = tir_text_str(&text);
}

static uint32_t count_units(uint32_t kernels, const struct tir_nvptx_options *options)
{
    // .file numbers and LLVM's text are per module.
    uint32_t cores = tir_processors();
    if (options->line_info || options->want_llvm || cores < 2 || !kernels)
        return 1;
    // A unit costs about a millisecond of its own, so few cores get no more than balances them.
    return TIR_MIN(kernels, cores < TIR_NVPTX_UNITS ? 4 : TIR_NVPTX_UNITS);
}

// The errors of the first unit that has some.
static void report(const struct job *job)
{
    for (uint32_t i = 0; i < job->unit_count; i++) {
        const struct tir_nvptx_unit *unit = &job->nvptx->units[i];
        if (unit->ok)
            continue;
        tir_diags_repeat(job->diags, &unit->diags);
        if (!unit->diags.error_count && unit->ll.message[0])
            tir_error_at(job->diags, job->count ? job->funcs[0]->span : (struct tir_span){0, 0},
                         TIR_E_CODEGEN, "LLVM: %s", unit->ll.message);
        return;
    }
}

static uint64_t count_insts(struct tir_func *const *funcs, uint32_t count)
{
    uint64_t insts = 0;
    for (uint32_t i = 0; i < count; i++)
        tir_foreach_inst(inst, funcs[i])
            insts++;
    return insts;
}

bool tir_nvptx_emit(struct tir_nvptx *nvptx, struct tir_arena *arena, struct tir_diags *diags,
                    struct tir_func *const *funcs, uint32_t count,
                    const struct tir_nvptx_options *options, struct tir_nvptx_result *result)
{
    memset(result, 0, sizeof(*result));
    memset(nvptx, 0, sizeof(*nvptx));
    assert(!options->want_llvm || !options->beside_count); // run_unit
    struct job job = {.nvptx = nvptx,
                      .arena = arena,
                      .diags = diags,
                      .funcs = funcs,
                      .count = count,
                      .unit_count = count_units(count, options),
                      .options = options,
                      .result = result};
    bool ok = true;
    for (uint32_t i = 0; i < count; i++)
        ok = tir_nvptx_check(funcs[i], options->target, diags) && ok;
    if (!ok || !tir_meter_take(options->meter, count_insts(funcs, count)))
        return false;
    ok = run_units(&job);
    if (ok)
        join(&job);
    else
        report(&job);
    tir_nvptx_finish(nvptx);
    return ok;
}

void tir_nvptx_finish(struct tir_nvptx *nvptx)
{
    for (uint32_t i = 0; i < TIR_NVPTX_UNITS; i++) {
        tir_llvm_finish(&nvptx->units[i].ll);
        tir_arena_finish(&nvptx->units[i].arena);
    }
}
