// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions that device code calls and the system provides: vprintf, __assertfail, malloc, free.
//
// The lanes that call one take their turn in order. vprintf's arguments lie in a buffer, each at
// its natural alignment, as the CUDA ABI has it; its text goes to the device's `print`, a lane's at
// once.

#include "emu/lane/builtin.h"

#include <stdio.h>
#include <string.h>

#include "emu/check/finding.h"

enum { MAX_TEXT = 4096 }; // of one printf, or of a string that it prints; the rest is dropped

// --- arguments and results ---

static uint64_t argument(const struct emu_warp *w, const struct emu_arg *arg, uint32_t lane)
{
    const struct emu_frame *f = w->path->frame;
    uint64_t value = 0;
    if (arg->ref != EMU_NO_REF)
        memcpy(&value, (const uint8_t *)emu_at_ref(w, arg->ref) + (size_t)lane * arg->width,
               arg->width);
    else
        memcpy(&value, f->local + (size_t)lane * f->func->local_bytes + arg->offset, arg->size);
    return value;
}

static void give(struct emu_warp *w, const struct emu_arg *arg, uint32_t lane, uint64_t value)
{
    const struct emu_frame *f = w->path->frame;
    const size_t at = (size_t)lane * f->func->local_bytes + arg->offset;
    if (arg->ref != EMU_NO_REF) {
        memcpy((uint8_t *)emu_at_ref(w, arg->ref) + (size_t)lane * arg->width, &value, arg->width);
        return;
    }
    memcpy(f->local + at, &value, arg->size);
    memset(f->local_shadow + at, EMU_SET, arg->size);
}

static uint64_t load(struct emu_warp *w, uint32_t lane, uint64_t address, uint32_t size)
{
    uint64_t value = 0;
    memcpy(&value, emu_resolve(w, lane, EMU_GENERIC, address, size, EMU_LOAD).bytes, size);
    return value;
}

static void load_string(struct emu_warp *w, uint32_t lane, uint64_t address, char *text,
                        size_t size)
{
    size_t len = 0;
    for (char c; len + 1 < size && (c = (char)load(w, lane, address + len, 1)) != '\0'; len++)
        text[len] = c;
    text[len] = '\0';
}

// --- vprintf ---

struct printer {
    struct emu_warp *w;
    uint32_t lane;
    uint64_t at; // of the next argument
    char text[MAX_TEXT];
    size_t len;
    int32_t count; // arguments printed
};

// "%-08.3lld" in parts.
struct spec {
    bool left, plus, space, alternate, zeros;
    int64_t width, precision; // precision -1: none
    uint32_t size;            // bytes of an integer
};

static void put(struct printer *p, const char *text, size_t len)
{
    const size_t room = sizeof p->text - p->len;
    len = len < room ? len : room;
    memcpy(p->text + p->len, text, len);
    p->len += len;
}

static void repeat(struct printer *p, char c, int64_t times)
{
    for (; times > 0 && p->len < sizeof p->text; times--)
        p->text[p->len++] = c;
}

static uint64_t next(struct printer *p, uint32_t size)
{
    p->at = emu_align_up(p->at, size);
    const uint64_t value = load(p->w, p->lane, p->at, size);
    p->at += size;
    p->count++;
    return value;
}

// Sign or 0x, then the digits, in the width asked for.
static void put_field(struct printer *p, const struct spec *s, const char *prefix, int64_t zeros,
                      const char *body, size_t len)
{
    const int64_t used = (int64_t)strlen(prefix) + (int64_t)len + (zeros > 0 ? zeros : 0);
    const int64_t gap = s->width - used;
    if (!s->left && !s->zeros)
        repeat(p, ' ', gap);
    put(p, prefix, strlen(prefix));
    if (!s->left && s->zeros)
        repeat(p, '0', gap);
    repeat(p, '0', zeros);
    put(p, body, len);
    if (s->left)
        repeat(p, ' ', gap);
}

static void put_integer(struct printer *p, struct spec s, char kind)
{
    char digits[72];
    size_t at = sizeof digits;
    uint64_t value = kind == 'p' ? next(p, 8) : next(p, s.size);
    const uint32_t bits = s.size * 8;
    const bool is_signed = kind == 'd' || kind == 'i';
    const bool negative = is_signed && value >> (bits - 1) & 1;
    const uint32_t base = kind == 'o' ? 8 : kind == 'd' || kind == 'i' || kind == 'u' ? 10 : 16;
    if (negative)
        value = bits == 64 ? 0 - value : ((uint64_t)1 << bits) - value;
    const char *const letters = kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    const bool hex = kind == 'p' || (s.alternate && base == 16 && value);
    for (uint64_t left = value; left; left /= base)
        digits[--at] = letters[left % base];
    if (value == 0 && s.precision != 0)
        digits[--at] = '0';
    if (s.alternate && base == 8 && digits[at] != '0')
        digits[--at] = '0';
    if (s.precision >= 0)
        s.zeros = false;
    const char *prefix = negative               ? "-"
                         : is_signed && s.plus  ? "+"
                         : is_signed && s.space ? " "
                         : hex && kind == 'X'   ? "0X"
                         : hex                  ? "0x"
                                                : "";
    const size_t len = sizeof digits - at;
    put_field(p, &s, prefix, s.precision - (int64_t)len, digits + at, len);
}

static void put_float(struct printer *p, struct spec s, char kind)
{
    char body[512];
    const uint64_t bits = next(p, 8);
    const int precision = s.precision < 0 ? 6 : s.precision > 60 ? 60 : (int)s.precision;
    double x;
    memcpy(&x, &bits, sizeof x);
    const bool negative = bits >> 63;
    const double magnitude = negative ? -x : x;
    int len = 0;
    switch (kind | 32) {
    case 'e':
        len = snprintf(body, sizeof body, kind == 'e' ? "%.*e" : "%.*E", precision, magnitude);
        break;
    case 'g':
        len = snprintf(body, sizeof body, kind == 'g' ? "%.*g" : "%.*G", precision, magnitude);
        break;
    case 'a':
        len = s.precision < 0 ? snprintf(body, sizeof body, kind == 'a' ? "%a" : "%A", magnitude)
                              : snprintf(body, sizeof body, kind == 'a' ? "%.*a" : "%.*A",
                                         precision, magnitude);
        break;
    default:
        len = snprintf(body, sizeof body, kind == 'f' ? "%.*f" : "%.*F", precision, magnitude);
    }
    if (x - x != 0) // infinities and NaNs are never filled with zeros
        s.zeros = false;
    put_field(p, &s, negative ? "-" : s.plus ? "+" : s.space ? " " : "", 0, body, (size_t)len);
}

// Reads flags, width, precision and length after a `%`; gives the conversion's place.
static const char *read_spec(struct printer *p, const char *at, struct spec *s)
{
    *s = (struct spec){.precision = -1, .size = 4};
    for (bool flags = true; flags; at += flags) {
        flags = *at && strchr("-+ #0", *at);
        s->left |= *at == '-';
        s->plus |= *at == '+';
        s->space |= *at == ' ';
        s->alternate |= *at == '#';
        s->zeros |= *at == '0';
    }
    for (int part = 0; part < 2; part++) { // the width, then the precision
        int64_t value = 0;
        if (part == 1 && *at++ != '.') {
            at--;
            break;
        }
        if (*at == '*') {
            value = (int32_t)next(p, 4);
            at++;
        } else {
            for (; *at >= '0' && *at <= '9'; at++)
                value = value < MAX_TEXT ? value * 10 + (*at - '0') : value;
        }
        if (part == 1) {
            s->precision = value;
        } else {
            s->left |= value < 0;
            s->width = value < 0 ? -value : value;
        }
    }
    for (; *at && strchr("hljztL", *at); at++)
        s->size = *at == 'h' ? 4 : 8;
    return at;
}

static void print_one(struct printer *p, const char **format)
{
    struct spec s;
    char text[MAX_TEXT];
    const char *at = read_spec(p, *format, &s);
    switch (*at) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
    case 'p':
        put_integer(p, s, *at);
        break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        put_float(p, s, *at);
        break;
    case 'c':
        text[0] = (char)next(p, 4);
        s.zeros = false;
        put_field(p, &s, "", 0, text, 1);
        break;
    case 's': {
        load_string(p->w, p->lane, next(p, 8), text, sizeof text);
        const size_t len = strlen(text);
        s.zeros = false;
        put_field(p, &s, "", 0, text,
                  s.precision >= 0 && (size_t)s.precision < len ? (size_t)s.precision : len);
        break;
    }
    case '%':
        put(p, "%", 1);
        break;
    default: // as it stands
        put(p, *format - 1, (size_t)(at - *format) + 1 + (*at != '\0'));
    }
    *format = at + (*at != '\0');
}

static uint64_t print(struct emu_warp *w, const struct emu_arg *args, uint32_t lane)
{
    const struct emu_options *options = &w->launch->emu->options;
    struct printer p = {.w = w, .lane = lane};
    char format[MAX_TEXT];
    const uint64_t address = argument(w, &args[0], lane);
    if (!address)
        return UINT32_MAX;
    load_string(w, lane, address, format, sizeof format);
    p.at = argument(w, &args[1], lane);
    for (const char *at = format; *at;) {
        if (*at++ != '%')
            put(&p, at - 1, 1);
        else
            print_one(&p, &at);
    }
    if (options->print)
        options->print(options->print_user, p.text, p.len);
    return (uint32_t)p.count;
}

// --- the others ---

static uint64_t assert_fail(struct emu_warp *w, const struct emu_arg *args, uint32_t lane)
{
    char what[80], file[100], function[60];
    load_string(w, lane, argument(w, &args[0], lane), what, sizeof what);
    load_string(w, lane, argument(w, &args[1], lane), file, sizeof file);
    load_string(w, lane, argument(w, &args[3], lane), function, sizeof function);
    const char *slash = strrchr(file, '/');
    emu_fault(w, lane, "assertion failed: %s, %s:%u, in %s", what, slash ? slash + 1 : file,
              (uint32_t)argument(w, &args[2], lane), function);
}

static uint64_t allocate(struct emu_warp *w, const struct emu_arg *args, uint32_t lane)
{
    uint64_t address = 0;
    const uint64_t size = argument(w, &args[0], lane);
    if (size == 0 || emu_alloc(w->launch->emu, size, &address, NULL))
        return 0; // as on a device whose heap is used up
    emu_object_at(w->launch->emu, address)->is_heap = true;
    return address;
}

// The memory stays until the launch ends, since copies in flight may still name it; but no access
// hits it any more.
static uint64_t release(struct emu_warp *w, const struct emu_arg *args, uint32_t lane)
{
    const uint64_t address = argument(w, &args[0], lane);
    struct emu_object *o = emu_object_at(w->launch->emu, address);
    if (address == 0)
        return 0;
    if (!o || o->address != address || !o->is_heap || o->size == 0)
        emu_fault(w, lane, "call of free with 0x%llx, which malloc did not give",
                  (unsigned long long)address);
    o->size = 0;
    return 0;
}

static const struct builtin {
    const char *name;
    uint64_t (*run)(struct emu_warp *w, const struct emu_arg *args, uint32_t lane);
    uint8_t result; // bytes; 0: none
    uint8_t params, sizes[5];
} builtins[] = {
    {"__assertfail", assert_fail, 0, 5, {8, 8, 4, 8, 8}},
    {"free", release, 0, 1, {8}},
    {"malloc", allocate, 8, 1, {8}},
    {"vprintf", print, 4, 2, {8, 8}},
};

static uint32_t size_of(const struct emu_arg *arg)
{
    return arg->ref != EMU_NO_REF ? arg->width : arg->size;
}

static bool fits(const struct builtin *b, const struct emu_insn *in, const struct emu_arg *args)
{
    bool ok = in->op == (b->result != 0) && in->count == b->params;
    for (uint32_t i = 0; ok && i < b->params; i++)
        ok = size_of(&args[in->op + i]) == b->sizes[i];
    return ok && (!b->result || size_of(&args[0]) == b->result);
}

bool emu_builtin_call(struct emu_warp *w, const struct emu_func *f, const struct emu_insn *in,
                      uint32_t mask)
{
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        const struct builtin *b = &builtins[i];
        if (strcmp(f->name, b->name) != 0)
            continue;
        if (!fits(b, in, args))
            emu_fault(w, emu_first_lane(mask),
                      "call of %s with a parameter of another kind or size", f->name);
        for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
            if (!(mask >> lane & 1))
                continue;
            const uint64_t result = b->run(w, args + in->op, lane);
            if (b->result)
                give(w, &args[0], lane, result);
        }
        return true;
    }
    return false;
}
