// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The receipt as text and as JSON, and --require, which turns its refusals into errors.
//
// Text, which the artifact holds too; files by their last component, so that a build does not
// depend on the folder it ran in:
//     gemm: where 32-bit offsets suffice, every innermost stride is 1
//       gemm.tir:14: copy of A: cp.async, 16 bytes each
//       gemm.tir:12: loop: 4 stages of 32768 bytes
//       168 registers, 0 bytes of stack, 0 bytes spilled
// JSON is one object on one line:
//     {"source":"dir/gemm.tir","target":"sm_90a","assembler":null,"variants":[
//      {"kernel":"gemm","entry":"gemm__edges","relies_on":"32-bit offsets suffice","records":[
//       {"topic":"copy","refusal":false,"wish":null,"file":"dir/gemm.tir","line":14,"column":17,
//        "end_line":14,"end_column":32,"text":"copy of A: cp.async, 16 bytes each"}],
//        "schedules":[]}],
//      "sequences":[{"kernel":"gemm","sequence":"gemm__5","records":[]}]}

#include "compile/compile.h"

#include "compile/variants.h"
#include "pass/pass.h"

void tir_compile_receipt_begin(struct tir_receipt *receipt, const char *kernel,
                               const struct tir_func *f)
{
    struct tir_text relies_on;
    tir_text_init(&relies_on, receipt->arena, 0);
    tir_compile_variant_describe(&relies_on, f);
    struct tir_receipt_part part = {
        .kernel = kernel, .entry = f->name, .span = f->span, .relies_on = tir_text_str(&relies_on)};
    vec_push(receipt->arena, &receipt->parts, part);
}

// "4 * 32 * M * ceildiv(N, 128)"
static tir_str bytes_of(struct tir_compilation *c, const struct tir_func *f, uint32_t scratch)
{
    const struct tir_type *type = f->scratch[scratch].value->type;
    struct tir_text text;
    tir_text_init(&text, &c->cx.arena, 0);
    tir_text_format(&text, "%u", tir_elems[type->elem].bits / 8);
    for (uint32_t d = 0; d < type->rank; d++) {
        const struct tir_value *extent = tir_scratch_extent(f, scratch, d);
        int64_t size;
        if (tir_is_const_int(extent, &size))
            tir_text_format(&text, " * %lld", (long long)size);
        else if (extent->def)
            tir_text_format(&text, " * (" STR_FMT ")",
                            STR_ARG(tir_source_text(c->cx.diags.sources, extent->def->span)));
        else
            tir_text_format(&text, " * %s", extent->name);
    }
    return tir_text_str(&text);
}

void tir_compile_receipt_sequence(struct tir_compilation *c, const char *kernel,
                                  const struct tir_sequence *sequence)
{
    const struct tir_func *f = sequence->whole;
    struct tir_receipt_part part = {
        .kernel = kernel, .sequence = f->name, .span = f->span, .relies_on = STR("")};
    for (uint32_t i = 0; i < sequence->step_count; i++) {
        const struct tir_kernel_code *step = &c->kernels.at[sequence->steps[i].kernel];
        const struct tir_func *head = tir_kernel_head(step);
        const bool waits = i && tir_nvptx_waits(head, &c->request.target);
        const bool beside = waits && head->pace == TIR_PACE_BESIDE;
        struct tir_record record = {
            .topic = TIR_TOPIC_LAUNCH,
            .text = tir_str_format(&c->cx.arena, "step %u: %s%s", i + 1, step->name,
                                   beside  ? ", beside the step before it"
                                   : waits ? ", launched while the step before it ends"
                                           : "")};
        vec_push(&c->cx.arena, &part.records, record);
    }
    if (f->joined.len)
        vec_push(&c->cx.arena, &part.records,
                 ((struct tir_record){
                     .topic = TIR_TOPIC_LAUNCH, .span = f->joined_at, .text = f->joined}));
    for (uint32_t i = 0; i < f->scratch_count; i++) {
        struct tir_record record = {
            .topic = TIR_TOPIC_MEMORY,
            .span = f->scratch[i].span,
            .text = tir_str_format(&c->cx.arena, "scratch %s: " STR_FMT " bytes a launch",
                                   f->scratch[i].name, STR_ARG(bytes_of(c, f, i)))};
        vec_push(&c->cx.arena, &part.records, record);
    }
    vec_push(&c->cx.arena, &c->receipt.parts, part);
}

void tir_compile_receipt_code(struct tir_compilation *c, const struct tir_ptxas_kernel *k)
{
    vec_foreach(struct tir_receipt_part, part, &c->receipt.parts) {
        if (!part->entry || !tir_str_is(k->name, part->entry))
            continue;
        struct tir_record record = {
            .topic = TIR_TOPIC_CODE,
            .text =
                tir_str_format(&c->cx.arena, "%u registers, %u bytes of stack, %u bytes spilled",
                               k->registers, k->stack_bytes, k->spill_bytes)};
        vec_push(&c->cx.arena, &part->records, record);
        vec_foreach(const tir_str, note, &k->notes) {
            record.is_refusal = true;
            record.text = tir_str_format(&c->cx.arena, "ptxas: " STR_FMT, STR_ARG(*note));
            vec_push(&c->cx.arena, &part->records, record);
        }
    }
}

// Text.

void tir_compile_place(struct tir_compilation *c, struct tir_span span, struct tir_text *out)
{
    const struct tir_position p = tir_source_locate(c->cx.diags.sources, span.begin);
    if (!p.file)
        return;
    tir_str name = p.file->name;
    for (size_t i = name.len; i-- > 0;)
        if (name.ptr[i] == '/') {
            name = (tir_str){name.ptr + i + 1, name.len - i - 1};
            break;
        }
    tir_text_message(out, name);
    tir_text_format(out, ":%u: ", (unsigned)p.line);
}

static void text_record(struct tir_compilation *c, const struct tir_record *r, struct tir_text *out)
{
    tir_text_add(out, STR("  "));
    tir_compile_place(c, r->span, out);
    tir_text_message(out, r->text);
    tir_text_char(out, '\n');
}

static void text_part(struct tir_compilation *c, const struct tir_receipt_part *part,
                      struct tir_text *out)
{
    tir_text_format(out, "%s:%s" STR_FMT "\n", part->entry ? part->entry : part->sequence,
                    part->relies_on.len ? " where " : "", STR_ARG(part->relies_on));
    for (int topic = 0; topic < TIR_TOPIC_COUNT; topic++)
        vec_foreach(const struct tir_record, r, &part->records)
            if ((int)r->topic == topic)
                text_record(c, r, out);
}

tir_str tir_compile_receipt_text(struct tir_compilation *c)
{
    struct tir_text out;
    tir_text_init(&out, &c->cx.arena, 0);
    vec_foreach(const struct tir_receipt_part, part, &c->receipt.parts)
        text_part(c, part, &out);
    if (c->assembler.len)
        tir_text_format(&out, "no cubin: " STR_FMT "\n", STR_ARG(c->assembler));
    return tir_text_str(&out);
}

// JSON.

static void json_key(struct tir_text *out, const char *key, tir_str value)
{
    tir_text_format(out, "\"%s\":", key);
    if (value.ptr)
        tir_text_json(out, value);
    else
        tir_text_add(out, STR("null"));
    tir_text_char(out, ',');
}

static void json_record(struct tir_compilation *c, const struct tir_record *r, struct tir_text *out)
{
    tir_text_format(out, "{\"topic\":\"%s\",\"refusal\":%s,", tir_topic_names[r->topic],
                    r->is_refusal ? "true" : "false");
    json_key(out, "wish", r->wish ? tir_str_of(tir_wishes[r->wish].name) : (tir_str){NULL, 0});
    tir_json_place(out, c->cx.diags.sources, r->span);
    tir_text_add(out, STR("\"text\":"));
    tir_text_json(out, r->text);
    tir_text_char(out, '}');
}

static void json_schedules(struct tir_compilation *c, const struct tir_receipt_part *part,
                           struct tir_text *out)
{
    tir_text_add(out, STR(",\"schedules\":["));
    for (uint32_t i = 0; i < part->schedules.len; i++) {
        tir_text_add(out, i ? STR(",") : STR(""));
        tir_compile_schedule_json(c, &part->schedules.at[i], out);
    }
    tir_text_char(out, ']');
}

static void json_part(struct tir_compilation *c, const struct tir_receipt_part *part,
                      struct tir_text *out)
{
    const char *separator = "";
    tir_text_char(out, '{');
    json_key(out, "kernel", tir_str_of(part->kernel));
    if (part->entry) {
        json_key(out, "entry", tir_str_of(part->entry));
        json_key(out, "relies_on", part->relies_on);
    } else {
        json_key(out, "sequence", tir_str_of(part->sequence));
    }
    tir_text_add(out, STR("\"records\":["));
    for (int topic = 0; topic < TIR_TOPIC_COUNT; topic++)
        vec_foreach(const struct tir_record, r, &part->records)
            if ((int)r->topic == topic) {
                tir_text_add(out, tir_str_of(separator));
                json_record(c, r, out);
                separator = ",";
            }
    tir_text_char(out, ']');
    if (part->entry)
        json_schedules(c, part, out);
    tir_text_char(out, '}');
}

static void json_parts(struct tir_compilation *c, bool variants, struct tir_text *out)
{
    const char *separator = "";
    tir_text_format(out, "\"%s\":[", variants ? "variants" : "sequences");
    vec_foreach(const struct tir_receipt_part, part, &c->receipt.parts) {
        if ((part->entry != NULL) != variants)
            continue;
        tir_text_add(out, tir_str_of(separator));
        json_part(c, part, out);
        separator = ",";
    }
    tir_text_char(out, ']');
}

tir_str tir_compile_receipt_json(struct tir_compilation *c)
{
    struct tir_text out;
    tir_text_init(&out, &c->cx.arena, 0);
    tir_text_char(&out, '{');
    json_key(&out, "source", c->request.name);
    json_key(&out, "target", tir_str_of(c->request.target.name));
    json_key(&out, "assembler", c->assembler);
    json_parts(c, true, &out);
    tir_text_char(&out, ',');
    json_parts(c, false, &out);
    tir_text_add(&out, STR("}\n"));
    return tir_text_str(&out);
}

// The requirements.

bool tir_compile_wishes_parse(tir_str words, uint32_t *out, tir_str *unknown)
{
    *out = 0;
    for (size_t begin = 0, end; words.len && begin <= words.len; begin = end + 1) {
        for (end = begin; end < words.len && words.ptr[end] != ',';)
            end++;
        *unknown = (tir_str){words.ptr + begin, end - begin};
        uint32_t wish = TIR_WISH_NONE + 1;
        while (wish < TIR_WISH_COUNT && !tir_str_is(*unknown, tir_wishes[wish].name))
            wish++;
        if (wish == TIR_WISH_COUNT)
            return false;
        *out |= 1u << wish;
    }
    return true;
}

// Where nothing is copied past the registers, the tensor copy engine copies nothing either.
static bool refuses(const struct tir_record *r, enum tir_wish wish)
{
    return r->is_refusal &&
           (r->wish == wish || (wish == TIR_WISH_TMA && r->wish == TIR_WISH_ASYNC));
}

static void error_not_met(struct tir_compilation *c, struct tir_span span, const char *kernel,
                          enum tir_wish wish)
{
    tir_error_at(&c->cx.diags, span, TIR_E_REQUIRED, "%s is required, but kernel %s has no %s",
                 tir_wishes[wish].name, kernel, tir_wishes[wish].what);
}

static void require(struct tir_compilation *c, const struct tir_receipt_part *part,
                    enum tir_wish wish, bool finished)
{
    const struct tir_wish_info *info = &tir_wishes[wish];
    bool refused = false;
    vec_foreach(const struct tir_record, r, &part->records)
        if (refuses(r, wish)) {
            tir_error_at(&c->cx.diags, r->span, TIR_E_REQUIRED, "%s is required; " STR_FMT,
                         info->name, STR_ARG(r->text));
            refused = true;
        }
    if (!refused && finished && !(part->granted & 1u << wish))
        error_not_met(c, part->span, part->kernel, wish);
}

bool tir_compile_receipt_require_of(struct tir_compilation *c, const struct tir_func *f,
                                    uint32_t granted)
{
    const uint32_t left = c->request.required & ~granted;
    for (uint32_t wish = TIR_WISH_NONE + 1; wish < TIR_WISH_COUNT; wish++)
        if (left & 1u << wish)
            error_not_met(c, f->span, f->name, (enum tir_wish)wish);
    return !left;
}

bool tir_compile_receipt_require(struct tir_compilation *c, uint32_t wishes, bool finished)
{
    uint32_t errors = c->cx.diags.error_count;
    const struct tir_receipt_part *part = &c->receipt.parts.at[c->receipt.parts.len - 1];
    for (uint32_t wish = TIR_WISH_NONE + 1; wish < TIR_WISH_COUNT; wish++)
        if (c->request.required & wishes & 1u << wish)
            require(c, part, (enum tir_wish)wish, finished);
    return c->cx.diags.error_count == errors;
}

void tir_compile_receipt_warn(struct tir_compilation *c)
{
    const struct tir_receipt_part *part = &c->receipt.parts.at[c->receipt.parts.len - 1];
    vec_foreach(const struct tir_record, r, &part->records)
        if (refuses(r, TIR_WISH_SYNC) && !(c->request.required & 1u << TIR_WISH_SYNC))
            tir_error_at(&c->cx.diags, r->span, TIR_W_UNCHECKED, STR_FMT, STR_ARG(r->text));
}
