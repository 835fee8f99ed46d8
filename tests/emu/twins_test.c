// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Planted bugs: pairs of small kernels, one right and one with the bug.
//
// A file of tests/emu/twins holds pairs as a difference. A line that begins with '+' is in the
// right one only, one with '-' in the buggy one only, and one with '|' stands before the kernel.
// `// here` marks a line that the finding must name, as its place or the other one. A pair begins
// with "== NAME KIND[|KIND] [threads=N] [grid=N] [cluster=N] [dynamic=BYTES] [filled]
// [lazy]", and what follows "says:" must be in the message.
//
// The right one runs under 100 schedules and must give no finding. The buggy one runs under 10 and
// must give one of the kinds every time; with "lazy" it runs under that one alone. "filled": the
// first 4 words of every thread in shared memory are written beforehand.
//
// The frame around a body gives it %t, %l, %w, %c (thread, lane, warp, CTA), %s (8 KB of shared
// memory), %x (the thread's word in it), %a (16 KB of global memory, word i is i), %b (as much,
// uninitialised), %z (as much, zeros), %g (the thread's word of %a), %m and %o (addresses of tensor
// maps of %a and %b: words, rows of 32, boxes of 32 x 4), and registers %p %h %r %f %d.

#include <stdio.h>
#include <stdlib.h>

#include "rig.h"
#include "tir/tensor_map.h"

enum { WORDS = 4096, SCHEDULES = 100, BUGGY_SCHEDULES = 10, TEXT = 16384 };

struct twin {
    char name[64], kinds[64], says[160];
    uint32_t threads, grid, cluster, dynamic;
    bool filled, lazy;
    char body[TEXT]; // with all its marks
};

static const char before[] =
    ".version 8.7 .target sm_100a .address_size 64 "; // all on the first line of the body
static const char entry[] =
    ".visible .entry k(.param .align 64 .b8 pm[128], .param .align 64 .b8 po[128], "
    ".param .u64 pa, .param .u64 pb, .param .u64 pz) { "
    ".reg .pred %p<16>; .reg .b16 %h<8>; .reg .b32 %t, %l, %w, %c, %s, %x, %r<64>; "
    ".reg .b64 %a, %b, %z, %g, %m, %o, %d<32>; .reg .f32 %f<64>; .shared .align 1024 .b8 s[8192]; "
    "ld.param.u64 %a, [pa]; ld.param.u64 %b, [pb]; ld.param.u64 %z, [pz]; mov.u32 %t, %tid.x; "
    "mov.u32 %l, %laneid; shr.u32 %w, %t, 5; mov.u32 %c, %ctaid.x; mov.u32 %s, s; "
    "mad.lo.u32 %x, %t, 4, %s; mov.u32 %r0, %ntid.x; mad.lo.u32 %r0, %r0, %c, %t; "
    "mul.wide.u32 %g, %r0, 4; add.u64 %g, %g, %a; "
    "mov.u64 %m, pm; cvta.param.u64 %m, %m; mov.u64 %o, po; cvta.param.u64 %o, %o; ";

static int failures;

static void complain(const struct twin *t, bool buggy, uint32_t run, const char *what,
                     const char *message)
{
    printf("%s, %s, schedule %u: %s%s%s\n", t->name, buggy ? "buggy" : "right", run, what,
           *message ? ": " : "", message);
    failures++;
}

// The PTX of one of the two. Every line of the body keeps its number.
static void compose(const struct twin *t, bool buggy, char *out)
{
    bool inside = false;
    size_t at = (size_t)snprintf(out, 2 * TEXT, "%s", before);
    for (const char *line = t->body; *line; line = strchr(line, '\n') + 1) {
        const int len = (int)(strchr(line, '\n') - line);
        const bool marked = *line == '+' || *line == '-' || *line == '|';
        if (*line != '|' && !inside) {
            at += (size_t)snprintf(out + at, 2 * TEXT - at, "%s", entry);
            for (uint32_t k = 0; t->filled && k < 4; k++)
                at += (size_t)snprintf(out + at, 2 * TEXT - at, "st.shared.u32 [%%x+%u], 0; %s",
                                       4 * k * t->threads, k == 3 ? "bar.sync 0; " : "");
            inside = true;
        }
        const bool skip = *line == (buggy ? '+' : '-');
        at += (size_t)snprintf(out + at, 2 * TEXT - at, "%.*s\n", skip ? 0 : len - marked,
                               line + marked);
    }
    snprintf(out + at, 2 * TEXT - at, "}\n");
}

static bool is_marked(const struct twin *t, uint32_t number)
{
    const char *line = t->body;
    while (number > 1 && *line) {
        line = strchr(line, '\n') + 1;
        number--;
    }
    const char *mark = strstr(line, "// here"), *end = strchr(line, '\n');
    return number == 1 && *line && mark && mark < end;
}

// A finding of one of the kinds, at a marked line, with the text it shall have.
static bool is_wanted(const struct twin *t, const struct emu_finding *f)
{
    const char *name = emu_finding_name(f->kind), *at = strstr(t->kinds, name);
    const size_t len = strlen(name);
    while (at && ((at > t->kinds && at[-1] != '|') || (at[len] && at[len] != '|')))
        at = strstr(at + 1, name);
    return at && (is_marked(t, f->at.line) || is_marked(t, f->other.line)) &&
           strstr(f->message, t->says);
}

static void add_map(struct rig *r, uint64_t address)
{
    uint8_t bytes[TIR_TENSOR_MAP_BYTES];
    tir_error error;
    const tir_tensor_map map = {.type = TIR_TENSOR_MAP_U32,
                                .rank = 2,
                                .address = address,
                                .dims = {32, 128},
                                .strides = {128},
                                .steps = {1, 1},
                                .box = {32, 4}};
    if (tir_tensor_map_encode(&map, bytes, &error))
        fail_msg("%s", error.message);
    rig_param(r, bytes, sizeof bytes);
}

static tir_status run(struct rig *r, const struct twin *t, const char *text)
{
    static uint32_t words[WORDS], zeros[WORDS];
    if (rig_try_load(r, text))
        return TIR_ERR_INVALID;
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i;
    const uint64_t a = rig_buffer(r, words, sizeof words), b = rig_buffer(r, NULL, sizeof words);
    add_map(r, a);
    add_map(r, b);
    rig_param_u64(r, a);
    rig_param_u64(r, b);
    rig_param_u64(r, rig_buffer(r, zeros, sizeof zeros));
    r->cluster = t->cluster;
    r->shared_bytes = t->dynamic;
    return rig_try_run(r, "k", t->grid, t->threads);
}

static void check(const struct twin *t, bool buggy)
{
    static const enum emu_policy policies[] = {EMU_LAZY, EMU_EAGER, EMU_RANDOM, EMU_ADVERSARIAL};
    char text[2 * TEXT];
    compose(t, buggy, text);
    for (uint32_t n = 0; n < (!buggy ? SCHEDULES : t->lazy ? 1 : BUGGY_SCHEDULES); n++) {
        struct rig r;
        uint32_t count;
        bool found = false;
        rig_open_with(&r, policies[n < 2 ? n : 2 + n % 2], n);
        const int before_failures = failures;
        const tir_status status = run(&r, t, text);
        const struct emu_finding *f = emu_findings(r.emu, &count);
        for (uint32_t i = 0; i < count; i++)
            found |= is_wanted(t, &f[i]);
        if (!buggy && status)
            complain(t, buggy, n, "fails", count ? f[0].message : r.error.message);
        else if (buggy && status != TIR_ERR_DEVICE)
            complain(t, buggy, n, "is not found", status ? r.error.message : "");
        else if (buggy && !found)
            complain(t, buggy, n, "is taken for something else", f[0].message);
        rig_close(&r);
        if (failures != before_failures)
            return;
    }
}

static bool heading(const char *line, struct twin *t)
{
    *t = (struct twin){.threads = 32, .grid = 1};
    if (sscanf(line, "== %63s %63s", t->name, t->kinds) != 2)
        return false;
    static const char *const keys[] = {"threads=", "grid=", "cluster=", "dynamic="};
    uint32_t *const values[] = {&t->threads, &t->grid, &t->cluster, &t->dynamic};
    for (int i = 0; i < 4; i++) {
        const char *at = strstr(line, keys[i]);
        if (at)
            *values[i] = (uint32_t)strtoul(at + strlen(keys[i]), NULL, 10);
    }
    t->filled = strstr(line, " filled");
    t->lazy = strstr(line, " lazy");
    const char *says = strstr(line, "says: ");
    if (says)
        snprintf(t->says, sizeof t->says, "%.*s", (int)strcspn(says + 6, "\n"), says + 6);
    return true;
}

int main(int argc, char **argv)
{
    static struct twin t;
    char line[512];
    int pairs = 0;
    const char *only = argc > 2 ? argv[2] : "";
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!f) {
        printf("usage: twins FILE [NAME]\n");
        return 2;
    }
    bool more = fgets(line, sizeof line, f) != NULL;
    while (more) {
        if (!heading(line, &t)) { // a comment before the first pair
            more = fgets(line, sizeof line, f) != NULL;
            continue;
        }
        size_t at = 0;
        while ((more = fgets(line, sizeof line, f) != NULL) && strncmp(line, "== ", 3) != 0)
            at += (size_t)snprintf(t.body + at, sizeof t.body - at, "%s", line);
        if (!strstr(t.name, only))
            continue;
        pairs++;
        check(&t, false);
        check(&t, true);
    }
    fclose(f);
    printf("%d pairs, %d failures\n", pairs, failures);
    return failures != 0 || pairs == 0;
}
