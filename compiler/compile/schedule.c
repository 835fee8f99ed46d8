// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The certificates of scheduled loops as text, as a picture and as a part of the receipt's JSON.
//
// Text and picture have the best variant of each kernel. The picture has a panel for each loop:
//     gemm.tir:14: 2 warpgroups, 512 cycles a round
//     tensor cores 0 |####----####----|   a row for each unit and warpgroup, cycles to the right,
//     tensor cores 1 |----####----####|   a colour for each iteration of the source's loop
// Its numbers are integers, so that it is the same everywhere.

#include "compile/compile.h"
#include "pass/role/certificate.h"

enum { ROUNDS = 3, LEFT = 130, WIDTH = 880, TOP = 30, ROW = 18, BAR = 15, COLOURS = 4 };

static const char *const unit_labels[TIR_UNIT_COUNT] = {
    [TIR_UNIT_TENSOR] = "tensor cores",
    [TIR_UNIT_ISSUE] = "instructions",
    [TIR_UNIT_MUFU] = "special functions",
};

// Is it the best variant of its kernel?
static bool is_best(const struct tir_compilation *c, const struct tir_receipt_part *part)
{
    vec_foreach(const struct tir_receipt_part, other, &c->receipt.parts)
        if (other->entry && !strcmp(other->kernel, part->kernel))
            return other == part;
    return false;
}

// When an engine begins with the first of the rounds: warpgroups may be ahead of it.
static int64_t origin_of(const struct tir_certificate *s)
{
    int64_t least = INT64_MAX;
    for (uint32_t slot = 0; slot < s->groups * s->ops.len; slot++)
        if (tir_claim_unit(&s->ops.at[slot % s->ops.len]))
            least = TIR_MIN(least, s->runs[slot].start);
    return least == INT64_MAX ? 0 : least;
}

// Text.

static void text_ops(struct tir_compilation *c, const struct tir_certificate *s,
                     struct tir_text *out)
{
    tir_text_add(out,
                 STR("  slot stage  source unit      start     end  cycles registers operation\n"));
    for (uint32_t slot = 0; slot < s->ops.len; slot++) {
        const struct tir_claim_op *op = &s->ops.at[slot];
        const struct tir_run *run = tir_certificate_run(s, 0, 0, slot);
        const enum tir_unit unit = tir_claim_unit(op);
        tir_text_format(out, "  %4u %5u  %6u %-6s %8lld %7lld %7lld %9lld ", slot, op->stage,
                        op->source, tir_unit_names[unit], (long long)(run->start - origin_of(s)),
                        (long long)(run->end - origin_of(s)), (long long)op->cycles[unit],
                        (long long)op->words);
        tir_compile_place(c, op->span, out);
        tir_text_add(out, op->text);
        tir_text_char(out, '\n');
    }
}

static void text_needs(const struct tir_certificate *s, struct tir_text *out)
{
    tir_text_add(out, STR("  needs: slot after slot, rounds between, why, cycles of slack\n"));
    vec_foreach(const struct tir_claim_need, n, &s->needs.list)
        tir_text_format(out, "  %4u %5u %6u  %-6s %7lld\n", n->later, n->first, n->rounds,
                        tir_need_names[n->kind], (long long)n->slack);
    vec_foreach(const struct tir_claim_ring, r, &s->rings)
        tir_text_format(out,
                        "  ring " STR_FMT ": %lld slots, %lld bytes; a slot is read for %lld "
                        "cycles, %lld are left to fill it\n",
                        STR_ARG(r->name), (long long)r->slots, (long long)r->bytes,
                        (long long)r->held, (long long)r->slack);
}

static void text_schedule(struct tir_compilation *c, const struct tir_receipt_part *part,
                          const struct tir_certificate *s, struct tir_text *out)
{
    tir_text_format(out, "%s: ", part->entry);
    tir_compile_place(c, s->span, out);
    if (!s->ops.len) {
        tir_text_format(out, "in the order of the source, because " STR_FMT "\n", STR_ARG(s->why));
        return;
    }
    tir_text_format(out,
                    "%u warpgroup%s, %u stage%s, %lld cycles a round predicted, %lld in the order "
                    "of the source, %lld replayed\n  " STR_FMT "\n",
                    s->groups, s->groups == 1 ? "" : "s", s->stages, s->stages == 1 ? "" : "s",
                    (long long)s->cycles, (long long)s->source_cycles, (long long)s->replayed,
                    STR_ARG(s->why));
    tir_text_format(out,
                    "  tiles take %lld registers of a thread at slot %u, %lld are there for them\n",
                    (long long)s->words, s->fullest, (long long)s->registers);
    text_ops(c, s, out);
    text_needs(s, out);
}

tir_str tir_compile_schedule_text(struct tir_compilation *c)
{
    struct tir_text out;
    tir_text_init(&out, &c->cx.arena, 0);
    vec_foreach(const struct tir_receipt_part, part, &c->receipt.parts)
        if (is_best(c, part)) {
            vec_foreach(const struct tir_certificate, s, &part->schedules)
                text_schedule(c, part, s, &out);
            if (!part->schedules.len)
                tir_text_format(&out, "%s: no loop with products on warpgroups\n", part->entry);
        }
    return tir_text_str(&out);
}

// The picture.

static int64_t tenths(const struct tir_certificate *s, int64_t cycle)
{
    const int64_t all = ROUNDS * s->cycles;
    const int64_t within = TIR_MIN(TIR_MAX(cycle - origin_of(s), 0), all);
    return within * WIDTH * 10 / TIR_MAX(all, 1);
}

static void svg_run(const struct tir_certificate *s, enum tir_unit unit, uint32_t round,
                    uint32_t group, uint32_t slot, int64_t y, struct tir_text *out)
{
    const struct tir_claim_op *op = &s->ops.at[slot];
    const struct tir_run *run = tir_certificate_run(s, round, group, slot);
    const int64_t x = tenths(s, run->start), width = tenths(s, run->start + op->cycles[unit]) - x;
    if (width <= 0)
        return;
    // An operation of stage 1 belongs to the iteration before.
    tir_text_format(out,
                    "<rect class=\"i%u\" x=\"%lld.%lld\" y=\"%lld\" width=\"%lld.%lld\" "
                    "height=\"%d\"><title>" STR_FMT "</title></rect>\n",
                    (round + s->stages - 1 - op->stage) % COLOURS, (long long)(LEFT + x / 10),
                    (long long)(x % 10), (long long)y, (long long)(width / 10),
                    (long long)(width % 10), BAR, STR_ARG(op->text));
}

static int64_t svg_schedule(struct tir_compilation *c, const struct tir_receipt_part *part,
                            const struct tir_certificate *s, int64_t top, struct tir_text *out)
{
    const int64_t bottom = top + TOP + (TIR_UNIT_COUNT - 1) * s->groups * ROW;
    tir_text_format(out, "<text x=\"4\" y=\"%lld\">%s: ", (long long)top + 18, part->kernel);
    tir_compile_place(c, s->span, out);
    tir_text_format(out, "%lld cycles a round predicted, %lld in the order of the source</text>\n",
                    (long long)s->cycles, (long long)s->source_cycles);
    int64_t y = top + TOP;
    for (enum tir_unit unit = TIR_UNIT_TENSOR; unit < TIR_UNIT_COUNT; unit++)
        for (uint32_t group = 0; group < s->groups; group++, y += ROW) {
            tir_text_format(out, "<text x=\"4\" y=\"%lld\">%s %u</text>\n", (long long)y + 12,
                            unit_labels[unit], group);
            for (uint32_t round = 0; round < TIR_CERTIFICATE_ROUNDS; round++)
                for (uint32_t slot = 0; slot < s->ops.len; slot++)
                    svg_run(s, unit, round, group, slot, y, out);
        }
    for (int64_t round = 0; round <= ROUNDS; round++) {
        const int64_t x = LEFT + round * WIDTH / ROUNDS;
        tir_text_format(out,
                        "<line x1=\"%lld\" x2=\"%lld\" y1=\"%lld\" y2=\"%lld\"/>\n"
                        "<text x=\"%lld\" y=\"%lld\" class=\"at\">%lld</text>\n",
                        (long long)x, (long long)x, (long long)top + TOP - 4, (long long)bottom,
                        (long long)x, (long long)bottom + 14, (long long)(round * s->cycles));
    }
    return bottom + 24;
}

tir_str tir_compile_schedule_svg(struct tir_compilation *c)
{
    struct tir_text panels, out;
    int64_t top = 0;
    tir_text_init(&panels, &c->cx.arena, 0);
    tir_text_init(&out, &c->cx.arena, 0);
    vec_foreach(const struct tir_receipt_part, part, &c->receipt.parts)
        vec_foreach(const struct tir_certificate, s, &part->schedules)
            if (is_best(c, part) && s->ops.len)
                top = svg_schedule(c, part, s, top, &panels);
    tir_text_format(
        &out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%lld\">\n"
        "<style>text { font: 12px sans-serif; fill: #333 } .at { text-anchor: middle }\n"
        "line { stroke: #999; stroke-dasharray: 3 3 }\n"
        ".i0 { fill: #3b6fb6 } .i1 { fill: #d9822b } .i2 { fill: #3c9d5c } "
        ".i3 { fill: #a05fb4 }</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n" STR_FMT "</svg>\n",
        LEFT + WIDTH + 30, (long long)top, STR_ARG(tir_text_str(&panels)));
    return tir_text_str(&out);
}

// JSON.

static void json_op(struct tir_compilation *c, const struct tir_certificate *s, uint32_t slot,
                    struct tir_text *out)
{
    const struct tir_claim_op *op = &s->ops.at[slot];
    const struct tir_run *run = tir_certificate_run(s, 0, 0, slot);
    const enum tir_unit unit = tir_claim_unit(op);
    tir_text_format(out,
                    "%s{\"slot\":%u,\"stage\":%u,\"source\":%u,\"unit\":\"%s\",\"start\":%lld,"
                    "\"end\":%lld,\"cycles\":%lld,\"registers\":%lld,",
                    slot ? "," : "", slot, op->stage, op->source, tir_unit_names[unit],
                    (long long)(run->start - origin_of(s)), (long long)(run->end - origin_of(s)),
                    (long long)op->cycles[unit], (long long)op->words);
    tir_json_place(out, c->cx.diags.sources, op->span);
    tir_text_add(out, STR("\"text\":"));
    tir_text_json(out, op->text);
    tir_text_char(out, '}');
}

void tir_compile_schedule_json(struct tir_compilation *c, const struct tir_certificate *s,
                               struct tir_text *out)
{
    tir_text_char(out, '{');
    tir_json_place(out, c->cx.diags.sources, s->span);
    tir_text_format(out,
                    "\"warpgroups\":%u,\"stages\":%u,\"cycles\":%lld,\"source_cycles\":%lld,"
                    "\"replayed\":%lld,"
                    "\"registers\":%lld,\"registers_allowed\":%lld,\"fullest\":%u,\"operations\":[",
                    s->groups, s->stages, (long long)s->cycles, (long long)s->source_cycles,
                    (long long)s->replayed, (long long)s->words, (long long)s->registers,
                    s->fullest);
    for (uint32_t slot = 0; slot < s->ops.len; slot++)
        json_op(c, s, slot, out);
    tir_text_add(out, STR("],\"needs\":["));
    for (uint32_t i = 0; i < s->needs.list.len; i++)
        tir_text_format(
            out, "%s{\"first\":%u,\"later\":%u,\"rounds\":%u,\"kind\":\"%s\",\"slack\":%lld}",
            i ? "," : "", s->needs.list.at[i].first, s->needs.list.at[i].later,
            s->needs.list.at[i].rounds, tir_need_names[s->needs.list.at[i].kind],
            (long long)s->needs.list.at[i].slack);
    tir_text_add(out, STR("],\"rings\":["));
    for (uint32_t i = 0; i < s->rings.len; i++) {
        const struct tir_claim_ring *ring = &s->rings.at[i];
        tir_text_add(out, i ? STR(",{\"name\":") : STR("{\"name\":"));
        tir_text_json(out, ring->name);
        tir_text_format(out, ",\"slots\":%lld,\"bytes\":%lld,\"held\":%lld,\"slack\":%lld}",
                        (long long)ring->slots, (long long)ring->bytes, (long long)ring->held,
                        (long long)ring->slack);
    }
    tir_text_add(out, STR("],\"why\":"));
    tir_text_json(out, s->why);
    tir_text_char(out, '}');
}
