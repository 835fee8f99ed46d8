// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's messages: the first fault with its two lines, the unchecked parts, and the faults
// for which the author takes responsibility.

#include "pass/sync_check/sync_check.h"

struct tir_span tir_sync_place(const struct sync_program *p, const struct tir_inst *inst)
{
    while (inst && !inst->span.end)
        inst = inst->block->owner;
    return inst ? inst->span : p->f->span;
}

uint32_t tir_sync_line(const struct sync_program *p, const struct tir_inst *inst)
{
    return tir_source_locate(p->cx->diags->sources, tir_sync_place(p, inst).begin).line;
}

static const struct tir_inst *assumed_by(const struct sync_program *p, const struct tir_inst *at,
                                         const struct tir_inst *other)
{
    if (!p->assumes)
        return NULL;
    return p->assumes[at->id] || !other ? p->assumes[at->id] : p->assumes[other->id];
}

static void note_assumed(struct sync_program *p, struct sync_assumed now)
{
    vec_foreach(const struct sync_assumed, old, &p->assumed)
        if (old->span.begin == now.span.begin && tir_str_equal(old->text, now.text))
            return;
    vec_push(p->f->module->arena, &p->assumed, now);
}

static const char *name_of(const struct tir_inst *orders)
{
    return orders->op == TIR_OP_PTX     ? "PTX"
           : orders->op == TIR_OP_WHILE ? "loop"
                                        : tir_ops[orders->op].name;
}

// What the author takes responsibility for is not what follows it.
static void end_replay(struct sync_run *r, const struct tir_inst *at, const struct tir_inst *by)
{
    if (by)
        tir_sync_unchecked_at(r->p, tir_sync_place(r->p, at),
                              STR("what follows it: the replay ends here"));
    r->outcome = SYNC_GIVEN_UP;
}

// Whether what would be refused is left to the author, or to what is not replayed as it runs: PTX,
// and loops that spin on a flag.
static bool is_excused(struct sync_run *r, enum tir_diag_code code, const struct tir_inst *at,
                       const struct tir_inst *other, const char *text)
{
    struct sync_program *p = r->p;
    struct tir_arena *arena = p->f->module->arena;
    const struct tir_inst *by = assumed_by(p, at, other), *orders = p->orders;
    if (!orders && p->flags && tir_ops[at->op].has_ref &&
        bitset_has(&p->tensors, tir_ref_base(at)->id) &&
        (tir_sync_may_be_told(p, at) || (other && tir_sync_may_be_told(p, other))))
        orders = p->flags;
    if (!by && !orders)
        return false;
    if (by)
        note_assumed(
            p, (struct sync_assumed){by, tir_sync_place(p, at), tir_str_format(arena, "%s", text)});
    else
        tir_sync_unchecked_at(p, tir_sync_place(p, at),
                              tir_str_format(arena, "%s, unless the %s of line %u orders it", text,
                                             name_of(orders), tir_sync_line(p, orders)));
    if (code == TIR_E_SYNC_DEADLOCK) {
        end_replay(r, at, by);
    }
    return true;
}

void tir_sync_fail(struct sync_run *r, enum tir_diag_code code, const struct tir_inst *at,
                   const struct tir_inst *other, const char *note, const char *format, ...)
{
    if (r->outcome != SYNC_GOING)
        return;
    va_list args;
    va_start(args, format);
    tir_str text = tir_str_vformat(r->p->cx->scratch, format, args);
    va_end(args);
    if (is_excused(r, code, at, other, text.ptr))
        return;
    r->outcome = SYNC_FAILED;
    tir_error_at(r->p->cx->diags, tir_sync_place(r->p, at), code, "%s", text.ptr);
    if (other)
        tir_note_at(r->p->cx->diags, tir_sync_place(r->p, other), "%s", note);
}

void tir_sync_write_assumed(const struct sync_program *p)
{
    vec_foreach(const struct sync_assumed, it, &p->assumed)
        tir_receipt_add(p->cx, TIR_TOPIC_SYNC, it->span, "sync: assumed, \"" STR_FMT "\": " STR_FMT,
                        STR_ARG(tir_attr_find(it->by, TIR_ATTR_text)->text), STR_ARG(it->text));
    tir_foreach_inst(inst, p->f) {
        bool used = inst->op != TIR_OP_ASSUME_SYNC;
        vec_foreach(const struct sync_assumed, it, &p->assumed)
            used |= it->by == inst;
        if (!used)
            tir_receipt_add(p->cx, TIR_TOPIC_SYNC, inst->span,
                            "sync: assume_sync: nothing after it would be refused");
    }
}

void tir_sync_unchecked_at(struct sync_program *p, struct tir_span span, tir_str text)
{
    vec_foreach(const struct sync_unchecked, old, &p->unchecked)
        if (old->span.begin == span.begin && tir_str_equal(old->text, text))
            return;
    struct sync_unchecked now = {span, text};
    vec_push(p->f->module->arena, &p->unchecked, now);
}

void tir_sync_unchecked(struct sync_program *p, const struct tir_inst *inst, const char *what)
{
    tir_str text = tir_str_format(p->f->module->arena, "%s: %s", tir_ops[inst->op].name, what);
    const struct tir_inst *by = assumed_by(p, inst, NULL);
    if (by)
        note_assumed(p, (struct sync_assumed){by, tir_sync_place(p, inst), text});
    else
        tir_sync_unchecked_at(p, tir_sync_place(p, inst), text);
}

void tir_sync_end_at(struct sync_run *r, const struct tir_inst *inst, const char *what)
{
    tir_sync_unchecked(r->p, inst, what);
    end_replay(r, inst, assumed_by(r->p, inst, NULL));
}

void tir_sync_give_up(struct sync_run *r, const char *what, uint32_t most)
{
    tir_sync_unchecked_at(r->p, r->p->f->span,
                          tir_str_format(r->p->f->module->arena,
                                         "what the kernel does: it has more than %u %s", most,
                                         what));
    r->outcome = SYNC_GIVEN_UP;
}
