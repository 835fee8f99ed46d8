// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies between rows and shared memory, in pieces of the width by which loops walk the buffer:
//     row[:, :] = X[m:+1, 0:+8192];
//     for n in range(0, 8192, 4096) { f(row[:, n:+4096]); }
// becomes
//     row[:, 0:+4096] = X[m:+1, 0:+4096];
//     row[:, 4096:+4096] = X[m:+1, 4096:+4096];
//     for n in range(0, 8192, 4096) { f(row[:, n:+4096]); }
// So each piece can turn by itself, as the slices of a loop do (askew.c). Where the buffer has
// other accesses it could not turn, and copies stay as they are.

#include "compile/askew_columns.h"
#include "ir/walk.h"

enum { MOST = 16 }; // pieces, whose code follows each other

static int64_t width_of(const struct tir_inst *access)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    return box ? box->list[box->list_count - 1] : 0;
}

// The load of a copy that a store ends, where nothing else takes what is loaded. NULL: it ends
// none.
static struct tir_inst *loaded(const struct askew *a, const struct tir_inst *store)
{
    if (store->op != TIR_OP_STORE)
        return NULL;
    const struct tir_value *v = store->operands[TIR_STORE_VALUE];
    struct tir_inst *load = v->kind == TIR_VALUE_RESULT ? v->def : NULL;
    const bool is_copy = load && load->op == TIR_OP_LOAD && a->uses[v->id] == 1 &&
                         width_of(load) > 1 && width_of(load) == width_of(store) &&
                         !load->operands[TIR_LOAD_MASK] && !store->operands[TIR_STORE_MASK];
    const struct tir_value *pad = is_copy ? load->operands[TIR_LOAD_PAD] : NULL;
    return is_copy && (!pad || pad->kind == TIR_VALUE_CONST) ? load : NULL;
}

struct copy {
    struct tir_inst *load, *store;
    const struct tir_value *buffer;
    int64_t piece; // 0: it stays as it is
};

struct copies {
    VEC(struct copy) of;
};

static bool accesses(const struct tir_inst *inst, const struct tir_value *buffer)
{
    return (inst->op == TIR_OP_LOAD || inst->op == TIR_OP_STORE) && tir_ref_base(inst) == buffer;
}

static bool has_pieces(const struct copy *c, int64_t piece)
{
    const int64_t whole = width_of(c->load);
    return piece > 1 && piece < whole && whole % piece == 0 && whole / piece <= MOST;
}

// The narrowest width by which the buffer is accessed, if all other accesses are of copies that can
// have pieces of it. 0: the buffer would not turn.
static int64_t piece_of(const struct askew *a, const struct copies *copies,
                        const struct tir_value *buffer)
{
    int64_t piece = INT64_MAX;
    uint32_t fit = 0;
    tir_foreach_inst_in(inst, a->tiles->regions[0])
        if (accesses(inst, buffer))
            piece = TIR_MIN(piece, width_of(inst));
    tir_foreach_inst_in(inst, a->tiles->regions[0])
        fit += accesses(inst, buffer) && width_of(inst) == piece;
    vec_foreach(const struct copy, it, &copies->of)
        fit += it->buffer == buffer && has_pieces(it, piece);
    return fit == a->uses[buffer->id] ? piece : 0;
}

// A piece of the access, from its column `at` on.
static struct tir_inst *build_piece(const struct askew *a, struct tir_inst *access, int64_t at,
                                    int64_t piece)
{
    struct tir_builder b = tir_builder_before(a->f, access);
    struct tir_map same;
    tir_map_init(&same, a->f->module->arena);
    struct tir_inst *part = tir_clone_inst(&b, access, &same);
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    const uint32_t last = box->list_count - 1;
    int64_t list[TIR_MAX_RANK], start;
    memcpy(list, box->list, box->list_count * sizeof(*list));
    list[last] = piece;
    tir_set_list(a->f, part, TIR_ATTR_box, list, box->list_count);
    struct tir_value **from = &tir_ref_indices(part)[last];
    b.before = part;
    *from = tir_is_const_int(*from, &start)
                ? tir_const_index(a->f, start + at)
                : tir_binary(&b, TIR_OP_ADD, *from, tir_const_index(a->f, at));
    if (part->op == TIR_OP_LOAD) {
        struct tir_type t = *part->results[0]->type;
        t.shape[tir_slice_dim(part, last)] = piece;
        part->results[0]->type = tir_type_get(a->f->module->types, &t);
    }
    return part;
}

static void split(const struct askew *a, const struct copy *c)
{
    const int64_t whole = width_of(c->load);
    for (int64_t at = 0; at < whole; at += c->piece) {
        const struct tir_inst *from = build_piece(a, c->load, at, c->piece);
        build_piece(a, c->store, at, c->piece)->operands[TIR_STORE_VALUE] = from->results[0];
    }
    tir_remove(c->store);
    tir_remove(c->load);
}

void tir_askew_split(const struct askew *a)
{
    struct copies copies = {0};
    tir_foreach_inst_in(store, a->tiles->regions[0]) {
        struct tir_inst *load = loaded(a, store);
        struct tir_value *from = load ? tir_ref_base(load) : NULL;
        struct tir_value *to = load ? tir_ref_base(store) : NULL;
        if (load && (tir_param_of(a->f, from) != NULL) != (tir_param_of(a->f, to) != NULL))
            vec_push(a->f->module->arena, &copies.of,
                     ((struct copy){load, store, tir_param_of(a->f, from) ? to : from}));
    }
    vec_foreach(struct copy, it, &copies.of)
        it->piece = piece_of(a, &copies, it->buffer);
    vec_foreach(struct copy, it, &copies.of)
        if (has_pieces(it, it->piece))
            split(a, it);
}
