// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the pass tensor_memory knows of the kernel that it rewrites.
#ifndef TIR_PASS_ROLE_TENSOR_MEMORY_H
#define TIR_PASS_ROLE_TENSOR_MEMORY_H

#include "base/bitset.h"
#include "base/map.h"
#include "ir/range.h"
#include "machine/budget.h"
#include "pass/pass.h"

enum {
    TMEM_PRODUCTS = 6,
    TMEM_OPERANDS = 2 * TMEM_PRODUCTS,
    TMEM_TERMS = 4, // of a product
    TMEM_HOLDERS = 4,
    TMEM_WARPGROUP = 4,                    // warps
    TMEM_MOST_COMPUTE = 3 * TMEM_WARPGROUP // have registers for what they compute
};

// Slots that one role fills and another one empties, with two mbarriers for each slot.
struct tmem_channel {
    int64_t slots;
    uint32_t ctas;         // that share its mbarriers: 1, or a pair
    uint32_t fills, frees; // arrivals for a slot, of all of them
    struct tir_value *full, *empty;
};

// The slots of operands that the same products read: of one operand, or of any number of loaded
// ones.
struct tmem_group {
    struct tmem_channel channel;
    uint32_t products; // that read them, a bit for each
    bool is_fetched;   // the role that computes reads some of them too
    bool is_converted; // as that of the operand
    bool is_per_tile;  // made before the loop
    bool is_computed;  // by the role that computes, else loaded by tensor copies
    bool is_arranged;  // scales, loaded by the role that arranges them
    bool is_gathered;  // by the role that gathers
    bool has_scales;
};

struct tmem_operand {
    struct tir_value *tile;   // before any permute and reshape
    struct tmem_group *group; // NULL: one slot, handed over with the sums in turns of its product
    uint32_t products;
    bool is_per_tile, is_computed;
    bool is_converted; // computed from what is loaded in the same round, so ahead of products
    bool is_fetched;   // loaded for the role that computes, too
    bool is_gathered;  // loaded by threads, because no tensor copy can bring it
    bool in_tmem;      // else in shared memory
    bool is_scales;    // from shared memory the thread that multiplies copies them on
    bool is_arranged;  // scales that a role loads, and not tensor copies as packed ones
    bool is_turned;    // scales that a permute makes rows of
    bool is_halved;    // of a pair: each CTA loads half of dimension `halved`, the columns of B
    uint32_t halved;
    uint32_t width; // gathered: bytes of a cp.async; 0: through registers, because
    const char *no_copy, *no_tma;
    struct tir_value *buffer; // its slots
    struct tir_value
        *scales[TMEM_PRODUCTS]; // as many in tensor memory, of scales, for each product
};

enum tmem_sums {
    TMEM_OF_LOOP,  // carried from product to product, and read after the loop
    TMEM_OF_ROUND, // begin with 0 in each round, and are read there
    TMEM_TURNS     // carried, but changed between one product and the next
};

struct tmem_factor {
    uint32_t operand;
    const struct tir_type *rows; // what a reshape makes of the operand; NULL: nothing does
    bool is_turned;              // by a permute, after that
};

struct tmem_term {
    struct tir_inst *dot;
    struct tmem_factor factors[2];
    uint32_t scales[2]; // operands, if the dot has scales
};

// A dot, or several that go on from each other's sums: one role starts their products in order.
struct tmem_product {
    struct tmem_term terms[TMEM_TERMS];
    uint32_t term_count;
    enum tmem_sums kind;
    uint32_t carried; // which of the loop's values, unless OF_ROUND
    // OF_LOOP, OF_ROUND: the products fill slots. TURNS: the role that computes fills the one slot,
    // at first with the initial values.
    struct tmem_channel sums;
    int64_t column; // of tensor memory, where the slots begin
    bool is_upper;  // in the half of the lanes that other sums of 64 rows leave free
    struct tir_value *buffer;
};

struct tmem_plan {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_types *types;
    struct tir_inst *tiles, *loop;
    // Branches and loops that the loop is in, the outermost first.
    struct tir_inst *holders[TMEM_HOLDERS];
    uint32_t holder_count;
    bool has_one_round; // the loop was made for products without one
    bool has_turned;    // second factors were permuted for their descriptors
    struct tmem_product products[TMEM_PRODUCTS];
    uint32_t product_count;
    struct tmem_operand operands[TMEM_OPERANDS];
    uint32_t operand_count;
    struct tmem_group groups[TMEM_OPERANDS];
    uint32_t group_count;
    uint32_t compute_warps, warps; // of the role that computes, of all
    uint32_t scale_warps;          // of the role that arranges scales; 0: there are none
    uint32_t gather_warps;         // of the role that gathers; 0: nothing is gathered
    int64_t gathered;              // accesses of its threads in a round
    struct bitset ahead; // tiles that roles which fill slots compute for themselves, by id
    struct tir_role_registers registers;
    bool is_pair;        // two CTAs multiply together (tensor_memory_pair.c)
    const char *no_pair; // why the tiles that ask for a cluster do not; NULL: none ask
    struct tir_value *rank, *is_leader; // of the CTA in its pair
    int64_t columns;                    // of tensor memory
    bool shares_lanes;                  // sums of 64 rows, with each other
    int64_t most_scales;                // slots
    const struct tir_ranges *ranges;
    struct bitset computable;  // values that every role can compute for itself, by id
    struct bitset wanted;      // what roles need that do not compute the rest: to keep step,
    struct bitset filled_from; // and those that fill slots
};

// Fills the plan but for what is built. The reason if the pass does not take the kernel, else NULL.
const char *tir_tmem_take(struct tmem_plan *p);

// Finds the loop and what is around it. The reason if there is none, else NULL
// (tensor_memory_loop.c).
const char *tir_tmem_take_loop(struct tmem_plan *p);

// Operands (tensor_memory_operand.c).

// Turns second factors with rows along N that no descriptor describes.
void tir_tmem_turn_factors(struct tmem_plan *p);
// Finds the operand of factor `which` of a product's term. The reason if the pass does not take it.
const char *tir_tmem_take_factor(struct tmem_plan *p, uint32_t product, uint32_t term,
                                 uint32_t which);
// Finds what a converted operand is computed from. The reason if the pass does not take it.
const char *tir_tmem_take_sources(struct tmem_plan *p, const struct tmem_operand *o);
// Does v follow from what the loop carries as arg? NULL: from anything that it carries, or from a
// product.
bool tir_tmem_follows(const struct tmem_plan *p, const struct tir_value *v,
                      const struct tir_value *arg);
// The group of operands whose slots fill and empty together; NULL: the operand is in none.
struct tmem_group *tir_tmem_group_for(struct tmem_plan *p, const struct tmem_operand *o);

// Shares out memory, warps and registers. The reason if there is no room, else NULL
// (tensor_memory_room.c).
const char *tir_tmem_take_room(struct tmem_plan *p);
// Says where the sums of each product are, and gives the column behind them.
int64_t tir_tmem_place_sums(struct tmem_plan *p);
// Scalars that every role computes for itself (tensor_memory_scalars.c).

// Finds them, and, when the operands are known, those that are needed for these.
void tir_tmem_find_computable(struct tmem_plan *p);
void tir_tmem_find_wanted(struct tmem_plan *p);
// Does inst give a scalar that is computed, or loaded from a tensor that the kernel only reads?
bool tir_tmem_is_scalar(const struct tmem_plan *p, const struct tir_inst *inst);
// Does each role get the value from before the roles, or compute it for itself?
bool tir_tmem_is_computable(const struct tmem_plan *p, const struct tir_value *v);
// The block of holder `at` that the loop is in.
const struct tir_block *tir_tmem_taken(const struct tmem_plan *p, uint32_t at);
// The product that inst is a term of; NULL: none.
struct tmem_product *tir_tmem_product_of(struct tmem_plan *p, const struct tir_inst *inst);
// The operand that is this tile, a new one if there is none yet; NULL: there are too many.
struct tmem_operand *tir_tmem_operand_for(struct tmem_plan *p, struct tir_value *tile);
// How many operands of a loop or a branch decide what of it runs: its bounds, or a condition.
static inline uint32_t tmem_decides(const struct tir_inst *holder)
{
    return holder->op == TIR_OP_FOR ? TIR_FOR_INIT : 1;
}
// Is the same part loaded in every round?
bool tir_tmem_is_invariant(const struct tmem_plan *p, const struct tir_inst *load);
// The product whose sums the loop carries as value i, in tensor memory; NULL: they are no sums, or
// in registers.
struct tmem_product *tir_tmem_carrier(struct tmem_plan *p, uint32_t i);
// The dot whose result is the sums.
static inline struct tir_inst *tmem_dot(const struct tmem_product *t)
{
    return t->terms[t->term_count - 1].dot;
}
// What the sums begin with.
static inline struct tir_value *tmem_acc(const struct tmem_product *t)
{
    return t->terms[0].dot->operands[TIR_DOT_ACC];
}
static inline const struct tir_type *tmem_sums_type(const struct tmem_product *t)
{
    return tmem_dot(t)->results[0]->type;
}
static inline bool tmem_is_zero(const struct tir_value *v)
{
    return v->kind == TIR_VALUE_CONST && !v->constant.i;
}
// Does the load give something else than the tensor has, and 0 beyond it?
static inline bool tmem_has_mask_or_pad(const struct tir_inst *load)
{
    const struct tir_value *pad = load->operands[TIR_LOAD_PAD];
    return load->operands[TIR_LOAD_MASK] || (pad && !tmem_is_zero(pad));
}

// The shared buffer of the kernel that inst stores to, where elements change places; NULL: none.
static inline struct tir_value *tmem_filled(const struct tir_inst *inst)
{
    const bool fills =
        inst->op == TIR_OP_STORE && tir_ref_base(inst)->type->space == TIR_SPACE_SHARED;
    return fills ? tir_buffer_root(tir_ref_base(inst)) : NULL;
}

// Elements of 4 or 6 bits that tensor copies bring to bytes of their own.
static inline bool tmem_is_packed(const struct tmem_operand *o)
{
    return o->tile->kind == TIR_VALUE_RESULT && o->tile->def->op == TIR_OP_EXPAND;
}
// What makes the tile; of packed elements, what makes their bytes. NULL: an argument or a constant.
static inline struct tir_inst *tmem_load(const struct tmem_operand *o)
{
    return tmem_is_packed(o) ? o->tile->def->operands[0]->def : o->tile->def;
}

// What a slot holds: the operand, or the CTA's half of it.
static inline struct tir_type tmem_slot_type(const struct tmem_operand *o)
{
    struct tir_type t = *o->tile->type;
    if (o->is_halved)
        t.shape[o->halved] /= 2;
    return t;
}

// What a tensor copy brings to a slot.
static inline int64_t tmem_copied_bytes(const struct tmem_operand *o)
{
    const struct tir_type t = tmem_slot_type(o);
    const int64_t bytes = tir_type_bytes(&t);
    return tmem_is_packed(o) ? bytes * tir_elem_width(t.elem) / 8 : bytes;
}

// Pairs of CTAs (tensor_memory_pair.c).

// Decides whether two CTAs multiply together.
void tir_tmem_take_pair(struct tmem_plan *p);
// Before the roles are built: the tiles of both become one.
void tir_tmem_widen_pair(struct tmem_plan *p, struct tir_builder *b);
// What is of both CTAs of a pair says so.
void tir_tmem_set_group(const struct tmem_plan *p, struct tir_inst *inst);
// Where the CTA's half of an operand begins that begins at `start`.
struct tir_value *tir_tmem_half(const struct tmem_plan *p, struct tir_builder *b,
                                const struct tmem_operand *o, struct tir_value *start);
// The mbarrier at this place of the CTA that multiplies.
struct tir_value *tir_tmem_of_leader(struct tir_builder *b, struct tir_value *bar);

// Building (tensor_memory_role.c).

// One role's end of a channel: which slot comes next, and the parity of its phase.
struct tmem_end {
    struct tmem_channel *channel;
    bool is_per_tile;        // a slot for each tile, else for each round
    int32_t phase;           // at first
    struct tir_value *at[2]; // slot, parity
};

enum { TMEM_ENDS = TMEM_OPERANDS + TMEM_PRODUCTS };

struct tmem_role {
    struct tmem_plan *p;
    bool computes; // all that other roles do not
    bool fills;    // slots, from what it computes ahead
    struct tir_inst *tiles, *loop;
    struct tir_builder in;                  // where the tiles loop is built
    struct tir_builder outer[TMEM_HOLDERS]; // around each holder
    struct tir_inst *held[TMEM_HOLDERS];    // what the role has for each
    struct tir_builder outside;             // of the branch for the CTA that multiplies
    struct tir_inst *leads;
    struct tir_map map; // values of the kernel as it was to those of this role
    struct tmem_end ends[TMEM_ENDS];
    uint32_t end_count;
};

// Does the role, which does not compute the rest, compute for itself what inst gives?
bool tir_tmem_is_copied(const struct tmem_role *r, const struct tir_inst *inst);

struct tir_inst *tir_tmem_plain(struct tir_builder *b, enum tir_op op,
                                struct tir_value *const *operands, uint32_t count);
void tir_tmem_fence(struct tir_builder *b, enum tir_word of);
// Slot `slot` of a buffer, whose dimension 0 is the slots.
struct tir_value *tir_tmem_slot(struct tir_builder *b, struct tir_value *buffer,
                                struct tir_value *slot);
// An if without results; its block is open, and closed by end_if.
struct tir_builder tir_tmem_begin_if(struct tir_builder *b, struct tir_value *condition);
struct tir_builder tir_tmem_begin_elected(struct tir_builder *b); // if elect_sync()
void tir_tmem_end_if(struct tir_builder *in);
// A barrier of the threads that share tensor memory.
void tir_tmem_meet(const struct tmem_plan *p, struct tir_builder *b);

void tir_tmem_wait_full(struct tir_builder *b, const struct tmem_end *end);
void tir_tmem_wait_empty(struct tir_builder *b, const struct tmem_end *end);
// A thread's commit, or an arrival of each warp.
void tir_tmem_commit(struct tir_builder *b, struct tir_value *bars, const struct tmem_end *end);
void tir_tmem_arrive(struct tir_builder *b, struct tir_value *bars, const struct tmem_end *end);
void tir_tmem_advance(struct tir_builder *b, struct tmem_end *end);

// A role begins with init_role and its ends; then it and its tiles loop are opened.
void tir_tmem_init_role(struct tmem_role *r, struct tmem_plan *p);
void tir_tmem_add_end(struct tmem_role *r, struct tmem_channel *channel, bool is_per_tile,
                      int32_t phase);
struct tmem_end *tir_tmem_end(struct tmem_role *r, const struct tmem_channel *channel);
struct tir_builder tir_tmem_begin_role(struct tmem_role *r, struct tir_builder *b, const char *name,
                                       uint32_t first, uint32_t warps);
// Afterwards the ends are those after the last tile.
void tir_tmem_end_tiles(struct tmem_role *r, struct tir_builder *in);
// Waits until the last slot that the role has filled is empty: nothing arrives after the end.
void tir_tmem_drain(struct tmem_role *r, const struct tmem_channel *channel);
void tir_tmem_end_role(struct tmem_role *r);
// Copies what precedes the loop, and enters what it is in; then leaves these, and
// copies what follows the loop. A role that does not compute copies scalars alone.
void tir_tmem_enter(struct tmem_role *r, struct tir_builder *b);
void tir_tmem_leave(struct tmem_role *r, struct tir_builder *b);
// Copies what the role computes for itself in a block, up to what holds the loop.
void tir_tmem_copy(struct tmem_role *r, struct tir_builder *b, const struct tir_block *block);
// What only the CTA that multiplies does: all, if there is no pair.
void tir_tmem_begin_lead(struct tmem_role *r, struct tir_builder *b);
void tir_tmem_end_lead(struct tmem_role *r, struct tir_builder *b);
// The loop of the products, which also carries `more`.
struct tir_builder tir_tmem_begin_loop(struct tmem_role *r, struct tir_builder *b,
                                       struct tir_value *const *more, uint32_t count);
void tir_tmem_end_loop(struct tmem_role *r, struct tir_builder *in, struct tir_value *const *more,
                       uint32_t count);
// A role that fills slots ahead, as soon as they are empty, and does nothing else.
struct tmem_producer {
    const char *name;
    uint32_t first, warps;
    bool (*fills)(const struct tmem_group *group);
    void (*fill)(struct tmem_role *r, struct tir_builder *b, const struct tmem_group *group,
                 const struct tmem_end *end); // a slot, and tells its mbarrier
};
void tir_tmem_build_producer(struct tmem_plan *p, struct tir_builder *b,
                             const struct tmem_producer *producer);
// The role's value for one of the kernel as it was.
struct tir_value *tir_tmem_of(const struct tmem_role *r, struct tir_value *v);

// Stores a tile in a slot.
void tir_tmem_store_slot(struct tir_builder *b, struct tir_value *buffer, struct tir_value *slot,
                         struct tir_value *v);

// Operands that no tensor copy can bring (tensor_memory_gather.c).

// Can a role compute v for itself, ahead of the products? Then roles that need it do.
bool tir_tmem_is_ahead(struct tmem_plan *p, struct tir_value *v);
// Can they compute all that says where the load is? Then they do.
bool tir_tmem_find_ahead(struct tmem_plan *p, const struct tir_inst *load);
// The reason if threads cannot bring the loaded tile in each round, else NULL.
const char *tir_tmem_take_gather(struct tmem_plan *p, struct tmem_operand *o);
void tir_tmem_build_gather_role(struct tmem_plan *p, struct tir_builder *b);

// Scales (tensor_memory_scales.c).

// Why tensor copies cannot bring the tile; NULL: they can.
const char *tir_tmem_take_load(struct tmem_plan *p, const struct tir_inst *load);
// Finds the scales of a product's term. The reason if the pass does not take them, else NULL.
const char *tir_tmem_take_scales(struct tmem_plan *p, uint32_t product, struct tmem_term *term);
// A slot of scales: whole blocks of 128 rows and 4 scales.
struct tir_type tir_tmem_scales_type(const struct tmem_operand *o);
// Columns of tensor memory for all scales.
int64_t tir_tmem_scale_columns(const struct tmem_plan *p);
// Their slots in shared memory; in tensor memory from *column on.
struct tir_value *tir_tmem_alloc(struct tmem_plan *p, struct tir_builder *b,
                                 const struct tir_type *type, const char *name);
void tir_tmem_build_scale_slots(struct tmem_plan *p, struct tir_builder *b, struct tmem_operand *o);
void tir_tmem_build_scale_columns(struct tmem_plan *p, struct tir_builder *b,
                                  struct tir_value *base, int64_t *column);
// The role that loads scales, and stores them in blocks.
void tir_tmem_build_scale_role(struct tmem_plan *p, struct tir_builder *b);
// Starts copies of the slots that the product reads to tensor memory.
void tir_tmem_copy_scales(struct tmem_role *r, struct tir_builder *b, const struct tmem_product *t);
// What gemm_tmem takes of them for the factor `which`.
struct tir_value *tir_tmem_scales_of(struct tmem_role *r, struct tir_builder *b,
                                     const struct tmem_product *t, const struct tmem_term *term,
                                     uint32_t which);

// tensor_memory_compute.c: the role that does all but load and multiply.
void tir_tmem_build_compute(struct tmem_plan *p, struct tir_builder *b);

#endif
