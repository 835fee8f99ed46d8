// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits with a watchdog: a wait beyond the time limit of the launch records its place.
//
// A GPU whose kernel hangs shows nothing, so the kernel writes its waits to memory of the host and
// ends by a trap, which leaves that memory intact. The first try costs the same as without a
// watchdog; the clock is read only after it has failed. The first cluster with an overdue wait
// claims the page, so that all its records belong together; each of its warps has its own place. An
// overdue warp goes on trying for another quarter of the limit, while other warps write their
// records, and removes its record if the phase completes after all.
//
// Then it finds the number of pending arrivals. Reading the mbarrier does not tell: on an H200 an
// mbarrier in use reads as 0. An arrival does, since it returns the state before it; the kernel is
// lost, so the arrival does no further harm. Since it changes the state for the next warp, the
// warps do so one after the other and record the order. A wait that ends from then on was ended by
// such an arrival, so its record stays. After yet another quarter the kernel traps. The page is
// drawn in runtime/watchdog.h.

#include "target/nvptx/emit.h"

#include <inttypes.h>

#define TRY "mbarrier.try_wait.parity.acquire.%s.shared::cta.b64 ready, [$0], $1;\n"

// $0 the mbarrier, $1 the parity, $2 the page, $3 the claim, $4 the limit, $5 where dynamic shared
// memory begins.
static const char begin[] = "{\n"
                            ".reg .pred ready, late, told;\n"
                            ".reg .b32 cluster, a, b, c;\n"
                            ".reg .b64 start, time, last, word, at;\n" TRY "@ready bra DONE;\n"
                            "mov.u64 start, %%globaltimer;\n"
                            "setp.ne.b32 told, $1, $1;\n"
                            "AGAIN:\n" TRY "@ready bra READY;\n"
                            "mov.u64 time, %%globaltimer;\n"
                            "sub.u64 time, time, start;\n"
                            "setp.lt.u64 late, time, $4;\n"
                            "@late bra AGAIN;\n";

// One lane speaks for the lanes that wait with it, and one cluster for all.
static const char claim[] = "activemask.b32 a;\n"
                            "mov.u32 b, %lanemask_lt;\n"
                            "and.b32 a, a, b;\n"
                            "setp.ne.b32 late, a, 0;\n"
                            "@late bra AGAIN;\n"
                            "mov.u32 a, %clusterid.z;\n"
                            "mov.u32 b, %nclusterid.y;\n"
                            "mov.u32 c, %clusterid.y;\n"
                            "mad.lo.u32 a, a, b, c;\n"
                            "mov.u32 b, %nclusterid.x;\n"
                            "mov.u32 c, %clusterid.x;\n"
                            "mad.lo.u32 a, a, b, c;\n"
                            "add.u32 cluster, a, 1;\n"
                            "atom.global.cas.b32 b, [$3], 0, cluster;\n"
                            "setp.ne.u32 late, b, 0;\n"
                            "setp.ne.and.u32 late, b, cluster, late;\n"
                            "@late bra AGAIN;\n"
                            "setp.eq.b32 told, $1, $1;\n";

// The line comes last: it says that the rest is there.
static const char record[] = "mov.u32 a, %%cluster_ctarank;\n"
                             "mov.u32 b, %%tid.x;\n"
                             "shr.u32 b, b, 5;\n"
                             "mad.lo.u32 a, a, 32, b;\n"
                             "mad.wide.u32 at, a, 32, $2;\n"
                             "sub.u32 b, $0, $5;\n"
                             "div.u64 last, time, 1000000;\n"
                             "cvt.u32.u64 a, last;\n"
                             "st.volatile.global.b32 [at+24], cluster;\n"
                             "st.volatile.global.b32 [at+28], a;\n"
                             "st.volatile.global.b32 [at+4], b;\n"
                             "st.volatile.global.b32 [at+8], $1;\n"
                             "fence.acq_rel.sys;\n"
                             "st.volatile.global.b32 [at], %" PRIu32 ";\n"
                             "fence.acq_rel.sys;\n"
                             "shr.u64 last, $4, 2;\n"
                             "add.u64 last, last, $4;\n"
                             "setp.lt.u64 late, time, last;\n"
                             "@late bra AGAIN;\n";

static const char ask[] = "TURN:\n"
                          "nanosleep.u32 1000;\n"
                          "atom.acquire.gpu.global.cas.b32 b, [$3+4], 0, 1;\n"
                          "setp.ne.u32 late, b, 0;\n"
                          "@late bra TURN;\n"
                          "ld.volatile.global.b32 b, [at+16];\n"
                          "setp.ne.u32 late, b, 0;\n"
                          "@late bra ASKED;\n"
                          "ld.volatile.global.b32 b, [$3+8];\n"
                          "add.u32 b, b, 1;\n"
                          "st.volatile.global.b32 [$3+8], b;\n"
                          "fence.acq_rel.gpu;\n"
                          "mbarrier.arrive.shared.b64 word, [$0];\n"
                          "mbarrier.pending_count.b64 c, word;\n"
                          "st.volatile.global.b32 [at+12], c;\n"
                          "st.volatile.global.b32 [at+16], b;\n"
                          "ASKED:\n"
                          "fence.acq_rel.sys;\n"
                          "st.release.gpu.global.b32 [$3+4], 0;\n"
                          "END:\n"
                          "nanosleep.u32 1000;\n"
                          "mov.u64 time, %globaltimer;\n"
                          "sub.u64 time, time, start;\n"
                          "shr.u64 last, $4, 1;\n"
                          "add.u64 last, last, $4;\n"
                          "setp.lt.u64 late, time, last;\n"
                          "@late bra END;\n"
                          "trap;\n"
                          "READY:\n"
                          "@!told bra DONE;\n"
                          "ld.volatile.global.b32 b, [$3+8];\n"
                          "setp.ne.u32 late, b, 0;\n"
                          "@late bra END;\n"
                          "st.volatile.global.b32 [at], 0;\n"
                          "fence.acq_rel.sys;\n"
                          "st.volatile.global.b32 [$3], 0;\n"
                          "DONE:\n"
                          "}";

void tir_emit_watched_wait(struct emit *e, const struct tir_inst *inst, V bar, V parity)
{
    const char *scope = e->has_remote ? "cluster" : "cta";
    const struct tir_position at = tir_source_locate(e->diags->sources, inst->span.begin);
    V args[] = {LLVMBuildPtrToInt(e->b, bar, e->ll->i32, ""),
                parity,
                LLVMGetParam(e->function, e->first_watch),
                LLVMGetParam(e->function, e->first_watch + 1),
                LLVMGetParam(e->function, e->first_watch + 2),
                LLVMBuildPtrToInt(e->b, tir_emit_shared_base(e), e->ll->i32, "")};
    struct tir_text text;
    tir_text_init(&text, e->arena, 0);
    tir_text_format(&text, begin, scope, scope);
    tir_text_add(&text, tir_str_of(claim));
    tir_text_format(&text, record, at.file ? at.line : UINT32_MAX);
    tir_text_add(&text, tir_str_of(ask));
    tir_llvm_asm(e->ll, e->ll->none, tir_text_str(&text), STR("r,r,l,l,l,r,~{memory}"),
                 TIR_ASM_EFFECT, args, TIR_COUNT_OF(args));
}
