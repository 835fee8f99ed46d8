// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which products run on warpgroups.
//
// A wgmma multiplies 64 rows by up to 256 columns for four warps (PTX ISA, "Asynchronous warpgroup
// level matrix instructions"). B, and A unless it is in registers, lie in shared memory, with K
// contiguous unless elements have 16 bits. It pays when tensor copies fill that memory, so operands
// that are loaded as they are must be within their reach. A kernel's products run on warpgroups all
// together or not at all: the roles that keep them fed need all of the CTA. Where the program
// has roles of its own, each product is decided by itself.

#include "pass/warpgroup.h"

#include "ir/walk.h"
#include "pass/crew.h"
#include "pass/dot.h"
#include "pass/receipt.h"
#include "pass/tma.h"

#define GROUP_ROWS          64
#define WARPGROUP           128 // threads
#define MOST_GROUPS         3
// Registers of a thread that may hold sums, ptxas needs the others; fewer where as many warps again
// compute operands.
#define ACCUMULATORS        200
#define ACCUMULATORS_BESIDE 96

struct plan {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    int64_t rows;  // a multiple of 64 that all products are multiples of
    int64_t sums;  // accumulators of all products
    bool computes; // some operand is computed on its way to shared memory
    bool any;
};

static const struct wgmma_row {
    enum tir_elem elem, acc;
    uint32_t depth; // K of one instruction
} wgmma_rows[] = {
    {TIR_F16, TIR_F16, 16},  {TIR_E4M3, TIR_F16, 32}, {TIR_E5M2, TIR_F16, 32},
    {TIR_F16, TIR_F32, 16},  {TIR_BF16, TIR_F32, 16}, {TIR_TF32, TIR_F32, 8},
    {TIR_E4M3, TIR_F32, 32}, {TIR_E5M2, TIR_F32, 32}, {TIR_I8, TIR_I32, 32},
    {TIR_U8, TIR_I32, 32},
};

static uint32_t depth_of(enum tir_elem elem, enum tir_elem acc)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(wgmma_rows); i++)
        if (wgmma_rows[i].elem == elem && wgmma_rows[i].acc == acc)
            return wgmma_rows[i].depth;
    return 0;
}

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

static const struct tir_value *untransposed(const struct tir_value *v, bool *turned)
{
    *turned = false;
    while (v->def && v->def->op == TIR_OP_PERMUTE) {
        *turned ^= tir_attr_find(v->def, TIR_ATTR_permutation)->list[0] == 1;
        v = v->def->operands[0];
    }
    return v;
}

struct tir_inst *tir_loaded_by(const struct tir_value *v)
{
    bool turned;
    v = untransposed(v, &turned);
    bool loaded = v->def && v->def->op == TIR_OP_LOAD;
    return loaded && tir_ref_base(v->def)->type->space == TIR_SPACE_GLOBAL ? v->def : NULL;
}

bool tir_a_in_registers(const struct tir_inst *dot)
{
    const struct tir_value *a = dot->operands[TIR_DOT_A];
    return tir_type_is_tile(a->type) && tir_elems[a->type->elem].bits == 16 &&
           a->kind != TIR_VALUE_CONST && !tir_loaded_by(a) && a->def &&
           a->def->op != TIR_OP_PERMUTE;
}

// Why operand i, whose dimension K is k_dim, cannot be in shared memory as wgmma wants it.
static const char *refuse_operand(struct plan *p, const struct tir_inst *dot, uint32_t i,
                                  uint32_t k_dim)
{
    const struct tir_value *v = dot->operands[i];
    if (i == TIR_DOT_A && tir_a_in_registers(dot))
        return NULL;
    if (tir_type_is_buffer(v->type))
        return "an operand is a shared buffer of the program";
    bool turned;
    const struct tir_value *x = untransposed(v, &turned);
    uint32_t bits = tir_elems[v->type->elem].bits;
    if (x->type->shape[1] * bits % 256)
        return "the rows of an operand are not a multiple of 32 bytes";
    const struct tir_inst *load = tir_loaded_by(v);
    if (!load) { // stored as it is needed
        p->computes = true;
        return NULL;
    }
    if (bits != 16 && (turned ? 1 - k_dim : k_dim) != 1)
        return "wgmma transposes only 16-bit elements, and K is not contiguous";
    return tir_tma_refusal(p->f, p->cx->arch, p->ranges, load);
}

static const char *refuse_shape(const struct tir_inst *dot)
{
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type;
    const struct tir_type *b = dot->operands[TIR_DOT_B]->type;
    const struct tir_type *t = dot->results[0]->type;
    uint32_t depth = depth_of(a->elem, t->elem);
    bool mixes = tir_elems[a->elem].bits == 8 && depth && depth_of(b->elem, t->elem);
    if (!depth || (a->elem != b->elem && !mixes))
        return "wgmma has no such element types";
    if (t->shape[0] % GROUP_ROWS || t->shape[1] % 8 || a->shape[1] % depth)
        return "the tile is not a multiple of 64 rows, 8 columns and one instruction's depth";
    if (t->shape[1] > 256 && t->shape[1] % 256)
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
static const char *refuse_buffer(struct plan *p, const struct tir_value *v, uint32_t k_dim)
{
    if (!tir_type_is_buffer(v->type))
        return "an operand is neither in shared memory nor in registers";
    bool turned;
    const struct tir_value *x = untransposed(v, &turned);
    const struct tir_layout *l = tir_plain_memory(p->f->module->types, x);
    if (!l || !l->swizzle)
        return "an operand does not lie in swizzled rows";
    if (tir_elems[v->type->elem].bits != 16 && (turned ? 1 - k_dim : k_dim) != 1)
        return "wgmma transposes only 16-bit elements, and K is not contiguous";
    return NULL;
}

// A product in a role of the program runs on the warpgroups of that role.
static const char *refuse_in_role(struct plan *p, const struct tir_inst *dot)
{
    struct tir_crew crew = tir_crew_of(p->f, dot);
    const struct tir_type *t = dot->results[0]->type;
    if (!(p->cx->arch->features & TIR_ARCH_WGMMA))
        return "the target has no wgmma";
    if (!crew.role || crew.warps % 4 || crew.first % 4)
        return "it is not in a role of whole warpgroups";
    const char *why = refuse_shape(dot);
    if (!why && t->shape[0] % (crew.warps / 4 * GROUP_ROWS))
        why = "the rows do not divide among the warpgroups of the role";
    if (!why && tir_type_count(t) > (int64_t)crew.warps * 32 * ACCUMULATORS)
        why = "the sums do not fit in registers";
    if (!why && !tir_a_in_registers(dot))
        why = refuse_buffer(p, dot->operands[TIR_DOT_A], 1);
    return why ? why : refuse_buffer(p, dot->operands[TIR_DOT_B], 0);
}

static bool has_roles(const struct tir_func *f)
{
    return f->body->last && f->body->last->op == TIR_OP_ROLE;
}

static bool plan_roles(struct plan *p, bool apply)
{
    bool any = false;
    tir_foreach_inst(inst, p->f) {
        if (inst->op != TIR_OP_DOT)
            continue;
        const char *why = refuse_in_role(p, inst);
        any |= !why;
        if (!apply)
            continue;
        if (!why)
            tir_set_word(p->f, inst, TIR_ATTR_engine, TIR_WORD_engine_wgmma);
        else if (p->cx->arch->features & TIR_ARCH_WGMMA)
            tir_receipt_refuse(p->cx, TIR_TOPIC_DOT, TIR_WISH_WGMMA, inst->span,
                               "dot: no wgmma, because %s", why);
    }
    return any;
}

// Why no product of the kernel runs on warpgroups, wherever they are.
static const char *refuse_kernel(const struct plan *p)
{
    if (!(p->cx->arch->features & TIR_ARCH_WGMMA))
        return "the target has no wgmma";
    if (p->f->grid_count)
        return "the kernel speaks of single threads";
    if (p->f->threads % WARPGROUP)
        return "the CTA has no whole warpgroups";
    return NULL;
}

static int64_t common_rows(int64_t x, int64_t y)
{
    return x ? (int64_t)tir_gcd((uint64_t)x, (uint64_t)y) : y;
}

// Whether the dot adds to the sums of another one, in the same registers.
static bool goes_on(const struct tir_inst *dot)
{
    const struct tir_value *acc = dot->operands[TIR_DOT_ACC];
    const struct tir_inst *before = acc->def;
    if (before && before->op == TIR_OP_FOR)
        for (uint32_t i = 0; i < acc->def->result_count; i++)
            if (acc->def->results[i] == acc)
                before = tir_yield_of(acc->def->regions[0])->operands[i]->def;
    return before && before->op == TIR_OP_DOT;
}

static int64_t sums_of_group(const struct plan *p)
{
    return WARPGROUP * (p->computes ? ACCUMULATORS_BESIDE : ACCUMULATORS);
}

// As many warpgroups as give each of them whole blocks of 64 rows, but no more than keep the sums
// in registers.
static uint32_t choose_groups(const struct plan *p)
{
    int64_t most = sums_of_group(p);
    uint32_t groups = 1;
    while (groups < MOST_GROUPS && p->rows % (GROUP_ROWS * (groups + 1)) == 0 &&
           (groups == 1 || p->sums > groups * most))
        groups++;
    if (groups == 1 && p->rows % (3 * GROUP_ROWS) == 0)
        groups = 3;
    return groups;
}

// Fills the plan; NULL: the products run on so many warpgroups, else why they do not, and where.
static const char *make_plan(struct plan *p, uint32_t *groups, const struct tir_inst **where)
{
    const char *kernel = refuse_kernel(p), *why = NULL;
    *where = NULL;
    tir_foreach_inst(inst, p->f) {
        if (inst->op != TIR_OP_DOT)
            continue;
        const struct tir_type *t = inst->results[0]->type;
        p->any = true;
        p->rows = common_rows(p->rows, t->shape[0]);
        p->sums += goes_on(inst) ? 0 : tir_type_count(t);
        const char *here = kernel ? kernel : refuse_dot(p, inst);
        if (here && !why) {
            why = here;
            *where = inst;
        }
    }
    if (why || !p->any)
        return why ? why : "there are no products";
    *groups = p->f->threads ? p->f->threads / WARPGROUP : choose_groups(p);
    if (p->rows % (*groups * GROUP_ROWS))
        return "the rows do not divide among the warpgroups of the CTA";
    if (p->sums > *groups * sums_of_group(p))
        return "the sums do not fit in registers";
    return NULL;
}

bool tir_may_use_warpgroups(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct plan p = {.f = f, .cx = cx, .ranges = tir_ranges_new(cx->scratch, f)};
    uint32_t groups;
    const struct tir_inst *where;
    if (has_roles(f))
        return plan_roles(&p, false);
    return !make_plan(&p, &groups, &where);
}

void tir_plan_warpgroups(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct plan p = {.f = f, .cx = cx, .ranges = tir_ranges_new(cx->scratch, f)};
    uint32_t groups;
    const struct tir_inst *where;
    if (has_roles(f)) {
        plan_roles(&p, true);
        return;
    }
    const char *why = make_plan(&p, &groups, &where);
    if (why && p.any && cx->arch->features & TIR_ARCH_WGMMA)
        tir_receipt_refuse(cx, TIR_TOPIC_DOT, TIR_WISH_WGMMA, where ? where->span : f->span,
                           "dot: no wgmma, because %s", why);
    if (why)
        return;
    f->threads = groups * WARPGROUP;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT)
            tir_set_word(f, inst, TIR_ATTR_engine, TIR_WORD_engine_wgmma);
}
