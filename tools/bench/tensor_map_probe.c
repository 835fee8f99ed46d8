// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a GPU moves for a tensor map. Usage: tensor_map_probe [EVERY]
// With EVERY, only every so many-th case is run; 7 gives a new tests/emu/tensor_map.golden.
//
// Every case makes a tensor map, and one thread loads its box into shared memory or stores shared
// memory through it. Global memory holds its own word numbers plus a tag, and so does shared memory
// before a store, so that the result says where each word came from. One line a case:
//
//   number, the slots (tensor_map_dump.c), operation, five coordinates, three im2col offsets,
//   byte offset in shared memory, tag, expected bytes, `done` or the barrier's state; then runs:
//   load:  words of shared memory in order: @I*N global words from I, 0*N, ?*N untouched, xHEX
//   store: changed words of global memory, G: before each stretch: @I*N shared words from I, xHEX
//
// A case that ends the context gives `fault CODE KERNEL` in place of what follows the bytes; a new
// process goes on after it. Cases that break the rules found so far (`is_refused`) are only run
// where they are meant to show a rule. Exit status 77: no GPU.

#define _DEFAULT_SOURCE 1 // MAP_ANONYMOUS
#include <inttypes.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tensor_map_driver.h"

enum {
    TAG = 0x40000000,
    UNTOUCHED = 0x7eadbeef,
    STORED = 0x50000000,
    ADDED = 0x10000000,
    GLOBAL_BYTES = 8 << 20,
    TENSOR_AT = 256 << 10, // offset of the tensor in the buffer
    TILE_BYTES = 96 << 10, // of shared memory
    RESULT_WORDS = 4 + TILE_BYTES / 4
};

enum operation { LOAD, STORE, REDUCE_ADD, OPERATIONS };
static const char *const operation_names[] = {"load", "store", "add"};

struct probe {
    struct params p;
    enum operation operation;
    int32_t at[5];
    uint16_t offset[3];
    uint32_t shared_offset;
    uint32_t tag;
    int shows_rule; // it is expected to be refused
};

static struct {
    int (*alloc)(uint64_t *, size_t);
    int (*upload)(uint64_t, const void *, size_t);
    int (*download)(void *, uint64_t, size_t);
    int (*load)(void **, const void *);
    int (*function)(void **, void *, const char *);
    int (*attribute)(void *, int, int);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*synchronize)(void);
    uint64_t global, out;
    void *module;
    uint32_t *before, *after, *result;
    long number, first, every;
    volatile long *current; // number of the case that runs, for the parent
} gpu;

static void check(int status, const char *what)
{
    if (status == 0)
        return;
    printf(" fault %d %s\n", status, what);
    exit(3);
}

// --- the kernels ---

static const char ptx_head[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n";

// %s: name. 128 threads fill the tile, then thread 0 runs the middle part with %base the mbarrier,
// %tile, %map, %c0 to %c4, %o0 to %o2.
static const char ptx_start[] =
    ".visible .entry %s(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 offset,\n"
    " .param .u32 tx, .param .u32 words, .param .u32 fill, .param .u32 step,\n"
    " .param .align 4 .b8 c[20], .param .align 2 .b8 o[8])\n"
    "{\n"
    " .reg .pred %%p; .reg .b16 %%o<3>; .reg .b64 %%map, %%out, %%state, %%a64;\n"
    " .reg .b32 %%t, %%i, %%n, %%a, %%v, %%fill, %%step, %%base, %%tile, %%tx, %%c<5>, %%done;\n"
    " mov.u32 %%t, %%tid.x; mov.u32 %%base, smem; ld.param.u32 %%tile, [offset];\n"
    " add.u32 %%tile, %%tile, %%base; add.u32 %%tile, %%tile, 1024;\n"
    " ld.param.u32 %%n, [words]; ld.param.u32 %%fill, [fill]; ld.param.u32 %%step, [step];\n"
    " ld.param.u32 %%tx, [tx]; ld.param.u64 %%out, [out]; mov.b64 %%map, map;\n"
    " cvta.param.u64 %%map, %%map; cvta.to.global.u64 %%out, %%out;\n"
    " ld.param.u32 %%c0, [c]; ld.param.u32 %%c1, [c+4]; ld.param.u32 %%c2, [c+8];\n"
    " ld.param.u32 %%c3, [c+12]; ld.param.u32 %%c4, [c+16];\n"
    " ld.param.u16 %%o0, [o]; ld.param.u16 %%o1, [o+2]; ld.param.u16 %%o2, [o+4];\n"
    " mov.u32 %%i, %%t; mov.u32 %%done, 1;\n"
    "FILL: setp.ge.u32 %%p, %%i, %%n; @%%p bra FILLED;\n"
    " mad.lo.u32 %%a, %%i, 4, %%tile; mad.lo.u32 %%v, %%i, %%step, %%fill;\n"
    " st.shared.u32 [%%a], %%v; add.u32 %%i, %%i, 128; bra FILL;\n"
    "FILLED: fence.proxy.async; bar.sync 0; setp.ne.u32 %%p, %%t, 0; @%%p bra DONE;\n";

static const char ptx_load[] = " mbarrier.init.shared.b64 [%base], 1; fence.proxy.async;\n"
                               " mbarrier.arrive.expect_tx.shared.b64 %state, [%base], %tx;\n";

static const char ptx_wait[] =
    " mov.u32 %i, 0;\n"
    "WAIT: mbarrier.test_wait.parity.shared.b64 %p, [%base], 0; selp.u32 %done, 1, 0, %p;\n"
    " @%p bra ARRIVED; nanosleep.u32 1000; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 1000;\n"
    " @%p bra WAIT;\n"
    "ARRIVED: ld.shared.u64 %state, [%base]; st.global.u64 [%out+8], %state;\n"
    " st.global.u32 [%out], %done; st.global.u32 [%out+4], %base;\n";

static const char ptx_store_wait[] =
    " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
    " st.global.u32 [%out], %done; st.global.u32 [%out+4], %base;\n";

static const char ptx_end[] =
    "DONE: bar.sync 0; mov.u32 %i, %t;\n"
    "COPY: setp.ge.u32 %p, %i, %n; @%p bra END;\n"
    " mad.lo.u32 %a, %i, 4, %tile; ld.shared.u32 %v, [%a]; mul.wide.u32 %a64, %i, 4;\n"
    " add.u64 %a64, %a64, %out; st.global.u32 [%a64+16], %v; add.u32 %i, %i, 128; bra COPY;\n"
    "END: ret;\n}\n";

static char text[1 << 17];
static size_t text_len;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int len = vsnprintf(text + text_len, sizeof text - text_len, format, list);
    va_end(list);
    if (len < 0 || (size_t)len >= sizeof text - text_len)
        abort();
    text_len += (size_t)len;
}

static void kernel_name(char *name, size_t size, int operation, int kind, int rank)
{
    snprintf(name, size, "%s_%s_%d", operation_names[operation], kind == TILED ? "tile" : "im2col",
             rank);
}

static void add_kernel(int operation, int kind, int rank)
{
    static const char *const coords[] = {"%c0", "%c0, %c1", "%c0, %c1, %c2", "%c0, %c1, %c2, %c3",
                                         "%c0, %c1, %c2, %c3, %c4"};
    static const char *const offsets[] = {"", "", "{%o0}", "{%o0, %o1}", "{%o0, %o1, %o2}"};
    char name[32];
    kernel_name(name, sizeof name, operation, kind, rank);
    add(ptx_start, name);
    if (operation == LOAD) {
        add("%s cp.async.bulk.tensor.%dd.shared::cluster.global%s.mbarrier::complete_tx::bytes"
            " [%%tile], [%%map, {%s}], [%%base]%s%s;\n%s",
            ptx_load, rank, kind == TILED ? ".tile" : ".im2col", coords[rank - 1],
            kind == TILED ? "" : ", ", kind == TILED ? "" : offsets[rank - 1], ptx_wait);
    } else {
        add(" cp%s.async.bulk.tensor.%dd.global.shared::cta%s%s.bulk_group"
            " [%%map, {%s}], [%%tile];\n%s",
            operation == STORE ? "" : ".reduce", rank, operation == STORE ? "" : ".add",
            kind == TILED ? ".tile" : ".im2col_no_offs", coords[rank - 1], ptx_store_wait);
    }
    add("%s", ptx_end);
}

static void build(void)
{
    add("%s", ptx_head);
    for (int operation = LOAD; operation < OPERATIONS; operation++)
        for (int kind = TILED; kind <= IM2COL; kind++)
            for (int rank = kind == TILED ? 1 : 3; rank <= 5; rank++)
                add_kernel(operation, kind, rank);
}

static void fill_global(uint32_t tag)
{
    for (uint32_t i = 0; i < GLOBAL_BYTES / 4; i++)
        gpu.before[i] = i + tag;
    check(gpu.upload(gpu.global, gpu.before, GLOBAL_BYTES), "upload");
}

static int start(void)
{
    if (!driver_start())
        return 0;
    driver_symbol("cuMemAlloc_v2", &gpu.alloc);
    driver_symbol("cuMemcpyHtoD_v2", &gpu.upload);
    driver_symbol("cuMemcpyDtoH_v2", &gpu.download);
    driver_symbol("cuModuleLoadData", &gpu.load);
    driver_symbol("cuModuleGetFunction", &gpu.function);
    driver_symbol("cuFuncSetAttribute", &gpu.attribute);
    driver_symbol("cuLaunchKernel", &gpu.launch);
    driver_symbol("cuCtxSynchronize", &gpu.synchronize);
    if (gpu.first == 1)
        driver_print();
    gpu.before = malloc(GLOBAL_BYTES);
    gpu.after = malloc(GLOBAL_BYTES);
    gpu.result = malloc(RESULT_WORDS * 4);
    if (gpu.before == NULL || gpu.after == NULL || gpu.result == NULL)
        abort();
    build();
    check(gpu.load(&gpu.module, text), "load");
    check(gpu.alloc(&gpu.global, GLOBAL_BYTES), "alloc");
    check(gpu.alloc(&gpu.out, RESULT_WORDS * 4), "alloc");
    fill_global(TAG);
    return 1;
}

// --- one case ---

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// Bytes a box takes in shared memory when its rows lie dense. With interleave an element of
// dimension 0 is a slice of channels.
static uint32_t box_bytes(const struct params *p)
{
    const int64_t *at = p->at;
    int64_t inner = at[S_kind] == TILED ? at[S_box0] : at[S_channels];
    int64_t bytes = inner * type_bytes[at[S_type]] / (at[S_type] >= PACKED ? 16 : 1);
    if (at[S_interleave] != 0)
        bytes = 16 * at[S_interleave];
    if (at[S_kind] != TILED)
        return (uint32_t)(bytes * at[S_pixels]);
    for (int i = 1; i < at[S_rank]; i++)
        bytes *= divide_up(at[S_box0 + i], at[S_step0 + i]);
    if (at[S_interleave] != 0)
        bytes *= divide_up(at[S_box0], at[S_step0]);
    return (uint32_t)bytes;
}

// How much longer swizzled rows are in shared memory than their bytes.
static uint32_t row_stretch(const struct params *p)
{
    const int64_t *at = p->at;
    int64_t inner = at[S_kind] == TILED ? at[S_box0] : at[S_channels];
    int64_t span = at[S_swizzle] == 0 || at[S_interleave] != 0 ? 0 : 16 << at[S_swizzle];
    int64_t bytes = inner * type_bytes[at[S_type]];
    return at[S_type] < PACKED && bytes < span ? (uint32_t)(span / bytes) + 1 : 1;
}

// Words from `i` on that go on like it does: equal, or counting up when they are `numbered`.
static size_t run_length(const uint32_t *words, size_t i, size_t end, uint32_t step)
{
    size_t n = 1;
    while (i + n < end && words[i + n] == words[i] + (uint32_t)n * step)
        n++;
    return n;
}

static void print_run(const uint32_t *words, size_t *i, size_t end, uint32_t tag, uint32_t limit)
{
    uint32_t word = words[*i];
    size_t n = 1;
    if (word == 0)
        printf(" 0*%zu", n = run_length(words, *i, end, 0));
    else if (word == UNTOUCHED)
        printf(" ?*%zu", n = run_length(words, *i, end, 0));
    else if (word - tag < limit)
        printf(" @%" PRIu32 "*%zu", word - tag, n = run_length(words, *i, end, 1));
    else
        printf(" x%08" PRIx32 "*%zu", word, n = run_length(words, *i, end, 0));
    *i += n;
}

static void print_case(const struct probe *c, uint32_t tx)
{
    printf("%ld ", gpu.number);
    struct params p = c->p;
    p.at[S_address] -= (int64_t)gpu.global;
    params_print(&p);
    printf("%s", operation_names[c->operation]);
    for (int i = 0; i < 5; i++)
        printf(" %" PRId32, c->at[i]);
    for (int i = 0; i < 3; i++)
        printf(" %" PRIu16, c->offset[i]);
    printf(" %" PRIu32 " %" PRIx32 " %" PRIu32, c->shared_offset, c->tag, tx);
}

static void print_load(size_t words)
{
    if (gpu.result[0])
        printf(" done");
    else
        printf(" %08" PRIx32 "%08" PRIx32, gpu.result[3], gpu.result[2]);
    uint32_t tag = gpu.before[0];
    for (size_t i = 0; i < words;)
        print_run(gpu.result + 4, &i, words, tag, GLOBAL_BYTES / 4);
}

static void print_store(uint32_t tag, uint32_t limit)
{
    size_t end = GLOBAL_BYTES / 4;
    printf(" done");
    check(gpu.download(gpu.after, gpu.global, GLOBAL_BYTES), "download");
    for (size_t i = 0; i < end;) {
        size_t stop = i;
        while (stop < end && gpu.after[stop] != gpu.before[stop])
            stop++;
        if (stop == i) {
            i++;
            continue;
        }
        printf(" %zu:", i);
        while (i < stop)
            print_run(gpu.after, &i, stop, tag, limit);
    }
    check(gpu.upload(gpu.global, gpu.before, GLOBAL_BYTES), "upload");
}

static void launch(const struct probe *c, uint8_t *map, uint32_t tx, uint32_t words)
{
    char name[32];
    void *function;
    // What shared memory holds before: its word numbers, or the same addend everywhere.
    uint32_t fill = c->operation == LOAD ? UNTOUCHED : c->operation == STORE ? STORED : ADDED;
    uint32_t step = c->operation == STORE, offset = c->shared_offset;
    int32_t at[5];
    uint16_t offsets[4] = {c->offset[0], c->offset[1], c->offset[2]};
    memcpy(at, c->at, sizeof at);
    kernel_name(name, sizeof name, (int)c->operation, (int)c->p.at[S_kind], (int)c->p.at[S_rank]);
    check(gpu.function(&function, gpu.module, name), name);
    check(gpu.attribute(function, 8, 1024 + TILE_BYTES), "shared memory");
    void *arguments[] = {map, &gpu.out, &offset, &tx, &words, &fill, &step, at, offsets};
    check(gpu.launch(function, 1, 1, 1, 128, 1, 1, 1024 + TILE_BYTES, NULL, arguments, NULL), name);
    check(gpu.synchronize(), name);
    check(gpu.download(gpu.result, gpu.out, 16 + 4 * (size_t)words), "download");
}

// What an H200 answers with an illegal instruction: an inner coordinate off the 16 bytes, a first
// pixel outside of the corners, and for anything but a load, negative coordinates and corners
// outside of the tensor.
static int is_refused(const struct probe *c)
{
    const int64_t *p = c->p.at;
    if (c->at[0] * type_bytes[p[S_type]] % 16 != 0)
        return 1;
    for (int i = 0; i < p[S_rank] && c->operation != LOAD; i++)
        if (c->at[i] < 0)
            return 1;
    for (int i = 0; p[S_kind] == IM2COL && i < p[S_rank] - 2; i++) {
        const int64_t lower = p[S_lower0 + i], upper = p[S_upper0 + i];
        if (c->at[i + 1] < lower || c->at[i + 1] >= p[S_dim0 + i + 1] + upper)
            return 1;
        if (c->operation != LOAD && (lower < 0 || upper > 0))
            return 1;
    }
    return 0;
}

static void run(const struct probe *c)
{
    gpu.number++;
    if (gpu.number < gpu.first || gpu.number % gpu.every != 0 || (is_refused(c) && !c->shows_rule))
        return;
    *gpu.current = gpu.number;
    alignas(64) uint8_t map[128] = {0};
    int status = driver_encode(&c->p, map);
    uint32_t bytes = box_bytes(&c->p), words = bytes * row_stretch(&c->p) / 4 + 64;
    if (status != 0 || bytes > TILE_BYTES - 4096)
        return;
    if (gpu.before[0] != c->tag)
        fill_global(c->tag);
    print_case(c, bytes);
    fflush(stdout);
    launch(c, map, bytes, words);
    if (c->operation == LOAD)
        print_load(words);
    else if (c->operation == STORE)
        print_store(STORED, TILE_BYTES / 4);
    else
        print_store(c->tag + ADDED, GLOBAL_BYTES / 4);
    putchar('\n');
}

// --- the cases ---

// A tensor of small extents with some padding between its rows.
static struct probe tensor(int kind, int rank, int64_t type, int64_t inner_bytes)
{
    struct probe c = {.p = params_base(kind, rank), .tag = TAG};
    int64_t *at = c.p.at;
    at[S_type] = type;
    at[S_address] = (int64_t)gpu.global + TENSOR_AT;
    at[S_box0] = at[S_channels] = params_inner(type, inner_bytes);
    at[S_dim0] = params_inner(type, 1008);
    int64_t stride = 1024;
    for (int i = 1; i < rank; i++) {
        at[S_dim0 + i] = rank == 2 ? 100 : 13 - 2 * i;
        at[S_box0 + i] = rank == 2 ? 24 : 5 - i + (i == 1) * 4;
        at[S_stride0 + i - 1] = stride;
        stride *= at[S_dim0 + i] + 1;
    }
    at[S_pixels] = 32;
    return c;
}

static void run_both(struct probe c)
{
    for (c.operation = LOAD; c.operation <= STORE; c.operation++)
        run(&c);
}

static void swizzles(void)
{
    static const uint16_t offsets[] = {0, 128, 256, 512, 1024, 896};
    for (int swizzle = 0; swizzle < 4; swizzle++) {
        int span = swizzle == 0 ? 256 : 16 << swizzle;
        for (int inner = 16; inner <= span; inner += 16) {
            struct probe c = tensor(TILED, 2, 0, inner);
            c.p.at[S_swizzle] = swizzle;
            run_both(c);
            for (int i = 0; i < 6 && inner == span; i++) {
                c.shared_offset = offsets[i];
                run_both(c);
            }
        }
    }
}

static void bounds(void)
{
    // Of bytes, for the inner dimension, which wants multiples of 16; of elements for the others.
    static const int32_t starts[] = {-1008, -304, -64, -48, -32, -16,  0,   16,
                                     96,    480,  944, 976, 992, 1008, 2000};
    for (int type = 0; type < PACKED; type++)
        for (int fill = 0; fill < 2; fill++)
            for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
                struct probe c = tensor(TILED, 2, type, 64);
                c.p.at[S_dim0] = params_inner(type, 1008) - (type_bytes[type] < 4);
                c.p.at[S_fill] = fill;
                c.p.at[S_box0 + 1] = 6;
                c.at[0] = starts[i] / type_bytes[type];
                c.at[1] = (int32_t)(i % 4) * 32 - (i % 8 < 4 ? 0 : 2);
                run_both(c);
            }
    for (int rank = 1; rank <= 5; rank++)
        for (int dim = 0; dim < rank; dim++)
            for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
                struct probe c = tensor(TILED, rank, 6, 32);
                c.at[dim] = dim == 0 ? starts[i] / 2 : starts[i] / 16;
                run_both(c);
            }
}

// A row that ends within 16 bytes: how much of them a store writes.
static void tails(void)
{
    for (int type = 0; type < PACKED; type++)
        for (int64_t end = 1; end <= 16 / type_bytes[type]; end++) {
            struct probe c = tensor(TILED, 2, type, 64);
            c.p.at[S_dim0] = params_inner(type, 32) + end;
            c.p.at[S_box0 + 1] = 3;
            c.at[1] = 2;
            run_both(c);
        }
}

static void steps(void)
{
    for (int rank = 2; rank <= 4; rank++)
        for (int dim = 0; dim < rank; dim++)
            for (int step = 2; step <= 8; step++)
                for (int start = -3; start <= 3; start++) {
                    struct probe c = tensor(TILED, rank, 7, 32);
                    c.p.at[S_step0 + dim] = step;
                    c.p.at[S_box0 + dim] = dim ? 7 : c.p.at[S_box0];
                    c.at[dim] = dim == 0 ? start * 4 : start * 2 + (start > 1) * 3;
                    run_both(c);
                }
}

static void interleaved(int kind)
{
    for (int interleave = 1; interleave <= 2; interleave++)
        for (int rank = 3; rank <= 5; rank++)
            for (int i = 0; i < 40; i++) {
                struct probe c = tensor(kind, rank, i % 3 ? 6 : 0, 16 * interleave);
                int64_t *at = c.p.at;
                at[S_interleave] = interleave;
                at[S_swizzle] = interleave == 2 ? 1 : i % 4;
                at[S_dim0] = i % 5 ? 40 : 77;
                at[S_box0] = 16 * (1 + (int64_t)random_below(i % 2 ? 2 : 6));
                at[S_channels] = at[S_box0];
                at[S_step0] = i % 7 ? 1 : 2;
                for (int dim = 0; dim < rank; dim++)
                    c.at[dim] = dim == 0 ? 16 * ((int32_t)random_below(4) - 1)
                                         : (int32_t)random_below(8) - 3 * (i % 3 > 0);
                run_both(c);
            }
}

static void im2col(void)
{
    for (int rank = 3; rank <= 5; rank++)
        for (int i = 0; i < 160; i++) {
            struct probe c = tensor(IM2COL, rank, i % 5 ? 6 : 7, 32);
            int64_t *at = c.p.at;
            for (int dim = 0; dim < rank - 2; dim++) {
                at[S_lower0 + dim] = i < 20 ? -1 : (int64_t)random_below(5) - 3;
                at[S_upper0 + dim] = i < 20 ? -1 : (int64_t)random_below(5) - 3;
                c.offset[dim] = (uint16_t)(i < 10 ? (uint64_t)i % 3 : random_below(4));
                if (i > 100 && random_below(2))
                    at[S_step0 + 1 + dim] = 1 + (int64_t)random_below(3);
            }
            if (i > 40)
                at[S_pixels] = 1 + (int64_t)random_below(200);
            for (int dim = 1; dim < rank; dim++)
                c.at[dim] = i < 10 ? -1 : i < 20 ? 0 : (int32_t)random_below(8) - (i % 2 ? 3 : 0);
            c.at[0] = i % 4 ? 0 : 8 * ((int32_t)random_below(72) - 6);
            at[S_swizzle] = i > 120 ? (int64_t)random_below(4) : 0;
            at[S_fill] = i % 6 == 0;
            run_both(c);
        }
}

static void random_tiles(void)
{
    for (int i = 0; i < 300; i++) {
        int rank = 1 + (int)random_below(5);
        struct probe c = tensor(TILED, rank, (int64_t)random_below(PACKED), 32);
        int64_t *at = c.p.at;
        at[S_swizzle] = (int64_t)random_below(4);
        at[S_box0] =
            params_inner(at[S_type], 16 * (1 + (int64_t)random_below(at[S_swizzle] > 2 ? 8 : 2)));
        at[S_fill] = (int64_t)random_below(2);
        at[S_address] += 16 * (int64_t)random_below(8);
        c.shared_offset = 128 * (uint32_t)random_below(8);
        for (int dim = 0; dim < rank; dim++) {
            if (dim > 0)
                at[S_box0 + dim] = 1 + (int64_t)random_below(rank == 2 ? 60 : 6);
            at[S_step0 + dim] = random_below(3) ? 1 : 1 + (int64_t)random_below(4);
            c.at[dim] = (int32_t)random_below((uint64_t)at[S_dim0 + dim] + 10) - (i % 2 ? 8 : 0);
        }
        c.at[0] -= c.at[0] % (int32_t)params_inner(at[S_type], 16);
        run_both(c);
    }
}

static void values(void)
{
    for (int type = 0; type < PACKED; type++) {
        struct probe c = tensor(TILED, 2, type, 128);
        c.tag = 0; // as floats: subnormal
        run_both(c);
        c.tag = 0x7f800000;
        run_both(c);
        c.tag = 0xff7ff000 - 65536; // the largest negative floats, and what follows them
        run_both(c);
        c.tag = 0x3f801000 - 65536; // halves between neighbours of tf32
        run_both(c);
    }
    for (int rank = 1; rank <= 5; rank++) {
        struct probe c = tensor(TILED, rank, 2, 64);
        c.operation = REDUCE_ADD;
        run(&c);
        c.at[0] = 240;
        c.at[rank - 1] = rank == 1 ? 244 : 8;
        run(&c);
        c = tensor(IM2COL, rank, 2, 64);
        c.operation = REDUCE_ADD;
        if (rank >= 3)
            run(&c);
    }
}

// One broken rule each: coordinates, and where the tile lies.
static void rules(void)
{
    for (int operation = LOAD; operation < OPERATIONS; operation++)
        for (int kind = TILED; kind <= IM2COL; kind++)
            for (int interleave = 0; interleave < 3; interleave++)
                for (int rule = 0; rule < 6; rule++) {
                    struct probe c = tensor(kind, 4, 2, 32);
                    int64_t *at = c.p.at;
                    c.operation = operation;
                    c.shows_rule = 1;
                    at[S_interleave] = interleave;
                    at[S_swizzle] = interleave == 2;
                    if (rule == 0)
                        c.at[0] = 1;
                    else if (rule < 4)
                        c.at[rule == 3 ? 3 : rule] = rule == 3 ? -1 : -2;
                    else
                        c.shared_offset = rule == 4 ? 16 : 64;
                    if (interleave == 0 || rule == 0 || rule == 4)
                        run(&c);
                }
}

static void run_all(void)
{
    tails();
    values();
    swizzles();
    bounds();
    steps();
    random_tiles();
    interleaved(TILED);
    im2col();
    interleaved(IM2COL);
    rules();
}

// A fault ends the context for good, so the cases run in a child, and the next child goes on.
int main(int argc, char **argv)
{
    gpu.every = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    if (gpu.every < 1)
        return 2;
    gpu.current =
        mmap(NULL, sizeof *gpu.current, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (gpu.current == MAP_FAILED)
        abort();
    for (;;) {
        fflush(stdout);
        gpu.first = *gpu.current + 1;
        pid_t child = fork();
        int status;
        if (child == 0) {
            if (!start()) {
                fputs("no GPU, or a driver without tensor maps\n", stderr);
                return 77;
            }
            run_all();
            return 0;
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
            abort();
        if (WEXITSTATUS(status) != 3 || *gpu.current < gpu.first)
            return WEXITSTATUS(status);
    }
}
