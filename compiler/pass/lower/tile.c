// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile: turns tiles into the registers of one thread.
//
//     let x: f32[256] in S[(32, 8) : (1@laneid, 1)] = load(X[i:+256]);
//     let y: f32[256] in S[(32, 8) : (1@laneid, 1)] = mul(x, x);
// becomes
//     let at: i32 = mul(add(i, mul(lane, 8)), 4);
//     let x0: f32, x1: f32, x2: f32, x3: f32 = ld(X, at, width = 16, pred = p);
//     let x4: f32, x5: f32, x6: f32, x7: f32 = ld(X, at, offset = 16, width = 16, pred = q);
//     let y0: f32 = mul(x0, x0);  ...
//
// One walk in program order. A tile value maps to an array of scalar values, one per register of
// its layout; an elementwise operation becomes one scalar operation per register. Loops and ifs
// carry the registers in place of the tile. What depends on the thread alone is computed at the
// start of the kernel. Memory accesses, products, reductions, scans and conversions are in files of
// their own.

#include "machine/budget.h"
#include "pass/lower/lower.h"

#include "ir/walk.h"
#include "pass/receipt.h"

// Tiles.

uint32_t tir_lower_register_count(const struct tir_type *t)
{
    return tir_type_is_tile(t) && t->layout ? tir_layout_size(t->layout, TIR_AXIS_REG) : 1;
}

struct tir_value *tir_lower_register(struct lower *lo, struct tir_value *v, uint32_t i)
{
    if (v->kind == TIR_VALUE_CONST && tir_type_is_tile(v->type))
        return tir_const_element(lo->f, v);
    if (!tir_type_is_tile(v->type))
        return v;
    struct tir_value **registers = tir_map_get(&lo->registers, tir_map_key(v));
    assert(registers && i < tir_lower_register_count(v->type));
    return registers[i];
}

void tir_lower_set_registers(struct lower *lo, struct tir_value *v, struct tir_value **registers)
{
    if (tir_type_is_tile(v->type))
        tir_map_set(&lo->registers, tir_map_key(v), registers);
    else
        tir_replace_later_uses(v, registers[0]);
}

struct tir_value **tir_lower_new_registers(struct lower *lo, uint32_t count)
{
    return arena_array(lo->cx->scratch, struct tir_value *, count);
}

// Is there a higher digit than iterator `it` on its axis in l? If not, no remainder is needed.
static bool is_top_digit(const struct lower *lo, const struct tir_iter *it)
{
    uint32_t end = it->stride * it->extent;
    return it->axis == TIR_AXIS_LANE ? end == 32 : end == lo->threads / 32;
}

struct tir_value *tir_lower_coord(struct lower *lo, const struct tir_layout *l, uint32_t d)
{
    struct tir_value **known = tir_map_get(&lo->coords, tir_map_key(l));
    if (known)
        return known[d];
    known = tir_lower_new_registers(lo, TIR_MAX_RANK);
    for (uint32_t dim = 0; dim < l->rank; dim++)
        for (uint32_t i = l->first[dim]; i < l->first[dim + 1]; i++) {
            const struct tir_iter *it = &l->iters[i];
            if (it->axis == TIR_AXIS_REG)
                continue;
            struct tir_value *digit = tir_lower_digit(lo, &lo->top, tir_lower_thread(lo, it->axis),
                                                      it->stride, it->extent, is_top_digit(lo, it));
            digit = tir_lower_mul_const(lo, &lo->top, digit, tir_layout_weight(l, dim, i));
            known[dim] = tir_lower_add(lo, &lo->top, known[dim], digit);
        }
    tir_map_set(&lo->coords, tir_map_key(l), known);
    return known[d];
}

struct tir_value *tir_lower_is_owner(struct lower *lo, const struct tir_layout *l)
{
    struct tir_value *owner = NULL;
    for (uint32_t i = 0; i < l->replica_count; i++) {
        const struct tir_iter *it = &l->replicas[i];
        struct tir_value *digit = tir_lower_digit(lo, &lo->top, tir_lower_thread(lo, it->axis),
                                                  it->stride, it->extent, is_top_digit(lo, it));
        struct tir_value *first =
            tir_binary(&lo->top, TIR_OP_EQ, digit, tir_const_int(lo->f, lo->i32, 0));
        owner = owner ? tir_binary(&lo->top, TIR_OP_AND, owner, first) : first;
    }
    return owner;
}

uint32_t tir_lower_same_register(const struct tir_layout *from, uint32_t r,
                                 const struct tir_layout *to)
{
    int64_t coord[TIR_MAX_RANK];
    tir_layout_coord(from, (struct tir_layout_at){{r, 0, 0}}, coord);
    for (uint32_t d = 0; d < to->rank; d++)
        coord[d] = to->shape[d] == 1 ? 0 : coord[d];
    return tir_layout_find(to, coord).at[TIR_AXIS_REG];
}

// Whether the thread has element coord of layout l, and in which register.
static bool holds(const struct tir_layout *l, const int64_t coord[TIR_MAX_RANK], uint32_t lane,
                  uint32_t warp, uint32_t *reg)
{
    int64_t mine[TIR_MAX_RANK];
    *reg = tir_layout_find(l, coord).at[TIR_AXIS_REG];
    tir_layout_coord(l, (struct tir_layout_at){{*reg, lane, warp}}, mine);
    return !memcmp(mine, coord, l->rank * sizeof(*mine));
}

void tir_lower_unsupported(struct lower *lo, const struct tir_inst *inst, const char *what)
{
    tir_error_at(lo->cx->diags, inst->span, TIR_E_UNSUPPORTED, "%s is not supported on %s", what,
                 lo->cx->target->name);
    lo->failed = true;
}

void tir_lower_note_target(struct lower *lo, uint32_t features)
{
    tir_note_at(lo->cx->diags, (struct tir_span){0}, "%s is the first target that can",
                tir_target_first_with(features));
}

// Asks for something that changes no result, which the target does not have.
static bool drops_request(struct lower *lo, const struct tir_inst *inst)
{
    const uint32_t movers = TIR_HAS_WGMMA | TIR_HAS_TCGEN05;
    const char *why = NULL;
    if (inst->op == TIR_OP_SETMAXNREG && !(lo->cx->target->features & movers))
        why = "threads keep their registers";
    if (inst->op == TIR_OP_PREFETCH && !(lo->cx->target->features & TIR_HAS_TMA))
        why = "nothing is asked for in advance";
    if (why)
        tir_receipt_refuse(lo->cx, inst->op == TIR_OP_PREFETCH ? TIR_TOPIC_COPY : TIR_TOPIC_ROLE,
                           TIR_WISH_NONE, inst->span, "%s: %s, because the target has none",
                           tir_ops[inst->op].name, why);
    return why;
}

// Values that stay values.

static void lower_elementwise(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *result = inst->results[0];
    const struct tir_type *scalar = tir_type_scalar(lo->types, result->type->elem);
    uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **out = tir_lower_new_registers(lo, count);
    for (uint32_t r = 0; r < count; r++) {
        struct tir_value *operands[3];
        for (uint32_t i = 0; i < inst->operand_count; i++)
            operands[i] = tir_lower_register(lo, inst->operands[i], r);
        out[r] = tir_build1(&lo->b, inst->op, scalar, operands, inst->operand_count);
    }
    tir_lower_set_registers(lo, result, out);
}

// Is a register's factor the one of an earlier register too? So it is for those of one row.
static bool is_repeated(struct tir_value *const *factors, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (factors[j] == factors[i])
            return true;
    return false;
}

// Is a factor of the warp not 1? NULL: a warp cannot be asked, or it is not worth it.
static struct tir_value *lower_vote(struct lower *lo, const struct tir_type *type,
                                    struct tir_value *const *factors, uint32_t count)
{
    struct tir_value *any = NULL;
    if (count < TIR_BUDGET_RESCALE_REGISTERS || !type->layout ||
        tir_layout_size(type->layout, TIR_AXIS_LANE) != 32 || lo->threads % 32)
        return NULL;
    struct tir_value *one = tir_const_float(lo->f, tir_type_scalar(lo->types, type->elem), 1);
    for (uint32_t i = 0; i < count; i++) {
        if (is_repeated(factors, i))
            continue;
        struct tir_value *operands[] = {factors[i], one};
        struct tir_value *differs = tir_build1(&lo->b, TIR_OP_NE, lo->boolean, operands, 2);
        any = any ? tir_binary(&lo->b, TIR_OP_OR, any, differs) : differs;
    }
    any = tir_build1(&lo->b, TIR_OP_VOTE, lo->boolean, &any, 1);
    tir_set_word(lo->f, any->def, TIR_ATTR_kind, TIR_WORD_kind_any);
    return any;
}

// rescale: if any factor of the warp is not 1, the registers are multiplied.
static void lower_rescale(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *result = inst->results[0];
    const struct tir_type *scalar = tir_type_scalar(lo->types, result->type->elem);
    const uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **x = tir_lower_new_registers(lo, count);
    struct tir_value **factors = tir_lower_new_registers(lo, count);
    struct tir_value **products = tir_lower_new_registers(lo, count);
    for (uint32_t r = 0; r < count; r++) {
        x[r] = tir_lower_register(lo, inst->operands[0], r);
        factors[r] = tir_lower_register(lo, inst->operands[1], r);
    }
    struct tir_value *any = lower_vote(lo, result->type, factors, count);
    struct tir_builder outside = lo->b;
    struct tir_inst *branch = NULL;
    if (any) {
        if (x[0]->def && x[0]->def->op == TIR_OP_AWAIT) // a product runs beside the factors
            tir_set_int(lo->f, x[0]->def, TIR_ATTR_late, 1);
        const struct tir_type **types =
            arena_array(lo->f->module->arena, const struct tir_type *, count);
        for (uint32_t r = 0; r < count; r++)
            types[r] = scalar;
        branch = tir_build(&outside, TIR_OP_IF, &any, 1, types, count, 2);
        lo->b = tir_builder_at_end(lo->f, branch->regions[0]);
    }
    for (uint32_t r = 0; r < count; r++)
        products[r] = tir_binary(&lo->b, TIR_OP_MUL, x[r], factors[r]);
    if (branch) {
        tir_build(&lo->b, TIR_OP_YIELD, products, count, NULL, 0, 0);
        struct tir_builder skip = tir_builder_at_end(lo->f, branch->regions[1]);
        tir_build(&skip, TIR_OP_YIELD, x, count, NULL, 0, 0);
        memcpy(products, branch->results, count * sizeof(struct tir_value *));
    }
    lo->b = outside;
    tir_lower_set_registers(lo, result, products);
}

// broadcast, reshape, permute: registers are renamed.
static void lower_rename(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[0], *result = inst->results[0];
    uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **out = tir_lower_new_registers(lo, count);
    bool tile = tir_type_is_tile(x->type) && x->kind != TIR_VALUE_CONST;
    for (uint32_t r = 0; r < count; r++) {
        // reshape and permute keep every register where it is
        uint32_t from = r;
        if (tile && inst->op == TIR_OP_BROADCAST)
            from = tir_lower_same_register(result->type->layout, r, x->type->layout);
        out[r] = tir_lower_register(lo, x, tile ? from : 0);
    }
    tir_lower_set_registers(lo, result, out);
}

static void lower_iota(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *result = inst->results[0];
    uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
    uint32_t count = tir_lower_register_count(result->type);
    const struct tir_type *scalar = tir_type_scalar(lo->types, result->type->elem);
    struct tir_value **out = tir_lower_new_registers(lo, count);
    struct tir_value *base = tir_lower_coord(lo, result->type->layout, axis);
    for (uint32_t r = 0; r < count; r++) {
        int64_t coord[TIR_MAX_RANK];
        tir_layout_coord(result->type->layout, (struct tir_layout_at){{r, 0, 0}}, coord);
        struct tir_value *v = tir_lower_add(lo, &lo->b, base, tir_lower_i32(lo, coord[axis]));
        out[r] = tir_lower_cast(lo, &lo->b, v, scalar);
    }
    tir_lower_set_registers(lo, result, out);
}

// Whether the thread has, in register *reg of layout `whole`, what it has at `at` of a part that
// begins at `start`.
static bool has_part(const struct tir_layout *whole, const struct tir_layout *part,
                     const int64_t *start, struct tir_layout_at at, uint32_t *reg)
{
    int64_t coord[TIR_MAX_RANK];
    tir_layout_coord(part, at, coord);
    for (uint32_t d = 0; d < part->rank; d++)
        coord[d] += start[d];
    return holds(whole, coord, at.at[TIR_AXIS_LANE], at.at[TIR_AXIS_WARP], reg);
}

// Has each thread the elements of a part where the first one has them? Coordinates are sums of what
// the register, the lane and the warp add. So if lanes alone and warps alone change nothing, both
// together do not.
static bool lies_in_place(const struct lower *lo, const struct tir_layout *whole,
                          const struct tir_layout *part, const int64_t *start)
{
    uint32_t first, reg;
    if (!has_part(whole, part, start, (struct tir_layout_at){{0}}, &first))
        return false;
    for (uint32_t lane = 1; lane < 32; lane++)
        if (!has_part(whole, part, start, (struct tir_layout_at){{0, lane, 0}}, &reg) ||
            reg != first)
            return false;
    for (uint32_t warp = 1; warp < lo->threads / 32; warp++)
        if (!has_part(whole, part, start, (struct tir_layout_at){{0, 0, warp}}, &reg) ||
            reg != first)
            return false;
    return true;
}

// The elements of a part lie in the thread that has them in the whole.
static void lower_extract(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[0], *result = inst->results[0];
    const struct tir_layout *whole = x->type->layout, *part = result->type->layout;
    const int64_t *start = tir_attr_find(inst, TIR_ATTR_start)->list;
    uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **out = tir_lower_new_registers(lo, count);
    bool fits = !whole || lies_in_place(lo, whole, part, start);
    for (uint32_t r = 0; fits && r < count; r++) {
        uint32_t at = 0;
        fits = !whole || has_part(whole, part, start, (struct tir_layout_at){{r, 0, 0}}, &at);
        if (fits)
            out[r] = tir_lower_register(lo, x, at);
    }
    if (fits)
        tir_lower_set_registers(lo, result, out);
    else
        tir_lower_unsupported(lo, inst, "a part whose elements other threads have");
}

// One instruction.

static void lower_load(struct lower *lo, struct tir_inst *inst)
{
    if (tir_ref_base(inst)->type->space == TIR_SPACE_TMEM)
        tir_lower_tmem_load(lo, inst);
    else if (!tir_lower_ldmatrix(lo, inst))
        tir_lower_load(lo, inst);
}

static void lower_store(struct lower *lo, struct tir_inst *inst)
{
    if (tir_ref_base(inst)->type->space == TIR_SPACE_TMEM)
        tir_lower_tmem_store(lo, inst);
    else if (!tir_lower_stmatrix(lo, inst))
        tir_lower_store(lo, inst);
}

static void lower_copy_async(struct lower *lo, struct tir_inst *inst)
{
    if (inst->operands[TIR_COPY_TO]->type->space == TIR_SPACE_CLUSTER)
        tir_lower_send(lo, inst);
    else if (inst->operands[TIR_COPY_MBAR])
        tir_lower_tensor_load(lo, inst);
    else
        tir_lower_copy_async(lo, inst);
}

// Of a buffer: only addresses see it.
static void lower_view(struct lower *lo, struct tir_inst *inst)
{
    if (!tir_type_is_buffer(inst->results[0]->type))
        lower_rename(lo, inst);
}

// What puts others in the place of an operation. Elementwise operations, control flow and what
// machines do stay as they are, on scalars.
static tir_lower_fn *const lowerings[TIR_OP_COUNT] = {
    [TIR_OP_TILES] = tir_lower_tiles,
    [TIR_OP_ROLE] = tir_lower_roles,
    [TIR_OP_SCOPE] = tir_lower_scope,
    [TIR_OP_LOAD] = lower_load,
    [TIR_OP_STORE] = lower_store,
    [TIR_OP_PUSH] = tir_lower_push,
    [TIR_OP_ATOMIC] = tir_lower_atomic,
    [TIR_OP_PRINT] = tir_lower_print,
    [TIR_OP_COPY_ASYNC] = lower_copy_async,
    [TIR_OP_STORE_ASYNC] = tir_lower_tensor_store,
    [TIR_OP_PREFETCH] = tir_lower_prefetch,
    [TIR_OP_MBARRIER_INIT] = tir_lower_mbarrier,
    [TIR_OP_ARRIVE] = tir_lower_mbarrier,
    [TIR_OP_WAIT] = tir_lower_mbarrier,
    [TIR_OP_TEST_WAIT] = tir_lower_mbarrier,
    [TIR_OP_COMMIT] = tir_lower_mbarrier,
    [TIR_OP_TRY_CANCEL] = tir_lower_cancel,
    [TIR_OP_IS_CANCELED] = tir_lower_cancel,
    [TIR_OP_FIRST_CTAID] = tir_lower_cancel,
    [TIR_OP_VIEW] = lower_view,
    [TIR_OP_PERMUTE] = lower_view,
    [TIR_OP_BROADCAST] = lower_rename,
    [TIR_OP_RESHAPE] = lower_view,
    [TIR_OP_IOTA] = lower_iota,
    [TIR_OP_RESCALE] = lower_rescale,
    [TIR_OP_EXTRACT] = lower_extract,
    [TIR_OP_CONVERT_LAYOUT] = tir_lower_convert,
    [TIR_OP_REDUCE] = tir_lower_reduce,
    [TIR_OP_SCAN] = tir_lower_scan,
    [TIR_OP_DOT] = tir_lower_dot,
    [TIR_OP_GEMM_ASYNC] = tir_lower_gemm,
    [TIR_OP_AWAIT] = tir_lower_await,
    [TIR_OP_GEMM_TMEM] = tir_lower_gemm_tmem,
    [TIR_OP_TMEM_COPY] = tir_lower_tmem_copy,
    [TIR_OP_TMEM_BUFFER] = tir_lower_tmem_buffer,
};

tir_lower_fn *tir_lowering_of(enum tir_op op)
{
    return lowerings[op];
}

static void lower_elements(struct lower *lo, struct tir_inst *inst)
{
    if (inst->op == TIR_OP_BITCAST && tir_lower_pack(lo, inst))
        return;
    if (tir_is_elementwise(inst))
        lower_elementwise(lo, inst);
    else
        tir_lower_unsupported(lo, inst, tir_ops[inst->op].name);
}

// True: inst has been replaced and goes.
static bool lower_inst(struct lower *lo, struct tir_inst *inst)
{
    if (drops_request(lo, inst))
        return true;
    if (lowerings[inst->op]) {
        lowerings[inst->op](lo, inst);
        return inst->op != TIR_OP_SCOPE; // those stay until the end
    }
    if (inst->op == TIR_OP_YIELD) { // the owner of its block expands it
        tir_lower_check_yield(lo, inst);
        return false;
    }
    if (inst->op == TIR_OP_REMOTE) // of a view: only addresses see it
        return !tir_is_allocated(inst->operands[0]->def);
    if (tir_is_loop(inst) || inst->op == TIR_OP_IF) {
        tir_lower_regions(lo, inst);
        return false;
    }
    if (!tir_has_tile(inst))
        return false;
    lower_elements(lo, inst);
    return true;
}

void tir_lower_block(struct lower *lo, struct tir_block *block)
{
    for (struct tir_inst *inst = block->first, *next; inst && !lo->failed; inst = next) {
        lo->b = tir_builder_before(lo->f, inst);
        bool replaced = lower_inst(lo, inst);
        next = inst->next; // instructions that lower_tiles put after inst are lowered too
        if (replaced)
            tir_remove(inst);
    }
}

// Every register of every tile becomes a value, so a tile that few threads share is refused: what
// it would take to compile grows with its size, and the result would only spill.
static bool check_registers(struct lower *lo, const struct tir_inst *inst,
                            const struct tir_value *v)
{
    uint32_t count = tir_type_is_tile(v->type) ? tir_lower_register_count(v->type) : 1;
    if (count <= TIR_BUDGET_TILE_REGISTERS)
        return true;
    const struct tir_type *t = tir_type_with_layout(lo->types, v->type, NULL);
    tir_error_at(lo->cx->diags, inst->span, TIR_E_REGISTERS,
                 "%s%s%s%s takes %u registers of each of %u threads; the limit is %d",
                 v->name ? "tile " : "a tile ", v->name ? v->name : "", v->name ? ": " : "",
                 tir_type_text(lo->cx->scratch, t).ptr, count, lo->f->threads,
                 TIR_BUDGET_TILE_REGISTERS);
    tir_note_at(lo->cx->diags, (struct tir_span){0},
                "tiles are shared out among threads by the powers of two in their shape");
    return false;
}

static bool check_values(struct lower *lo)
{
    tir_foreach_inst(inst, lo->f) {
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i] && inst->operands[i]->type->elem == TIR_E2M1 &&
                inst->operands[i]->type->space == TIR_SPACE_GLOBAL) {
                tir_lower_unsupported(lo, inst, "a tensor of e2m1, two of which share a byte,");
                tir_note_at(lo->cx->diags, (struct tir_span){0},
                            "take a tensor of u8; `unpack` and `pack` of tir/mx.tir convert");
                return false;
            }
        for (uint32_t i = 0; i < inst->result_count; i++)
            if (!check_registers(lo, inst, inst->results[i]))
                return false;
    }
    return true;
}

// An arrival that copies by threads bring about releases these alone, and not what threads stored
// where a copy had too little alignment.
static void release_commits(struct tir_func *f)
{
    tir_foreach_inst(inst, f) {
        if (!tir_commits_copies(inst))
            continue;
        struct tir_builder b = tir_builder_before(f, inst);
        struct tir_inst *fence = tir_build(&b, TIR_OP_FENCE, NULL, 0, NULL, 0, 0);
        tir_set_word(f, fence, TIR_ATTR_of, TIR_WORD_of_cta);
    }
}

// Do its threads multiply by mma.sync, or its roles beside tensor memory?
static bool lacks_registers(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT || inst->op == TIR_OP_TMEM_ALLOC)
            return true;
    return false;
}

enum tir_change tir_pass_lower_tile(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct tir_types *types = f->module->types;
    tir_lower_pack_sums(f, cx->scratch);
    struct lower lo = {.f = f,
                       .cx = cx,
                       .types = types,
                       .ranges = tir_ranges_new(cx->scratch, f),
                       .uses = tir_count_uses(cx->scratch, f),
                       .i32 = tir_type_scalar(types, TIR_I32),
                       .u32 = tir_type_scalar(types, TIR_U32),
                       .i64 = tir_type_scalar(types, TIR_I64),
                       .boolean = tir_type_scalar(types, TIR_BOOL)};
    lo.index = f->facts & TIR_FACT_INDEX32 ? lo.i32 : lo.i64;
    lo.by_thread = f->grid_count > 0; // before the tiles loop becomes a grid
    if (!f->threads)
        f->threads = 128;
    lo.threads = f->threads;
    lo.has_pairs = tir_has_pairs(f);
    lo.swizzles_by_bits = cx->target->features & TIR_HAS_TMA && !lacks_registers(f);
    tir_map_init(&lo.in_flight, cx->scratch);
    tir_map_init(&lo.reduced, cx->scratch);
    tir_map_init(&lo.registers, cx->scratch);
    tir_map_init(&lo.coords, cx->scratch);
    tir_map_init(&lo.below, cx->scratch);

    if (!check_values(&lo))
        return TIR_FAILED;

    // Everything thread-dependent goes in front of a marker at the very start.
    struct tir_builder start = tir_builder_at_end(f, f->body);
    start.before = f->body->first;
    struct tir_inst *marker = tir_build(&start, TIR_OP_WARP_SYNC, NULL, 0, NULL, 0, 0);
    lo.top = tir_builder_before(f, marker);
    tir_lower_block(&lo, f->body);
    if (!lo.failed)
        tir_lower_end_scopes(&lo);
    tir_lower_tmem_end(&lo);
    if (lo.copies_by_registers)
        release_commits(f);
    tir_remove(marker);
    return lo.failed ? TIR_FAILED : TIR_CHANGED;
}
