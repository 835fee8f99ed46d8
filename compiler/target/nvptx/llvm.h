// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One LLVM module on its way to PTX: the handles, the types, and the calls that need more than one
// line of LLVM-C.
//
// Everything is per compilation; the only process-wide state is the one-time target initialisation,
// LLVM's fatal-error hook and a few target machines that no compilation uses. A fatal error inside
// LLVM jumps back to tir_llvm_protect, so it never ends the host process; the handles are then left
// alone (leaked), because LLVM's state is unknown.
#ifndef TIR_TARGET_NVPTX_LLVM_H
#define TIR_TARGET_NVPTX_LLVM_H

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "machine/target.h"

enum tir_address_space {
    TIR_AS_GENERIC = 0,
    TIR_AS_GLOBAL = 1,
    TIR_AS_SHARED = 3,
    TIR_AS_CLUSTER = 7,
    TIR_AS_PARAM = 101
};

struct tir_llvm {
    const struct tir_target *target;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTargetMachineRef machine;
    LLVMTargetDataRef layout;
    LLVMDIBuilderRef debug;  // NULL: no line information
    LLVMMemoryBufferRef ptx; // generated
    char *text;              // while it is copied
    LLVMTypeRef i1, i8, i16, i32, i64, f16, bf16, f32, f64, none;
    LLVMAttributeRef convergent, nounwind, willreturn, no_memory, noinline;
    bool watchdog;     // waits have a time limit
    bool has_buffers;  // an alloca was made
    char message[400]; // what LLVM last complained about; empty: nothing
};

// Runs body(user) so that a fatal error in LLVM makes this return false with ll->message set. Not
// nested. If body is left by another jump, tir_llvm_finish must follow.
bool tir_llvm_protect(struct tir_llvm *ll, bool (*body)(void *user), void *user);

// Inside tir_llvm_protect only. False: ll->message says why.
bool tir_llvm_init(struct tir_llvm *ll, const struct tir_target *target);
bool tir_llvm_verify(struct tir_llvm *ll);
bool tir_llvm_optimize(struct tir_llvm *ll);
bool tir_llvm_generate(struct tir_llvm *ll);
tir_str tir_llvm_ptx(const struct tir_llvm *ll); // what was generated; valid until tir_llvm_finish
tir_str tir_llvm_text(struct tir_llvm *ll, struct tir_arena *arena);

// Frees all but the generated text.
void tir_llvm_drop(struct tir_llvm *ll);
// Frees what there is; a zeroed struct is fine.
void tir_llvm_finish(struct tir_llvm *ll);

// Calls an intrinsic ("llvm.fma"); overloads: the types that make up its suffix.
LLVMValueRef tir_llvm_call(struct tir_llvm *ll, const char *name, const LLVMTypeRef *overloads,
                           uint32_t overload_count, LLVMValueRef *args, uint32_t count);

enum tir_llvm_asm_flag {
    TIR_ASM_EFFECT = 1 << 0,     // kept, and kept in order
    TIR_ASM_CONVERGENT = 1 << 1, // never moved into or out of divergent code
};
#define TIR_ASM_INPUTS 256
// Inline PTX of at most TIR_ASM_INPUTS inputs; without TIR_ASM_EFFECT it neither reads nor writes
// memory. The result is `type` (a struct for more than one output).
LLVMValueRef tir_llvm_asm(struct tir_llvm *ll, LLVMTypeRef type, tir_str text, tir_str constraints,
                          uint32_t flags, LLVMValueRef *args, uint32_t count);

// The file of lines of debug information. ptxas takes no `"` in a name, not even an escaped one.
LLVMMetadataRef tir_llvm_file(struct tir_llvm *ll, struct tir_arena *arena, tir_str name);

void tir_llvm_add_string_attribute(struct tir_llvm *ll, LLVMValueRef function, const char *key,
                                   const char *value);
LLVMAttributeRef tir_llvm_enum_attribute(struct tir_llvm *ll, const char *name, uint64_t value);

#endif
