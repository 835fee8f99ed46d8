// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference page of the instructions: rows that differ in their types only become one line.

#include "emu/decode/help.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emu/decode/isa.h"
#include "emu/tensor/mma.h"
#include "emu/tensor/wmma.h"

struct page {
    void (*print)(void *user, const char *text, size_t size);
    void *user;
};

__attribute__((format(printf, 2, 3))) static void put(struct page *p, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    p->print(p->user, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

// A row's name in two: "dp2a_lo_u32_s32" is written dp2a.lo.T with the types u32.s32.
struct spelling {
    char form[64], types[64];
};

static void append(char *to, size_t size, const char *separator, const char *text, size_t len)
{
    const size_t at = strlen(to);
    snprintf(to + at, size - at, "%s%.*s", separator, (int)len, text);
}

static struct spelling spell(const char *name)
{
    struct spelling s = {"", ""};
    while (*name) {
        const size_t len = strcspn(name, "_");
        const bool is_type = emu_type_find((tir_str){name, len}) != EMU_none;
        // min and max of three numbers are min3 and max3 in the tables only.
        const bool of_three = strncmp(name, "min3", len) == 0 || strncmp(name, "max3", len) == 0;
        if (is_type && !s.types[0])
            append(s.form, sizeof s.form, ".", "T", 1);
        if (is_type)
            append(s.types, sizeof s.types, s.types[0] ? "." : "", name, len);
        else
            append(s.form, sizeof s.form, s.form[0] ? "." : "", name, len - (of_three && len == 4));
        name += len + (name[len] == '_');
    }
    return s;
}

static int sources_of(const struct emu_alu_row *row)
{
    int n = 0;
    while (n < 4 && row->src[n] != EMU_none)
        n++;
    return n;
}

static bool same_line(const struct emu_alu_row *a, const struct emu_alu_row *b)
{
    return a->flags == b->flags && sources_of(a) == sources_of(b) &&
           strcmp(spell(a->name).form, spell(b->name).form) == 0;
}

static void put_rows(struct page *p, const struct emu_alu_row *rows)
{
    static const char *const operands[] = {"", "d, a", "d, a, b", "d, a, b, c", "d, a, b, c, e"};
    put(p, "| form | types | may also have |\n|---|---|---|\n");
    for (const struct emu_alu_row *row = rows; row->name; row++) {
        const struct emu_alu_row *first = rows;
        while (!same_line(first, row))
            first++;
        if (first != row)
            continue;
        put(p, "| `%s %s` |", spell(row->name).form, operands[sources_of(row)]);
        for (const struct emu_alu_row *r = row; r->name; r++)
            if (same_line(r, row))
                put(p, " %s", spell(r->name).types);
        put(p, " | %s%s%s%s |\n", row->flags & EMU_ROW_R ? "`.rn` `.rz` `.rm` `.rp` " : "",
            row->flags & EMU_ROW_F ? "`.ftz` " : "", row->flags & EMU_ROW_S ? "`.sat` " : "",
            row->flags & EMU_ROW_L ? "`.relu` " : "");
    }
    put(p, "\n");
}

static void put_comparisons(struct page *p)
{
    put(p,
        "## Comparisons\n\nOf `setp` and `set`, by type.\n\n| type | comparisons |\n|---|---|\n");
    uint8_t last = EMU_none;
    for (const struct emu_cmp_row *row = emu_cmp_rows; row->name; row++) {
        if (strncmp(row->name, "testp", 5) == 0)
            continue;
        if (row->type != last)
            put(p, "%s| %s |", last == EMU_none ? "" : " |\n", emu_types[row->type].name);
        last = row->type;
        put(p, " `%.*s`", (int)strcspn(row->name, "_"), row->name);
    }
    put(p, " |\n\n");
}

static void put_atomics(struct page *p)
{
    static const struct {
        const char *name, *type;
    } rows[] = {
#define ATOM(name, type, expression) {#name, #type},
#include "emu/mem/atom.def"
    };
    const char *last = "";
    put(p, "## Atomics\n\nOf `atom`, `red` and, `exch` and `cas` aside, reductions of bulk copies. "
           "`atom.exch` and `atom.cas` also take b128.\n\n| operation | types |\n|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(last, rows[i].name) != 0)
            put(p, "%s| `%s` |", i ? " |\n" : "", rows[i].name);
        last = rows[i].name;
        put(p, " %s", rows[i].type);
    }
    put(p, " |\n\n");
}

static void put_shapes(struct page *p)
{
    static const char *const kinds[] = {"", "kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4",
                                        "kind::mxf4nvf4"};
    put(p, "## Shapes of mma\n\n`s8` stands for `u8`, `s4` for `u4` and `e4m3` for `e5m2` too and, "
           "with a kind, for the other types of 8 bits and fewer.\n\n"
           "| shape | sparse | A, B | C, D | kind |\n|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < emu_mma_shape_count; i++) {
        const struct emu_mma_shape *s = &emu_mma_shapes[i];
        put(p, "| `%s` | %s | %s | %s | %s |\n", s->name, s->sparse ? "yes" : "",
            emu_types[s->a].name, emu_types[s->c].name, kinds[s->kind]);
    }
    put(p, "\n## Shapes of wmma\n\n");
    for (const struct emu_wmma_shape *s = emu_wmma_shapes; s->name; s++)
        put(p, "%s`%s`", s == emu_wmma_shapes ? "" : ", ", s->name);
    put(p, ".\n\n");
}

static void put_forms(struct page *p)
{
    static const struct {
        const char *opcode, *since, *form;
    } forms[] = {
#define FORM(opcode, since, form) {opcode, since, form},
#include "emu/decode/forms.def"
    };
    put(p, "## Everything else\n\n"
           "`[x]` may be left out, `{x,y}` is one of them. An order is one of `weak`, `volatile`, "
           "`relaxed`, `acquire`,\n`release`, `acq_rel`; a scope one of `cta`, `cluster`, `gpu`, "
           "`sys`; a space one of `global`, `shared`,\n`shared::cta`, `shared::cluster`, `local`, "
           "`param`, `const`, or none for a generic address. \"Since\" is the first target\n"
           "that has the form; the emulator runs it whatever `.target` says.\n\n"
           "| form | since |\n|---|---|\n");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        put(p, "| `");
        for (const char *c = forms[i].form; *c; c++)
            put(p, *c == '|' ? "\\|" : "%c", *c);
        put(p, "` | %s |\n", forms[i].since);
    }
    put(p, "\n");
}

static void put_refused(struct page *p)
{
    static const char *const names[] = {
#define DECODER(opcode, decoder) #decoder "\0" opcode,
#include "emu/decode/opcodes.def"
    };
    put(p, "## Refused by name\n\n");
    const char *separator = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], "unsupported") == 0) {
            put(p, "%s`%s`", separator, names[i] + strlen(names[i]) + 1);
            separator = ", ";
        }
    put(p, ".\n\n");
}

static void put_names(struct page *p)
{
    static const char *const registers[] = {
#define SREG(id, name, type) name,
#include "emu/run/sregs.def"
    };
    put(p, "## Special registers\n\n");
    for (size_t i = 0; i < sizeof registers / sizeof *registers; i++)
        put(p, "%s`%s`", i == 0 ? "" : i % 8 ? ", " : ",\n", registers[i]);
    put(p, ".\n");
}

void emu_help_ptx(void (*print)(void *user, const char *text, size_t size), void *user)
{
    struct page p = {print, user};
    put(&p, "# PTX that the emulator runs\n\n"
            "Printed by `tirc --help-ptx` from the tables of the decoder. `docs/emulator.md` says "
            "what is modelled. `T` stands for the\ntypes of a row, one after another as they are "
            "written.\n\n## Integers and bits\n\n");
    put_rows(&p, emu_alu_int_rows);
    put(&p,
        "`and`, `or`, `xor` and `not` also take `.pred`.\n\n## Single and double precision\n\n");
    put_rows(&p, emu_alu_float_rows);
    put(&p, "## Half precision\n\n");
    put_rows(&p, emu_alu_half_rows);
    put_comparisons(&p);
    put_atomics(&p);
    put_shapes(&p);
    put_forms(&p);
    put_refused(&p);
    put_names(&p);
}
