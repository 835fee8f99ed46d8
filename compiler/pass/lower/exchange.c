// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, convert_layout within warps: lanes exchange words by shuffles.
//
// Of 2^n words of a lane, n = swap_count, each goes to another lane, and as many come. A shuffle
// gives every lane one word of one lane, so in round r a lane sends word r ^ (its digits that
// become registers) and gets what belongs in word r ^ (its digits that were registers): the senders
// of a round are all different lanes.

#include "pass/lower/lower.h"

enum { MOST_WORDS = 1 << TIR_EXCHANGE_SWAPS };

struct shuffles {
    struct lower *lo;
    struct tir_exchange x;
    const struct tir_type *elem, *word;
    uint32_t together;        // elements of a word: those of the first digits kept
    struct tir_value *source; // the lane that sends in round 0
    // Of this lane, which digits are 1: of those that become registers, and that were registers.
    struct tir_value *sends[TIR_EXCHANGE_SWAPS], *gets[TIR_EXCHANGE_SWAPS];
};

static struct tir_value *lane_digit(struct lower *lo, uint32_t stride)
{
    return tir_lower_digit(lo, &lo->top, tir_lower_thread(lo, TIR_AXIS_LANE), stride, 2,
                           stride == 16);
}

static void add_lane(struct shuffles *s, struct tir_value *digit, uint32_t stride)
{
    struct tir_builder *b = &s->lo->top;
    s->source = tir_lower_add(s->lo, b, s->source, tir_lower_mul_const(s->lo, b, digit, stride));
}

static struct tir_value *is_set(struct lower *lo, struct tir_value *digit)
{
    return tir_binary(&lo->top, TIR_OP_NE, digit, tir_lower_i32(lo, 0));
}

static void open_shuffles(struct shuffles *s)
{
    struct lower *lo = s->lo;
    const uint32_t bits = tir_elems[s->elem->elem].bits;
    s->together = 1;
    for (uint32_t i = 0; i < s->x.kept_count && s->x.kept[i].extent == 2; i++)
        if (s->together * bits < 32)
            s->together *= 2;
    s->word = s->together == 1           ? s->elem
              : s->together * bits == 16 ? tir_type_scalar(lo->types, TIR_U16)
                                         : lo->i32;
    s->source = tir_lower_i32(lo, 0);
    for (uint32_t i = 0; i < s->x.lane_count; i++)
        add_lane(s, lane_digit(lo, s->x.lanes[i].to), s->x.lanes[i].from);
    for (uint32_t i = 0; i < s->x.swap_count; i++) {
        struct tir_value *digit = lane_digit(lo, s->x.swaps[i].to_lane);
        add_lane(s, digit, s->x.swaps[i].from_lane);
        s->gets[i] = is_set(lo, digit);
        s->sends[i] = is_set(lo, lane_digit(lo, s->x.swaps[i].from_lane));
    }
}

// The register of element e of a word, counted from the word's first one.
static uint32_t of_word(const struct shuffles *s, uint32_t e, bool is_from)
{
    uint32_t reg = 0;
    for (uint32_t i = 0; e; i++, e /= 2)
        reg += e % 2 * (is_from ? s->x.kept[i].from : s->x.kept[i].to);
    return reg;
}

static uint32_t of_swaps(const struct shuffles *s, uint32_t word, bool is_from)
{
    uint32_t reg = 0;
    for (uint32_t i = 0; i < s->x.swap_count; i++)
        reg +=
            (word >> i & 1) * (is_from ? s->x.swaps[i].from_register : s->x.swaps[i].to_register);
    return reg;
}

// Word w becomes word w ^ (the bits that are set).
static void permute(struct shuffles *s, struct tir_value **words, struct tir_value *const *set)
{
    for (uint32_t i = 0; i < s->x.swap_count; i++)
        for (uint32_t w = 0; w < 1u << s->x.swap_count; w++) {
            const uint32_t other = w ^ 1u << i;
            if (other < w)
                continue;
            struct tir_value *low[] = {set[i], words[other], words[w]};
            struct tir_value *high[] = {set[i], words[w], words[other]};
            words[w] = tir_build1(&s->lo->b, TIR_OP_WHERE, s->word, low, 3);
            words[other] = tir_build1(&s->lo->b, TIR_OP_WHERE, s->word, high, 3);
        }
}

static struct tir_value *shuffled(struct shuffles *s, struct tir_value *word, uint32_t round)
{
    struct lower *lo = s->lo;
    uint32_t turned = 0;
    for (uint32_t i = 0; i < s->x.swap_count; i++)
        turned += (round >> i & 1) * s->x.swaps[i].from_lane;
    struct tir_value *source =
        turned ? tir_binary(&lo->top, TIR_OP_XOR, s->source, tir_lower_i32(lo, turned)) : s->source;
    struct tir_value *operands[] = {word, source};
    word = tir_build1(&lo->b, TIR_OP_SHUFFLE, s->word, operands, 2);
    tir_set_word(lo->f, word->def, TIR_ATTR_mode, TIR_WORD_mode_idx);
    return word;
}

// The words whose first elements are register `from` before and `to` after.
static void exchange_words(struct shuffles *s, struct tir_value *const *in, uint32_t from,
                           struct tir_value **out, uint32_t to)
{
    struct tir_builder *b = &s->lo->b;
    struct tir_value *words[MOST_WORDS], *parts[4];
    const struct tir_type *types[4] = {s->elem, s->elem, s->elem, s->elem};
    const uint32_t count = 1u << s->x.swap_count;
    for (uint32_t w = 0; w < count; w++) {
        for (uint32_t e = 0; e < s->together; e++)
            parts[e] = in[from + of_swaps(s, w, true) + of_word(s, e, true)];
        words[w] =
            s->together == 1 ? parts[0] : tir_lower_joined(s->lo, s->word, parts, s->together);
    }
    permute(s, words, s->sends);
    for (uint32_t w = 0; w < count; w++)
        words[w] = shuffled(s, words[w], w);
    permute(s, words, s->gets);
    for (uint32_t w = 0; w < count; w++) {
        if (s->together > 1)
            memcpy(parts, tir_build(b, TIR_OP_UNPACK, &words[w], 1, types, s->together, 0)->results,
                   s->together * sizeof(*parts));
        else
            parts[0] = words[w];
        for (uint32_t e = 0; e < s->together; e++)
            out[to + of_swaps(s, w, false) + of_word(s, e, false)] = parts[e];
    }
}

void tir_lower_exchange(struct lower *lo, const struct tir_exchange *exchange,
                        const struct tir_type *elem, struct tir_value *const *in,
                        struct tir_value **out)
{
    struct shuffles all = {.lo = lo, .x = *exchange, .elem = elem}, *s = &all;
    open_shuffles(s);
    uint32_t first = 0, count = 1; // digits of a word; words, or groups of them
    while (1u << first < s->together)
        first++;
    for (uint32_t i = first; i < s->x.kept_count; i++)
        count *= s->x.kept[i].extent;
    for (uint32_t n = 0; n < count; n++) {
        uint32_t from = 0, to = 0, rest = n;
        for (uint32_t i = first; i < s->x.kept_count; i++) {
            const uint32_t digit = rest % s->x.kept[i].extent;
            rest /= s->x.kept[i].extent;
            from += digit * s->x.kept[i].from;
            to += digit * s->x.kept[i].to;
        }
        exchange_words(s, in, from, out, to);
    }
}
