// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inside layout: what its files share.
#ifndef TIR_PASS_LAYOUT_LAYOUT_H
#define TIR_PASS_LAYOUT_LAYOUT_H

#include "ir/walk.h"
#include "pass/pass.h"

struct use {
    struct tir_inst *inst;
    struct use *next;
};

struct solver {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_types *types;
    uint32_t warps;
    bool on_warpgroups;           // the products are
    bool leaves_by_copies;        // results do, if they can
    bool of_products;             // layouts of products spread, not yet those of other values
    const struct tir_layout **of; // by value id
    struct use **uses;            // by value id
    uint32_t value_count;
    VEC(struct tir_value *) work;
    VEC(struct tir_inst *) reduces;
    VEC(struct tir_inst *) transposes; // permutes of tiles
    VEC(struct tir_inst *) broadcasts; // to tiles
    VEC(struct tir_inst *) loads;      // of tiles
};

// Threads of the CTA that the program states, or the layouts of its tiles do; 0: neither.
uint32_t tir_stated_threads(const struct tir_func *f);
// Threads of the CTA: what the program says, else what suits its tiles.
uint32_t tir_choose_threads(const struct tir_func *f, const struct tir_pass_cx *cx);
// Equal parts that a tile can be divided into: the most threads that need not hold the same.
int64_t tir_tile_parts(const struct tir_type *t);

// Not a constant, not a scalar; may be NULL.
bool tir_solver_needs_layout(const struct tir_value *v);

// Spreading (spread.c).
// v has layout l, unless it has one already or l is NULL.
void tir_solver_assign(struct solver *s, struct tir_value *v, const struct tir_layout *l);
// From values with a layout to all that depend on them.
void tir_solver_propagate(struct solver *s);
// The block argument of a for or tiles loop that carries result i.
struct tir_value *tir_solver_carried_arg(const struct tir_inst *inst, uint32_t i);
// The layout of an operand whose operation has a result, or an access, in layout l.
const struct tir_layout *tir_solver_before_broadcast(struct solver *s, const struct tir_inst *inst,
                                                     const struct tir_layout *l);
const struct tir_layout *tir_solver_unpermuted(struct solver *s, const struct tir_inst *inst,
                                               const struct tir_layout *l);
// The layout of an extract from a tile in layout l without data from other threads; NULL: none.
const struct tir_layout *tir_solver_part(struct solver *s, const struct tir_inst *extract,
                                         const struct tir_layout *l);

// Where spreading begins (anchor.c). False: reported.
bool tir_solver_anchor(struct solver *s);
// Sets s->warps, the warps that share the tiles of inst.
void tir_solver_enter_crew(struct solver *s, const struct tir_inst *inst);
// The tile that a memory access moves; NULL for scalars.
struct tir_value *tir_solver_accessed(const struct tir_inst *inst);
const struct tir_layout *tir_solver_blocked(struct solver *s, const struct tir_type *t,
                                            uint32_t contiguous, uint32_t vectors);
const struct tir_layout *tir_solver_blocked_access(struct solver *s, const struct tir_inst *access,
                                                   const struct tir_type *t);
const struct tir_layout *tir_solver_wgmma_layout(struct solver *s, const struct tir_type *t);
// Of the tile that a load or store of tensor memory moves. NULL: it is another operation.
const struct tir_layout *tir_solver_tmem_layout(struct solver *s, const struct tir_inst *access);
// A layout of the sums that the dot's instructions leave: `has` if it is one, unless NULL.
const struct tir_layout *tir_solver_dot_layout(struct solver *s, const struct tir_inst *dot,
                                               const struct tir_layout *has);
const struct tir_layout *tir_solver_products_layout(struct solver *s,
                                                    const struct tir_inst *product,
                                                    const struct tir_value *a);

// A value that costs nothing to compute again in another layout.
bool tir_solver_is_cheap(const struct tir_value *v);
// Writes the layouts into the types, and inserts conversions where two meet (settle.c).
void tir_solver_settle(struct solver *s);

// Buffers, and views of them (buffer.c).
void tir_solver_give_buffers_layouts(struct solver *s);

#endif
