// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decides which products run on warpgroups.
//
// A wgmma multiplies 64 rows by up to 256 columns for four warps (PTX ISA, "Asynchronous warpgroup
// level matrix instructions"). B, and A unless it is in registers, lie in shared memory, with K
// contiguous unless elements have 16 bits; the role that copies turns others while it stores them.
// It pays if tensor copies fill that memory, so tensor copies must be able to move operands that
// are loaded unchanged; or threads, where index tiles name rows or elements or a mask cuts them,
// which no tensor copy can follow.
//
// Each product is decided by itself, for the number of warpgroups that lets most of the work run
// there: the accumulator, and other tiles in registers while the product runs, must leave room for
// ptxas. Warpgroups split a tile by rows, and by columns if there are too few rows. Other products
// run as mma.sync on the same threads. If the program has its own roles, a product runs on the
// warpgroups of its role.

#include "pass/layout/warpgroup.h"

#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/product.h"
#include "pass/async/cp_async.h"
#include "pass/async/tma.h"
#include "pass/layout/dot.h"
#include "pass/layout/layout.h"
#include "pass/layout/operand.h"
#include "pass/layout/pressure.h"
#include "pass/layout/turned.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

#define WARPGROUP 128 // threads
#define WIDE_COPY 16  // bytes of a cp.async; narrower ones take the registers of too many sums

static_assert(TIR_WGMMA_WARPS == TIR_WARPGROUP, "a warpgroup issues a wgmma");

struct product {
    struct tir_inst *dot;
    const char *why; // it cannot run on any warpgroups; NULL: it can
    int64_t held;    // registers of all threads that hold tiles while it runs
};

struct plan {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    struct tir_pressure *pressure;
    bool turns;              // a role beside that of the products may transpose operands
    bool asks_turns;         // some product needs that
    enum tir_role_work work; // of that role
    VEC(struct product) products;
};

bool tir_dot_on_warpgroups(const struct tir_inst *dot)
{
    return dot->op == TIR_OP_DOT &&
           tir_attr_word(dot, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_wgmma;
}

bool tir_has_warpgroup_dot(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (tir_dot_on_warpgroups(inst))
            return true;
    return false;
}

bool tir_has_tensor_memory(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TMEM_ALLOC)
            return true;
    return false;
}

struct tir_inst *tir_loaded_by(struct tir_value *v)
{
    bool turned;
    v = tir_brought(tir_unturned(v, &turned));
    bool loaded = v->def && v->def->op == TIR_OP_LOAD;
    return loaded && tir_ref_base(v->def)->type->space == TIR_SPACE_GLOBAL ? v->def : NULL;
}

bool tir_a_in_registers(const struct tir_inst *dot)
{
    struct tir_value *a = dot->operands[TIR_DOT_A];
    return tir_type_is_tile(a->type) && tir_elems[a->type->elem].bits <= 16 &&
           a->kind != TIR_VALUE_CONST && !tir_loaded_by(a) &&
           (!a->def || a->def->op != TIR_OP_PERMUTE);
}

bool tir_follows_from_products(struct tir_arena *scratch, const struct tir_func *f,
                               const struct tir_value *v)
{
    struct bitset seen = bitset_new(scratch, f->value_count);
    VEC(const struct tir_value *) work = {0};
    vec_push(scratch, &work, v);
    while (work.len) {
        v = vec_pop(&work);
        if (!v || v->kind == TIR_VALUE_CONST || !bitset_insert(&seen, v->id))
            continue;
        const struct tir_inst *def = v->def;
        if (def ? def->op == TIR_OP_DOT || def->region_count : tir_type_is_tile(v->type))
            return true;
        for (uint32_t i = 0; def && i < def->operand_count; i++)
            vec_push(scratch, &work, def->operands[i]);
    }
    return false;
}

// Registers of a thread while all products of a round are in flight: sums, and copies of A.
static int64_t registers_of_round(const struct tir_block *round, uint32_t warps)
{
    int64_t each = 0;
    for (const struct tir_inst *dot = round->first; dot; dot = dot->next) {
        if (!tir_dot_on_warpgroups(dot))
            continue;
        const struct tir_type *sums = dot->results[0]->type;
        const uint32_t rows = tir_wgmma_row_groups(sums->shape, warps);
        each += tir_ceil_div(tir_type_count(sums), warps * 32) +
                tir_ceil_div(tir_pressure_of_a(dot), rows * WARPGROUP);
    }
    return each;
}

// Bytes of an operand of a product in shared memory, once for all products that have it.
static int64_t operand_bytes(struct bitset *seen, const struct tir_inst *dot, uint32_t i)
{
    bool turned;
    const struct tir_value *x = tir_brought(tir_unturned(dot->operands[i], &turned));
    return x->kind == TIR_VALUE_CONST || !bitset_insert(seen, x->id)
               ? 0
               : tir_type_count(x->type) * tir_elems[x->type->elem].bits / 8;
}

static bool is_sent(struct tir_arena *scratch, const struct tir_func *f, const struct tir_inst *dot)
{
    const uint32_t warps = tir_crew_of(f, dot).warps, groups = warps / TIR_WARPGROUP;
    const int64_t registers = tir_role_registers(groups, TIR_ROLE_COPIES).math;
    return tir_a_in_registers(dot) &&
           tir_wgmma_row_groups(dot->results[0]->type->shape, warps) < groups &&
           registers_of_round(dot->block, warps) + TIR_BUDGET_FREE_REGISTERS > registers &&
           tir_follows_from_products(scratch, f, dot->operands[TIR_DOT_A]);
}

struct bitset tir_sent_operands(struct tir_arena *scratch, const struct tir_func *f,
                                const struct tir_target *target)
{
    struct bitset sent = bitset_new(scratch, f->value_count),
                  seen = bitset_new(scratch, f->value_count);
    int64_t bytes = TIR_BUDGET_MBARRIER_BYTES;
    tir_foreach_inst(dot, f) {
        if (!tir_dot_on_warpgroups(dot))
            continue;
        const bool is = is_sent(scratch, f, dot);
        if (is)
            bitset_insert(&sent, dot->results[0]->id);
        if (is || !tir_a_in_registers(dot))
            bytes += operand_bytes(&seen, dot, TIR_DOT_A);
        bytes += operand_bytes(&seen, dot, TIR_DOT_B);
    }
    return bytes <= target->shared_per_cta ? sent : bitset_new(scratch, f->value_count);
}

// The same for a loaded tile that tensor copies refuse, whose rows or elements have addresses: as
// many warps as multiply bring it, by cp.async, or through registers what that cannot copy.
static const char *refuse_by_threads(struct plan *p, const struct tir_value *x, const char *tma)
{
    struct tir_copied copied;
    const char *why = tma;
    if (tir_follows_from_products(p->cx->scratch, p->f, x) || !tir_copied_of(x, &copied))
        return why;
    const struct tir_value *tensor = tir_ref_base(copied.slice);
    p->work = TIR_ROLE_COMPUTES;
    const uint32_t width = tir_tile_copy_width(p->f, p->cx->target, p->ranges, x, &why);
    if (width && width < WIDE_COPY)
        return "its rows are not known to move by 16 bytes at a time";
    const bool loads = tir_is_only_read(p->f, tensor) && tir_tensor_is_dense(p->f, tensor);
    return width || loads ? NULL : why;
}

// What a role beside two warpgroups does that stores operand i. B is stored transposed, K
// contiguous.
static enum tir_role_work work_of(const struct plan *p, const struct tir_inst *dot, uint32_t i)
{
    return tir_turning_work(p->f, dot->operands[i], i == TIR_DOT_B, 2 * TIR_WARPGROUP);
}

// Why operand i, whose dimension K is k_dim, cannot be in shared memory as wgmma wants it.
static const char *refuse_operand(struct plan *p, const struct tir_inst *dot, uint32_t i,
                                  uint32_t k_dim)
{
    struct tir_value *v = dot->operands[i];
    if (i == TIR_DOT_A && tir_a_in_registers(dot))
        return NULL;
    if (tir_type_is_buffer(v->type))
        return "an operand is a shared buffer of the program";
    bool turned;
    struct tir_value *rows = tir_unturned(v, &turned), *x = tir_brought(rows);
    uint32_t bits = tir_elems[v->type->elem].bits;
    if (rows->type->shape[1] * bits % 256)
        return "the rows of an operand are not a multiple of 32 bytes";
    const struct tir_inst *load = tir_loaded_by(v);
    if (!load) { // stored as it is needed
        if (!tir_follows_from_products(p->cx->scratch, p->f, x))
            p->work = TIR_MAX(p->work, work_of(p, dot, i));
        return NULL;
    }
    if (bits != 16 && (turned ? 1 - k_dim : k_dim) != 1) {
        p->asks_turns = true;
        if (!p->turns || tir_follows_from_products(p->cx->scratch, p->f, x))
            return "wgmma transposes only 16-bit elements, and K is not contiguous";
        p->work = TIR_MAX(p->work, work_of(p, dot, i));
    }
    if (tir_pressure_needs(p->pressure, x)) // loaded once, and stored from registers
        p->work = TIR_ROLE_COMPUTES;
    const char *why = tir_tma_refusal(p->f, p->cx->target, p->ranges, load);
    return why && tir_takes_tiles(load, TIR_LOAD_MASK) ? refuse_by_threads(p, x, why) : why;
}

static const char *refuse_shape(const struct tir_inst *dot)
{
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type;
    const struct tir_type *b = dot->operands[TIR_DOT_B]->type;
    const struct tir_type *t = dot->results[0]->type;
    if (!tir_elems_multiply(a->elem, b->elem))
        return "its operands have different element types";
    const struct tir_product *product =
        tir_product_find(TIR_ENGINE_WGMMA, a->elem, b->elem, t->elem);
    if (!product)
        return "wgmma has no such element types";
    if (t->shape[0] % TIR_WGMMA_ROWS || t->shape[1] % TIR_WGMMA_COLUMNS ||
        a->shape[1] % product->depth)
        return "the tile is not a multiple of 64 rows, 8 columns and one instruction's depth";
    if (t->shape[1] > TIR_WGMMA_MOST_COLUMNS && t->shape[1] % TIR_WGMMA_MOST_COLUMNS)
        return "more than 256 columns must be a multiple of 256";
    return NULL;
}

static const char *refuse_dot(struct plan *p, const struct tir_inst *dot)
{
    const char *why = refuse_shape(dot);
    if (why)
        return why;
    why = refuse_operand(p, dot, TIR_DOT_A, 1);
    return why ? why : refuse_operand(p, dot, TIR_DOT_B, 0);
}

// The same for a buffer that the program itself has filled.
static const char *refuse_buffer(struct plan *p, struct tir_value *v, uint32_t k_dim)
{
    if (!tir_type_is_buffer(v->type))
        return "an operand is neither in shared memory nor in registers";
    bool turned;
    const struct tir_value *x = tir_unturned(v, &turned);
    const struct tir_layout *l = tir_plain_memory(p->f->module->types, x);
    if (!l || !l->swizzle)
        return "an operand does not lie in swizzled rows";
    if (tir_elems[v->type->elem].bits != 16 && (turned ? 1 - k_dim : k_dim) != 1)
        return "wgmma transposes only 16-bit elements, and K is not contiguous";
    return NULL;
}

// Bytes of a row of B, if N is contiguous in it, that each of `groups` warpgroups takes; 0: it is
// not, or each takes the whole row.
static uint64_t part_of_row(const struct tir_inst *dot, uint32_t groups)
{
    bool turned;
    struct tir_value *b = dot->operands[TIR_DOT_B];
    const struct tir_type *t = dot->results[0]->type;
    uint32_t rows = tir_wgmma_row_groups(t->shape, groups * TIR_WARPGROUP);
    tir_unturned(b, &turned);
    if (turned || rows == 0 || rows == groups)
        return 0;
    return (uint64_t)t->shape[1] / (groups / rows) * tir_elems[b->type->elem].bits / 8;
}

uint32_t tir_dot_swizzle(const struct tir_func *f, const struct tir_value *x)
{
    const struct tir_type *t = x->type;
    uint64_t bytes = (uint64_t)t->shape[t->rank - 1] * tir_elems[t->elem].bits / 8;
    tir_foreach_inst(inst, f) {
        bool turned;
        if (tir_dot_on_warpgroups(inst) && tir_unturned(inst->operands[TIR_DOT_B], &turned) == x)
            bytes = tir_gcd(bytes, part_of_row(inst, tir_crew_of(f, inst).warps / TIR_WARPGROUP));
    }
    return tir_layout_swizzle_for((int64_t)bytes);
}

// Why the tiles that are in registers while the product runs do not fit: on `groups` warpgroups
// whose threads have `registers` each. NULL: they do.
static const char *refuse_room(const struct plan *p, const struct product *product, uint32_t groups,
                               uint32_t registers)
{
    const struct tir_type *t = product->dot->results[0]->type;
    uint32_t rows = tir_wgmma_row_groups(t->shape, groups * TIR_WARPGROUP);
    if (!rows)
        return tir_str_format(p->cx->scratch, "its tile does not divide among %u warpgroups",
                              groups)
            .ptr;
    if (part_of_row(product->dot, groups) % 32) // no swizzle is shorter
        return tir_str_format(p->cx->scratch,
                              "the columns of each of %u warpgroups are not a multiple of 32 bytes",
                              groups)
            .ptr;
    // Warpgroups that share rows have copies of A.
    int64_t takes = tir_ceil_div(product->held, groups * WARPGROUP) +
                    tir_ceil_div(tir_pressure_of_a(product->dot), rows * WARPGROUP);
    if (takes + TIR_BUDGET_FREE_REGISTERS <= registers)
        return NULL;
    return tir_str_format(p->cx->scratch,
                          "the sums do not fit in registers: tiles take %lld of a thread on %u "
                          "warpgroups, with room for %u",
                          (long long)takes, groups, registers - TIR_BUDGET_FREE_REGISTERS)
        .ptr;
}

// A product in a role of the program runs on the warpgroups of that role.
static const char *refuse_in_role(struct plan *p, const struct product *product)
{
    const struct tir_inst *dot = product->dot;
    struct tir_crew crew = tir_crew_of(p->f, dot);
    if (!(p->cx->target->features & TIR_HAS_WGMMA))
        return "the target has no wgmma";
    if (crew.scope)
        return "it is in a scope";
    if (!crew.role || crew.warps % TIR_WARPGROUP || crew.first % TIR_WARPGROUP)
        return "it is not in a role of whole warpgroups";
    int64_t launch = tir_launch_registers(p->f->threads);
    const char *why = refuse_shape(dot);
    if (!why)
        why = refuse_room(p, product, crew.warps / TIR_WARPGROUP,
                          (uint32_t)tir_attr_int(crew.role, TIR_ATTR_regs, launch));
    if (!why && !tir_a_in_registers(dot))
        why = refuse_buffer(p, dot->operands[TIR_DOT_A], 1);
    return why ? why : refuse_buffer(p, dot->operands[TIR_DOT_B], 0);
}

static bool has_roles(const struct tir_func *f)
{
    return f->body->last && f->body->last->op == TIR_OP_ROLE;
}

// Why no product of the kernel runs on warpgroups, wherever they are.
static const char *refuse_kernel(const struct plan *p)
{
    if (!(p->cx->target->features & TIR_HAS_WGMMA))
        return "the target has no wgmma";
    if (p->f->grid_count)
        return "the kernel speaks of single threads";
    if (p->cx->attempt && p->cx->attempt->only_mma_sync)
        return "the kernel failed with it";
    if (tir_stated_threads(p->f) % WARPGROUP)
        return "the CTA has no whole warpgroups";
    return NULL;
}

// Why shared memory is too small: tensor copies fill slots that are the operand's for the whole
// kernel, where one after the other could use the same bytes. NULL: it is not.
static const char *refuse_memory(const struct plan *p)
{
    struct bitset seen = bitset_new(p->cx->scratch, p->f->value_count);
    int64_t bytes = 0, there = p->cx->target->shared_per_cta - TIR_BUDGET_FREE_SHARED;
    vec_foreach(const struct product, product, &p->products)
        for (uint32_t i = TIR_DOT_A; i <= TIR_DOT_B; i++)
            if (i != TIR_DOT_A || !tir_a_in_registers(product->dot))
                bytes += operand_bytes(&seen, product->dot, i);
    if (bytes <= there)
        return NULL;
    return tir_str_format(p->cx->scratch,
                          "the operands of all products take %lld bytes of shared memory at once, "
                          "and there are %lld",
                          (long long)bytes, (long long)there)
        .ptr;
}

// Registers of a thread of `groups` warpgroups of products.
static uint32_t registers_of(const struct plan *p, uint32_t groups)
{
    uint32_t given = tir_role_registers(groups, p->work).math;
    const uint32_t beside = groups > TIR_BUDGET_PRODUCT_GROUPS ? 0
                            : p->work <= TIR_ROLE_TURNS        ? 1
                                                               : groups;
    return given ? given : tir_launch_registers((groups + beside) * WARPGROUP);
}

static const char *refuse_on(const struct plan *p, const struct product *product, uint32_t groups)
{
    return product->why ? product->why : refuse_room(p, product, groups, registers_of(p, groups));
}

// Multiplications of the products that run on `groups` warpgroups; 0 groups: of all.
static int64_t work_on(const struct plan *p, uint32_t groups)
{
    int64_t work = 0;
    vec_foreach(const struct product, product, &p->products) {
        const struct tir_type *t = product->dot->results[0]->type;
        if (!groups || !refuse_on(p, product, groups))
            work += tir_type_count(t) * product->dot->operands[TIR_DOT_A]->type->shape[1];
    }
    return work;
}

// The number of warpgroups by which the rows of all products divide: two, else three, else one.
static uint32_t natural_groups(const struct plan *p)
{
    uint64_t rows = 0;
    vec_foreach(const struct product, product, &p->products)
        if (!product->why)
            rows = tir_gcd(rows, (uint64_t)product->dot->results[0]->type->shape[0]);
    return rows % (2 * TIR_WGMMA_ROWS) == 0 ? 2 : rows % (3 * TIR_WGMMA_ROWS) == 0 ? 3 : 1;
}

// The warpgroups on which most of the work runs, the natural number if that is one of them. 0: less
// than half of it runs on any, or half of it where a role that loads or turns operands leaves fewer
// registers than both kinds of products take.
static uint32_t choose_groups(const struct plan *p)
{
    uint32_t stated = tir_stated_threads(p->f) / WARPGROUP,
             best = stated ? stated : natural_groups(p);
    for (uint32_t groups = 1; !stated && groups <= TIR_BUDGET_PRODUCT_GROUPS; groups++)
        if (work_on(p, groups) > work_on(p, best))
            best = groups;
    int64_t work = work_on(p, best);
    const int64_t least = work_on(p, 0) + (p->work != TIR_ROLE_COPIES);
    return work && 2 * work >= least ? best : 0;
}

static void collect_products(struct plan *p)
{
    p->ranges = tir_ranges_new(p->cx->scratch, p->f);
    p->pressure = tir_pressure_new(p->cx->scratch, p->f);
    tir_foreach_inst(inst, p->f)
        if (inst->op == TIR_OP_DOT) {
            struct product product = {.dot = inst, .held = tir_pressure_at(p->pressure, inst)};
            vec_push(p->cx->scratch, &p->products, product);
        }
}

static void refuse_product(const struct plan *p, const struct product *product, const char *why)
{
    if (p->cx->target->features & TIR_HAS_WGMMA)
        tir_receipt_refuse(p->cx, TIR_TOPIC_DOT, TIR_WISH_WGMMA, product->dot->span,
                           "dot: no wgmma, because %s", why);
}

static bool plan_roles(struct plan *p, bool apply)
{
    bool any = false;
    vec_foreach(const struct product, product, &p->products) {
        const char *why = refuse_in_role(p, product);
        any |= !why;
        if (apply && !why)
            tir_set_word(p->f, product->dot, TIR_ATTR_engine, TIR_WORD_engine_wgmma);
        else if (apply)
            refuse_product(p, product, why);
    }
    return any;
}

static uint32_t plan_with(struct plan *p, bool turns)
{
    const char *kernel = refuse_kernel(p);
    kernel = kernel ? kernel : refuse_memory(p);
    p->turns = turns;
    p->work = TIR_ROLE_COPIES;
    vec_foreach(struct product, product, &p->products)
        product->why = kernel ? kernel : refuse_dot(p, product->dot);
    return choose_groups(p);
}

// A role that transposes operands takes registers from the products: it is for those that run on
// warpgroups by it alone.
static uint32_t plan_kernel(struct plan *p)
{
    const uint32_t groups = plan_with(p, false);
    const int64_t work = groups ? work_on(p, groups) : 0;
    if (!p->asks_turns)
        return groups;
    const uint32_t with_turns = plan_with(p, true);
    return with_turns && work_on(p, with_turns) > work ? with_turns : plan_with(p, false);
}

bool tir_may_use_warpgroups(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct plan p = {.f = f, .cx = cx};
    collect_products(&p);
    return has_roles(f) ? plan_roles(&p, false) : plan_kernel(&p) > 0;
}

void tir_plan_warpgroups(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct plan p = {.f = f, .cx = cx};
    collect_products(&p);
    if (has_roles(f)) {
        plan_roles(&p, true);
        return;
    }
    uint32_t groups = plan_kernel(&p), natural = natural_groups(&p);
    vec_foreach(const struct product, product, &p.products) {
        const char *why = refuse_on(&p, product, groups ? groups : natural);
        if (!why && !groups)
            why = "half of the work or more is in products that have none";
        if (why)
            refuse_product(&p, product, why);
        else
            tir_set_word(f, product->dot, TIR_ATTR_engine, TIR_WORD_engine_wgmma);
    }
    if (groups)
        f->threads = groups * WARPGROUP;
}
