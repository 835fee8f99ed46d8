// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The IR: SSA values, instructions in blocks, blocks owned by instructions (structured regions),
// kernels. The one header a pass includes; meant to be read whole.
//
// A kernel owns one block. An instruction with regions (for, if, while, tiles, reduce) owns the
// blocks inside it; each ends in a yield. There are no phis: loop-carried values are arguments of
// the loop's block. Constants are values without a defining instruction, unique in the kernel.
#ifndef TIR_IR_IR_H
#define TIR_IR_IR_H

#include "base/diag.h"
#include "base/map.h"
#include "ir/layout.h"
#include "ir/type.h"
#include "tir/artifact.h"

enum tir_op {
#define OP(id, ...) TIR_OP_##id,
#include "ir/ops.def"
    TIR_OP_COUNT
};

enum tir_attr_key {
#define ATTR(key, ...) TIR_ATTR_##key,
#include "ir/attrs.def"
    TIR_ATTR_COUNT
};

enum tir_word {
    TIR_WORD_NONE,
#define WORD(key, name) TIR_WORD_##key##_##name,
#include "ir/words.def"
    TIR_WORD_COUNT
};

enum tir_form { // ORDER FORM: each form admits fewer operations than the one before
    TIR_FORM_TILE,
    TIR_FORM_LAID_OUT,
    TIR_FORM_ASYNC,
    TIR_FORM_SPECIALIZED,
    TIR_FORM_SYNCED,
    TIR_FORM_LOWERED,
    TIR_FORM_COUNT
};

enum tir_trait {
    TIR_PURE = 1 << 0,
    TIR_READS = 1 << 1,
    TIR_WRITES = 1 << 2,
    TIR_ASYNC = 1 << 3,
    TIR_SYNC = 1 << 4,
    TIR_THREAD = 1 << 5,
    TIR_COMMUTES = 1 << 6,
    TIR_REGIONS = 1 << 7,
    TIR_END = 1 << 8
};

enum tir_rule { // how result types follow; see ir/infer.c
    TIR_RULE_NONE,
    TIR_RULE_SAME,
    TIR_RULE_FIRST,
    TIR_RULE_COMPARE,
    TIR_RULE_SELECT,
    TIR_RULE_STATED,
    TIR_RULE_PERMUTE,
    TIR_RULE_COMBINE,
    TIR_RULE_DOT,
    TIR_RULE_LOAD,
    TIR_RULE_ATOMIC,
    TIR_RULE_ATOM,
    TIR_RULE_VIEW,
    TIR_RULE_INDEX,
    TIR_RULE_I32,
    TIR_RULE_CARRIED,
    TIR_RULE_YIELDED,
    TIR_RULE_RING,
    TIR_RULE_BOOL
};

enum tir_elem_class { // ORDER CLASS
    TIR_CLASS_ANY,
    TIR_CLASS_NUM,
    TIR_CLASS_FLOAT,
    TIR_CLASS_INT,
    TIR_CLASS_BITS
};

enum tir_operand_kind {
    TIR_OPERAND_IN,
    TIR_OPERAND_OPT,
    TIR_OPERAND_LIST,
    TIR_OPERAND_REF,
    TIR_OPERAND_BUF
};

#define TIR_MANY 255 // results: as many as types are stated

enum tir_operand_role { // what an operand is for, where code asks
    TIR_ROLE_NONE,
    TIR_ROLE_MASK,    // of elements; absent: all
    TIR_ROLE_PRED,    // of the whole operation; absent: true
    TIR_ROLE_SCRATCH, // shared memory that the operation may use
    TIR_ROLE_BARRIER, // an mbarrier
    TIR_ROLE_I32      // a lane, a CTA or a parity
};

struct tir_operand_info {
    const char *name;
    enum tir_operand_kind kind;
    enum tir_operand_role role;
};
struct tir_attr_spec {
    enum tir_attr_key key;
    bool required;
};
struct tir_op_info {
    const char *name;
    const struct tir_operand_info *operands; // in the order they are written
    const struct tir_attr_spec *attrs;
    uint8_t operand_count, attr_count, result_count;
    uint8_t fixed_count; // operands of kind IN, OPT, BUF: stored first, in order
    bool has_ref, has_list;
    enum tir_rule rule;
    enum tir_elem_class elems;
    uint32_t traits;
    enum tir_form last_form;
    const char *meaning;
};
extern const struct tir_op_info tir_ops[TIR_OP_COUNT];

enum tir_attr_kind { TIR_ATTR_INT, TIR_ATTR_LIST, TIR_ATTR_WORD, TIR_ATTR_TEXT };
struct tir_attr_info {
    const char *name;
    enum tir_attr_kind kind;
    const char *meaning;
};
extern const struct tir_attr_info tir_attr_infos[TIR_ATTR_COUNT];
struct tir_word_info {
    enum tir_attr_key key;
    const char *name;
};
extern const struct tir_word_info tir_words[TIR_WORD_COUNT];
enum { TIR_FACT_COUNT = 3 };
extern const char *const tir_fact_names[TIR_FACT_COUNT]; // of TIR_FACT_*, by bit

const char *tir_form_name(enum tir_form form);
// Which launch of a sequence a kernel is; NONE: it is none, or the only one.
enum tir_step_place {
    TIR_STEP_NONE,
    TIR_STEP_FIRST,
    TIR_STEP_MIDDLE,
    TIR_STEP_LAST,
    TIR_STEP_COUNT
};
extern const char *const tir_step_names[TIR_STEP_COUNT]; // "none", "first"...
// How it overlaps the step before it. ALONE: it does nothing until that has ended. BESIDE: it needs
// nothing of that, and waits for it at its own end. LEADS: ALONE, with a step BESIDE it behind it,
// which it lets begin when the one before itself has ended.
enum tir_step_pace { TIR_PACE_ALONE, TIR_PACE_LEADS, TIR_PACE_BESIDE, TIR_PACE_COUNT };
extern const char *const tir_pace_names[TIR_PACE_COUNT]; // "alone", "leads"...
enum tir_form tir_form_by_name(tir_str name);            // TIR_FORM_COUNT: none
enum tir_op tir_op_by_name(tir_str name);                // TIR_OP_COUNT: none
// What a reduction, scan or atomic of this kind does to two elements; TIR_OP_COUNT: no operation.
enum tir_op tir_op_of_kind(enum tir_word kind);
enum tir_word tir_word_by_name(enum tir_attr_key key, tir_str name); // TIR_WORD_NONE: none

struct tir_attr {
    enum tir_attr_key key;
    int64_t number;      // INT; WORD (enum tir_word)
    const int64_t *list; // LIST
    uint32_t list_count;
    tir_str text; // TEXT
};

struct tir_inst;
struct tir_block;

enum tir_value_kind { TIR_VALUE_RESULT, TIR_VALUE_ARG, TIR_VALUE_CONST };

struct tir_value {
    const struct tir_type *type;
    enum tir_value_kind kind;
    uint32_t id;             // dense in the function
    uint32_t index;          // which result or argument
    struct tir_inst *def;    // RESULT: its instruction, else NULL
    struct tir_block *block; // ARG: its block, else NULL
    const char *name;        // what the source called it, or NULL; a hint for the printer
    union {                  // CONST: every element has this value
        int64_t i;           // bool and integers (u64: the same bits)
        double f;            // floats, already rounded to the element type
    } constant;
    void *data; // a pass's own; meaningless outside it
};

struct tir_inst {
    enum tir_op op;
    uint32_t id; // dense in the function
    struct tir_span span;
    struct tir_block *block;
    struct tir_inst *prev, *next;
    uint32_t operand_count, result_count, region_count, attr_count;
    // Operands: the fixed ones (NULL where an OPT is absent), then either the ref (base, then an
    // index per dimension) or the list.
    struct tir_value **operands;
    struct tir_value **results;
    struct tir_block **regions;
    struct tir_attr *attrs; // sorted by key
    void *data;             // a pass's own; meaningless outside it
};

struct tir_block {
    struct tir_inst *owner; // NULL: the kernel's block or its host block
    struct tir_inst *first, *last;
    struct tir_value **args;
    uint32_t arg_count;
};

// enum tir_direction is the artifact's, under short names.
#define TIR_IN    TIR_DIRECTION_IN
#define TIR_OUT   TIR_DIRECTION_OUT
#define TIR_INOUT TIR_DIRECTION_INOUT

struct tir_param_dim {
    int32_t dim;      // index into tir_func.dims, or -1
    int64_t constant; // when dim < 0
};

struct tir_param {
    const char *name;
    enum tir_direction direction;
    struct tir_value *value; // argument of the kernel's block; a scalar or a tensor
    // A tensor's known alignment in bytes (TIR_FORMULA_ALIGN of the artifact); 0: unknown, also
    // whether the innermost stride is 1.
    uint32_t aligned;
    // The same of where its rows begin alone (TIR_FORMULA_BEGIN): they may be of any length.
    uint32_t begins;
    bool is_scratch; // a scratch tensor of the launch: undefined where no step has stored
    struct tir_param_dim dims[TIR_MAX_RANK];
    struct tir_span span;
};

struct tir_dim {
    const char *name;
    struct tir_value *value; // i64 argument of the kernel's block, after the parameters
};

struct tir_scratch { // a tensor that lives as long as a launch; undefined at first
    const char *name;
    struct tir_value *value; // argument of the kernel's block, after the dimensions
    struct tir_span span;
};

struct tir_meta { // bound; kept for the artifact and for messages
    const char *name;
    tir_str value;
    bool is_default; // it has the value that the kernel states
    bool is_config;  // a configuration binds it
};

struct tir_role { // made a branch by lower_tile; kept for messages
    tir_str name;
    uint32_t first, warps;
};

struct tir_left_out {     // configurations of a list that the kernel does not take
    struct tir_span span; // of its clause
    tir_str text;
    struct tir_left_out *next;
};

struct tir_func {
    struct tir_module *module;
    const char *name;
    struct tir_span span;
    struct tir_param *params;
    struct tir_dim *dims;
    struct tir_scratch *scratch; // in form tile alone: steps have parameters instead
    struct tir_meta *metas;
    struct tir_role *roles;
    uint32_t param_count, dim_count, scratch_count, meta_count, role_count;
    struct tir_block *body;
    // Evaluated by the runtime before a launch, over the kernel's dims and scalar parameters: pure
    // i64 and bool arithmetic. Its yield gives grid_count grid sizes, then extent_count extents,
    // one for each dimension of each scratch tensor, then the conditions that must hold.
    struct tir_block *host;
    uint32_t grid_count; // 0: the tiles loops decide, each of which is a launch of its own
    uint32_t extent_count;
    uint32_t when_count; // the last conditions choose this variant instead of being demanded
    uint32_t own_count;  // the first of those are `where` clauses of this configuration alone
    enum tir_form form;
    const char *after;   // the last pass that ran on a program between passes; NULL: unknown
    uint32_t facts;      // known facts: TIR_FACT_* of the artifact
    uint32_t threads;    // per CTA; 0: not chosen yet
    uint32_t cluster[3]; // CTAs of a cluster along each axis; all 0: no clusters
    // Multiples of those: what the device makes in place of several where it can; all 0: nothing.
    uint32_t preferred[3];
    int64_t shared_bytes;                // once placed
    uint32_t persistent;                 // CTAs per multiprocessor of a persistent grid, else 0
    uint32_t config;                     // number of the kernel's configuration, from 1 on; 0: none
    const struct tir_left_out *left_out; // NULL: nothing
    // What became of its loops before there were variants, for the receipt.
    struct tir_span joined_at;
    tir_str joined;
    bool is_joined; // so the cluster is that of one loop
    enum tir_step_place step;
    enum tir_step_pace pace;
    struct tir_map constants;
    uint32_t value_count, inst_count; // ids given out
};

// Of the attribute persistent of a tiles loop: a CTA takes over its next tile when it gets there.
#define TIR_DYNAMIC 2

struct tir_module {
    struct tir_arena *arena; // owns everything below
    struct tir_types *types;
    struct tir_interner *names;
    struct tir_diags *diags;
    VEC(struct tir_func *) funcs;
};

// Reading.

struct tir_attr *tir_attr_find(const struct tir_inst *inst, enum tir_attr_key key); // NULL: absent
int64_t tir_attr_int(const struct tir_inst *inst, enum tir_attr_key key, int64_t absent);
// Does every thread that reaches a scalar store or atomic of f do it, instead of one for all?
static inline bool tir_is_by_thread(const struct tir_func *f, const struct tir_inst *access)
{
    return f->grid_count || tir_attr_int(access, TIR_ATTR_by_thread, 0);
}
enum tir_word tir_attr_word(const struct tir_inst *inst, enum tir_attr_key key,
                            enum tir_word absent);
// Is it a commit of copies by threads, and not of products of the tensor core?
static inline bool tir_commits_copies(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_COMMIT &&
           tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_cp_async;
}
// Is a buffer in tensor memory, or the one that it is a part of, one of a pair of CTAs?
bool tir_tmem_is_pair(const struct tir_value *buffer);
// Does the atomic order accesses after it, or before it, to other memory?
static inline bool tir_acquires(const struct tir_inst *atomic)
{
    enum tir_word ordering = tir_attr_word(atomic, TIR_ATTR_ordering, TIR_WORD_NONE);
    return ordering == TIR_WORD_ordering_acquire || ordering == TIR_WORD_ordering_acq_rel;
}
static inline bool tir_releases(const struct tir_inst *atomic)
{
    enum tir_word ordering = tir_attr_word(atomic, TIR_ATTR_ordering, TIR_WORD_NONE);
    return ordering == TIR_WORD_ordering_release || ordering == TIR_WORD_ordering_acq_rel;
}

static inline struct tir_value *tir_result(const struct tir_inst *inst) // the only one
{
    assert(inst->result_count == 1);
    return inst->results[0];
}
static inline uint32_t tir_fixed_count(const struct tir_inst *inst)
{
    return tir_ops[inst->op].fixed_count;
}
static inline struct tir_value *tir_ref_base(const struct tir_inst *inst)
{
    assert(tir_ops[inst->op].has_ref);
    return inst->operands[tir_fixed_count(inst)];
}
static inline struct tir_value **
tir_ref_indices(const struct tir_inst *inst) // base->type->rank many
{
    return inst->operands + tir_fixed_count(inst) + 1;
}
// Does an access differ from element to element: by index tiles, or by its mask, an operand?
static inline bool tir_takes_tiles(const struct tir_inst *access, uint32_t mask)
{
    bool takes = access->operands[mask] != NULL;
    for (uint32_t d = 0; d < tir_ref_base(access)->type->rank; d++)
        takes |= tir_type_is_tile(tir_ref_indices(access)[d]->type);
    return takes;
}
static inline struct tir_value **tir_list(const struct tir_inst *inst, uint32_t *count)
{
    *count = inst->operand_count - tir_fixed_count(inst);
    return inst->operands + tir_fixed_count(inst);
}
uint32_t tir_func_ctas(const struct tir_func *f); // of a cluster, the preferred one; 1 without
// A reduction or scan combines so many tiles at a time, and has as many results; `at`: the position
// of tile i among the operands.
#define TIR_MAX_COMBINED 8
uint32_t tir_combined_count(const struct tir_inst *inst);
uint32_t tir_combined_at(const struct tir_inst *inst, uint32_t i);
// The position of the initial carried values among the operands of a for, while or tiles loop.
uint32_t tir_carried_at(const struct tir_inst *inst);
static inline struct tir_inst *tir_yield_of(const struct tir_block *block)
{
    return block->last && block->last->op == TIR_OP_YIELD ? block->last : NULL;
}
static inline bool tir_has_trait(const struct tir_inst *inst, uint32_t traits)
{
    return tir_ops[inst->op].traits & traits;
}
bool tir_has_tile(const struct tir_inst *inst);             // among its operands and results
static inline bool tir_is_loop(const struct tir_inst *inst) // repeats its block in each thread
{
    return inst->op == TIR_OP_FOR || inst->op == TIR_OP_WHILE;
}
static inline bool tir_carries(const struct tir_inst *inst) // values: a loop, or tiles
{
    return tir_ops[inst->op].rule == TIR_RULE_CARRIED;
}
// The buffer or tile that a view, permute or reshape is of; NULL: another operation.
static inline struct tir_value *tir_viewed(const struct tir_inst *inst)
{
    const bool same = inst->op == TIR_OP_PERMUTE || inst->op == TIR_OP_RESHAPE;
    return inst->op == TIR_OP_VIEW ? tir_ref_base(inst) : same ? inst->operands[0] : NULL;
}
// The bytes before an alias in what it is an alias of; 0 for other buffers.
int64_t tir_alias_offset(const struct tir_value *buffer);
// Has the buffer another type somewhere?
bool tir_is_aliased(const struct tir_func *f, const struct tir_value *buffer);
// Is its result a buffer with an address of its own: allocated, or an alias of one that is?
static inline bool tir_is_allocated(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_ALLOC || inst->op == TIR_OP_ALIAS;
}
// What a buffer is a part of, through views, permutes, reshapes and aliases: an alloc, a ring or an
// argument.
struct tir_value *tir_buffer_root(struct tir_value *buffer);
// Does the program declare the buffer that it is of, and order its accesses itself?
bool tir_buffer_is_by_hand(struct tir_value *buffer);
// Does each element of its result depend only on the same elements of its operands?
bool tir_is_elementwise(const struct tir_inst *inst);
bool tir_has_effect(const struct tir_inst *inst); // it, or anything in its regions
bool tir_is_const_int(const struct tir_value *v,
                      int64_t *out); // integer constant (splat or scalar)
// The constant c of *v = x + c, and x in place of *v; 0: it is no such sum.
int64_t tir_split_constant(struct tir_value **v);
// The parameter that v is; NULL: it is none.
const struct tir_param *tir_param_of(const struct tir_func *f, const struct tir_value *v);
// Is the buffer a tensor that the kernel does not write?
bool tir_is_only_read(const struct tir_func *f, const struct tir_value *buffer);
// The alignment in bytes that f's facts and parameters promise for a tensor's address, its rows and
// their distances, and an innermost stride of 1. 0: nothing.
uint32_t tir_tensor_alignment(const struct tir_func *f, const struct tir_value *tensor);
// The same of where its rows begin.
uint32_t tir_tensor_begin(const struct tir_func *f, const struct tir_value *tensor);
bool tir_tensor_is_dense(const struct tir_func *f, const struct tir_value *tensor);
// Which scratch tensor v is; scratch_count: none.
uint32_t tir_scratch_of(const struct tir_func *f, const struct tir_value *v);
// A value of the host block.
struct tir_value *tir_scratch_extent(const struct tir_func *f, uint32_t index, uint32_t dim);
// The position of the conditions among the yields of the host block.
static inline uint32_t tir_conditions_at(const struct tir_func *f)
{
    return f->grid_count + f->extent_count;
}
bool tir_block_contains(const struct tir_block *outer, const struct tir_inst *inst);
// Is inst outer itself, or inside of it?
static inline bool tir_is_inside(const struct tir_inst *inst, const struct tir_inst *outer)
{
    while (inst && inst != outer)
        inst = inst->block->owner;
    return inst;
}
// Is v made in a block of `outer`, at any depth?
bool tir_is_made_in(const struct tir_inst *outer, const struct tir_value *v);
// Whether v fits a place of this type: it has that type or, for a constant, the same tile in any
// layout. The types of constants never have a layout.
bool tir_value_fits(const struct tir_value *v, const struct tir_type *type);

// Positions of the fixed operands: what stands in front of each in its row of ops.def.
#define IN(name)  char name;
#define OPT(name) char name;
#define BUF(name) char name;
#define LIST(name)
#define REF(name)
#define OP(id, name, operands, ...) \
    struct tir_operands_##id {      \
        operands char fixed_count;  \
    };
#include "ir/ops.def"
#define TIR_AT(op, operand) offsetof(struct tir_operands_##op, operand)

enum tir_operand_position { // those that C code names
    TIR_LOAD_PAD = TIR_AT(LOAD, pad),
    TIR_LOAD_MASK = TIR_AT(LOAD, mask),
    TIR_STORE_VALUE = TIR_AT(STORE, value), // atomics begin as stores do
    TIR_STORE_MASK = TIR_AT(STORE, mask),
    TIR_ATOMIC_SCRATCH = TIR_AT(ATOMIC, scratch),
    TIR_ATOMIC_EXPECTED = TIR_AT(ATOMIC, expected),
    TIR_FOR_BEGIN = TIR_AT(FOR, begin),
    TIR_FOR_END = TIR_AT(FOR, end),
    TIR_FOR_STEP = TIR_AT(FOR, step),
    TIR_FOR_INIT = TIR_AT(FOR, fixed_count),
    TIR_DOT_A = TIR_AT(DOT, a), // gemm_async too
    TIR_DOT_B = TIR_AT(DOT, b),
    TIR_DOT_ACC = TIR_AT(DOT, acc),
    TIR_DOT_SA = TIR_AT(DOT, sa), // both are there or neither
    TIR_DOT_SB = TIR_AT(DOT, sb),
    TIR_DOT_OPERANDS = TIR_AT(DOT, fixed_count),
    TIR_GEMM_ASYNC_OPERANDS = TIR_AT(GEMM_ASYNC, fixed_count),
    TIR_GEMM_ACCUMULATE = TIR_AT(GEMM_TMEM, accumulate),
    TIR_GEMM_SA = TIR_AT(GEMM_TMEM, sa), // both are there or neither
    TIR_GEMM_SB = TIR_AT(GEMM_TMEM, sb),
    TIR_GEMM_OPERANDS = TIR_AT(GEMM_TMEM, fixed_count),
    TIR_REDUCE_X = TIR_AT(REDUCE, x), // scan and convert_layout too
    TIR_REDUCE_SCRATCH = TIR_AT(REDUCE, scratch),
    TIR_TMEM_FROM = TIR_AT(TMEM_COPY, from),
    TIR_TMEM_TO = TIR_AT(TMEM_COPY, to),
    TIR_TMEM_SLOT = TIR_AT(TMEM_ALLOC, slot),
    TIR_PUSH_MBAR = TIR_AT(PUSH, mbar),
    TIR_COPY_TO = TIR_AT(COPY_ASYNC, to),
    TIR_COPY_PRED = TIR_AT(COPY_ASYNC, pred),
    TIR_COPY_MBAR = TIR_AT(COPY_ASYNC, mbar),
    TIR_COPY_CTAS = TIR_AT(COPY_ASYNC, ctas),
    TIR_COPY_MASK = TIR_AT(COPY_ASYNC, mask),
    TIR_COPY_DZ = TIR_AT(COPY_ASYNC, dz), // to dx
    TIR_COPY_FIXED = TIR_AT(COPY_ASYNC, fixed_count),
    TIR_SEND_FROM = TIR_AT(STORE_ASYNC, from),
    TIR_BAR = TIR_AT(WAIT, bar), // of every operation on an mbarrier
    TIR_BAR_AT = TIR_AT(WAIT, at),
    TIR_ARRIVE_CTA = TIR_AT(ARRIVE, cta),
    TIR_COMMIT_CTAS = TIR_AT(COMMIT, ctas),
    TIR_WAIT_PARITY = TIR_AT(WAIT, parity),
    TIR_CANCEL_TO = TIR_AT(TRY_CANCEL, to),
    TIR_CANCEL_TO_AT = TIR_AT(TRY_CANCEL, to_at),
    TIR_CANCEL_BAR = TIR_AT(TRY_CANCEL, bar),
    TIR_CANCEL_BAR_AT = TIR_AT(TRY_CANCEL, bar_at),
    TIR_CANCEL_RESPONSE = TIR_AT(IS_CANCELED, response), // first_ctaid too
    TIR_CANCEL_AT = TIR_AT(IS_CANCELED, at),
    TIR_TCGEN05_D = TIR_AT(TCGEN05_MMA, d),
    TIR_TCGEN05_A = TIR_AT(TCGEN05_MMA, a),
    TIR_TCGEN05_B = TIR_AT(TCGEN05_MMA, b),
    TIR_TCGEN05_ACCUMULATE = TIR_AT(TCGEN05_MMA, accumulate),
    TIR_TCGEN05_SA = TIR_AT(TCGEN05_MMA, sa),
    TIR_TCGEN05_SB = TIR_AT(TCGEN05_MMA, sb),
    TIR_TCGEN05_OPERANDS = TIR_AT(TCGEN05_MMA, fixed_count),
    TIR_TCGEN05_CP_TO = TIR_AT(TCGEN05_CP, to),
    TIR_TCGEN05_CP_FROM = TIR_AT(TCGEN05_CP, from),
    TIR_MMA_SA = TIR_AT(MMA, sa), // both are there or neither
    TIR_MMA_SB = TIR_AT(MMA, sb),
    TIR_MMA_REGISTERS = TIR_AT(MMA, fixed_count),
    TIR_WGMMA_B = TIR_AT(WGMMA, b),
    TIR_WGMMA_A = TIR_AT(WGMMA, a),
    TIR_WGMMA_SCALE = TIR_AT(WGMMA, scale),
    TIR_WGMMA_REGISTERS = TIR_AT(WGMMA, fixed_count),
    TIR_TMA_BUFFER = TIR_AT(TMA_LOAD, to), // bulk copies and stores begin as these do
    TIR_TMA_AT = TIR_AT(TMA_LOAD, to_at),
    TIR_TMA_BAR = TIR_AT(TMA_LOAD, bar),
    TIR_TMA_BAR_AT = TIR_AT(TMA_LOAD, bar_at),
    TIR_TMA_CTAS = TIR_AT(TMA_LOAD, ctas),
    TIR_GATHER_ROWS = TIR_AT(TMA_GATHER, row1), // the second to the fourth
    TIR_ROWS_AT_ONCE = TIR_AT(TMA_GATHER, fixed_count) - TIR_GATHER_ROWS + 1,
    TIR_PIXELS_DZ = TIR_AT(TMA_PIXELS, dz), // to dx
    TIR_PIXEL_DIMS = 3,                     // at most
    TIR_PIXEL_OF = TIR_AT(PIXEL_INDEX, of),
    TIR_PIXEL_DZ = TIR_AT(PIXEL_INDEX, dz), // to dx
    TIR_PIXEL_FIRST = TIR_AT(PIXEL_INDEX, fixed_count)
};
#define TIR_TIED_REGISTERS              256 // of a thread, in one lowered await or wgmma_fence
// Where one name serves several operations.
#define TIR_SAME(op, operand, position) static_assert(TIR_AT(op, operand) == (position), "ops.def")
TIR_SAME(ATOMIC, value, TIR_STORE_VALUE);
TIR_SAME(ATOMIC, mask, TIR_STORE_MASK);
TIR_SAME(GEMM_ASYNC, a, TIR_DOT_A);
TIR_SAME(GEMM_ASYNC, b, TIR_DOT_B);
TIR_SAME(GEMM_ASYNC, acc, TIR_DOT_ACC);
TIR_SAME(GEMM_TMEM, a, TIR_DOT_A);
TIR_SAME(GEMM_TMEM, b, TIR_DOT_B);
TIR_SAME(GEMM_TMEM, acc, TIR_DOT_ACC);
TIR_SAME(TEST_WAIT, bar, TIR_BAR);
TIR_SAME(TEST_WAIT, at, TIR_BAR_AT);
TIR_SAME(TEST_WAIT, parity, TIR_WAIT_PARITY);
TIR_SAME(FIRST_CTAID, response, TIR_CANCEL_RESPONSE);
TIR_SAME(FIRST_CTAID, at, TIR_CANCEL_AT);
TIR_SAME(TRY_CANCEL, to, TIR_CANCEL_RESPONSE);
TIR_SAME(TRY_CANCEL, to, TIR_COPY_TO);
TIR_SAME(TRY_CANCEL, to_at, TIR_CANCEL_AT);
TIR_SAME(COMMIT, bar, TIR_BAR);
TIR_SAME(COMMIT, at, TIR_BAR_AT);
TIR_SAME(COMMIT, ctas, TIR_ARRIVE_CTA);
TIR_SAME(SCAN, x, TIR_REDUCE_X);
TIR_SAME(SCAN, scratch, TIR_REDUCE_SCRATCH);
TIR_SAME(CONVERT_LAYOUT, x, TIR_REDUCE_X);
TIR_SAME(CONVERT_LAYOUT, scratch, TIR_REDUCE_SCRATCH);
TIR_SAME(MBARRIER_INIT, bar, TIR_BAR);
TIR_SAME(MBARRIER_INIT, at, TIR_BAR_AT);
TIR_SAME(ARRIVE, bar, TIR_BAR);
TIR_SAME(ARRIVE, at, TIR_BAR_AT);
TIR_SAME(TMA_GATHER, to, TIR_TMA_BUFFER);
TIR_SAME(TMA_GATHER, to_at, TIR_TMA_AT);
TIR_SAME(TMA_GATHER, bar, TIR_TMA_BAR);
TIR_SAME(TMA_GATHER, bar_at, TIR_TMA_BAR_AT);
TIR_SAME(TMA_GATHER, ctas, TIR_TMA_CTAS);
TIR_SAME(TMA_PIXELS, to, TIR_TMA_BUFFER);
TIR_SAME(TMA_PIXELS, to_at, TIR_TMA_AT);
TIR_SAME(TMA_PIXELS, bar, TIR_TMA_BAR);
TIR_SAME(TMA_PIXELS, bar_at, TIR_TMA_BAR_AT);
TIR_SAME(TMA_PIXELS, ctas, TIR_TMA_CTAS);
TIR_SAME(TMA_STORE, from, TIR_TMA_BUFFER);
TIR_SAME(TMA_STORE, from_at, TIR_TMA_AT);
TIR_SAME(BULK_LOAD, to, TIR_TMA_BUFFER);
TIR_SAME(BULK_LOAD, to_at, TIR_TMA_AT);
TIR_SAME(BULK_LOAD, bar, TIR_TMA_BAR);
TIR_SAME(BULK_LOAD, bar_at, TIR_TMA_BAR_AT);
TIR_SAME(BULK_SEND, bar, TIR_TMA_BAR);
TIR_SAME(ST_ASYNC, bar, TIR_TMA_BAR);
TIR_SAME(PUSH, value, TIR_STORE_VALUE);
TIR_SAME(BULK_STORE, to, TIR_TMA_BUFFER);

// The bits of the elements that a copy finds packed in bytes, 4 or 6; 0: it copies as many
// elements.
static inline uint32_t tir_copy_packed(const struct tir_inst *copy)
{
    const enum tir_elem to = copy->operands[TIR_COPY_TO]->type->elem;
    const bool is_packed = tir_elem_is_narrow(to) && tir_ref_base(copy)->type->elem == TIR_U8;
    return is_packed ? tir_elem_width(to) : 0;
}
// Does a copy take pixels one after the other, in the order of images?
static inline bool tir_copies_pixels(const struct tir_inst *copy)
{
    return tir_attr_find(copy, TIR_ATTR_low) || tir_attr_find(copy, TIR_ATTR_high);
}
bool tir_pixels_fit(const struct tir_inst *copy); // its slice, corners and offsets to each other
// Has a tensor of this rank such pixels, from `low` to the last one + `high`, taken by `strides`
// (NULL: 1)?
bool tir_corners_fit(uint32_t rank, const struct tir_attr *low, const struct tir_attr *high,
                     const struct tir_attr *strides);
int64_t tir_most_pixel_offset(uint32_t rank); // along each dimension of such a tensor
// Can pixels be so far from their base pixels along each of dz, dy, dx? NULL: they are not.
bool tir_pixel_offsets_fit(uint32_t rank, struct tir_value *const *offsets);
// The index tile of a copy that single threads start, now or when its put is lowered: rows that it
// names one by one. NULL: none.
struct tir_value *tir_copied_rows(const struct tir_inst *copy);
// Is it a load of all rows of such a copy by each thread?
static inline bool tir_loads_rows(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_LOAD && tir_attr_int(inst, TIR_ATTR_by_thread, 0);
}
// Does a load, or a copy to `to`, round f32 of a tensor to tf32?
static inline bool tir_rounds(const struct tir_inst *access, const struct tir_value *to)
{
    const struct tir_type *from = tir_ref_base(access)->type;
    return from->space == TIR_SPACE_GLOBAL && from->elem == TIR_F32 && to->type->elem == TIR_TF32;
}
// Does it multiply factors that have scales?
static inline bool tir_is_scaled_dot(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_DOT && inst->operand_count == TIR_DOT_OPERANDS &&
           (inst->operands[TIR_DOT_SA] || inst->operands[TIR_DOT_SB]);
}

// Building.

struct tir_module *tir_module_new(struct tir_arena *arena, struct tir_types *types,
                                  struct tir_interner *names, struct tir_diags *diags);
struct tir_func *tir_func_new(struct tir_module *m,
                              const char *name); // with an empty body and host
struct tir_func *tir_func_clone(struct tir_func *f);
// Without the tiles loops of its block other than this one.
struct tir_func *tir_func_clone_with(struct tir_func *f, const struct tir_inst *loop);
// Of the same blocks, with parameters and dimensions of its own: of the two, neither may change the
// blocks from then on.
struct tir_func *tir_func_share(const struct tir_func *f);
// The copy is in module m, and may be changed on another thread than f's module is. It goes on
// using names and texts of f's module, which must outlive it.
struct tir_func *tir_func_clone_to(struct tir_module *m, const struct tir_func *f);
// The same, and its values and instructions have the numbers of f's: for a reader that may not
// tell the two apart.
struct tir_func *tir_func_clone_numbered(struct tir_module *m, const struct tir_func *f);
struct tir_block *tir_block_new(struct tir_func *f, struct tir_inst *owner);
struct tir_value *tir_block_add_arg(struct tir_func *f, struct tir_block *block,
                                    const struct tir_type *type, const char *name);

struct tir_value *tir_const_int(struct tir_func *f, const struct tir_type *type, int64_t value);
struct tir_value *tir_const_float(struct tir_func *f, const struct tir_type *type,
                                  double value); // rounds
struct tir_value *tir_const_like(struct tir_func *f, const struct tir_type *type,
                                 double value); // either
// The number that a constant tile repeats, as a scalar.
struct tir_value *tir_const_element(struct tir_func *f, const struct tir_value *constant);
// The number of `constant` in a type with the same elements.
struct tir_value *tir_const_as(struct tir_func *f, const struct tir_type *type,
                               const struct tir_value *constant);
struct tir_value *tir_const_index(struct tir_func *f, int64_t value); // i64
struct tir_value *tir_const_i32(struct tir_func *f, int32_t value);
struct tir_value *tir_const_bool(struct tir_func *f, bool value);

struct tir_builder {
    struct tir_func *f;
    struct tir_block *block;
    struct tir_inst *before; // new instructions go in front of it; NULL: at the end of block
    struct tir_span span;
};

static inline struct tir_builder tir_builder_at_end(struct tir_func *f, struct tir_block *block)
{
    return (struct tir_builder){f, block, NULL, {0, 0}};
}
static inline struct tir_builder tir_builder_before(struct tir_func *f, struct tir_inst *inst)
{
    return (struct tir_builder){f, inst->block, inst, inst->span};
}

// Operands are in stored order (fixed, then ref or list). types: one per result; regions are empty
// blocks to be filled by the caller. Nothing is checked here: verify.c does that.
struct tir_inst *tir_build(struct tir_builder *b, enum tir_op op, struct tir_value *const *operands,
                           uint32_t operand_count, const struct tir_type *const *types,
                           uint32_t result_count, uint32_t region_count);
// The common case: one result, fixed operands only.
struct tir_value *tir_build1(struct tir_builder *b, enum tir_op op, const struct tir_type *type,
                             struct tir_value *const *operands, uint32_t operand_count);
struct tir_value *tir_unary(struct tir_builder *b, enum tir_op op, struct tir_value *x); // SAME
struct tir_value *tir_transpose(struct tir_builder *b, struct tir_value *x); // last two dimensions
// The tile in a layout: itself where it has that one, where none is asked for, and where it is no
// tile or a constant, which fits any.
struct tir_value *tir_in_layout(struct tir_builder *b, struct tir_value *v,
                                const struct tir_layout *layout);
// SAME or COMPARE; folds nothing.
struct tir_value *tir_binary(struct tir_builder *b, enum tir_op op, struct tir_value *x,
                             struct tir_value *y);
struct tir_inst *tir_build_yield(struct tir_builder *b, struct tir_value *const *values,
                                 uint32_t count);
void tir_set_int(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key, int64_t number);
void tir_set_word(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key,
                  enum tir_word word);
void tir_set_list(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key,
                  const int64_t *list, uint32_t count);
// As `from` has it; if it has none, nothing changes.
// Do both have the same list, or none?
bool tir_same_list(const struct tir_inst *a, const struct tir_inst *b, enum tir_attr_key key);
void tir_copy_attr(struct tir_func *f, struct tir_inst *to, const struct tir_inst *from,
                   enum tir_attr_key key);
void tir_drop_attr(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key);
void tir_set_text(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key, tir_str text);

// The result type an op gives for these operands, or NULL with *why set to a short reason. stated
// is the annotation (NULL: none) and is what STATED rules return; the other rules take a layout
// from it where the operands leave it open. Of several results it is the first one's type; an op
// without results gives the type whose element is TIR_NONE. Used by the front end and verify.c.
const struct tir_type *tir_infer(struct tir_module *m, const struct tir_inst *inst,
                                 const struct tir_type *stated, tir_str *why);
// The same for any result of a reduction or scan.
const struct tir_type *tir_infer_result(struct tir_module *m, const struct tir_inst *inst,
                                        uint32_t result, const struct tir_type *stated,
                                        tir_str *why);

// The element type of the sums of a dot; acc: that of the accumulator, NONE if there is none. Of 16
// and 8 bits, sums are f16 where the accumulator is. NONE: the operands do not multiply.
enum tir_elem tir_dot_elem(enum tir_elem a, enum tir_elem b, enum tir_elem acc);

// The shape that the index tiles among the indices of a slice (box -1) have together: each repeats
// along its dimensions of size 1. Rank 0: there are none. False: they do not fit.
bool tir_index_shape(struct tir_value *const *indices, const int64_t *box, uint32_t count,
                     struct tir_type *shape);
// The first dimension of the accessed tile that index d of the slice gives. Index tiles give theirs
// together, where the first of them stands.
uint32_t tir_slice_dim(const struct tir_inst *inst, uint32_t d);
// Elements of the tensor between neighbours of the slice along its dimension d (the attribute
// strides), at most TIR_MAX_STRIDE.
#define TIR_MAX_STRIDE 8
int64_t tir_slice_stride(const struct tir_inst *inst, uint32_t d);

// Changing.

void tir_remove(struct tir_inst *inst); // unlinks it; its results must have no uses left
void tir_move_before(struct tir_inst *inst, struct tir_inst *where);
void tir_replace_uses(struct tir_func *f, struct tir_value *from,
                      struct tir_value *to); // a walk of f
// Those of an instruction's result, which are behind it in its block or inside of that: a walk of
// that part alone.
void tir_replace_later_uses(struct tir_value *from, struct tir_value *to);
// Replaces by table in one walk: to = map[from] for every operand; chains are followed.
void tir_replace_uses_map(struct tir_func *f, const struct tir_map *map);
// Copies block `from` to the builder's position without its yield; map gives (and takes) the values
// that stand for others: arguments must be in it.
void tir_clone_into(struct tir_builder *b, const struct tir_block *from, struct tir_map *map);
// Copies one instruction to the builder's position, with all that is inside of it.
struct tir_inst *tir_clone_inst(struct tir_builder *b, const struct tir_inst *inst,
                                struct tir_map *map);
// v again at the builder's position: copies the instructions of `block` that it follows from, but
// for what map gives.
struct tir_value *tir_clone_value(struct tir_builder *b, struct tir_value *v,
                                  const struct tir_block *block, struct tir_map *map);

// Text. print and the front end's parser are inverse: parse(print(m)) prints the same.
void tir_print_module(struct tir_text *out, const struct tir_module *m);
void tir_print_func(struct tir_text *out, const struct tir_func *f);
void tir_print_line(struct tir_text *out, const struct tir_func *f, const struct tir_inst *inst);

// The rules every form shares, then those of f->form. Reports E_VERIFY; false: something is wrong.
bool tir_verify(struct tir_func *f);

#endif
