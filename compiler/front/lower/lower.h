// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lowering: the syntax tree to IR, with names, types and shapes checked on the way.
//
// There is no checked tree in between: metas are bound before a kernel is lowered, so every shape
// is concrete, and an expression is either a compile-time value or an IR value as soon as it is
// met. Functions are inlined by lowering their body again for each call.
//
// Assignable variables become SSA as they are met: a symbol holds the value that stands for it now,
// and a loop or branch carries the outer variables that its block assigns (assigned.c).
//
// A mistake gives a diagnostic and a poison value; whatever is made from poison is poison and
// silent.
#ifndef TIR_FRONT_LOWER_LOWER_H
#define TIR_FRONT_LOWER_LOWER_H

#include "front/front.h"
#include "front/parse/ast.h"

enum { MAX_CLUSTER = 16 }; // CTAs

enum val_kind {
    VAL_POISON, // a diagnostic was reported
    VAL_VOID,   // a call without a result
    VAL_INT,    // compile-time, exact
    VAL_FLOAT,
    VAL_BOOL,
    VAL_ELEM, // an element type
    VAL_LAYOUT,
    VAL_TEXT,
    VAL_RING,
    VAL_FN,      // a function
    VAL_MODULE,  // import "x.tir" as NAME
    VAL_CONFIGS, // configs NAME { ... }
    VAL_ABSENT,  // an argument that a call leaves to its default
    VAL_IR       // a scalar, a tile, or a buffer
};

struct fn_value {
    struct ast_fn *fn;                     // NULL: a built-in function or operation
    const char *name;                      // how it is called
    const struct ast_signature *signature; // NULL: none is stated
};

struct val {
    enum val_kind kind;
    union {
        int64_t i;
        double f;
        bool truth;
        enum tir_elem elem;
        const struct tir_layout *layout;
        tir_str text;
        struct ring *ring;
        const struct fn_value *fn;
        const struct module *module;
        struct config_list *configs;
        struct tir_value *ir;
    };
};

typedef VEC(struct val) val_list;

struct symbol {
    const char *name;
    struct tir_span span;
    bool assignable;             // `var`
    bool used;                   // read somewhere
    bool may_be_unused;          // not one that a warning is about
    bool is_slot;                // a buffer of the ring that the put around fills
    int64_t stages;              // of a `stage` variable, whose index this is; else 0
    struct val val;              // what it stands for now
    const struct tir_type *type; // of an assignable
    uint32_t level;              // how many tiles loops are around its declaration
    uint32_t place;              // of the name, in the map of names
    struct symbol *shadowed;     // what the name meant outside
    struct symbol *next;         // in the same scope
};

typedef VEC(struct symbol *) symbol_list;

struct loop { // the innermost loop, for break and continue
    struct loop *outer;
    struct symbol *live;  // false once the iteration is over; NULL: no break or continue in it
    struct symbol *go_on; // false once the loop is over; NULL: no break in it
};

struct inlined { // functions being inlined
    struct inlined *outer;
    const struct ast_fn *fn;
    struct tir_span call;
    bool by_element; // a parameter of a scalar type was given a tile
};

struct role { // what a role says, and has been met in it
    struct tir_inst *inst;
    const char *name;
    struct tir_span span;
    int64_t warps, first, regs; // first -1, regs 0: not stated
    uint32_t tiles_loops;
};

struct ring {
    struct tir_inst *inst;
    const ast_bindings *buffers;
    struct tir_span span;
    const struct role *put, *get; // the roles that do so; NULL: none yet
};

struct barrier { // an array of mbarriers that is prepared at the kernel's begin
    struct tir_value *array;
    int64_t arrivals;
};

struct sized_dim { // a dimension of a parameter that is an expression
    const struct ast_param *param;
    const struct ast_expr *size;
    uint32_t dim;
    bool is_open; // a name in it is not known yet
};

typedef VEC(struct tir_value *) value_list;

struct module {             // a file, and those that it imports without a name
    struct tir_map fns;     // interned name -> struct ast_fn
    struct tir_map globals; // interned name -> struct symbol: constants, modules
};

struct program { // what the files declare
    struct module *main;
    struct module *standard; // library/standard.tir; NULL: not asked for yet
    struct loader *loader;   // front.c
    VEC(struct ast_kernel *) kernels;
};

struct lower {
    struct tir_context *cx;
    struct tir_arena *arena;
    struct tir_module *m;
    struct program *program;
    struct tir_func *f; // a scratch one while the program's constants are evaluated
    struct tir_builder b;
    const struct module *home; // whose names the text sees
    struct tir_map names;      // interned name -> struct symbol, innermost meaning
    struct symbol *scope;      // symbols of the innermost scope
    struct loop *loop;         // NULL: none, or a function boundary
    struct tir_map staged;     // tile -> the shared buffer that has it
    struct tir_map staging;    // the allocations of such buffers
    struct tir_map batches;    // joined sums of products -> struct batch
    struct tir_map literals;   // value -> struct literal_choice: a `where` of literals
    struct inlined *calls;     // innermost first
    uint32_t level;            // tiles loops around
    uint32_t depth;
    uint64_t steps;
    uint32_t errors;      // reported, those of repeated inlining included
    bool stopped;         // a limit was passed; nothing more is lowered
    bool in_host;         // in a clause: calls of operations are never evaluated here
    bool is_ir;           // the kernel has a form clause: it is IR text
    bool rounds_products; // contract(off)
    bool is_config;       // one of several: it may be left out
    bool is_impossible;   // a condition is false whatever the launch
    bool is_repeated;     // an earlier configuration binds all metas alike
    uint32_t tiles_loops;
    VEC(struct sized_dim) sized;
    VEC(struct role *) roles;
    struct role *role;    // the one around; NULL: none
    uint32_t scope_warps; // of the scope around; 0: none
    VEC(struct ring *) rings;
    VEC(struct barrier) barriers;
    uint32_t barriers_left;       // declarations of mbarriers that are still to come
    struct tir_inst *tmem_alloc;  // of tensor memory; NULL: there is none
    struct tir_value *tmem_base;  // where it begins
    int64_t tmem_columns;         // of the buffers that are declared
    const struct tir_inst *tiles; // the first tiles loop in a role
};

// Errors (error.c). Each adds where the function was called from.
void lower_error(struct lower *l, struct tir_span span, enum tir_diag_code code, const char *format,
                 ...) TIR_PRINTF(4, 5);
void lower_note(struct lower *l, struct tir_span span, const char *format, ...) TIR_PRINTF(3, 4);
const char *lower_type_name(struct lower *l, const struct tir_type *t);
const char *lower_val_name(struct lower *l, struct val v); // "f32[64]", "the integer 3", ...
// Notes what e is and where it was made, when e is a name.
void lower_note_operand(struct lower *l, const struct ast_expr *e, struct val v);
// Counts one level and one step; false (reported) past the limits. Pair with lower_leave.
bool lower_enter(struct lower *l, struct tir_span span);
void lower_leave(struct lower *l);

static inline struct val val_poison(void)
{
    return (struct val){VAL_POISON, {0}};
}
static inline struct val val_int(int64_t i)
{
    return (struct val){.kind = VAL_INT, .i = i};
}
static inline struct val val_float(double f)
{
    return (struct val){.kind = VAL_FLOAT, .f = f};
}
static inline struct val val_bool(bool truth)
{
    return (struct val){.kind = VAL_BOOL, .truth = truth};
}
static inline struct val val_ir(struct tir_value *ir)
{
    return ir ? (struct val){.kind = VAL_IR, .ir = ir} : val_poison();
}
static inline bool val_is_constant(struct val v) // compile-time
{
    return v.kind == VAL_INT || v.kind == VAL_FLOAT || v.kind == VAL_BOOL;
}

// Names (scope.c).
struct symbol *scope_enter(struct lower *l); // gives what scope_leave takes
void scope_leave(struct lower *l, struct symbol *outer);
struct symbol *scope_declare(struct lower *l, const char *name, struct tir_span span,
                             struct val val);
struct symbol *scope_find(struct lower *l, const char *name); // NULL: none
// Reports an unknown name with the nearest spelling.
void scope_unknown(struct lower *l, struct tir_span span, const char *name);
// The same of what e is a member of, as in `tl.exp`.
void scope_unknown_prefix(struct lower *l, const struct ast_expr *e);
// The function that e names is not in module m.
void scope_unknown_function(struct lower *l, const struct module *m, const struct ast_expr *e);

// Outer variables that the blocks assign, in the order of their assignment (assigned.c).
void assigned_in(struct lower *l, const struct ast_block *a, const struct ast_block *b,
                 symbol_list *out);
// The same for the statements of a block from `first` on.
void assigned_from(struct lower *l, const struct ast_block *block, uint32_t first,
                   symbol_list *out);
// Marks what the text names as used (uses.c).
void uses_of(struct lower *l, const struct ast_expr *e);
// The statements from `first` on. NULL: none.
void uses_in(struct lower *l, const struct ast_block *block, uint32_t first);
bool has_break(const struct ast_block *block); // of the loop the block belongs to
bool may_leave(const struct ast_stmt *s);      // contains a break or continue of the loop around
bool block_may_leave(const struct ast_block *block);

// The functions in the language itself that every program has beside the built-in ones (front.c).
const struct module *lower_standard(struct lower *l);

// Compile-time arithmetic (const_eval.c).
struct val const_unary(struct lower *l, struct tir_span span, enum tir_token_kind op, struct val a);
struct val const_binary(struct lower *l, struct tir_span span, enum tir_token_kind op, struct val a,
                        struct val b);
// An operation of the table on compile-time values. False: not one that is evaluated.
bool const_call(struct lower *l, struct tir_span span, enum tir_op op, const struct val *args,
                uint32_t count, struct val *out);
// The value of `const NAME: type = v`.
struct val const_typed(struct lower *l, const struct ast_binding *b, struct val v);
// Compile-time values that something needs. False: reported (or poison).
bool const_int(struct lower *l, const struct ast_expr *e, const char *what, int64_t *out);
bool const_truth(struct lower *l, const struct ast_expr *e, const char *what, bool *out);

// Conversions (convert.c). NULL: reported, or v is poison.
struct tir_value *convert_default(struct lower *l, struct tir_span span, struct val v); // i64, f32
struct tir_value *convert_elem(struct lower *l, struct tir_span span, struct val v,
                               enum tir_elem elem); // implicit; keeps the shape
struct tir_value *convert_to(struct lower *l, struct tir_span span, struct val v,
                             const struct tir_type *type); // implicit, with broadcasting
struct tir_value *convert_shape(struct lower *l, struct tir_span span, struct tir_value *v,
                                const struct tir_type *type); // broadcasting alone
struct tir_value *convert_cast(struct lower *l, struct tir_span span, struct val v,
                               enum tir_elem elem);        // explicit
bool convert_widens(enum tir_elem from, enum tir_elem to); // or the same
struct tir_value *convert_constant(struct lower *l, struct tir_span span, struct val v,
                                   const struct tir_type *type); // v is compile-time
bool convert_int_fits(int64_t v, enum tir_elem e);
// A literal, or a choice among literals, takes the type that its context asks for.
bool convert_is_literal(const struct lower *l, struct val v);
void convert_note_literal(struct lower *l, const struct tir_value *where, struct val a,
                          struct val b);
// Brings operands to one element type and one shape. elems: what the operation takes. hint: for
// compile-time operands alone, or TIR_NONE.
struct unify {
    const char *what; // "+", "where"
    struct tir_span span;
    enum tir_elem_class elems;
    enum tir_elem hint;
    const struct ast_expr *const *exprs; // for notes; may hold NULL
};
bool convert_unify(struct lower *l, const struct unify *u, struct val *vals, uint32_t count);
// The element types alone, or the shapes alone; every operand is an IR value.
bool convert_unify_elems(struct lower *l, const struct unify *u, struct val *vals, uint32_t count);
bool convert_unify_shapes(struct lower *l, const struct unify *u, struct val *vals, uint32_t count);
bool convert_is_value(struct lower *l, struct tir_span span, struct val v); // not a buffer or type
// After an error, what would make types fit (suggest.c): a cast, another axis, or one axis less.
void lower_suggest_cast(struct lower *l, const struct unify *u, const struct val *vals,
                        uint32_t count);
void lower_suggest_none(struct lower *l, const struct ast_expr *e, const struct tir_type *small,
                        const struct tir_type *large);
// Where a function stands that is no value: how functions are passed.
void lower_suggest_parameter(struct lower *l, struct tir_span span, struct val v);
void lower_suggest_turned(struct lower *l, const struct ast_expr *e);
void lower_suggest_order(struct lower *l, enum tir_token_kind op, const struct ast_expr *const *e);
void lower_suggest_axis(struct lower *l, struct tir_span span, const struct tir_type *from,
                        const struct tir_type *to);
struct tir_value *build_reshape(struct lower *l, struct tir_value *v, uint32_t rank,
                                const int64_t *shape);
struct tir_value *build_transpose(struct lower *l, struct tir_value *v); // the last two dimensions
struct tir_value *build_iota(struct lower *l, const struct tir_type *type, uint32_t axis);
struct tir_value *build_splat(struct lower *l, struct tir_value *v, const struct tir_type *type);
struct tir_value *build_one(struct lower *l, enum tir_op op, const struct tir_type *type,
                            struct tir_value *const *operands, uint32_t count);

// Types (type.c). NULL: reported.
const struct tir_type *lower_type(struct lower *l, const struct ast_type *from);
// The same where nothing of the type has a place yet: its layout may be of threads or of memory.
const struct tir_type *lower_type_and_layout(struct lower *l, const struct ast_type *from);
bool lower_elem(struct lower *l, const struct ast_type *t, enum tir_elem *out);
const struct tir_type *lower_tile_type(struct lower *l, struct tir_span span, enum tir_elem elem,
                                       uint32_t rank, const int64_t *shape);
bool lower_tile_fits(struct lower *l, struct tir_span span, const struct tir_type *t);

// Expressions.
struct val lower_expr(struct lower *l, const struct ast_expr *e);
struct val lower_binary_vals(struct lower *l, const struct ast_expr *e, enum tir_token_kind token,
                             const struct ast_expr *ea, struct val a, const struct ast_expr *eb,
                             struct val b);
// A call dot(a, b) without an accumulator.
bool lower_is_fresh_dot(struct lower *l, const struct ast_expr *e);

// Parts of tiles that are computed from loads alone (loaded_part.c).
struct tile_part {
    int64_t start[TIR_MAX_RANK], size[TIR_MAX_RANK];
    bool drop[TIR_MAX_RANK]; // a dimension of which it has one element
};
// The part, loaded and computed by itself; NULL: v is computed from something else.
struct tir_value *build_loaded_part(struct lower *l, struct tir_value *v,
                                    const struct tile_part *p);
// A factor of a product that is computed from parts of tiles: these parts loaded by themselves, so
// that they are copied to where products read them. v, if it is computed from something else.
struct tir_value *build_loaded_factor(struct lower *l, struct tir_value *v);

// Products of rank 3 (batch.c).
#define LOWER_MAX_BATCH 16
// Matrix number `at` of a tile or buffer of rank 3, all of one of rank 2.
struct tir_value *batch_matrix(struct lower *l, struct tir_value *v, int64_t at);
struct tir_value *batch_join(struct lower *l, struct tir_value *const *sums, uint32_t count);
// x + product, where that was joined and is used here alone. NULL: it was not joined.
struct tir_value *batch_accumulate(struct lower *l, struct tir_value *product, struct tir_value *x);

// Slices (index.c).
struct slice {
    struct tir_span span;
    struct tir_value *base;
    struct tir_value *indices[TIR_MAX_RANK];
    int64_t box[TIR_MAX_RANK];
    int64_t stride[TIR_MAX_RANK];          // of a slice, until index tiles stand for it
    struct tir_value *limit[TIR_MAX_RANK]; // elements that there are of a box; NULL: all
    uint32_t axis[TIR_MAX_RANK];           // of the tile, where the index's dimensions begin
    const struct tir_type *type;           // of the tile it names
    const struct tir_type *shown;          // with the dimensions that None adds
};
// PIXEL: a read from the first of some pixels on, which may lie before the image.
enum slice_use { SLICE_READ, SLICE_PIXEL, SLICE_WRITE, SLICE_UPDATE, SLICE_VIEW };
bool lower_slice(struct lower *l, const struct ast_expr *e, enum slice_use use, struct slice *out);
struct val lower_index(struct lower *l, const struct ast_expr *e);
// The part of a tile that begins at start, inside of it.
struct tir_value *build_part(struct lower *l, struct tir_value *v, const int64_t *start,
                             const int64_t *size);
// Shared buffers of the compiler's own, in which values are rearranged (rearrange.c).
struct tir_value *lower_staging(struct lower *l, const struct tir_type *tile); // to be stored to
struct tir_value *lower_staged(struct lower *l, struct tir_value *tile);       // has the tile
struct tir_value *build_load(struct lower *l, const struct slice *s, struct tir_value *pad,
                             struct tir_value *mask);
void build_store(struct lower *l, const struct slice *s, struct tir_value *value,
                 struct tir_value *mask);
struct tir_inst *build_atomic(struct lower *l, const struct slice *s, struct tir_value *value,
                              struct tir_value *mask, enum tir_word kind);
struct tir_value *lower_view(struct lower *l, const struct ast_expr *e);
// A buffer or a part of one, transposed or not, as a buffer; anything else as the value it is.
struct val lower_part(struct lower *l, const struct ast_expr *e);
bool lower_is_buffer_expr(struct lower *l, const struct ast_expr *e);
struct tir_value *lower_mask(struct lower *l, const struct ast_expr *e, const struct slice *s);
// Slices with strides and of sizes that are known at run time (stride.c).
// The size: a constant, or min(n, a constant), whose n is the limit. False: reported.
bool lower_slice_size(struct lower *l, const struct ast_expr *e, struct slice *s, uint32_t d);
// Index tiles for the dimensions that have a stride.
bool lower_strides(struct lower *l, const struct ast_expr *e, struct slice *s, uint32_t given);
// mask (NULL: none), and inside of the limits.
struct tir_value *lower_limits(struct lower *l, const struct slice *s, struct tir_value *mask);
bool lower_is_limited(const struct slice *s);

// Calls.
struct call {
    const struct ast_expr *e;
    const char *name;
    uint32_t positional;                  // arguments without a name; they come first
    const struct tir_type *const *stated; // of a let that this is the value of
    uint32_t stated_count;
};
// Calls give any number of results; false: reported.
bool lower_call(struct lower *l, const struct ast_expr *e, const struct tir_type *const *stated,
                uint32_t stated_count, val_list *out);
// The values of e: of a call or a choice between calls, any number; else one. stated: of a let.
bool lower_values(struct lower *l, const struct ast_expr *e, const struct tir_type *const *stated,
                  uint32_t stated_count, val_list *out);
bool lower_op_call(struct lower *l, struct call *c, enum tir_op op, val_list *out);
bool lower_fn_call(struct lower *l, struct call *c, const struct fn_value *fn, val_list *out);
// The function that e names. NULL: it names none; reported only where nothing else has the name.
const struct fn_value *lower_fn_value(struct lower *l, const struct ast_expr *e);
// False: name is no built-in for that many arguments; else *ok says whether it went well.
bool lower_builtin(struct lower *l, struct call *c, val_list *out, bool *ok);
const struct ast_arg *call_named(const struct call *c, const char *name); // NULL: absent
const struct ast_expr *call_arg(const struct call *c, uint32_t i); // i-th by position, or NULL
// The word that e is, of an attribute.
bool lower_attr_word(struct lower *l, const struct call *c, enum tir_attr_key key,
                     const struct ast_expr *e, enum tir_word *out);
// The compile-time integers of a list. False: reported.
bool lower_int_list(struct lower *l, const struct ast_expr *e, int64_t list[TIR_MAX_ITERS],
                    uint32_t *count);
// Inlines fn on values that are already there; reduction bodies use it too.
bool lower_inline(struct lower *l, struct tir_span span, struct ast_fn *fn, const val_list *args,
                  const struct call *metas, val_list *results);
bool lower_reduce_region(struct lower *l, struct tir_inst *inst, struct tir_span span,
                         struct ast_fn *fn, bool is_region);

// What is given by name: options, arguments, attributes (named.c).
struct name_list { // that something may have
    const char *owner, *what;
    VEC(const char *) names;
    const char *repeats; // may be given more than once; NULL: none
};
bool lower_check_names(struct lower *l, const ast_args *args, const struct name_list *list);
void lower_unknown_name(struct lower *l, struct tir_span span, enum tir_diag_code code,
                        const char *name, const struct name_list *list);
const struct ast_arg *arg_named(const ast_args *args, const char *name); // NULL: absent
// The same of a name of the source, which is interned as those of the arguments are.
const struct ast_arg *arg_interned(const ast_args *args, const char *name);
// Pixels that a load names by its first one (pixels.c): what such a load may say, and the slice of
// them. False: reported.
void lower_pixel_names(struct lower *l, struct name_list *names);
bool lower_pixels(struct lower *l, const struct call *c, struct slice *s);

struct options {
    const struct ast_arg *arg[AST_OPTION_COUNT]; // NULL: absent
    int64_t value[AST_OPTION_COUNT];             // where the table says its range; else 0
};
// The options of s, which are those of its kind, and in their ranges. False: reported.
bool lower_options(struct lower *l, const struct ast_stmt *s, struct options *out);

// Statements.
void lower_stmts(struct lower *l, const struct ast_block *block, uint32_t first, uint32_t end);
void lower_block(struct lower *l, const struct ast_block *block); // in a scope of its own
void lower_stmt(struct lower *l, const struct ast_stmt *s);
void lower_for(struct lower *l, const struct ast_stmt *s);
void lower_while(struct lower *l, const struct ast_stmt *s);
void lower_if(struct lower *l, const struct ast_stmt *s);
void lower_tiles(struct lower *l, const struct ast_stmt *s);

#define LOWER_NO_VALUE "an mbarrier is no value; `wait`, `arrive` and the like work on it"

// Scratch tensors (scratch.c).
void lower_scratch(struct lower *l, const struct ast_stmt *s);
// Of a tensor, a parameter or scratch; NULL: it is neither.
const char *tensor_name(const struct lower *l, const struct tir_value *tensor,
                        struct tir_span *declared);
// The size of dimension d of a tensor, where it is compile-time; else false.
bool tensor_size(const struct lower *l, const struct tir_value *tensor, uint32_t d, int64_t *size);
// The same as a value, whatever it is.
struct val tensor_extent(struct lower *l, const struct tir_value *tensor, uint32_t d);

// Roles (role.c), rings (ring.c), mbarriers and stages (barrier.c).
void lower_role(struct lower *l, const struct ast_stmt *s);
void lower_scope(struct lower *l, const struct ast_stmt *s);
void lower_check_scopes(struct lower *l); // once roles have their places
// Once the kernel is lowered: gives the roles their warps and the kernel its threads.
void lower_place_roles(struct lower *l);
// Threads that a tile is spread over here; 0: not known yet.
uint32_t lower_threads(const struct lower *l);
void lower_ring(struct lower *l, const struct ast_stmt *s);
void lower_put(struct lower *l, const struct ast_stmt *s);
void lower_get(struct lower *l, const struct ast_stmt *s);
void lower_check_rings(struct lower *l);
// a = e in a put, where a is a buffer of the ring
void lower_fill_slot(struct lower *l, const struct ast_stmt *s, const struct symbol *symbol);
void lower_mbarrier(struct lower *l, const struct ast_stmt *s);
void lower_stage(struct lower *l, const struct ast_stmt *s);
// s.phase and s.advance() of a stage variable s. NULL: e is something else.
struct symbol *lower_stage_of(struct lower *l, const struct ast_expr *e);
const char *stage_phase_name(struct lower *l, const char *name); // of the variable that holds it
struct val lower_stage_field(struct lower *l, const struct ast_expr *e, struct symbol *symbol);
bool lower_stage_call(struct lower *l, const struct ast_expr *e, struct symbol *symbol);
// The variables that a call for its effect assigns: gemm_async(acc, ...), await(x, y). NULL: none.
// tmem NAME: type; NULL: an error was reported.
// A stated layout of tensor memory is one of addresses: lanes from this bit on, and columns.
enum { TMEM_LANE_SHIFT = 16 };
struct tir_value *lower_tmem(struct lower *l, const struct ast_stmt *s,
                             const struct tir_type *type);
// Is it a buffer in tensor memory, or a part of one?
bool lower_is_tmem(struct lower *l, const struct ast_expr *e);
// copy_async(t, s) where t is in tensor memory
bool lower_copy_tmem(struct lower *l, const struct call *c);
// let v: T = alias(buffer): the bytes of a buffer, or of a part of one, as another type (alias.c)
// A type with a layout, where a value stands; and what is written after `in`, for a type t
// (layout_value.c).
struct val lower_layout_value(struct lower *l, const struct ast_type *from);
const struct tir_layout *lower_layout_of_value(struct lower *l, const struct ast_layout *from,
                                               const struct tir_type *t);
bool lower_alias(struct lower *l, const struct call *c, val_list *out);
const char *assigned_by_call(struct lower *l, const struct ast_expr *e, uint32_t i);
// The block of a put or get that is written as a call: with (slot: i32) { ... yield v; }
bool lower_slot_region(struct lower *l, struct tir_inst *inst, struct tir_span span,
                       const struct ast_fn *region);
// if (cond) { the rest of the block }, after a statement that may leave the loop
void lower_guarded(struct lower *l, const struct ast_block *block, uint32_t first, uint32_t end);
void lower_assign(struct lower *l, struct symbol *symbol, struct tir_value *value);
// Lowers a block that ends in `yield` of values of these types, into out. False: reported.
bool lower_yielding(struct lower *l, const struct ast_block *block, struct tir_span span,
                    const struct tir_type *const *types, uint32_t count, struct tir_value **out);

// Dimensions that are expressions (dims.c). Whether e has names that mean nothing yet.
bool lower_is_sized(struct lower *l, const struct ast_expr *e);
// The name in e that means nothing yet, and what it is where e has this size: *is_multiple says
// whether e is it times a number. NULL: e is not linear in one such name.
const char *lower_solve(struct lower *l, const struct ast_expr *e, struct val size, struct val *out,
                        bool *is_multiple);
// Declares the names that sizes of l->sized give, at the builder's position, and adds what those
// sizes demand to the conditions, if there are any.
void lower_sized_dims(struct lower *l, value_list *conditions);

// Lists of configurations, and kernels in each of theirs (configs.c).
struct config_list *config_list_new(struct lower *l, const struct ast_configs *from,
                                    const struct module *home);
// Once all constants are known, and all lists have their names.
void config_list_lower(struct lower *l, struct config_list *list,
                       const struct tir_front_options *o);
void lower_configs(struct lower *l, const struct ast_kernel *k, const struct tir_front_options *o);

// Kernels (kernel.c) and metas (meta.c).
bool lower_kernel(struct lower *l, const struct ast_kernel *k, const struct tir_front_options *o);
// Is it a configuration that no launch can take, or once more what another one is? Then nothing
// but its conditions is looked at.
static inline bool lower_is_left_out(const struct lower *l)
{
    return l->is_config && (l->is_impossible || l->is_repeated);
}
struct val meta_bind(struct lower *l, const struct ast_binding *meta,
                     const struct tir_binding *given); // given NULL: the default
struct val meta_parse(struct lower *l, tir_str text);  // poison: it is no value
tir_str meta_text(struct lower *l, struct val v);
// Reports tile operations that depend on the thread (uniform.c). The kernel is verified.
bool uniform_check(struct lower *l);
// Warns about what is legal but probably not meant (slips.c). The kernel is verified.
void slips_check(struct lower *l);
// Reports uses of accumulators that wgmma may still be writing (flight.c).
bool flight_check(struct lower *l);
// Reports a try_cancel in a kernel without a grid, and other uses of its response (cancel.c).
bool cancel_check(struct lower *l);
// Reports a barrier of the grid that not all of its CTAs come to (grid_sync.c).
bool grid_sync_check(struct lower *l);
bool lower_clauses(struct lower *l, const struct ast_kernel *k);

#endif
