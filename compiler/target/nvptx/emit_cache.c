// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What accesses say to the caches: a priority in L2, by a policy that the kernel makes once (PTX
// ISA, createpolicy; sm_80), or that L1 is passed by.

#include "target/nvptx/emit.h"

static const struct {
    enum tir_word word;
    const char *policy, *text; // policy NULL: the text says it all
} caches[] = {
    {TIR_WORD_cache_evict_first, "L2::evict_first", ".L2::cache_hint"},
    {TIR_WORD_cache_evict_last, "L2::evict_last", ".L2::cache_hint"},
    {TIR_WORD_cache_evict_normal, "L2::evict_normal", ".L2::cache_hint"},
    {TIR_WORD_cache_no_allocate, NULL, ".L1::no_allocate"},
};
_Static_assert(TIR_COUNT_OF(caches) == TIR_COUNT_OF(((struct emit *)0)->policies), "one each");

// At the start of the kernel.
static V build_policy(struct emit *e, const char *name)
{
    LLVMBasicBlockRef here = tir_emit_at_entry(e);
    tir_str text = tir_str_format(e->arena, "createpolicy.fractional.%s.b64 $0, 1.0;", name);
    V policy = tir_llvm_asm(e->ll, e->ll->i64, text, STR("=l"), 0, NULL, 0);
    tir_emit_at(e, here);
    return policy;
}

struct emit_cache tir_emit_cache(struct emit *e, const struct tir_inst *access)
{
    enum tir_word word = tir_attr_word(access, TIR_ATTR_cache, TIR_WORD_NONE);
    if (!word)
        return (struct emit_cache){"", NULL};
    uint32_t i = 0;
    while (caches[i].word != word) // every word has a row
        i++;
    if (caches[i].policy && !e->policies[i])
        e->policies[i] = build_policy(e, caches[i].policy);
    return (struct emit_cache){caches[i].text, e->policies[i]};
}
