// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the files that turn lowered IR into LLVM IR.
//
// Each IR value becomes one LLVM value of the type llvm_type gives. An i64 whose range fits in 32
// bits is kept as an LLVM i32 (`narrow`); tir_emit_value widens it where a 64-bit value is wanted.
#ifndef TIR_TARGET_NVPTX_EMIT_H
#define TIR_TARGET_NVPTX_EMIT_H

#include "base/bitset.h"
#include "base/map.h"
#include "ir/ir.h"
#include "ir/range.h"
#include "target/nvptx/llvm.h"
#include "target/nvptx/tensor_maps.h"

typedef LLVMValueRef V; // the one short name: expansions are unreadable without it

struct emit_slot { // what stands for one IR value
    V v;
    V wide;                      // narrow: the i64 that v was cut from; NULL: computed in 32 bits
    int64_t offset;              // buffers: bytes to add to v
    bool narrow;                 // an i64 held in an i32
    bool is_read;                // a sum of wgmma_unseen.c: by what does not go on with it
    uint16_t copies;             // of it that products begin with (emit_wgmma.c)
    uint32_t sum;                // its register there, from 1; 0: none
    const struct tir_inst *pack; // of a sum: what makes one register of it and another, or NULL
};

struct emit {
    struct tir_llvm *ll;
    LLVMBuilderRef b;
    struct tir_arena *arena;
    struct tir_diags *diags;
    struct tir_func *f;
    struct emit_slot *slots; // by value id
    const uint32_t *uses;    // of values, by id
    struct tir_ranges *ranges;
    struct tir_map expansions; // expand.c
    V function, shared;        // shared: the dynamic shared memory, NULL until wanted
    uint32_t role_count;       // beside tensor memory, that have begun
    LLVMValueRef *strides;     // per parameter, TIR_MAX_RANK each
    struct tir_tensor_maps maps;
    uint32_t first_map;   // the parameter of the function that is the first map
    uint32_t first_watch; // the first of the watchdog's three parameters
    bool has_watchdog;
    uint32_t bytes_to_float;       // how many were converted
    uint32_t pairs_to_half;        // of bytes with signs, how many were
    bool cvt_takes_turns;          // with the arithmetic for these
    uint32_t exponentials;         // emit_exp2.c: how many more were emitted
    const struct tir_inst *paired; // a cast that was emitted with the one before it
    V policies[4];                 // emit_cache.c; NULL until wanted
    bool waits;              // for the launch before it, so memory changes while the kernel runs
    V never, multiprocessor; // emit_pin.c; NULL until wanted
    V warp;                  // the number of the warp, the same in all its lanes; NULL until wanted
    bool has_remote;         // threads access shared memory of other CTAs
    bool has_engines;        // the kernel starts tensor copies or products of warpgroups
    VEC(const struct tir_inst *) products; // of warpgroups that are emitted as one
    uint32_t product_inputs;               // that they take, with their accumulators
    VEC(const struct tir_inst *) matrices; // stores of them that are emitted as one
    uint32_t sums;                         // registers that LLVM does not see
    struct bitset moved;                   // their results which began with sums that were moved
    const struct tir_inst *awaited;        // a wait that the loop in front of it has emitted
    bool moves_registers;                  // the kernel has a setmaxnreg
    bool has_mma;                          // products by mma.sync
    bool emulates_mma;                     // of them, some that ptxas makes of others
    bool has_tmem;                         // and tensor memory
    struct tir_span span;                  // of the instruction being emitted
    LLVMMetadataRef scope;                 // line information, or NULL
    uint32_t text_count;                   // constants that are texts
    bool failed;                           // a diagnostic was reported
};

// emit.c: one kernel into ll's module (false: a diagnostic was reported); values.
bool tir_emit_kernel(struct tir_llvm *ll, struct tir_arena *arena, struct tir_diags *diags,
                     struct tir_func *f);
LLVMTypeRef tir_emit_elem_type(const struct emit *e, enum tir_elem elem); // of a value in registers
LLVMTypeRef tir_emit_type(const struct emit *e, const struct tir_type *type);
V tir_emit_value(struct emit *e, const struct tir_value *v);    // in its full width
V tir_emit_value32(struct emit *e, const struct tir_value *v);  // the low half of an i64
V tir_emit_low_word(struct emit *e, const struct tir_value *v); // of an integer of 32 or 64 bits
bool tir_emit_is_narrow(const struct emit *e,
                        const struct tir_value *v); // emit_value32 loses nothing
// Whether v is known to lie in low..high.
bool tir_emit_in_range(const struct emit *e, const struct tir_value *v, int64_t low, int64_t high);
// Whether an add, sub or mul of signed integers is known not to overflow.
bool tir_emit_is_exact(const struct emit *e, const struct tir_inst *inst);
void tir_emit_set(struct emit *e, const struct tir_value *v, V value);   // full width
void tir_emit_set32(struct emit *e, const struct tir_value *v, V value); // v is narrow
// A condition: 1 always (absent, or constant), 0 never, -1 to be tested.
int tir_emit_known(const struct tir_value *condition);
V tir_emit_unsupported(struct emit *e, const struct tir_type *type, const char *what);
LLVMBasicBlockRef tir_emit_block(struct emit *e, const char *name);
void tir_emit_at(struct emit *e, LLVMBasicBlockRef block);
// Goes to the start of the kernel, whose values are there for all that follows; the block to go
// back to.
LLVMBasicBlockRef tir_emit_at_entry(struct emit *e);
V tir_emit_shared_base(struct emit *e);
// Where a role begins: gives the shared memory a name of its own in it.
void tir_emit_name_shared(struct emit *e);
void tir_emit_insts(struct emit *e, const struct tir_block *block);
// Before the kernel: decides which values are held in 32 bits.
void tir_emit_choose_widths(struct emit *e);
// What is emitted from here on is of this place in the source.
void tir_emit_set_location(struct emit *e, struct tir_span span);
// Whether every low..high fits in a signed integer of `bits`.
bool tir_emit_fits(int64_t low, int64_t high, uint32_t bits);

// Emits inst, which is one of its operations (emit.c lists them).
typedef void tir_emit_fn(struct emit *e, const struct tir_inst *inst);
// The function for an operation; NULL: no machine operation.
tir_emit_fn *tir_emitter_of(enum tir_op op);

// emit_flow.c: branches and loops.
void tir_emit_flow(struct emit *e, const struct tir_inst *inst);
// Whether an instruction, or one in its regions, starts products on warpgroups or waits for them.
bool tir_emit_handles_products(const struct tir_inst *inst);

// emit_arith.c: elementwise operations and casts.
void tir_emit_arith(struct emit *e, const struct tir_inst *inst);
#define TIR_ELEMENTWISE_OPERANDS 3 // at most
struct tir_elementwise {           // operations with floats that give the same for equal operands
    enum tir_op op;
    enum tir_elem from, to; // of its operands, of its result
};
bool tir_emit_is_elementwise(const struct emit *e, const struct tir_inst *inst,
                             struct tir_elementwise *kind);
// `in`: TIR_ELEMENTWISE_OPERANDS, NULL from its count on. NULL: there is no expansion for its type.
V tir_emit_elementwise(struct emit *e, const struct tir_elementwise *kind, const V *in);
V tir_emit_convert(struct emit *e, V x, enum tir_elem from, enum tir_elem to);

// emit_pin.c: what was computed since the last product began is done before a late wait.
void tir_emit_pins(struct emit *e, const struct tir_inst *wait);

// emit_small_int.c: an integer of at most 16 bits as f32; NULL: a conversion is as good.
V tir_emit_small_int(struct emit *e, V x, bool is_signed);
// emit_exp2.c: an exp2 of f32 and those after it at once. False: it stands alone.
bool tir_emit_exp2_run(struct emit *e, const struct tir_inst *inst);
// A cast and the one after it as one pair of floats of 16 bits. False: they make no pair.
bool tir_emit_small_pair(struct emit *e, const struct tir_inst *cast);

// expand.c: functions for operations of many instructions, before the kernel; a call, or NULL: an
// operation of this kind is emitted in place.
void tir_emit_expansions(struct emit *e);
V tir_emit_call(struct emit *e, const struct tir_elementwise *kind, V *in);

// emit_pack.c: small values in words.
unsigned tir_emit_bytes(const struct emit *e, LLVMTypeRef type);              // in memory
V tir_emit_words(struct emit *e, V *words, uint32_t count, LLVMTypeRef word); // as a vector
V tir_emit_pack(struct emit *e, V *parts, uint32_t count, LLVMTypeRef type);
void tir_emit_unpack(struct emit *e, V x, LLVMTypeRef part, uint32_t count, V *parts);
// A select of two words that take bytes of the same two, as one permutation by a selector that
// follows from cond: selectors are the same for many words. NULL: they are something else.
V tir_emit_select_bytes(struct emit *e, V cond, V yes, V no);
void tir_emit_pack_op(struct emit *e, const struct tir_inst *inst);
void tir_emit_unpack_op(struct emit *e, const struct tir_inst *inst);

// emit_memory.c: loads, stores, atomics, asynchronous copies.
void tir_emit_memory(struct emit *e, const struct tir_inst *inst);
// A pointer to base + at (NULL: 0) + offset, in bytes.
V tir_emit_address(struct emit *e, const struct tir_value *base, const struct tir_value *at,
                   int64_t offset);

// emit_cache.c: what an access of a tensor says to the caches.
struct emit_cache {
    const char *text; // that follows the space in the instruction's name: "", ".L2::cache_hint"
    V policy;         // the last operand, an i64; NULL: none
};
struct emit_cache tir_emit_cache(struct emit *e, const struct tir_inst *access);

// emit_atomic.c: what an atom does to what is at the pointer; the old value. NULL: no target can.
V tir_emit_atomic(struct emit *e, const struct tir_inst *atom, V pointer, enum tir_space space);
void tir_emit_red(struct emit *e, const struct tir_inst *inst);

// emit_print.c: printed lines, assertions, traps.
void tir_emit_print(struct emit *e, const struct tir_inst *inst);

// emit_thread.c: ids, shuffles, matrix operations of a warp, inline PTX.
void tir_emit_thread(struct emit *e, const struct tir_inst *inst);
void tir_emit_mma(struct emit *e, const struct tir_inst *inst);

// emit_sync.c: mbarriers, groups of asynchronous operations, fences, barriers, launch control.
void tir_emit_sync(struct emit *e, const struct tir_inst *inst);

// emit_cancel.c: clusterlaunchcontrol.
void tir_emit_cancel(struct emit *e, const struct tir_inst *inst);

// emit_tensor.c: copies by the async proxy.
void tir_emit_tensor(struct emit *e, const struct tir_inst *inst);

// emit_wgmma.c: products on warpgroups.
void tir_emit_wgmma(struct emit *e, const struct tir_inst *inst);
// The wait of an await or a wait_group for these values instead of its operands; replaces them by
// their values after it.
void tir_emit_await(struct emit *e, const struct tir_inst *wait, V *values);
#define TIR_WGMMA_STEPS 16 // of one operation, at most
// Why no instructions do what a wgmma says, or NULL.
const char *tir_wgmma_wrong(const struct tir_inst *inst);

// wgmma_sums.c: where the registers of products may be copied.
// A register of sums that a wait gives, as it is. Where two halves of a register are to be computed
// with at once, ptxas makes the register as soon as its sums are written, which is in front of the
// wait (13.0: it serialises the products, C7514, or waits at once, C7517). It moves no permutation.
// So it is with sums of f16, and with those cast to 16 bits that one instruction makes, or that are
// in flight past a loop, such as a wait for an mbarrier.
V tir_emit_in_place(struct emit *e, V sums);
// Is v, which is cast to 16 bits, such a sum, or a choice of one?
bool tir_emit_pairs_early(const struct emit *e, struct tir_value *v);

// wgmma_unseen.c: accumulators in registers that LLVM does not see.
#define TIR_SUM "%sum" // their name
// Before the kernel: decides which they are. `v` of their slots is poison where they are not read.
void tir_emit_find_sums(struct emit *e);
void tir_emit_declare_sums(struct emit *e); // in the entry
bool tir_emit_is_sum(const struct emit *e, const struct tir_value *v);
void tir_emit_add_sum(const struct emit *e, struct tir_text *text, const struct tir_value *v);
// Adds the moves to the sums that begin with constants; begins: of as many sums.
void tir_emit_add_begins(const struct emit *e, struct tir_text *text, struct tir_value *const *sums,
                         struct tir_value *const *begins, uint32_t count);
// What those begin with that `loop` carries.
void tir_emit_begin_sums(struct emit *e, const struct tir_inst *loop);
// Those that a wait gives, behind it.
void tir_emit_read_sums(struct emit *e, const struct tir_inst *wait);

// emit_tcgen05.c: products in tensor memory, its loads, stores and allocation.
void tir_emit_tcgen05(struct emit *e, const struct tir_inst *inst);
// Why no instructions do what a tcgen05_mma says, or NULL.
const char *tir_tcgen05_wrong(const struct tir_inst *inst);

// emit_watch.c: a wait of a kernel with a watchdog, for an mbarrier of this CTA.
void tir_emit_watched_wait(struct emit *e, const struct tir_inst *inst, V bar, V parity);

// convert.c: floats of 4 to 8 bits, tf32.
V tir_emit_to_fp8(struct emit *e, V f32, enum tir_elem to);
// Two bytes that were just converted to fp8, as one instruction converts both (i16); NULL: they
// were not.
V tir_emit_fp8_pair(struct emit *e, V low, V high);
V tir_emit_from_fp8(struct emit *e, V bits, enum tir_elem from); // gives f32
// The bits that an element of at most 8 bits has, of a byte.
V tir_emit_narrow_bits(struct emit *e, V bits, enum tir_elem elem);
V tir_emit_to_tf32(struct emit *e, V f32);
V tir_emit_f32_to_odd(struct emit *e, V f64); // inexact results get an odd last bit

// math.c, math64.c: x is f32 or f64. NULL: there is no expansion for its type.
V tir_emit_math(struct emit *e, enum tir_op op, V x);
V tir_emit_math64(struct emit *e, enum tir_op op, V x);
V tir_emit_pow(struct emit *e, V x, V y);
V tir_emit_remainder(struct emit *e, V x, V y);
V tir_emit_polynomial(struct emit *e, V x, const double *coefficients, uint32_t count);
V tir_emit_log_edges(struct emit *e, V x, V v); // v, or what log gives at 0, below it, inf and NaN

// Short spellings of LLVM-C, for expansions.
V tir_emit_i32(const struct emit *e, int64_t value);
V tir_emit_const(V like, double value);                       // a float of like's type
V tir_emit_unary(struct emit *e, const char *intrinsic, V x); // overloaded on its type
V tir_emit_binary(struct emit *e, const char *intrinsic, V x, V y);
V tir_emit_fma(struct emit *e, V x, V y, V z);
V tir_emit_bits(struct emit *e, V x, LLVMTypeRef type); // bitcast, or x itself
V tir_emit_select(struct emit *e, V cond, V x, V y);
V tir_emit_fcmp(struct emit *e, LLVMRealPredicate predicate, V x, V y);
V tir_emit_icmp(struct emit *e, LLVMIntPredicate predicate, V x, V y);

#endif
