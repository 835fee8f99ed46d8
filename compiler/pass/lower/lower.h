// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inside lower_tile: what its files share. A tile becomes one scalar value per register.
#ifndef TIR_PASS_LOWER_LOWER_H
#define TIR_PASS_LOWER_LOWER_H

#include "ir/layout_exchange.h"
#include "ir/range.h"
#include "machine/target.h"
#include "pass/pass.h"

struct lower {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_types *types;
    struct tir_ranges *ranges;
    bool by_thread; // the kernel uses single threads: each thread has its own scalars
    // The threads of the code being lowered: the CTA, the warps of a role, or a group of a scope.
    uint32_t threads;             // that tiles are spread over
    uint32_t first_warp;          // of them, in the CTA; the warp of a layout counts from here
    int64_t barrier;              // the named barrier they meet at; 0: bar_sync of the CTA
    const struct tir_inst *scope; // NULL: none
    bool has_grid;                // a tiles loop has set the grid
    bool tiles_differ;            // in length: a persistent grid walks every second round backwards
    bool copies_by_registers;     // a copy_async has become loads and stores
    bool has_pairs;               // tensor memory belongs to pairs of CTAs
    bool swizzles_by_bits;        // by bits of a thread's number (walk_linear.c)
    struct tir_value *tmem_base;  // of the allocation in tensor memory; NULL: no buffer is there
    struct tir_map in_flight;     // result of a gemm_async -> struct lower_operands
    struct tir_map reduced;       // operand of a reduction -> struct lower_reduced (tmem.h)
    const struct tir_type *i32, *u32, *i64, *boolean;
    const struct tir_type *index; // type of element offsets: i32 under the fact index32, else i64
    struct tir_builder top;       // start of the kernel: values that depend only on the thread
    struct tir_builder b;         // where the current instruction is lowered
    struct tir_value *lane, *warp, *tid; // made on first use
    struct tir_map registers;            // tile value -> struct tir_value ** (one per register)
    struct tir_map below;                // start of a tile -> the extent it is below
    const uint32_t *uses;                // of the values before, by id
    struct tir_map coords; // layout -> struct tir_value ** (thread part of each dimension)
    bool failed;
};

// Scalars.

static inline struct tir_value *tir_lower_i32(struct lower *lo, int64_t v)
{
    return tir_const_int(lo->f, lo->i32, v);
}
// Arithmetic that folds constants and drops neutral operands; a, b of one integer type.
struct tir_value *tir_lower_add(struct lower *lo, struct tir_builder *b, struct tir_value *x,
                                struct tir_value *y);
struct tir_value *tir_lower_mul(struct lower *lo, struct tir_builder *b, struct tir_value *x,
                                struct tir_value *y);
struct tir_value *tir_lower_mul_const(struct lower *lo, struct tir_builder *b, struct tir_value *x,
                                      int64_t y);
struct tir_value *tir_lower_digit(struct lower *lo, struct tir_builder *b, struct tir_value *x,
                                  uint32_t stride, uint32_t extent,
                                  bool top_digit); // x / stride % extent, x >= 0
struct tir_value *tir_lower_cast(struct lower *lo, struct tir_builder *b, struct tir_value *x,
                                 const struct tir_type *to);
struct tir_value *tir_lower_and(struct lower *lo, struct tir_value *x,
                                struct tir_value *y);                     // bools; NULL: true
struct tir_value *tir_lower_thread(struct lower *lo, enum tir_axis axis); // lane or warp, i32
struct tir_value *tir_lower_tid(struct lower *lo); // as the warp, of the role
// Waits for all threads that share the tiles being lowered.
void tir_lower_barrier(struct lower *lo);
void tir_lower_block(struct lower *lo, struct tir_block *block); // every instruction in it

// Tiles.

uint32_t tir_lower_register_count(const struct tir_type *t); // 1 for a scalar
// Register i of a tile; scalars and constants have the same value in every register.
struct tir_value *tir_lower_register(struct lower *lo, struct tir_value *v, uint32_t i);
// The registers of a tile, or the one value that takes a scalar's place.
void tir_lower_set_registers(struct lower *lo, struct tir_value *v, struct tir_value **registers);
struct tir_value **tir_lower_new_registers(struct lower *lo, uint32_t count);
// The bits of the parts, lowest first, as one value. If an unpack has just taken them apart, it is
// what that took.
struct tir_value *tir_lower_joined(struct lower *lo, const struct tir_type *type,
                                   struct tir_value *const *parts, uint32_t count);
// Registers `in` of elements elem, in the layout that the exchange is from, as registers `out` of
// the other one.
void tir_lower_exchange(struct lower *lo, const struct tir_exchange *exchange,
                        const struct tir_type *elem, struct tir_value *const *in,
                        struct tir_value **out);
void tir_lower_regions(struct lower *lo, struct tir_inst *inst); // a loop, an if
// What the thread's lane and warp add to coordinate d of layout l (i32); NULL: nothing.
struct tir_value *tir_lower_coord(struct lower *lo, const struct tir_layout *l, uint32_t d);
// True in exactly one thread for each element of layout l; NULL: always true.
struct tir_value *tir_lower_is_owner(struct lower *lo, const struct tir_layout *l);
// The register of layout `to` that holds what register r of `from` does, after projecting the
// coordinates to `to`'s shape (dimensions of size 1 become 0).
uint32_t tir_lower_same_register(const struct tir_layout *from, uint32_t r,
                                 const struct tir_layout *to);

// Memory (access.c).

struct lower_walk;

// Registers that lie together in memory, wherever they are among a thread's: element i of such a
// group is `strides` of the binary digits of i that are 1 behind the register that leads it.
struct lower_vector {
    uint32_t count;      // 1, 2, 4, 8 or 16
    uint32_t strides[4]; // of the digits, lowest first
};
static inline bool tir_lower_leads(struct lower_vector v, uint32_t r)
{
    for (uint32_t d = 0; v.count >> (d + 1); d++)
        if (r / v.strides[d] % 2)
            return false;
    return true;
}
static inline uint32_t tir_lower_together(struct lower_vector v, uint32_t r, uint32_t i)
{
    for (uint32_t d = 0; i >> d; d++)
        r += (i >> d & 1) * v.strides[d];
    return r;
}
static inline bool tir_lower_is_in_order(struct lower_vector v)
{
    for (uint32_t d = 0; v.count >> (d + 1); d++)
        if (v.strides[d] != 1U << d)
            return false;
    return true;
}
// As many neighbours along dimension d of l as a thread has, up to `most`, a power of two.
struct lower_vector tir_lower_neighbours(const struct tir_layout *l, uint32_t d, uint32_t most);
struct lower_vector tir_lower_walk_vector(const struct lower_walk *walk);
bool tir_lower_walk_is_inside(const struct lower_walk *walk); // no place has a predicate

// Where an element (the first of a vector) is: base + at + offset, and whether it exists.
struct lower_place {
    struct tir_value *base; // the tensor or alloc
    struct tir_value *at;   // bytes: i32, of a tensor the index type
    int64_t offset;         // bytes
    struct tir_value *pred; // NULL: always
    enum tir_word cache;    // how caches keep it; NONE: nothing is said
};

// A dimension of an access: does 0 <= position + constant < extent hold? (bound.c)
struct lower_bound {
    struct tir_value *position; // start + the thread's part
    struct tir_value *extent;   // of the same type, i32 or i64
    bool checked;               // may be out of range
    bool is_long;               // a thread has many constants
    struct tir_value *near[2];  // if so, of 64 bits: both in 32 bits, once asked for
    uint32_t known;             // predicates made so far
    int64_t constants[64];
    struct tir_value *predicates[64];
};
// NULL: known to hold.
struct tir_value *tir_lower_bound_at(struct lower *lo, struct lower_bound *bound, int64_t constant);
struct tir_value *tir_lower_in_range(struct lower *lo, struct tir_value *position,
                                     struct tir_value *extent);
// Can start .. start + n leave 0 .. extent?
bool tir_lower_may_leave(struct lower *lo, const struct tir_inst *inst, struct tir_value *start,
                         struct tir_value *extent, int64_t n);
// Are there known to be n elements from start on, by what bounds the numbers that it is made of?
bool tir_lower_has_room(struct lower *lo, const struct tir_inst *inst,
                        const struct tir_value *start, const struct tir_value *extent, int64_t n);
// x, any integer, as i32 or i64: an index out of range stays out of range.
struct tir_value *tir_lower_narrowed(struct lower *lo, struct tir_value *x,
                                     const struct tir_type *to);
// The index that an index tile has for the element at coord; `first`: the accessed tile's dimension
// that is its first. It repeats along its dimensions of size 1.
struct tir_value *tir_lower_index_at(struct lower *lo, struct tir_value *index,
                                     const int64_t coord[TIR_MAX_RANK], uint32_t first);

// Addresses of a tile of layout l in a buffer, starting at `starts` (i64 or i32 values, one per
// dimension of the buffer; NULL: 0). dims[d]: the buffer's dimension that dimension d of l walks.
struct lower_walk *tir_lower_walk_new(struct lower *lo, struct tir_value *buffer,
                                      const struct tir_layout *l, struct tir_value *const *starts,
                                      const uint32_t *dims);
// The elements of a tile from `start` on along dimension dim, as many as the buffer has there;
// along the others it has the tile's extents. Places of other elements have a predicate that is
// false; registers that miss the part in every thread are neither read nor written.
struct lower_walk *tir_lower_walk_part(struct lower *lo, struct tir_value *buffer,
                                       const struct tir_layout *l, uint32_t dim, int64_t start);
// The slice of a buffer that a load, store or atomic names; places have a predicate where an index
// may be out of range.
struct lower_walk *tir_lower_walk_slice(struct lower *lo, const struct tir_inst *inst,
                                        const struct tir_layout *l);
struct lower_place tir_lower_walk_at(struct lower *lo, struct lower_walk *walk, uint32_t reg);
bool tir_lower_walk_misses(const struct lower_walk *walk, uint32_t reg);
// The predicate of that place; NULL: always.
struct tir_value *tir_lower_walk_pred(struct lower *lo, struct lower_walk *walk, uint32_t reg);
// Every register of the tile, out of the buffer or into it, as many at a time as lie together.
void tir_lower_read(struct lower *lo, struct lower_walk *walk, enum tir_elem elem, uint32_t count,
                    struct tir_value **out);
void tir_lower_write(struct lower *lo, struct lower_walk *walk, struct tir_value *const *registers,
                     uint32_t count, struct tir_value *pred); // pred: of all, or NULL

// A shared buffer as a part of its alloc: for each dimension of the alloc, the buffer's dimension
// that runs along it, and where it begins. Unlike a walk, it does not apply the swizzle: engines
// that copy or multiply do that themselves.
struct lower_part_dim {
    int32_t dim;             // of the buffer, or -1
    int64_t size;            // of it; 1 without one
    struct tir_value *start; // i32; NULL: 0
    uint64_t divisor;        // of start; 0: start is 0
};
struct lower_part {
    struct tir_value *base; // the alloc, or a remote of it
    const struct tir_layout *memory;
    uint32_t bits; // of an element
    struct lower_part_dim dims[TIR_MAX_RANK];
};
struct lower_part tir_lower_part_of(struct lower *lo, struct tir_value *buffer);
// Moves it on by `by` along the buffer's dimension dim, to `size` elements there.
void tir_lower_part_move(struct lower *lo, struct lower_part *part, uint32_t dim,
                         struct tir_value *by, uint64_t divisor, int64_t size);
// Is the byte of start + coord the byte of the start + that of coord?
bool tir_lower_part_adds(const struct lower_part *part);
struct tir_value *tir_lower_part_start(struct lower *lo,
                                       const struct lower_part *part); // bytes; NULL: 0
// What the byte of the start is known to be a multiple of; 0: it is 0.
uint64_t tir_lower_part_divisor(const struct lower_part *part);
int64_t tir_lower_part_byte(const struct lower_part *part, const int64_t coord[TIR_MAX_RANK]);
// The shared buffer of another CTA of the cluster.
struct tir_value *tir_lower_remote(struct lower *lo, struct tir_value *buffer,
                                   struct tir_value *cta);

// Rows that begin and end anywhere in memory (askew.c).
enum { TIR_ROW_WORDS = 4 }; // of 32 bits in a vector of 16 bytes
struct lower_row {
    enum tir_elem elem; // of 8 to 32 bits
    bool is_askew;      // pieces lie anywhere; else at multiples of 16 bytes, if `lies` holds
    // Column c, but for the thread's part, is in the row where before <= c < after.
    struct tir_value *before, *after;
    int64_t wraps, columns; // if not 0, c < before stands for c + columns, and before < wraps
    struct tir_value *past; // if is_askew, elements from a multiple of 8 bytes to each piece
    struct tir_value *lies;
    struct tir_value *pad; // what loads have outside of the row; NULL: 0
};
struct lower_piece {          // 16 bytes of a row
    struct lower_place place; // of its first element; pred: whether there is such a row
    int64_t column;           // of that, but for the thread's part
    struct tir_value *elements[16];
    struct tir_value *words[8], *whole, *cut; // askew.c's own
};
void tir_lower_load_row(struct lower *lo, const struct lower_row *row, struct lower_piece *pieces,
                        uint32_t count);
void tir_lower_store_row(struct lower *lo, const struct lower_row *row, struct lower_piece *pieces,
                         uint32_t count);
static inline uint32_t tir_lower_in_word(enum tir_elem elem) // elements of 8 to 32 bits
{
    return 32 / tir_elems[elem].bits;
}
// The elements of a word.
void tir_lower_unpack_word(struct lower *lo, enum tir_elem elem, struct tir_value *word,
                           struct tir_value **out);
// What is cut, element by element (askew_rest.c).
void tir_lower_load_rest(struct lower *lo, const struct lower_row *row, struct lower_piece *pieces,
                         uint32_t count);
void tir_lower_store_rest(struct lower *lo, const struct lower_row *row, struct lower_piece *pieces,
                          uint32_t count);

void tir_lower_load(struct lower *lo, struct tir_inst *inst);
void tir_lower_store(struct lower *lo, struct tir_inst *inst);
void tir_lower_atomic(struct lower *lo, struct tir_inst *inst);
void tir_lower_print(struct lower *lo, struct tir_inst *inst);
void tir_lower_copy_async(struct lower *lo, struct tir_inst *inst);
// Neighbouring registers at once.
void tir_lower_ld_vector(struct lower *lo, const struct lower_place *p, enum tir_elem elem,
                         uint32_t count, struct tir_value **out);
void tir_lower_st_vector(struct lower *lo, const struct lower_place *p, uint32_t count,
                         struct tir_value *const *values);

// Puts other operations in front of an instruction, which then goes. NULL: the operation stays.
typedef void tir_lower_fn(struct lower *lo, struct tir_inst *inst);
tir_lower_fn *tir_lowering_of(enum tir_op op);

// Operations with a file of their own.
void tir_lower_dot(struct lower *lo, struct tir_inst *inst);
void tir_lower_reduce(struct lower *lo, struct tir_inst *inst);
void tir_lower_scan(struct lower *lo, struct tir_inst *inst);
void tir_lower_convert(struct lower *lo, struct tir_inst *inst);
void tir_lower_tiles(struct lower *lo, struct tir_inst *inst);  // its block moves to where it stood
void tir_lower_roles(struct lower *lo, struct tir_inst *first); // it and all after it
void tir_lower_scope(struct lower *lo, struct tir_inst *inst);
void tir_lower_end_scopes(struct lower *lo); // their blocks move to where they stood
// Sums of 16 bits in flight, two to a register (packed.c): before anything is lowered, and then
// where they meet the others. tir_lower_pack: false: an ordinary bitcast.
void tir_lower_pack_sums(struct tir_func *f, struct tir_arena *scratch);
const struct tir_layout *tir_lower_packed_layout(struct tir_types *types,
                                                 const struct tir_layout *l);
bool tir_lower_pack(struct lower *lo, struct tir_inst *inst);
void tir_lower_gemm(struct lower *lo, struct tir_inst *inst);
void tir_lower_await(struct lower *lo, struct tir_inst *inst);
// Refuses a yield of a result in flight whose operands are in registers, since these would not be
// in use beyond the block.
void tir_lower_check_yield(struct lower *lo, const struct tir_inst *yield);
// Tensor memory (tmem.c, tmem_gemm.c): products, loads and stores of a part, buffers; and what
// stands at the end of the kernel.
void tir_lower_gemm_tmem(struct lower *lo, struct tir_inst *inst);
void tir_lower_tmem_copy(struct lower *lo, struct tir_inst *inst);
void tir_lower_tmem_load(struct lower *lo, struct tir_inst *inst);
void tir_lower_tmem_store(struct lower *lo, struct tir_inst *inst);
void tir_lower_tmem_buffer(struct lower *lo, struct tir_inst *inst);
void tir_lower_tmem_end(struct lower *lo);
// States that an operation on tensor memory is one of pairs, if the kernel has them.
void tir_lower_set_group(struct lower *lo, struct tir_inst *inst);
// Tensor and bulk copies: of copy_async with an mbarrier, store_async, prefetch.
void tir_lower_tensor_load(struct lower *lo, struct tir_inst *inst);
void tir_lower_tensor_store(struct lower *lo, struct tir_inst *inst);
// To another CTA: a copy_async, a push.
void tir_lower_send(struct lower *lo, struct tir_inst *inst);
void tir_lower_push(struct lower *lo, struct tir_inst *inst);
void tir_lower_prefetch(struct lower *lo, struct tir_inst *inst);
// mbarrier_init, arrive, wait, commit: the barrier as an alloc and bytes.
void tir_lower_mbarrier(struct lower *lo, struct tir_inst *inst);
// try_cancel, is_canceled, first_ctaid: the response, and the barrier, as an alloc and bytes.
void tir_lower_cancel(struct lower *lo, struct tir_inst *inst);
// Stores the tile by stmatrix; false: impossible, and nothing has been stored.
bool tir_lower_stmatrix(struct lower *lo, struct tir_inst *inst);
bool tir_lower_ldmatrix(struct lower *lo, struct tir_inst *inst); // the same for a load

void tir_lower_unsupported(struct lower *lo, const struct tir_inst *inst, const char *what);
// After an error: adds a note with the first target that has one of these features.
void tir_lower_note_target(struct lower *lo, uint32_t features);

#endif
