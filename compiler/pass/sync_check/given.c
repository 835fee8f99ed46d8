// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on data that a setting gives: the elements of tensors that bounds of loops are
// computed from, such as offsets of sequences, and integers that floats are rounded to. What a
// question (ask.h) needs them to be is what the replay has; the others are drawn (value.c).

#include "pass/sync_check/ask.h"

bool tir_sync_is_count(const struct sync_program *p, const struct tir_inst *load)
{
    return load->op == TIR_OP_LOAD && bitset_has(&p->counts, load->results[0]->id) &&
           tir_elem_is_int(load->results[0]->type->elem);
}

uint64_t tir_sync_first_key(const struct tir_inst *load)
{
    return tir_sync_mix(tir_buffer_root(tir_ref_base(load))->id, load->results[0]->type->elem);
}

uint64_t tir_sync_rounded_key(const struct sync_program *p, const struct tir_value *v)
{
    const struct tir_inst *cast = v->kind == TIR_VALUE_RESULT ? v->def : NULL;
    const struct sync_source *source = &p->sources[v->id];
    bool rounds = cast && cast->op == TIR_OP_CAST && tir_elem_is_int(v->type->elem) &&
                  tir_type_is_scalar(cast->operands[0]->type) &&
                  tir_elem_is_float(cast->operands[0]->type->elem);
    return rounds && source->number && bitset_has(&p->counts, v->id)
               ? tir_sync_mix(source->number, TIR_OP_CAST) | 1
               : 0;
}

bool tir_sync_given(const struct sync_setting *setting, uint64_t key, int64_t *number)
{
    for (uint32_t i = 0; i < setting->given_count; i++)
        if (setting->given[i].key == key) {
            *number = setting->given[i].number;
            return true;
        }
    return false;
}

void tir_sync_note_load(struct sync_ask *a, const struct tir_inst *load, struct sync_linear form)
{
    uint32_t rank = tir_ref_base(load)->type->rank;
    if (a->load_count == SYNC_GIVEN || tir_ref_base(load)->type->space != TIR_SPACE_GLOBAL)
        return;
    struct sync_loaded *to = &a->loads[a->load_count];
    *to = (struct sync_loaded){.load = load,
                               .forms = arena_array(a->arena, struct sync_linear, rank + 1)};
    a->load_count++;
    to->forms[rank] = form;
    for (uint32_t d = 0; d < rank; d++)
        to->forms[d] = tir_sync_linear(a, tir_ref_indices(load)[d]);
}

struct sync_linear tir_sync_rounded(struct sync_ask *a, uint64_t key, struct sync_linear form)
{
    for (uint32_t i = 0; i < a->load_count; i++)
        if (a->loads[i].key == key)
            return a->loads[i].forms[0];
    if (a->load_count < SYNC_GIVEN)
        a->loads[a->load_count++] =
            (struct sync_loaded){.key = key, .forms = tir_arena_copy(a->arena, &form, sizeof form)};
    return form;
}

void tir_sync_take_loads(const struct sync_ask *a, const int64_t *numbers, struct sync_setting *out)
{
    out->given_count = 0;
    for (uint32_t i = 0; i < a->load_count; i++) {
        const struct sync_loaded *from = &a->loads[i];
        uint32_t rank = from->load ? tir_ref_base(from->load)->type->rank : 0;
        uint64_t key = from->load ? tir_sync_first_key(from->load) : from->key;
        for (uint32_t d = 0; d < rank; d++)
            key = tir_sync_mix(key, (uint64_t)tir_sync_at(a->q, &from->forms[d], numbers));
        out->given[out->given_count].key = key;
        out->given[out->given_count++].number = tir_sync_at(a->q, &from->forms[rank], numbers);
    }
}
