// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The syntax tree. Every node has a span; names are interned. Types, layouts and expressions share
// one tree, since a type may stand where an expression does (`f32(x)`, `zeros(f32, 4)`).
#ifndef TIR_FRONT_PARSE_AST_H
#define TIR_FRONT_PARSE_AST_H

#include "front/parse/lex.h"

struct ast_expr;
struct ast_stmt;
struct ast_fn;
struct ast_arg;

typedef VEC(struct ast_arg) ast_args;

enum ast_axis {
    AST_AXIS_NONE, // the register, or the offset in memory
    AST_AXIS_LANE,
    AST_AXIS_WARP,
    AST_AXIS_WARPGROUP,
    AST_AXIS_THREAD_OF_WARPGROUP,
    AST_AXIS_TMEM_LANE,
    AST_AXIS_TMEM_COLUMN
};

struct ast_iter { // extent : stride @ axis, of a layout
    struct ast_expr *extent, *stride;
    enum ast_axis axis;
};

typedef VEC(struct ast_iter) ast_iters;

enum ast_layout_kind {
    AST_LAYOUT_ITERS,
    AST_LAYOUT_SWIZZLE,
    AST_LAYOUT_ROW_MAJOR,
    AST_LAYOUT_FRAGMENT, // of wgmma
    AST_LAYOUT_VALUE     // an expression
};

struct ast_layout {
    struct tir_span span;
    enum ast_layout_kind kind;
    ast_iters iters, replicas;
    struct ast_expr *offset;  // in columns of tensor memory; NULL: none
    struct ast_expr *swizzle; // NULL: none
    struct ast_expr *value;   // VALUE
};

struct ast_type;

struct ast_signature { // of a function that is a parameter
    VEC(struct ast_type *) params, results;
};

struct ast_type {
    struct tir_span span;
    struct ast_signature *fn; // fn(f32) -> f32; NULL: a type of values
    enum tir_space space;     // not GLOBAL
    enum tir_elem elem;       // TIR_NONE: `name` is a meta of kind type
    const char *name;
    VEC(struct ast_expr *) dims;
    struct ast_layout *layout; // NULL: none
};

enum ast_expr_kind {
    AST_ERROR, // a diagnostic was reported
    AST_INT,
    AST_FLOAT,
    AST_BOOL,
    AST_NONE,
    AST_STRING,
    AST_NAME,
    AST_TYPE,
    AST_LIST, // (a, b, ...) or [a, b, ...]: the value of an attribute
    AST_UNARY,
    AST_BINARY,
    AST_CHOOSE, // c ? a : b
    AST_CALL,
    AST_INDEX,
    AST_FIELD
};

enum ast_index_kind { AST_ONE, AST_TAKE, AST_RANGE, AST_ALL }; // i  i:+n[:s]  i:j[:s]  :

struct ast_index {
    enum ast_index_kind kind;
    struct tir_span span;
    struct ast_expr *first, *second; // TAKE: begin, size; RANGE: begin, end
    struct ast_expr *stride;         // of both; NULL: 1
};

struct ast_arg {
    const char *name; // NULL: by position
    struct tir_span span;
    struct ast_expr *value;
};

struct ast_binding { // NAME [: type] [= value]
    const char *name;
    struct tir_span span; // of the name
    struct ast_type *type;
    struct ast_expr *value;
};

typedef VEC(struct ast_binding) ast_bindings;

struct ast_block {
    struct tir_span span;
    VEC(struct ast_stmt *) stmts;
};

struct ast_expr {
    enum ast_expr_kind kind;
    uint16_t depth; // of the tree below, so that chains without brackets are bounded too
    struct tir_span span;
    union {
        uint64_t number;
        double real;
        bool truth;
        tir_str text;
        const char *name;
        struct ast_type *type;
        VEC(struct ast_expr *) items; // LIST
        struct {
            enum tir_token_kind op;
            struct ast_expr *a, *b, *c; // UNARY: a; BINARY: a, b; CHOOSE: a ? b : c
        };
        struct {
            struct ast_expr *base;         // CALL, INDEX, FIELD
            const char *field;             // FIELD
            ast_args args;                 // CALL
            VEC(struct ast_index) indices; // INDEX
            struct ast_fn *region;         // CALL: `with (a: f32, b: f32) { ... }`
        };
    };
};

enum ast_stmt_kind {
    AST_LET,
    AST_VAR,
    AST_BUFFER,
    AST_SCRATCH,
    AST_ASSIGN,
    AST_DO, // an expression for its effect
    AST_FOR,
    AST_WHILE,
    AST_IF,
    AST_TILES,
    AST_ROLE,
    AST_SCOPE,
    AST_RING,
    AST_PUT,
    AST_GET,
    AST_MBARRIER,
    AST_STAGE,
    AST_BREAK,
    AST_CONTINUE,
    AST_RETURN,
    AST_YIELD
};

enum ast_option {
#define OPTION(statement, name, ...) AST_OPTION_##statement##_##name,
#include "front/parse/option.def"
    AST_OPTION_COUNT
};

struct ast_extent { // e by n
    struct ast_expr *extent, *by;
};

struct ast_stmt {
    enum ast_stmt_kind kind;
    struct tir_span span;
    struct tir_span head; // of a statement with a block, or with options: without the block
    // LET, VAR, BUFFER, SCRATCH, MBARRIER, STAGE: what is declared; RING: its buffers; FOR, WHILE,
    // IF, TILES: names of the results (`let x: T = for ...`).
    ast_bindings names;
    const char *name;               // ROLE; RING, PUT, GET: the ring's
    struct tir_span name_span;      // of it
    struct ast_expr *value;         // LET, VAR, ASSIGN, DO; the condition of IF and WHILE; RING,
                                    // MBARRIER (NULL: one), STAGE: how many
    struct ast_expr *target;        // ASSIGN
    enum tir_token_kind op;         // ASSIGN
    VEC(struct ast_expr *) values;  // RETURN, YIELD; the arguments of range
    ast_bindings vars;              // loop variables
    ast_bindings carry;             // explicit loop-carried values
    bool explicit_carry;            // WHILE: written as `while carry (...) { } do { }`
    VEC(struct ast_extent) extents; // TILES
    ast_args options;               // NAME, NAME = e, NAME(e); value NULL: NAME alone
    struct ast_block *body;
    struct ast_block *other; // IF: else (NULL: none); WHILE with carry: body has the condition
};

struct ast_fn {
    const char *name;
    struct tir_span span; // of the name
    ast_bindings metas;   // type: NULL or one of the four kinds, by name
    ast_bindings params;  // type NULL: any; value: what it is where a call leaves it out
    VEC(struct ast_type *) results;
    struct ast_block *body;
    const struct module *home; // whose names the body sees
    bool active;               // being inlined
};

struct ast_param {
    const char *name;
    struct tir_span span;
    enum tir_direction direction;
    bool stated_direction;
    struct ast_type *type;
};

enum ast_clause_kind {
#define CLAUSE(name, ...) AST_CLAUSE_##name,
#include "front/parse/clause.def"
    AST_CLAUSE_COUNT
};

struct ast_clause {            // NAME(args) or where e (one argument)
    enum ast_clause_kind kind; // COUNT: there is none of that name
    const char *name;
    struct tir_span span;
    ast_args args;
    struct ast_expr *list; // config LIST: what names it; NULL: config(args)
};

typedef VEC(struct ast_clause) ast_clauses;

struct ast_configs { // configs NAME { config(...) config LIST ... }
    const char *name;
    struct tir_span span; // of the name
    ast_clauses clauses;
};

struct ast_kernel {
    const char *name;
    struct tir_span span; // of the name
    ast_bindings metas;
    VEC(struct ast_param) params;
    ast_clauses clauses;
    struct ast_block *body;
};

struct ast_import {
    tir_str path;
    struct tir_span span, name_span;
    const char *name; // import "x.tir" as NAME; NULL: its names are those of this file
};

struct ast_module {
    VEC(struct ast_import) imports;
    VEC(struct ast_kernel *) kernels;
    VEC(struct ast_fn *) fns;
    VEC(struct ast_configs *) configs;
    ast_bindings consts;
};

#define TIR_MAX_NESTING 200

#endif
