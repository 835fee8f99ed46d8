// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "choice.h"

void choices_seed(struct choices *c, uint64_t seed)
{
    c->is_replay = false;
    c->count = c->made_count = 0;
    c->state = seed;
}

void choices_replay(struct choices *c, const uint32_t *made, uint32_t count)
{
    c->is_replay = true;
    c->count = 0;
    c->made_count = count;
    memmove(c->made, made, count * sizeof(*made));
}

static uint32_t draw(struct choices *c) // splitmix64: neighbouring seeds give unrelated series
{
    uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32 ^ z >> 1);
}

static const uint32_t *forced_at(const struct choices *c, uint32_t i)
{
    for (uint32_t k = 0; k < c->forced_count; k++)
        if (c->forced[k][0] == i)
            return &c->forced[k][1];
    return NULL;
}

uint32_t choose(struct choices *c, uint32_t n)
{
    if (c->count == MAX_CHOICES || n == 0)
        return 0;
    uint32_t i = c->count++;
    const uint32_t *forced = forced_at(c, i);
    if (!c->is_replay)
        c->made[i] = forced ? *forced : draw(c) % n;
    else if (i >= c->made_count)
        c->made[i] = 0;
    return c->made[i] = TIR_MIN(c->made[i], n - 1);
}

bool chance(struct choices *c, uint32_t percent)
{
    return choose(c, 100) >= 100 - percent;
}
