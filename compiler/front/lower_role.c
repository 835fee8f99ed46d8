// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Roles: blocks that warps of a CTA run side by side.
#include "front/lower.h"

bool lower_slot_region(struct lower *l, struct tir_inst *inst, struct tir_span span,
                       const struct ast_fn *region)
{
    const struct tir_type *slot = tir_type_scalar(l->cx->types, TIR_I32);
    if (!region || region->params.len != 1) {
        lower_error(l, span, TIR_E_ARGUMENTS,
                    "`%s` has a block that takes the slot: `with (slot: i32) { ... }`",
                    tir_ops[inst->op].name);
        return false;
    }
    const struct tir_type **types =
        arena_array(l->arena, const struct tir_type *, inst->result_count);
    struct tir_value **values = arena_array(l->arena, struct tir_value *, inst->result_count);
    for (uint32_t i = 0; i < inst->result_count; i++)
        types[i] = inst->results[i]->type;
    const struct ast_binding *param = &region->params.at[0];
    struct tir_builder outer = l->b;
    struct loop *loop = l->loop;
    struct symbol *scope = scope_enter(l);
    l->b = tir_builder_at_end(l->f, inst->regions[0]);
    l->b.span = span;
    l->loop = NULL;
    struct tir_value *arg = tir_block_add_arg(l->f, inst->regions[0], slot, param->name);
    scope_declare(l, param->name, param->span, val_ir(arg));
    bool ok = lower_yielding(l, region->body, span, types, inst->result_count, values);
    if (ok)
        tir_build_yield(&l->b, values, inst->result_count);
    scope_leave(l, scope);
    l->b = outer;
    l->loop = loop;
    return ok;
}

// role

struct role {
    int64_t warps, first, regs; // first -1, regs 0: not stated
};

static bool role_options(struct lower *l, const struct ast_stmt *s, struct role *r)
{
    static const char *const known[] = {"warps", "first", "regs"};
    if (!loop_check_options(l, s, known, TIR_COUNT_OF(known)) ||
        !loop_option_int(l, s, "warps", &r->warps) || !loop_option_int(l, s, "regs", &r->regs))
        return false;
    const struct ast_arg *first = loop_option(s, "first");
    if (first && first->value && !const_int(l, first->value, "first", &r->first))
        return false;
    return true;
}

void lower_role(struct lower *l, const struct ast_stmt *s)
{
    struct role r = {.first = -1};
    if (!role_options(l, s, &r))
        return;
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_ROLE, NULL, 0, NULL, 0, 1);
    tir_set_text(l->f, inst, TIR_ATTR_name, tir_str_of(s->role));
    tir_set_int(l->f, inst, TIR_ATTR_warps, r.warps);
    if (r.first >= 0)
        tir_set_int(l->f, inst, TIR_ATTR_first, r.first);
    if (r.regs)
        tir_set_int(l->f, inst, TIR_ATTR_regs, r.regs);
    struct tir_builder outer = l->b;
    struct loop *loop = l->loop;
    l->b = tir_builder_at_end(l->f, inst->regions[0]);
    l->b.span = s->span;
    l->loop = NULL;
    l->level++;
    lower_block(l, s->body);
    tir_build_yield(&l->b, NULL, 0);
    l->level--;
    l->loop = loop;
    l->b = outer;
}
