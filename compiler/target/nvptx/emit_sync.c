// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits: mbarriers, groups of asynchronous operations, named barriers, clusters; and fences.
//
// Arrivals and waits, also remote arrivals, order memory at CTA scope: the async proxy moves all
// data between CTAs of a cluster, and cluster scope flushes caches at every step. Only kernels
// whose threads access another CTA's memory themselves use cluster scope.

#include "ir/effect.h"
#include "target/nvptx/emit.h"

static V call(struct emit *e, const char *name, V *args, uint32_t count)
{
    return tir_llvm_call(e->ll, name, NULL, 0, args, count);
}

static void call_with_i32(struct emit *e, const char *name, int64_t argument)
{
    call(e, name, (V[]){tir_emit_i32(e, argument)}, 1);
}

// mbarriers.

static V barrier_of(struct emit *e, const struct tir_inst *inst)
{
    return tir_emit_address(e, inst->operands[TIR_BAR], inst->operands[TIR_BAR_AT],
                            tir_attr_int(inst, TIR_ATTR_offset, 0));
}

static V step_to(struct emit *e, V bar, int64_t bytes)
{
    V offset = LLVMConstInt(e->ll->i64, (uint64_t)bytes, false);
    return bytes ? LLVMBuildGEP2(e->b, e->ll->i8, bar, &offset, 1, "") : bar;
}

static void emit_init(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *buffer = inst->operands[TIR_BAR];
    bool one = inst->operands[TIR_BAR_AT] || tir_attr_find(inst, TIR_ATTR_offset);
    int64_t bytes = one ? 8 : tir_type_bytes(buffer->type);
    V bar = barrier_of(e, inst),
      arrivals = tir_emit_i32(e, tir_attr_int(inst, TIR_ATTR_arrivals, 1));
    for (int64_t at = 0; at < bytes; at += 8)
        call(e, "llvm.nvvm.mbarrier.init.shared", (V[]){step_to(e, bar, at), arrivals}, 2);
}

// Names of arrivals: here, and at another CTA's mbarrier.
struct arrival {
    const char *here, *there, *there_cluster;
};
static const struct arrival arrive = {"llvm.nvvm.mbarrier.arrive.scope.cta.space.cta",
                                      "llvm.nvvm.mbarrier.arrive.scope.cta.space.cluster",
                                      "llvm.nvvm.mbarrier.arrive.scope.cluster.space.cluster"};
static const struct arrival arrive_expect = {
    "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta",
    "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cluster",
    "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cluster.space.cluster"};
static const struct arrival expect = {"llvm.nvvm.mbarrier.expect.tx.scope.cta.space.cta",
                                      "llvm.nvvm.mbarrier.expect.tx.scope.cta.space.cluster",
                                      "llvm.nvvm.mbarrier.expect.tx.scope.cluster.space.cluster"};

static void count_at(struct emit *e, const struct arrival *a, bool remote, V bar, int64_t number)
{
    const char *name = !remote ? a->here : e->has_remote ? a->there_cluster : a->there;
    call(e, name, (V[]){bar, tir_emit_i32(e, number)}, 2);
}

static void emit_arrive(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *cta = inst->operands[TIR_ARRIVE_CTA];
    const struct tir_attr *bytes = tir_attr_find(inst, TIR_ATTR_bytes);
    int64_t count = tir_attr_int(inst, TIR_ATTR_count, 1);
    V bar = barrier_of(e, inst);
    if (!(e->ll->target->features & TIR_HAS_MBARRIER_TX)) {
        // An arrival counts once there, or, if it does not complete the phase, any number of times.
        if (count > 1)
            call(e, "llvm.nvvm.mbarrier.arrive.noComplete.shared",
                 (V[]){bar, tir_emit_i32(e, count - 1)}, 2);
        call(e, "llvm.nvvm.mbarrier.arrive.shared", &bar, 1);
        return;
    }
    if (cta)
        bar = call(e, "llvm.nvvm.mapa.shared.cluster", (V[]){bar, tir_emit_value(e, cta)}, 2);
    if (bytes && count == 1) {
        count_at(e, &arrive_expect, cta, bar, bytes->number);
        return;
    }
    if (bytes)
        count_at(e, &expect, cta, bar, bytes->number);
    if (count)
        count_at(e, &arrive, cta, bar, count);
}

static const char *wait_name(const struct emit *e)
{
    if (!(e->ll->target->features & TIR_HAS_MBARRIER_TX))
        return "llvm.nvvm.mbarrier.test.wait.parity.scope.cta.space.cta";
    return e->has_remote ? "llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta"
                         : "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta";
}

static void emit_wait(struct emit *e, const struct tir_inst *inst)
{
    V args[] = {barrier_of(e, inst), tir_emit_value(e, inst->operands[TIR_WAIT_PARITY])};
    if (e->has_watchdog) {
        tir_emit_watched_wait(e, inst, args[0], args[1]);
        return;
    }
    LLVMBasicBlockRef wait = tir_emit_block(e, "wait"), done = tir_emit_block(e, "ready");
    LLVMBuildBr(e->b, wait);
    tir_emit_at(e, wait);
    V ready = call(e, wait_name(e), args, 2);
    LLVMBuildCondBr(e->b, ready, done, wait);
    tir_emit_at(e, done);
}

static void emit_test_wait(struct emit *e, const struct tir_inst *inst)
{
    V args[] = {barrier_of(e, inst), tir_emit_value(e, inst->operands[TIR_WAIT_PARITY])};
    tir_emit_set(e, inst->results[0],
                 call(e,
                      e->has_remote ? "llvm.nvvm.mbarrier.test.wait.parity.scope.cluster.space.cta"
                                    : "llvm.nvvm.mbarrier.test.wait.parity.scope.cta.space.cta",
                      args, 2));
}

// Groups. cp_async has them per thread, tma and bulk share theirs.

struct group_row {
    const char *commit, *wait, *wait_read; // LLVM's intrinsics
    bool wide;                             // the number of groups has 64 bits
};
static const struct group_row groups[TIR_DONE_COUNT] = {
    [TIR_DONE_CP_ASYNC] = {"llvm.nvvm.cp.async.commit.group", "llvm.nvvm.cp.async.wait.group"},
    [TIR_DONE_TMA] = {"llvm.nvvm.cp.async.bulk.commit.group", "llvm.nvvm.cp.async.bulk.wait.group",
                      "llvm.nvvm.cp.async.bulk.wait.group.read"},
    [TIR_DONE_WGMMA] = {"llvm.nvvm.wgmma.commit_group.sync.aligned",
                        "llvm.nvvm.wgmma.wait_group.sync.aligned", NULL, true},
};

static void emit_commit(struct emit *e, const struct tir_inst *inst)
{
    call(e, groups[tir_done_of_group(inst)].commit, NULL, 0);
}

static void emit_wait_group(struct emit *e, const struct tir_inst *inst)
{
    const struct group_row *row = &groups[tir_done_of_group(inst)];
    const int64_t count = tir_attr_int(inst, TIR_ATTR_groups, 0);
    const bool reads = row->wait_read && tir_attr_int(inst, TIR_ATTR_read, 0);
    V wide = LLVMConstInt(e->ll->i64, (uint64_t)count, false);
    if (row->wide)
        call(e, row->wait, &wide, 1);
    else
        call_with_i32(e, reads ? row->wait_read : row->wait, count);
}

// Fences.

struct fence_row {
    enum tir_word of;
    const char *name;  // LLVM's intrinsic, or
    const char *scope; // the scope of LLVM's fence
};
static const struct fence_row fences[] = {
    {TIR_WORD_of_wgmma, "llvm.nvvm.wgmma.fence.sync.aligned", NULL},
    {TIR_WORD_of_before_thread_sync, "llvm.nvvm.tcgen05.fence.before.thread.sync", NULL},
    {TIR_WORD_of_after_thread_sync, "llvm.nvvm.tcgen05.fence.after.thread.sync", NULL},
    {TIR_WORD_of_async, "llvm.nvvm.fence.proxy.async", NULL},
    {TIR_WORD_of_async_shared, "llvm.nvvm.fence.proxy.async.shared_cta", NULL},
    {TIR_WORD_of_async_global, "llvm.nvvm.fence.proxy.async.global", NULL},
    {TIR_WORD_of_mbarrier_init, "llvm.nvvm.fence.mbarrier_init.release.cluster", NULL},
    {TIR_WORD_of_cta, NULL, "block"},
    {TIR_WORD_of_cluster, NULL, "cluster"},
    {TIR_WORD_of_gpu, NULL, "device"},
    {TIR_WORD_of_system, NULL, ""},
};

static void emit_fence(struct emit *e, const struct tir_inst *inst)
{
    enum tir_word of = tir_attr_word(inst, TIR_ATTR_of, TIR_WORD_NONE);
    const struct fence_row *row = fences;
    if (of == TIR_WORD_of_mbarrier_init && !(e->ll->target->features & TIR_HAS_CLUSTER))
        return;           // no cluster that has to see them; a barrier orders them for the CTA
    while (row->of != of) // every word has a row
        row++;
    if (row->name) {
        call(e, row->name, NULL, 0);
        return;
    }
    unsigned scope = LLVMGetSyncScopeID(e->ll->context, row->scope, strlen(row->scope));
    LLVMBuildFenceSyncScope(e->b, LLVMAtomicOrderingAcquireRelease, scope, "");
}

// Barriers of the CTA and the cluster.

static void emit_bar(struct emit *e, const struct tir_inst *inst)
{
    int64_t threads = tir_attr_int(inst, TIR_ATTR_threads, 0);
    V args[] = {tir_emit_i32(e, tir_attr_int(inst, TIR_ATTR_id, 0)), tir_emit_i32(e, threads)};
    if (inst->op == TIR_OP_BAR_ARRIVE)
        call(e, "llvm.nvvm.barrier.cta.arrive.aligned.count", args, 2);
    else if (threads)
        call(e, "llvm.nvvm.barrier.cta.sync.aligned.count", args, 2);
    else
        call(e, "llvm.nvvm.barrier.cta.sync.aligned.all", args, 1);
}

// The barrier of the grid. The driver gives a cooperative launch a workspace, whose address is in
// two special registers and whose second word is a counter for barriers: so the public headers of
// CUDA have it (cooperative_groups/details/driver_abi.h and sync.h). One thread of each CTA adds 1,
// that of CTA 0 what is missing to 2^31, and all wait until the top bit changes; the other bits are
// 0 again then. The barriers of the CTA around it make the order that of all its threads.
static void emit_grid_sync(struct emit *e)
{
    V all = tir_emit_i32(e, 0);
    call(e, "llvm.nvvm.barrier.cta.sync.aligned.all", &all, 1);
    tir_llvm_asm(e->ll, e->ll->none,
                 STR("{\n\t"
                     ".reg .pred p, q;\n\t"
                     ".reg .b32 a, b, old, now;\n\t"
                     ".reg .b64 at;\n\t"
                     "mov.u32 a, %tid.x;\n\t"
                     "setp.ne.u32 p, a, 0;\n\t"
                     "@p bra done;\n\t"
                     "mov.b32 a, %envreg2;\n\t"
                     "mov.b32 b, %envreg1;\n\t"
                     "mov.b64 at, {a, b};\n\t"
                     "mov.u32 a, %ctaid.x;\n\t"
                     "mov.u32 b, %ctaid.y;\n\t"
                     "or.b32 a, a, b;\n\t"
                     "mov.u32 b, %ctaid.z;\n\t"
                     "or.b32 a, a, b;\n\t"
                     "setp.ne.u32 q, a, 0;\n\t"
                     "mov.u32 a, %nctaid.x;\n\t"
                     "mov.u32 b, %nctaid.y;\n\t"
                     "mul.lo.u32 a, a, b;\n\t"
                     "mov.u32 b, %nctaid.z;\n\t"
                     "mul.lo.u32 a, a, b;\n\t"
                     "sub.u32 a, 0x80000001, a;\n\t"
                     "selp.u32 a, 1, a, q;\n\t"
                     "atom.add.release.gpu.global.u32 old, [at+4], a;\n"
                     "again:\n\t"
                     "ld.acquire.gpu.global.u32 now, [at+4];\n\t"
                     "xor.b32 now, now, old;\n\t"
                     "setp.ge.s32 q, now, 0;\n\t"
                     "@q bra again;\n"
                     "done:\n\t"
                     "}"),
                 STR("~{memory}"), TIR_ASM_EFFECT | TIR_ASM_CONVERGENT, NULL, 0);
    call(e, "llvm.nvvm.barrier.cta.sync.aligned.all", &all, 1);
}

static void emit_control(struct emit *e, const struct tir_inst *inst)
{
    int64_t regs = tir_attr_int(inst, TIR_ATTR_regs, 0);
    switch (tir_attr_word(inst, TIR_ATTR_change, TIR_WORD_NONE)) {
    case TIR_WORD_change_inc:
        call_with_i32(e, "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32", regs);
        tir_emit_name_shared(e);
        return;
    case TIR_WORD_change_dec:
        call_with_i32(e, "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32", regs);
        tir_emit_name_shared(e);
        return;
    case TIR_WORD_change_wait:
        call(e, "llvm.nvvm.griddepcontrol.wait", NULL, 0);
        return;
    default:
        call(e, "llvm.nvvm.griddepcontrol.launch.dependents", NULL, 0);
        return;
    }
}

void tir_emit_sync(struct emit *e, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_MBARRIER_INIT:
        emit_init(e, inst);
        return;
    case TIR_OP_ARRIVE:
        emit_arrive(e, inst);
        return;
    case TIR_OP_WAIT:
        emit_wait(e, inst);
        return;
    case TIR_OP_TEST_WAIT:
        emit_test_wait(e, inst);
        return;
    case TIR_OP_COMMIT:
        if (tir_commits_copies(inst))
            call(e, "llvm.nvvm.cp.async.mbarrier.arrive.noinc.shared", (V[]){barrier_of(e, inst)},
                 1);
        else
            tir_emit_tcgen05(e, inst);
        return;
    case TIR_OP_COMMIT_GROUP:
        emit_commit(e, inst);
        return;
    case TIR_OP_WAIT_GROUP:
        emit_wait_group(e, inst);
        return;
    case TIR_OP_FENCE:
        emit_fence(e, inst);
        return;
    case TIR_OP_BAR_SYNC:
    case TIR_OP_BAR_ARRIVE:
        emit_bar(e, inst);
        return;
    case TIR_OP_WARP_SYNC:
        call_with_i32(e, "llvm.nvvm.bar.warp.sync", -1);
        return;
    case TIR_OP_CLUSTER_ARRIVE:
        call(e,
             tir_attr_int(inst, TIR_ATTR_relaxed, 0)
                 ? "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned"
                 : "llvm.nvvm.barrier.cluster.arrive.aligned",
             NULL, 0);
        return;
    case TIR_OP_CLUSTER_WAIT:
        call(e, "llvm.nvvm.barrier.cluster.wait.aligned", NULL, 0);
        return;
    case TIR_OP_GRID_SYNC:
        emit_grid_sync(e);
        return;
    case TIR_OP_ASSUME_SYNC: // sync_check has heard it
        return;
    case TIR_OP_SETMAXNREG:
    case TIR_OP_GRIDDEPCONTROL:
        emit_control(e, inst);
        return;
    default:
        tir_unreachable();
    }
}
