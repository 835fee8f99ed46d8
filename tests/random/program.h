// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A random program in the making: what its statements and expressions may use, and the text so far.
//
// Programs are grown by types: `grow` is asked for an expression of an element type and a shape and
// picks one of a table of rules that can give it. Beside its text, every value has a range, so that
// what the interpreter and a device compute can be compared sharply: sums of floats are exact in
// any order (all terms are multiples of one power of two, and their sum fits the mantissa), unless
// the program is a `loose` one, where values carry a bound of their error and no decision depends
// on them.
#ifndef TESTS_RANDOM_PROGRAM_H
#define TESTS_RANDOM_PROGRAM_H

#include "base/str.h"
#include "base/vec.h"
#include "choice.h"
#include "ir/type.h"

#define MOST_LAUNCHES    3
#define MOST_ELEMENTS    4096 // of a tile
#define MOST_PARAM_KINDS 8    // choices of what a launch is given
#define MOST_TRIPS       6    // of a loop

struct form { // what an expression is wanted to be
    enum tir_elem elem;
    uint32_t rank;
    int64_t shape[TIR_MAX_RANK];
};

struct value {
    const char *text; // an operand as it stands
    double most;      // no element is larger than that; integers: INFINITY where nothing is known
    int lsb;          // floats: all elements are multiples of 2^lsb
    double err;       // how far a device may be off; 0: not at all
};

struct dim { // a size that the launch gives
    const char *name;
    int64_t step;   // of the loop that walks it, or what loads take of it
    bool is_even;   // `where NAME % step == 0`
    bool is_deep;   // walked by a loop inside a tile
    int64_t walk;   // of the loops that walk it, the smallest; 0: none does
    bool is_single; // walked one by one
    bool is_used;   // by a tensor
};

struct axis {     // of a tensor
    uint32_t dim; // of program.dims, where fixed is 0
    int64_t fixed;
    const char *stated; // how its size is written; NULL: as the dimension or the number
};

struct tensor {
    const char *name;
    enum { TENSOR_IN, TENSOR_OUT, TENSOR_INOUT, TENSOR_ATOMIC, TENSOR_SCRATCH } role;
    struct form form; // the element and the rank
    struct axis axes[TIR_MAX_RANK];
    const char *kind;   // ATOMIC: the combination
    bool is_aligned;    // a tensor copy, or a prefetch, takes it
    struct value range; // of its elements; outputs: what was stored
    uint32_t step;      // that writes it
};

struct variable {
    const char *name;
    struct form form;
    struct value range; // a `var` keeps within it as long as it lives
    bool is_var;
    bool is_sum;    // only added to, and read outside of the loops that add
    uint32_t depth; // loops around it
    double trips;   // how often those run together
    int64_t walks;  // an index that counts by that much along `dim`; 0: another value
    uint32_t dim;
};

struct scalar { // a parameter
    const char *name;
    enum tir_elem elem;
    int64_t value;
};

struct program {
    struct tir_arena *arena;
    struct choices *c;
    struct tir_text body;
    uint32_t indent;
    uint32_t names; // given out
    VEC(struct dim) dims;
    VEC(struct tensor) tensors;
    VEC(struct scalar) scalars;
    VEC(struct variable) vars; // in scope
    VEC(const char *) imports;
    VEC(const char *) functions; // that are called, and constants; their text
    int64_t sizes[3];            // of dimensions of tiles
    bool has_metas;              // they have names
    bool has_stages;             // a meta of loops' stages, which configurations choose
    const char *needs;           // what a target has that takes one of them
    bool lists_stages;           // which stand in lists
    enum tir_elem named;         // the element that a meta of kind type is; TIR_NONE: there is none
    uint32_t layout_warps;       // of layouts that are stated; 0: none are
    uint32_t depth, max_depth;   // of expressions
    uint32_t loops;              // around the statement
    double trips;                // of those loops together
    uint32_t firm;               // > 0: what is grown decides something, so it has no error
    bool loose;                  // some values have errors
    bool has_roles;
    bool is_wide;                            // tiles are those of products on warpgroups
    bool is_contracted;                      // a * b + c is rounded once
    bool is_even;                            // sizes of the launch fill tiles
    int grain;                               // sums of floats are multiples of 2^grain
    uint32_t step, steps;                    // which of the tiles loops, and how many there are
    VEC(uint32_t) tile;                      // variables of that loop
    struct tir_text launches[MOST_LAUNCHES]; // words of `tirc run`, a space before each
    uint32_t launch_count;
    const char *source;
    const struct grow_rule *outer, *inner; // of a pair; NULL: any
    uint32_t nesting;                      // of statements
    uint32_t cost;                         // multiplications of products so far
    uint32_t rearranged;                   // values
};

// The numbers of choices that may be forced.
enum {
    KIND_CHOICE,
    OUTER_CHOICE,
    INNER_CHOICE,
    WIDE_CHOICE = INNER_CHOICE + 1 + MOST_LAUNCHES * MOST_PARAM_KINDS,
};

enum program_kind { TILES, PAIR, ROLES, PROGRAM_KINDS };

// program.c: a whole program with its launches, from its choices.
void program_make(struct program *p, struct tir_arena *arena, struct choices *c);

TIR_PRINTF(2, 3) const char *say(struct program *p, const char *format, ...);
TIR_PRINTF(2, 3) void line(struct program *p, const char *format, ...);
const char *fresh_name(struct program *p, const char *stem); // "x7"

void declare(struct program *p, const char *function); // its text, once
void import(struct program *p, const char *line);      // the same

struct form form_scalar(enum tir_elem elem);
struct form form_with(struct form f, enum tir_elem elem);
bool form_equal(const struct form *a, const struct form *b);
int64_t form_count(const struct form *f);
const char *form_text(struct program *p, const struct form *f);     // "f32[16, BN]"
const char *elem_text(const struct program *p, enum tir_elem elem); // in the kernel
const char *size_text(struct program *p, int64_t size);
int64_t pick_size(struct program *p);

uint32_t new_dim(struct program *p, int64_t step);

static inline bool is_float(enum tir_elem e)
{
    return tir_elem_is_float(e);
}
static inline bool is_int(enum tir_elem e)
{
    return tir_elem_is_int(e);
}
static inline bool is_signed(enum tir_elem e)
{
    return tir_elems[e].kind == TIR_KIND_SIGNED;
}
enum tir_elem pick_elem(struct program *p);

// Whether what is grown now may differ from device to device.
static inline bool may_err(const struct program *p)
{
    return p->loose && !p->firm;
}

// range.c
double unit(enum tir_elem elem, double most); // distance of neighbours of that size
// Sums of whole numbers up to 2^digits are exact.
int exact_digits(enum tir_elem elem);
bool sums_exactly(enum tir_elem elem, const struct value *v, double terms);
// v, held to at most `most` and to multiples of 2^lsb where it is not yet.
struct value held(struct program *p, const struct form *f, struct value v, double most, int lsb);
// v as it may go on: what would overflow or become too fine is held.
struct value tamed(struct program *p, const struct form *f, struct value v);
struct value range_of_fill(enum tir_elem elem);

// Whether the kernel may have another parameter; a few are left for what must be.
static inline bool has_room(const struct program *p)
{
    return p->tensors.len + p->scalars.len < 40;
}

// grow.c
struct value grow(struct program *p, struct form f);
struct value grow_firm(struct program *p, struct form f);       // without errors
const char *grow_condition(struct program *p);                  // a scalar bool
struct value grow_index_tile(struct program *p, struct form f); // of small numbers

// load.c
struct value grow_load(struct program *p, const struct form *f);
struct value grow_gather(struct program *p, const struct form *f);
struct tensor *new_tensor(struct program *p, const char *stem, enum tir_elem elem, uint32_t rank);
const char *pick_cache(struct program *p); // ", cache = evict_last", or nothing
const char *index_near(struct program *p, int64_t size,
                       uint32_t *dim); // a start, and what it walks

// launch.c: the launches, and the multiple that sizes of d like to be.
enum { ALIGNED, ODD, EDGE };
void make_launch(struct program *p, uint32_t launch, const uint32_t *kinds);
int64_t granule(const struct dim *d);

// tiles.c
struct grow_rule;
void tiles_loop(struct program *p, uint32_t statements);
void pair_loop(struct program *p, const struct grow_rule *outer, const struct grow_rule *inner);
void roles(struct program *p);

// statement.c
struct form pick_form(struct program *p);
struct value let(struct program *p, const struct form *f, struct value v); // as a variable
void var_statement(struct program *p);
void assign_statement(struct program *p);
uint32_t sum_variable(struct program *p, struct form f);            // its index
void add_to_sum(struct program *p, uint32_t index, struct value e); // where it stays exact
void keep_variable(struct program *p, uint32_t index);
// A loop of a few rounds begins, whose index counts by `walks`.
void loop_enter(struct program *p, const char *index, int64_t walks, uint32_t dim);
void loop_leave(struct program *p, uint32_t vars, double trips); // back to what was before it
void grow_block(struct program *p, uint32_t statements);
void grow_stores(struct program *p); // outputs of this step

#endif
