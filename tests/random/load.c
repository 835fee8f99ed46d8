// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions that read tensors: slices, with masks and pads, and gathers. What lies outside of a
// tensor reads as 0, so any index is a right one.
#include <math.h>

#include "rules.h"

const char *index_near(struct program *p, int64_t size, uint32_t *dim)
{
    const struct variable *v = NULL;
    const uint32_t skip = choose(p->c, 3); // the newest first
    uint32_t seen = 0;
    *dim = UINT32_MAX;
    for (uint32_t i = p->vars.len; i-- > 0;)
        if (p->vars.at[i].walks && (!v || seen <= skip)) {
            v = &p->vars.at[i];
            seen++;
        }
    uint32_t how = choose(p->c, 10);
    if (!v || how == 9)
        return say(p, "%u", choose(p->c, 3) * (uint32_t)size);
    *dim = v->dim;
    if (how == 8)
        return say(p, "%s %c %u", v->name, choose(p->c, 2) ? '-' : '+', 1 + choose(p->c, 3));
    return v->name;
}

struct tensor *new_tensor(struct program *p, const char *stem, enum tir_elem elem, uint32_t rank)
{
    struct tensor t = {.name = fresh_name(p, stem),
                       .form = {.elem = elem, .rank = rank},
                       .range = range_of_fill(elem),
                       .step = p->step};
    if (p->loose && is_float(elem) && tir_elems[elem].bits > 8 && chance(p->c, 50))
        t.range.lsb = -60; // any number from -1 to 1
    vec_push(p->arena, &p->tensors, t);
    return &vec_last(&p->tensors);
}

static struct axis new_axis(struct program *p, uint32_t dim, int64_t size)
{
    struct axis out = {.dim = dim};
    if (dim != UINT32_MAX && !chance(p->c, 15))
        return out;
    if (choose(p->c, 3) == 0) {
        out.dim = p->dims.len < 10 ? new_dim(p, size) : choose(p->c, p->dims.len);
    } else {
        out.dim = 0;
        out.fixed = size + (int64_t)choose(p->c, 3) - (size > 1); // at least 1
    }
    return out;
}

static bool is_readable(const struct program *p, const struct tensor *t)
{
    return t->role == TENSOR_IN ||
           ((t->role == TENSOR_SCRATCH || t->role == TENSOR_INOUT) && t->step < p->step);
}

#define MOST_INPUT (1 << 16) // elements

// About the largest size of a launch.
static int64_t largest(const struct dim *d)
{
    return 4 * granule(d);
}

struct slot { // an index of a load: what it says, and what it would like to be along
    const char *text;
    uint32_t dim;
    int64_t size;
    bool is_whole; // ":" needs an axis of just this size
};

static bool suits(const struct program *p, const struct tensor *t, enum tir_elem elem,
                  const struct slot *slots, uint32_t count)
{
    if (!is_readable(p, t) || t->form.elem != elem || t->form.rank != count ||
        (p->firm && t->range.err > 0))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].is_whole && t->axes[i].fixed != slots[i].size)
            return false;
        if (slots[i].dim != UINT32_MAX && !t->axes[i].fixed && t->axes[i].dim != slots[i].dim)
            return false;
    }
    return true;
}

// A tensor for these indices: one that there is, else a new one.
static const struct tensor *tensor_for(struct program *p, enum tir_elem elem,
                                       const struct slot *slots, uint32_t count)
{
    uint32_t inputs = 0;
    vec_foreach(struct tensor, t, &p->tensors) {
        inputs += t->role == TENSOR_IN;
        if (suits(p, t, elem, slots, count) && chance(p->c, 70))
            return t;
    }
    if (inputs >= 12) // any one of the rank will do
        vec_foreach(struct tensor, t, &p->tensors)
            if (is_readable(p, t) && t->form.elem == elem && t->form.rank == count &&
                !(p->firm && t->range.err > 0)) {
                bool sound = true;
                for (uint32_t i = 0; i < count; i++)
                    sound = sound && !slots[i].is_whole;
                if (sound)
                    return t;
            }
    struct tensor *t = new_tensor(p, "X", elem, count);
    int64_t most = 1; // elements that it may have
    for (uint32_t i = 0; i < count; i++) {
        t->axes[i] = slots[i].is_whole ? (struct axis){.fixed = slots[i].size}
                                       : new_axis(p, slots[i].dim, slots[i].size);
        if (!t->axes[i].fixed && most * largest(&p->dims.at[t->axes[i].dim]) > MOST_INPUT)
            t->axes[i].fixed = slots[i].size;
        most *= t->axes[i].fixed ? t->axes[i].fixed : largest(&p->dims.at[t->axes[i].dim]);
    }
    for (uint32_t i = 0; i < count; i++)
        if (!t->axes[i].fixed) {
            struct dim *d = &p->dims.at[t->axes[i].dim];
            d->is_used = true;
            d->step = TIR_MAX(d->step, slots[i].size);
        }
    return t;
}

struct slice {
    struct slot slots[TIR_MAX_RANK];
    const char *words[2 * TIR_MAX_RANK]; // what is written: of the slots, and each None
    uint32_t count, word_count;
    uint32_t strides; // how many of them have one; beside a None one may
};

static void add_slot(struct slice *s, struct slot slot)
{
    s->slots[s->count++] = slot;
    s->words[s->word_count++] = slot.text;
}

static void add_element(struct program *p, struct slice *s)
{
    struct slot slot = {.size = 1};
    slot.text = index_near(p, 1, &slot.dim);
    add_slot(s, slot);
}

static void add_range(struct program *p, struct slice *s, int64_t size)
{
    struct slot slot = {.dim = UINT32_MAX, .size = size};
    slot.is_whole = size > 1 && chance(p->c, 15);
    slot.text = choose(p->c, 4) == 3 ? say(p, "0:%s", size_text(p, size)) : ":";
    if (!slot.is_whole) {
        const char *start = index_near(p, size, &slot.dim);
        slot.text = say(p, "%s:+%s", start, size_text(p, size));
        const uint32_t how = choose(p->c, 12);
        const bool may_step = !s->strides || s->count == s->word_count;
        if (may_step && (how == 10 || (s->strides && how > 5 && how < 10))) {
            s->strides++;
            const uint32_t by = 2 + choose(p->c, 2);
            slot.text = say(p, "%s:+%s:%u", start, size_text(p, size), by);
            if (choose(p->c, 4) == 3) { // between bounds
                slot.text = say(p, "0:%lld:%u", (long long)size * by, by);
                slot.dim = UINT32_MAX;
            }
        } else if (how == 11) {
            slot.text = say(p, "%s:+min(%s, %s)", start, grow_firm(p, form_scalar(TIR_I64)).text,
                            size_text(p, size));
        }
    }
    add_slot(s, slot);
}

static struct value read_slice(struct program *p, enum tir_elem elem, const struct slice *s)
{
    const struct tensor *t = tensor_for(p, elem, s->slots, s->count);
    struct value v = t->range;
    struct tir_text text;
    tir_text_init(&text, p->arena, 0);
    tir_text_format(&text, "%s[", t->name);
    for (uint32_t i = 0; i < s->word_count; i++)
        tir_text_format(&text, "%s%s", i ? ", " : "", s->words[i]);
    tir_text_char(&text, ']');
    v.text = text.ptr;
    return v;
}

bool fits_load(struct program *p, const struct form *f)
{
    (void)f;
    return has_room(p);
}

// A slice of this shape, now and then of a tensor of a higher rank.
struct value grow_load(struct program *p, const struct form *f)
{
    struct slice s = {.count = 0};
    const bool drops = f->rank == 0 || (f->rank < TIR_MAX_RANK && chance(p->c, 20));
    const uint32_t dropped = drops ? choose(p->c, f->rank + 1) : UINT32_MAX;
    const uint32_t more = chance(p->c, 10) ? choose(p->c, TIR_MAX_RANK - f->rank + 1) : 0;
    const uint32_t elements = TIR_MAX(more, 1);
    for (uint32_t i = 0; i <= f->rank; i++) {
        for (uint32_t n = 0; i == dropped && n < elements; n++)
            add_element(p, &s);
        if (i == f->rank)
            break;
        if (f->shape[i] == 1 && s.count + f->rank - i > 1 && s.strides < 2 && choose(p->c, 3) == 2)
            s.words[s.word_count++] = "None";
        else
            add_range(p, &s, f->shape[i]);
    }
    return read_slice(p, f->elem, &s);
}

const char *pick_cache(struct program *p)
{
    static const char *const words[] = {"",
                                        "",
                                        "",
                                        ", cache = evict_first",
                                        ", cache = evict_last",
                                        ", cache = evict_normal",
                                        ", cache = no_allocate"};
    return choose_from(p->c, words);
}

bool fits_masked(struct program *p, const struct form *f)
{
    return f->rank > 0 && fits_load(p, f);
}

struct value grow_masked(struct program *p, const struct form *f)
{
    uint32_t how = choose(p->c, 4);
    struct value v = grow_load(p, f);
    v.text = say(p, "load(%s", v.text);
    if (how != 1)
        v.text = say(p, "%s, mask = %s", v.text, grow_firm(p, form_with(*f, TIR_BOOL)).text);
    if (how > 0 && f->elem != TIR_BOOL) {
        uint32_t pad = choose(p->c, 4);
        v.text = say(p, "%s, pad = %u", v.text, pad);
        v.most = TIR_MAX(v.most, pad);
    }
    v.text = say(p, "%s%s)", v.text, pick_cache(p));
    return v;
}

// ---- index tiles

struct value grow_index_tile(struct program *p, struct form f)
{
    f.elem = choose(p->c, 3) ? TIR_I32 : TIR_I64;
    struct value v = grow_firm(p, f);
    if (!(v.most <= 256)) {
        v.text = say(p, "(%s & 31)", v.text);
        v.most = 31;
    }
    return v;
}

static void add_index_tile(struct program *p, struct slice *s, struct form f)
{
    const char *text = grow_index_tile(p, f).text;
    add_slot(s, (struct slot){.text = text, .dim = UINT32_MAX, .size = f.shape[0]});
}

bool fits_gather(struct program *p, const struct form *f)
{
    return f->rank > 0 && f->rank <= 3 && fits_load(p, f);
}

struct value grow_gather(struct program *p, const struct form *f)
{
    struct slice s = {.count = 0};
    // The first `taken` dimensions are those of an index tile.
    const uint32_t taken = 1 + choose(p->c, f->rank);
    struct form index = {.rank = taken}, other = {.rank = taken};
    memcpy(index.shape, f->shape, sizeof(index.shape));
    memcpy(other.shape, f->shape, sizeof(other.shape));
    // A second one goes with it, and one of the two may repeat along each dimension.
    const uint32_t second =
        chance(p->c, 30) ? taken + choose(p->c, f->rank + 1 - taken) : UINT32_MAX;
    for (uint32_t i = 0; second != UINT32_MAX && i < taken; i++) {
        const uint32_t repeats = choose(p->c, 3);
        index.shape[i] = repeats == 1 ? 1 : f->shape[i];
        other.shape[i] = repeats == 2 ? 1 : f->shape[i];
    }
    add_index_tile(p, &s, index);
    for (uint32_t i = taken; i <= f->rank; i++) {
        if (i == second)
            add_index_tile(p, &s, other);
        if (i < f->rank)
            add_range(p, &s, f->shape[i]);
    }
    if (choose(p->c, 3) == 1 && s.count < TIR_MAX_RANK)
        add_element(p, &s);
    return read_slice(p, f->elem, &s);
}
