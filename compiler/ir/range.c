// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// range: intervals and divisors of integer values, in one walk in program order.
//
// Structured control flow makes one walk enough: operands come before their users, but for
// loop-carried values, of which nothing is assumed. Loop variables lie between the loop's bounds
// and are multiples of what divides begin and step. Facts come from the kernel's where clause (K %
// 64 == 0), its launch-time facts and its assume statements. An operation whose result may not fit
// its type wraps, so its result may be anything the type holds.

#include "ir/range.h"

#include "ir/walk.h"

struct known {
    int64_t low, high;
    uint64_t divisor;
    bool no_sign; // it is not negative, unless 64 bits overflow
};

struct tir_ranges {
    const struct tir_func *f;
    struct known *of; // by value id
    uint32_t count;
    bool asks_branches;
};

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

static struct known anything(const struct tir_type *t)
{
    struct known k = {INT64_MIN, INT64_MAX, 1};
    uint32_t bits = tir_elems[t->elem].bits;
    if (t->elem == TIR_BOOL) {
        k.low = 0;
        k.high = 1;
    } else if (tir_elem_is_int(t->elem) && bits < 64) {
        bool is_signed = tir_elems[t->elem].kind == TIR_KIND_SIGNED;
        k.low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
        k.high = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
    }
    return k;
}

static struct known get(const struct tir_ranges *r, const struct tir_value *v)
{
    if (v->kind == TIR_VALUE_CONST && !tir_elem_is_float(v->type->elem))
        return (struct known){v->constant.i, v->constant.i, magnitude(v->constant.i)};
    if (v->id < r->count)
        return r->of[v->id];
    return anything(v->type);
}

static void set(struct tir_ranges *r, const struct tir_value *v, struct known k)
{
    struct known all = anything(v->type);
    if (k.low < all.low || k.high > all.high || k.low > k.high) { // it may wrap, or is unreachable
        const uint64_t divisor = k.divisor & -k.divisor;          // wrapping keeps powers of two
        const bool no_sign = k.no_sign;
        k = all;
        k.divisor = TIR_MIN(divisor, UINT64_C(1) << 30);
        k.no_sign = no_sign;
    }
    r->of[v->id] = k;
}

static bool has_no_sign(const struct tir_ranges *r, const struct tir_value *v)
{
    const struct known k = get(r, v);
    return k.low >= 0 || k.no_sign;
}

// The ends of an interval from the four corners of a checked operation; false: it may overflow.
static bool corners(bool (*op)(int64_t, int64_t, int64_t *), struct known a, struct known b,
                    struct known *out)
{
    int64_t c[4];
    if (!op(a.low, b.low, &c[0]) || !op(a.low, b.high, &c[1]) || !op(a.high, b.low, &c[2]) ||
        !op(a.high, b.high, &c[3]))
        return false;
    out->low = out->high = c[0];
    for (uint32_t i = 1; i < 4; i++) {
        out->low = TIR_MIN(out->low, c[i]);
        out->high = TIR_MAX(out->high, c[i]);
    }
    return true;
}

static uint64_t product(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return 0;
    return a > (UINT64_C(1) << 31) || b > (UINT64_C(1) << 31) ? TIR_MAX(a, b) : a * b;
}

static struct known arithmetic(const struct tir_inst *inst, struct known a, struct known b)
{
    struct known k = anything(inst->results[0]->type),
                 overflow = {1, 0, 1}; // set() makes it anything
    switch (inst->op) {
    case TIR_OP_ADD:
    case TIR_OP_SUB:
        k.divisor = overflow.divisor = tir_gcd(a.divisor, b.divisor);
        return corners(inst->op == TIR_OP_ADD ? tir_add_checked : tir_sub_checked, a, b, &k)
                   ? k
                   : overflow;
    case TIR_OP_MUL:
        k.divisor = overflow.divisor = product(a.divisor, b.divisor);
        return corners(tir_mul_checked, a, b, &k) ? k : overflow;
    case TIR_OP_DIV:
    case TIR_OP_CEILDIV:
        if (a.low >= 0 && b.low > 0) {
            bool up = inst->op == TIR_OP_CEILDIV;
            k.low = up ? tir_ceil_div(a.low, b.high) : a.low / b.high;
            k.high = up ? tir_ceil_div(a.high, b.low) : a.high / b.low;
            if (b.low == b.high && a.divisor % (uint64_t)b.low == 0)
                k.divisor = a.divisor / (uint64_t)b.low;
        }
        return k;
    case TIR_OP_REM:
        if (b.low > 0) {
            k.low = a.low >= 0 ? 0 : -(b.high - 1);
            k.high = a.high < 0 ? 0 : TIR_MIN(b.high - 1, a.high);
            k.divisor = tir_gcd(a.divisor, b.divisor);
        }
        return k;
    case TIR_OP_MIN:
        return (struct known){TIR_MIN(a.low, b.low), TIR_MIN(a.high, b.high),
                              tir_gcd(a.divisor, b.divisor)};
    case TIR_OP_MAX:
        return (struct known){TIR_MAX(a.low, b.low), TIR_MAX(a.high, b.high),
                              tir_gcd(a.divisor, b.divisor)};
    case TIR_OP_AND:
        if (a.low >= 0 || b.low >= 0) {
            k.low = 0;
            k.high = a.low < 0 ? b.high : b.low < 0 ? a.high : TIR_MIN(a.high, b.high);
        }
        return k;
    case TIR_OP_OR:
    case TIR_OP_XOR:
        if (a.low >= 0 && b.low >= 0) { // no bit above the highest of either
            uint64_t all = (uint64_t)(a.high | b.high);
            for (uint32_t s = 1; s < 64; s *= 2)
                all |= all >> s;
            k.low = 0;
            k.high = (int64_t)all;
        }
        return k;
    case TIR_OP_SHR:
        if (a.low >= 0 && b.low >= 0) {
            k.low = b.high > 62 ? 0 : a.low >> b.high;
            k.high = b.low > 62 ? 0 : a.high >> b.low;
        }
        return k;
    case TIR_OP_SHL:
        if (a.low >= 0 && b.low >= 0 && b.high < 62 && a.high <= INT64_MAX >> b.high) {
            k.low = a.low << b.low;
            k.high = a.high << b.high;
            k.divisor = b.low < 31 ? product(a.divisor, UINT64_C(1) << b.low) : 1;
        }
        return k;
    default:
        return k;
    }
}

static struct known either(struct known a, struct known b)
{
    return (struct known){TIR_MIN(a.low, b.low), TIR_MAX(a.high, b.high),
                          tir_gcd(a.divisor, b.divisor)};
}

// Between that of a stated cluster and that of a preferred one, which is a multiple.
static struct known cluster_size(const struct tir_func *f, int64_t axis)
{
    const int64_t least = TIR_MAX(f->cluster[axis], 1);
    return (struct known){least, TIR_MAX(f->preferred[axis], least), (uint64_t)least};
}

static struct known evaluate(struct tir_ranges *r, const struct tir_inst *inst)
{
    const struct tir_type *t = inst->results[0]->type;
    const struct tir_func *f = r->f;
    int64_t threads = f->threads ? f->threads : 1024;
    switch (inst->op) {
    case TIR_OP_TID:
        return (struct known){0, threads - 1, 1};
    case TIR_OP_LANEID:
        return (struct known){0, 31, 1};
    case TIR_OP_WARPID:
        return (struct known){0, (threads - 1) / 32, 1};
    case TIR_OP_WGID:
        return (struct known){0, (threads - 1) / 128, 1};
    case TIR_OP_TID_IN_WG:
        return (struct known){0, 127, 1};
    case TIR_OP_NUM_THREADS:
        return (struct known){f->threads ? threads : 32, threads,
                              f->threads ? (uint64_t)threads : 32};
    case TIR_OP_CTA_RANK:
        return (struct known){0, tir_func_ctas(f) - 1, 1};
    case TIR_OP_CTA_IN_CLUSTER:
        return (struct known){0, 15, 1};
    case TIR_OP_CLUSTER_SIZE:
        return cluster_size(f, tir_attr_int(inst, TIR_ATTR_axis, 0) % 3);
    case TIR_OP_CTA_ID:
    case TIR_OP_CLUSTER_ID:
        return (struct known){0, INT32_MAX - 1, 1};
    case TIR_OP_NUM_CTAS:
    case TIR_OP_NUM_CLUSTERS:
        return (struct known){1, INT32_MAX, 1};
    case TIR_OP_ASKEW:
        return (struct known){0, 15, 1};
    case TIR_OP_ALIGNMENT:
        return (struct known){0, 16, 1};
    case TIR_OP_POPCOUNT:
    case TIR_OP_LEADING_ZEROS:
        return (struct known){0, tir_elems[t->elem].bits, 1};
    case TIR_OP_STRIDE:
        return f->facts & TIR_FACT_INDEX32 ? (struct known){INT32_MIN, INT32_MAX, 1} : anything(t);
    case TIR_OP_IOTA:
        return (struct known){0, t->shape[tir_attr_int(inst, TIR_ATTR_axis, 0)] - 1, 1};
    case TIR_OP_BROADCAST:
    case TIR_OP_RESHAPE:
    case TIR_OP_PERMUTE:
    case TIR_OP_CONVERT_LAYOUT:
        return get(r, inst->operands[0]);
    case TIR_OP_CAST:
        // An int64 that does not fit wraps; set() sees to it.
        return tir_elem_is_float(inst->operands[0]->type->elem) ? anything(t)
                                                                : get(r, inst->operands[0]);
    case TIR_OP_WHERE:
        return either(get(r, inst->operands[1]), get(r, inst->operands[2]));
    case TIR_OP_NEG:
    case TIR_OP_ABS: {
        struct known a = get(r, inst->operands[0]);
        if (a.low == INT64_MIN)
            return anything(t);
        if (inst->op == TIR_OP_NEG)
            return (struct known){-a.high, -a.low, a.divisor};
        int64_t top = TIR_MAX(-a.low, a.high);
        return (struct known){a.low > 0 ? a.low : a.high < 0 ? -a.high : 0, top, a.divisor};
    }
    case TIR_OP_IF:
        return either(get(r, tir_yield_of(inst->regions[0])->operands[0]),
                      get(r, tir_yield_of(inst->regions[1])->operands[0]));
    default:
        if (tir_ops[inst->op].rule == TIR_RULE_SAME && inst->operand_count == 2)
            return arithmetic(inst, get(r, inst->operands[0]), get(r, inst->operands[1]));
        return anything(t);
    }
}

// Has the result no sign because operands have none?
static bool keeps_sign_away(const struct tir_ranges *r, const struct tir_inst *inst)
{
    struct tir_value *const *in = inst->operands;
    switch (inst->op) {
    case TIR_OP_ADD:
    case TIR_OP_MUL:
    case TIR_OP_DIV:
    case TIR_OP_CEILDIV:
        return inst->results[0]->type->elem == TIR_I64 && has_no_sign(r, in[0]) &&
               has_no_sign(r, in[1]);
    case TIR_OP_REM: // it has the sign of the first
        return has_no_sign(r, in[0]);
    case TIR_OP_MIN:
        return has_no_sign(r, in[0]) && has_no_sign(r, in[1]);
    case TIR_OP_MAX:
        return has_no_sign(r, in[0]) || has_no_sign(r, in[1]);
    case TIR_OP_WHERE:
        return has_no_sign(r, in[1]) && has_no_sign(r, in[2]);
    case TIR_OP_BROADCAST:
    case TIR_OP_RESHAPE:
    case TIR_OP_PERMUTE:
    case TIR_OP_CONVERT_LAYOUT:
        return has_no_sign(r, in[0]);
    case TIR_OP_IF:
        return has_no_sign(r, tir_yield_of(inst->regions[0])->operands[0]) &&
               has_no_sign(r, tir_yield_of(inst->regions[1])->operands[0]);
    default:
        return false;
    }
}

// To x < c or its like.
static void cut(struct known *k, enum tir_op op, int64_t c)
{
    switch (op) {
    case TIR_OP_LT:
        k->high = c > INT64_MIN ? TIR_MIN(k->high, c - 1) : k->high;
        break;
    case TIR_OP_LE:
        k->high = TIR_MIN(k->high, c);
        break;
    case TIR_OP_GT:
        k->low = c < INT64_MAX ? TIR_MAX(k->low, c + 1) : k->low;
        break;
    case TIR_OP_GE:
        k->low = TIR_MAX(k->low, c);
        break;
    default:
        break;
    }
}

// assume(x < c) and its like, said in the block that makes x.
static void learn(struct tir_ranges *r, const struct tir_inst *assume)
{
    const struct tir_inst *cond = assume->operands[0]->def;
    int64_t c;
    if (!cond || tir_ops[cond->op].rule != TIR_RULE_COMPARE ||
        !tir_is_const_int(cond->operands[1], &c))
        return;
    const struct tir_value *x = cond->operands[0];
    bool same_block = x->def ? x->def->block == assume->block : x->block == assume->block;
    if (!same_block || x->kind == TIR_VALUE_CONST || x->id >= r->count)
        return;
    struct known *k = &r->of[x->id];
    switch (cond->op) {
    case TIR_OP_LT:
    case TIR_OP_LE:
    case TIR_OP_GT:
    case TIR_OP_GE:
        cut(k, cond->op, c);
        break;
    case TIR_OP_EQ: {
        const struct tir_inst *rem = x->def;
        int64_t n;
        if (c == 0 && rem && rem->op == TIR_OP_REM && tir_is_const_int(rem->operands[1], &n) &&
            n > 0 && rem->operands[0]->kind != TIR_VALUE_CONST && rem->operands[0]->id < r->count)
            r->of[rem->operands[0]->id].divisor = (uint64_t)n;
        break;
    }
    default:
        break;
    }
    if (k->low > k->high) // contradictory: unreachable code
        *k = anything(x->type);
}

static void walk(struct tir_ranges *r, const struct tir_block *block);

// In the branches of if x < c { } else { } x lies on one side of c: so a role knows its warps.
static void walk_branches(struct tir_ranges *r, const struct tir_inst *inst)
{
    static const enum tir_op opposite[] = {[TIR_OP_LT] = TIR_OP_GE, [TIR_OP_GE] = TIR_OP_LT};
    const struct tir_inst *test = inst->operands[0]->def;
    const struct tir_value *x =
        test && (test->op == TIR_OP_LT || test->op == TIR_OP_GE) ? test->operands[0] : NULL;
    int64_t c;
    const bool says = r->asks_branches && x && x->kind != TIR_VALUE_CONST && x->id < r->count &&
                      x->type->elem == TIR_I32 && tir_is_const_int(test->operands[1], &c);
    for (uint32_t k = 0; k < inst->region_count; k++) {
        const struct known all = says ? r->of[x->id] : (struct known){0};
        if (says)
            cut(&r->of[x->id], k ? opposite[test->op] : test->op, c);
        if (says && r->of[x->id].low > r->of[x->id].high) // nobody comes there
            r->of[x->id] = all;
        walk(r, inst->regions[k]);
        if (says)
            r->of[x->id] = all;
    }
}

static void enter_regions(struct tir_ranges *r, const struct tir_inst *inst)
{
    for (uint32_t k = 0; k < inst->region_count; k++)
        for (uint32_t i = 0; i < inst->regions[k]->arg_count; i++)
            r->of[inst->regions[k]->args[i]->id] = anything(inst->regions[k]->args[i]->type);
    if (inst->op == TIR_OP_FOR) {
        struct known begin = get(r, inst->operands[TIR_FOR_BEGIN]);
        struct known end = get(r, inst->operands[TIR_FOR_END]);
        struct known step = get(r, inst->operands[TIR_FOR_STEP]);
        struct known iv = {begin.low,
                           TIR_MAX(begin.low, end.high > INT64_MIN ? end.high - 1 : end.high),
                           tir_gcd(begin.divisor, step.divisor), begin.no_sign};
        set(r, inst->regions[0]->args[0], iv);
    } else if (inst->op == TIR_OP_TILES) {
        uint32_t count = tir_carried_at(inst);
        const struct tir_attr *by = tir_attr_find(inst, TIR_ATTR_by);
        for (uint32_t i = 0; i < count; i++) {
            struct known start = {0, TIR_MAX(0, get(r, inst->operands[i]).high - 1),
                                  (uint64_t)by->list[i]};
            set(r, inst->regions[0]->args[i], start);
        }
    }
    if (inst->op == TIR_OP_IF) {
        walk_branches(r, inst);
        return;
    }
    for (uint32_t k = 0; k < inst->region_count; k++)
        walk(r, inst->regions[k]);
}

static void walk(struct tir_ranges *r, const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->region_count)
            enter_regions(r, inst);
        if (inst->op == TIR_OP_ASSUME)
            learn(r, inst);
        if (inst->result_count == 1 && !tir_elem_is_float(inst->results[0]->type->elem) &&
            inst->results[0]->type->space == TIR_SPACE_VALUE) {
            struct known k = evaluate(r, inst);
            k.no_sign = keeps_sign_away(r, inst);
            set(r, inst->results[0], k);
            continue;
        }
        for (uint32_t i = 0; i < inst->result_count; i++)
            r->of[inst->results[i]->id] = anything(inst->results[i]->type);
    }
}

static void set_params(struct tir_ranges *r)
{
    const struct tir_func *f = r->f;
    for (uint32_t i = 0; i < f->body->arg_count; i++)
        r->of[f->body->args[i]->id] = anything(f->body->args[i]->type);
    bool small = f->facts & TIR_FACT_INDEX32;
    for (uint32_t d = 0; d < f->dim_count; d++)
        r->of[f->dims[d].value->id] =
            (struct known){0, small ? INT64_C(1) << 30 : TIR_MAX_EXTENT, 1};
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct tir_type *t = f->params[i].value->type;
        if (t->space != TIR_SPACE_GLOBAL || t->rank == 0)
            continue;
        int32_t dim = f->params[i].dims[t->rank - 1].dim;
        uint64_t chunk = tir_tensor_alignment(f, f->params[i].value) * 8 / tir_elems[t->elem].bits;
        if (dim >= 0 && chunk) { // the innermost extent is a multiple of the alignment
            uint64_t *divisor = &r->of[f->dims[dim].value->id].divisor;
            *divisor = *divisor / tir_gcd(*divisor, chunk) * chunk;
        }
    }
}

static void divides(struct tir_ranges *r, const struct tir_value *v, uint64_t n)
{
    uint64_t *divisor = &r->of[v->id].divisor;
    if (n && n <= UINT64_C(1) << 31 && *divisor <= UINT64_C(1) << 31)
        *divisor = *divisor / tir_gcd(*divisor, n) * n;
}

// where eq(rem(dim, n), 0); with div(dim, c) for dim, where c divides it: n c does.
static void learn_multiple(struct tir_ranges *r, const struct tir_inst *eq)
{
    const struct tir_inst *rem = eq->operands[0]->def;
    int64_t n, c, zero;
    if (!tir_is_const_int(eq->operands[1], &zero) || zero != 0 || !rem || rem->op != TIR_OP_REM ||
        !tir_is_const_int(rem->operands[1], &n) || n <= 0)
        return;
    const struct tir_value *v = rem->operands[0];
    uint64_t by = (uint64_t)n;
    while (v->def && v->def->op == TIR_OP_DIV && tir_is_const_int(v->def->operands[1], &c) &&
           c > 0) {
        v = v->def->operands[0];
        if (get(r, v).divisor % (uint64_t)c)
            return;
        by = product(by, (uint64_t)c);
    }
    if (v->kind == TIR_VALUE_ARG)
        divides(r, v, by);
}

static void at_most(struct tir_ranges *r, const struct tir_value *a, const struct tir_value *b,
                    int64_t distance)
{
    int64_t high = get(r, b).high, low = get(r, a).low;
    if (a->kind == TIR_VALUE_ARG && tir_sub_checked(high, distance, &high))
        r->of[a->id].high = TIR_MIN(r->of[a->id].high, high);
    if (b->kind == TIR_VALUE_ARG && tir_add_checked(low, distance, &low))
        r->of[b->id].low = TIR_MAX(r->of[b->id].low, low);
}

// where le(dim, 64) and its kin.
static void learn_bound(struct tir_ranges *r, const struct tir_inst *cmp)
{
    const struct tir_value *a = cmp->operand_count == 2 ? cmp->operands[0] : NULL;
    const struct tir_value *b = a ? cmp->operands[1] : NULL;
    switch (cmp->op) {
    case TIR_OP_EQ:
        at_most(r, a, b, 0);
        at_most(r, b, a, 0);
        break;
    case TIR_OP_LE:
        at_most(r, a, b, 0);
        break;
    case TIR_OP_LT:
        at_most(r, a, b, 1);
        break;
    case TIR_OP_GE:
        at_most(r, b, a, 0);
        break;
    case TIR_OP_GT:
        at_most(r, b, a, 1);
        break;
    default:
        break;
    }
}

// In the order of the clauses: where eq(dim, mul(2, other)) after those on the other.
static void learn_conditions(struct tir_ranges *r)
{
    const struct tir_func *f = r->f;
    const struct tir_inst *yield = tir_yield_of(f->host);
    const struct tir_inst *eq;
    for (uint32_t i = tir_conditions_at(f); yield && i < yield->operand_count; i++)
        if ((eq = yield->operands[i]->def) && eq->op == TIR_OP_EQ)
            learn_multiple(r, eq);
    walk(r, f->host);
    for (uint32_t i = tir_conditions_at(f); yield && i < yield->operand_count; i++)
        if ((eq = yield->operands[i]->def) && eq->op == TIR_OP_EQ &&
            eq->operands[0]->kind == TIR_VALUE_ARG)
            divides(r, eq->operands[0], get(r, eq->operands[1]).divisor);
    for (uint32_t i = tir_conditions_at(f); yield && i < yield->operand_count; i++)
        if (yield->operands[i]->def)
            learn_bound(r, yield->operands[i]->def);
    walk(r, f->host); // with what they say
}

static struct tir_ranges *ranges_of(struct tir_arena *arena, const struct tir_func *f,
                                    bool asks_branches)
{
    struct tir_ranges *r = arena_new(arena, struct tir_ranges);
    r->f = f;
    r->asks_branches = asks_branches;
    r->count = f->value_count;
    r->of = arena_array(arena, struct known, f->value_count);
    for (uint32_t i = 0; i < r->count; i++)
        r->of[i] = (struct known){INT64_MIN, INT64_MAX, 1};
    set_params(r);
    learn_conditions(r);
    walk(r, f->body);
    return r;
}

struct tir_ranges *tir_ranges_new(struct tir_arena *arena, const struct tir_func *f)
{
    return ranges_of(arena, f, false);
}

struct tir_ranges *tir_ranges_in_branches(struct tir_arena *arena, const struct tir_func *f)
{
    return ranges_of(arena, f, true);
}

void tir_range_get(const struct tir_ranges *ranges, const struct tir_value *v, int64_t *low,
                   int64_t *high)
{
    struct known k = get(ranges, v);
    *low = k.low;
    *high = k.high;
}

bool tir_range_is_exact(const struct tir_ranges *ranges, const struct tir_inst *sum)
{
    const struct known all = anything(sum->results[0]->type);
    const struct known k =
        arithmetic(sum, get(ranges, sum->operands[0]), get(ranges, sum->operands[1]));
    return k.low <= k.high && k.low >= all.low && k.high <= all.high;
}

bool tir_range_has_no_sign(const struct tir_ranges *ranges, const struct tir_value *v)
{
    return has_no_sign(ranges, v);
}

uint64_t tir_range_divisor(const struct tir_ranges *ranges, const struct tir_value *v)
{
    return get(ranges, v).divisor;
}
