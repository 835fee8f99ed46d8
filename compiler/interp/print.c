// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on what a kernel says: printed lines, assertions, traps.

#include "interp/state.h"

static void put_value(struct tir_text *out, enum tir_elem elem, union tir_number x)
{
    if (tir_elem_is_float(elem))
        tir_text_format(out, "%g", x.f);
    else if (elem == TIR_U64)
        tir_text_format(out, "%llu", (unsigned long long)x.i);
    else
        tir_text_int(out, x.i);
}

static void print_line(struct interp *in, const struct tir_inst *inst, uint32_t lane)
{
    const tir_str text = tir_attr_find(inst, TIR_ATTR_text)->text;
    struct tir_text line;
    uint32_t next = 0;
    tir_text_init(&line, &in->scratch, 0);
    for (size_t i = 0; i < text.len; i++) {
        bool is_place = text.ptr[i] == '{' && i + 1 < text.len && text.ptr[i + 1] == '}';
        if (is_place && next < inst->operand_count) {
            const struct tir_value *v = inst->operands[next++];
            put_value(&line, v->type->elem, tir_interp_read(in, v)[lane]);
            i++;
        } else {
            tir_text_char(&line, text.ptr[i]);
        }
    }
    tir_text_char(&line, '\n');
    in->options->print(in->options->print_user, line.ptr, line.len);
}

void tir_interp_print(struct interp *in, const struct tir_inst *inst)
{
    const bool once = in->threads && !tir_is_by_thread(in->f, inst);
    bool done = !in->options || !in->options->print;
    for (uint32_t i = 0; i < in->lanes && !done; i++)
        if (in->active[i]) {
            print_line(in, inst, i);
            done = once;
        }
}

void tir_interp_assert(struct interp *in, const struct tir_inst *inst)
{
    const union tir_number *holds = tir_interp_read(in, inst->operands[0]);
    const tir_str text = tir_attr_find(inst, TIR_ATTR_text)->text;
    for (uint32_t i = 0; i < in->lanes; i++)
        if (in->active[i] && !holds[i].i)
            tir_interp_fail(in, inst, TIR_ERR_INVALID, "assertion failed: " STR_FMT, STR_ARG(text));
}

void tir_interp_trap(struct interp *in, const struct tir_inst *inst)
{
    if (in->active_count)
        tir_interp_fail(in, inst, TIR_ERR_INVALID, "trap");
}
