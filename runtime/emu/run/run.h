// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every function that executes a class of instructions, and what it reads of the instruction.
#ifndef EMU_RUN_H
#define EMU_RUN_H

#include "emu/decode/program.h"

#define EMU_RUN(name) \
    void emu_run_##name(struct emu_warp *w, const struct emu_insn *in, uint32_t mask)

// lane/exec.c
EMU_RUN(alu);        // alu; dst, src; width
EMU_RUN(alu_fix);    // the same with flags, round; type
EMU_RUN(lop3);       // dst | list: predicate; src; alu; target: the table; op
EMU_RUN(setp);       // cmp; dst | list: second predicate; src; op: how src[2] is combined
EMU_RUN(set);        // cmp; dst, src; type2: of the result
EMU_RUN(selp);       // dst; src: a, b, predicate; width
EMU_RUN(pred);       // dst, src: predicates; op: enum emu_pred_op
EMU_RUN(mov);        // dst, src; width
EMU_RUN(pack);       // dst; list: parts, lowest first
EMU_RUN(unpack);     // src; list: parts
EMU_RUN(mov_vector); // list: destination, source, ...; width
EMU_RUN(mov_local);  // dst = address of the frame's memory + offset; width
EMU_RUN(add_const);  // dst = src + offset: cvta; width
EMU_RUN(isspacep);   // dst; src; width: of src; space
EMU_RUN(clock);      // dst; op: enum emu_sreg
EMU_RUN(carry);      // dst, src; op: enum emu_carry_op; width; flags
EMU_RUN(nop);
// run/warp.c
EMU_RUN(bra);
EMU_RUN(brx);
EMU_RUN(call);
EMU_RUN(call_indirect);
EMU_RUN(ret);
EMU_RUN(exit);
EMU_RUN(trap);
EMU_RUN(nanosleep);
// mem/mem.c
EMU_RUN(ld);
EMU_RUN(ld_param);
EMU_RUN(st);
// mem/atom.c
EMU_RUN(atom);
EMU_RUN(atom_wide);
EMU_RUN(fence);       // mem/mem.c; order, scope
EMU_RUN(fence_proxy); // op: EMU_FENCE_*; order, scope
// run/sync.c
EMU_RUN(bar);
EMU_RUN(bar_warp);
EMU_RUN(shfl);
EMU_RUN(vote);
EMU_RUN(match);
EMU_RUN(redux);
EMU_RUN(activemask);
EMU_RUN(elect);
EMU_RUN(cluster_arrive);
EMU_RUN(cluster_wait);
// async/mbarrier.c
EMU_RUN(mbarrier);
EMU_RUN(mbarrier_wait);
EMU_RUN(mbarrier_pending);
// run/cluster_insn.c
EMU_RUN(mapa);
EMU_RUN(getctarank);
EMU_RUN(setmaxnreg);
EMU_RUN(try_cancel);
EMU_RUN(query_cancel);
// async/bulk.c
EMU_RUN(bulk_copy);
EMU_RUN(bulk_commit);
EMU_RUN(bulk_wait);
// async/push.c
EMU_RUN(push);
EMU_RUN(bulk_fill);
// async/tensor_copy.c
EMU_RUN(tensor_copy);
EMU_RUN(tensormap_replace);
EMU_RUN(tensormap_copy);
// async/cp_async.c
EMU_RUN(cp_mbarrier_arrive);
EMU_RUN(cp_async);
EMU_RUN(cp_commit);
EMU_RUN(cp_wait);
// tensor/ldmatrix.c
EMU_RUN(ldmatrix);
EMU_RUN(stmatrix);
EMU_RUN(ldmatrix_bytes); // width: bits of an element in memory
EMU_RUN(stmatrix_bytes);
EMU_RUN(movmatrix);
// tensor/mma.c
EMU_RUN(mma);
EMU_RUN(mma_quads);
// tensor/wmma.c
EMU_RUN(wmma_load);
EMU_RUN(wmma_store);
EMU_RUN(wmma_mma);
// tensor/tmem.c
EMU_RUN(tmem_alloc);
EMU_RUN(tmem_dealloc);
EMU_RUN(tmem_relinquish);
EMU_RUN(tmem_load);
EMU_RUN(tmem_store);
EMU_RUN(tmem_wait);
EMU_RUN(tmem_fence); // op: after the synchronisation
// tensor/umma.c
EMU_RUN(umma);
EMU_RUN(umma_commit);
EMU_RUN(umma_copy);
// tensor/wgmma_op.c
EMU_RUN(wgmma);
EMU_RUN(wgmma_fence);
EMU_RUN(wgmma_commit);
EMU_RUN(wgmma_wait); // offset
// lane/cvt.c
EMU_RUN(cvt);
EMU_RUN(cvt_pack); // list: sources; type, type2: packed types; src[3]: random bits
// mem/stack.c
EMU_RUN(alloca);
EMU_RUN(stacksave);
EMU_RUN(stackrestore);
// lane/video.c
EMU_RUN(video);
EMU_RUN(video_mad);
EMU_RUN(video_simd);
// lane/cvt_packed.c
EMU_RUN(cvt_pack_int); // src: upper, lower, bits above; type

enum emu_pred_op { EMU_PRED_AND, EMU_PRED_OR, EMU_PRED_XOR, EMU_PRED_NOT, EMU_PRED_MOV };

enum emu_carry_op { EMU_CARRY_ADD, EMU_CARRY_SUB, EMU_CARRY_MAD_LO, EMU_CARRY_MAD_HI };

enum { // emu_run_carry: op holds the operation in its low bits
    EMU_CARRY_IN = 1 << 4,
    EMU_CARRY_OUT = 1 << 5,
    EMU_CARRY_SIGNED = 1 << 6
};

enum emu_vote_op { EMU_VOTE_ALL, EMU_VOTE_ANY, EMU_VOTE_UNI, EMU_VOTE_BALLOT };
enum emu_shfl_op { EMU_SHFL_IDX, EMU_SHFL_UP, EMU_SHFL_DOWN, EMU_SHFL_BFLY };
enum emu_redux_op {
    EMU_REDUX_ADD,
    EMU_REDUX_MIN,
    EMU_REDUX_MAX,
    EMU_REDUX_AND,
    EMU_REDUX_OR,
    EMU_REDUX_XOR
};
enum { EMU_REDUX_ABS = 1 << 0, EMU_REDUX_NAN = 1 << 1 }; // emu_insn.round
// One step of a reduction of values of in->type (run/sync.c).
uint32_t emu_reduce(const struct emu_insn *in, enum emu_redux_op op, uint32_t a, uint32_t b);
enum emu_bar_op { EMU_BAR_SYNC, EMU_BAR_ARRIVE, EMU_BAR_POPC, EMU_BAR_AND, EMU_BAR_OR };
enum { EMU_BAR_ALIGNED = 1 << 4 };

#endif
