// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The LLVM module's life: target set-up, fatal errors, passes, PTX.

#include "target/nvptx/llvm.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Transforms/PassBuilder.h>

#define TRIPLE         "nvptx64-nvidia-cuda"
#define MOST_IDLE      8         // target machines
#define KEPT_BYTES     (8 << 20) // of a heap, for the next compilation

// Our IR is in SSA form and clean already, and codegen runs address and loop passes of its own.
// What is left is what emission one operation at a time could not see: values that it repeats (gvn
// without what it knows about memory) and what folds; that pays for itself in codegen. Buffers of a
// thread become registers where they can.
//
// Where LLVM sees no elements, little folds: what is left is arithmetic on places, once for a tile
// or a stage, and codegen and ptxas make the same of it.
#define REPEATED       "gvn<no-pre;no-load-pre;no-memdep>"
#define PLACE_PASSES   REPEATED ",simplifycfg"
#define ELEMENT_PASSES REPEATED ",instcombine<no-verify-fixpoint>,simplifycfg"
#define BUFFER_PASSES  "sroa," ELEMENT_PASSES

struct boundary { // one protected call
    struct tir_llvm *ll;
    jmp_buf jump;
};
static _Thread_local struct boundary *current; // this thread's tir_llvm_protect

static void set_message(struct tir_llvm *ll, const char *text)
{
    snprintf(ll->message, sizeof(ll->message), "%s", text);
}

static void on_fatal(const char *reason)
{
    struct boundary *boundary = current;
    if (!boundary)
        return; // not ours: LLVM does what it does without a handler
    set_message(boundary->ll, reason);
    longjmp(boundary->jump, 1);
}

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    struct tir_llvm *ll = user;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || ll->message[0])
        return; // remarks come for every function; the first error explains the others
    char *text = LLVMGetDiagInfoDescription(info);
    set_message(ll, text);
    LLVMDisposeMessage(text);
}

static void init_target(void)
{
    tir_keep_free_memory(KEPT_BYTES);
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // Passes of the code generator that take their time on unrolled code (the first is quadratic,
    // the last runs three times) and find nothing there: offsets are immediates, accesses are
    // vectors and what was repeated is gone. ptxas hoists on its own; hoisted in PTX, the address
    // of a lane takes the base of shared memory out of the uniform registers, and the descriptors
    // of products with it. What codegen prepares begins anew with each block that it changes,
    // unless it takes the function for a huge one.
    //
    // The last ones look for what we never emit (library calls, reductions, chains of comparisons,
    // constants that are dear) or what has no place in PTX (registers and slots of the stack that
    // are allocated, whose copies they move). The PTX of the examples has the same bytes without.
    static const char *const options[] = {
        "tirc",
        "-opt-disable=slsr,load-store-vectorizer,nary-reassociate,early-cse",
        "-disable-lsr",
        "-disable-machine-licm",
        "-cgpp-huge-func=256",
        "-disable-constant-hoisting",
        "-disable-partial-libcall-inlining",
        "-disable-mergeicmps",
        "-disable-expand-reductions",
        "-disable-replace-with-vec-lib",
        "-disable-machine-dce",
        "-disable-tail-duplicate",
        "-disable-copyprop",
        "-disable-ssc"};
    LLVMParseCommandLineOptions(TIR_COUNT_OF(options), options, "");
    LLVMInstallFatalErrorHandler(on_fatal);
}

bool tir_llvm_protect(struct tir_llvm *ll, bool (*body)(void *user), void *user)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_target);
    struct boundary boundary = {.ll = ll};
    current = &boundary;
    if (setjmp(boundary.jump)) {
        current = NULL;
        char message[sizeof(ll->message)];
        memcpy(message, ll->message, sizeof(message));
        memset(ll, 0,
               sizeof(*ll)); // forget the handles: nothing of this context may be touched again
        memcpy(ll->message, message, sizeof(message));
        return false;
    }
    bool ok = body(user);
    current = NULL;
    return ok;
}

static LLVMTargetMachineRef new_machine(struct tir_llvm *ll)
{
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(TRIPLE, &target, &message)) {
        set_message(ll, message);
        LLVMDisposeMessage(message);
        return NULL;
    }
    char features[32];
    snprintf(features, sizeof(features), "+ptx%" PRIu32, ll->target->ptx);
    LLVMTargetMachineOptionsRef options = LLVMCreateTargetMachineOptions();
    LLVMTargetMachineOptionsSetCPU(options, ll->target->name);
    LLVMTargetMachineOptionsSetFeatures(options, features);
    LLVMTargetMachineOptionsSetCodeGenOptLevel(options, LLVMCodeGenLevelDefault);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachineWithOptions(target, TRIPLE, options);
    LLVMDisposeTargetMachineOptions(options);
    if (!machine)
        set_message(ll, "LLVM has no NVPTX target machine");
    else
        LLVMSetTargetMachineAsmVerbosity(machine, 0);
    return machine;
}

// Target machines that no module has at the moment: to make one takes LLVM a million instructions
// and half a megabyte.
static struct {
    pthread_mutex_t lock;
    uint32_t count;
    struct {
        const char *name;
        uint32_t ptx;
        LLVMTargetMachineRef machine;
    } at[MOST_IDLE];
} idle = {.lock = PTHREAD_MUTEX_INITIALIZER};

static LLVMTargetMachineRef take_machine(struct tir_llvm *ll)
{
    LLVMTargetMachineRef machine = NULL;
    pthread_mutex_lock(&idle.lock);
    for (uint32_t i = idle.count; i-- > 0 && !machine;) {
        if (strcmp(idle.at[i].name, ll->target->name) || idle.at[i].ptx != ll->target->ptx)
            continue;
        machine = idle.at[i].machine;
        idle.at[i] = idle.at[--idle.count];
    }
    pthread_mutex_unlock(&idle.lock);
    return machine ? machine : new_machine(ll);
}

static void give_machine(struct tir_llvm *ll)
{
    pthread_mutex_lock(&idle.lock);
    const bool is_kept = idle.count < MOST_IDLE;
    if (is_kept) {
        idle.at[idle.count].name = ll->target->name;
        idle.at[idle.count].ptx = ll->target->ptx;
        idle.at[idle.count++].machine = ll->machine;
    }
    pthread_mutex_unlock(&idle.lock);
    if (!is_kept)
        LLVMDisposeTargetMachine(ll->machine);
}

LLVMAttributeRef tir_llvm_enum_attribute(struct tir_llvm *ll, const char *name, uint64_t value)
{
    return LLVMCreateEnumAttribute(ll->context, LLVMGetEnumAttributeKindForName(name, strlen(name)),
                                   value);
}

bool tir_llvm_init(struct tir_llvm *ll, const struct tir_target *target)
{
    memset(ll, 0, sizeof(*ll));
    ll->target = target;
    ll->machine = take_machine(ll);
    if (!ll->machine)
        return false;
    LLVMContextRef c = ll->context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(c, on_diagnostic, ll);
    ll->module = LLVMModuleCreateWithNameInContext("tir", c);
    ll->builder = LLVMCreateBuilderInContext(c);
    LLVMSetTarget(ll->module, TRIPLE);
    ll->layout = LLVMCreateTargetDataLayout(ll->machine);
    LLVMSetModuleDataLayout(ll->module, ll->layout);
    ll->i1 = LLVMInt1TypeInContext(c);
    ll->i8 = LLVMInt8TypeInContext(c);
    ll->i16 = LLVMInt16TypeInContext(c);
    ll->i32 = LLVMInt32TypeInContext(c);
    ll->i64 = LLVMInt64TypeInContext(c);
    ll->f16 = LLVMHalfTypeInContext(c);
    ll->bf16 = LLVMBFloatTypeInContext(c);
    ll->f32 = LLVMFloatTypeInContext(c);
    ll->f64 = LLVMDoubleTypeInContext(c);
    ll->none = LLVMVoidTypeInContext(c);
    ll->convergent = tir_llvm_enum_attribute(ll, "convergent", 0);
    ll->nounwind = tir_llvm_enum_attribute(ll, "nounwind", 0);
    ll->willreturn = tir_llvm_enum_attribute(ll, "willreturn", 0);
    ll->noinline = tir_llvm_enum_attribute(ll, "noinline", 0);
    ll->no_memory = tir_llvm_enum_attribute(ll, "memory", 0);
    return true;
}

void tir_llvm_drop(struct tir_llvm *ll)
{
    if (ll->text)
        LLVMDisposeMessage(ll->text);
    if (ll->debug)
        LLVMDisposeDIBuilder(ll->debug);
    if (ll->layout)
        LLVMDisposeTargetData(ll->layout);
    if (ll->builder)
        LLVMDisposeBuilder(ll->builder);
    if (ll->module)
        LLVMDisposeModule(ll->module);
    if (ll->context)
        LLVMContextDispose(ll->context);
    if (ll->machine)
        give_machine(ll);
    LLVMMemoryBufferRef ptx = ll->ptx;
    memset(ll, 0, sizeof(*ll));
    ll->ptx = ptx;
}

void tir_llvm_finish(struct tir_llvm *ll)
{
    current = NULL; // the protected call may have been left by a jump
    tir_llvm_drop(ll);
    if (ll->ptx)
        LLVMDisposeMemoryBuffer(ll->ptx);
    ll->ptx = NULL;
}

bool tir_llvm_verify(struct tir_llvm *ll)
{
    char *message = NULL;
    bool bad = LLVMVerifyModule(ll->module, LLVMReturnStatusAction, &message);
    if (bad)
        set_message(ll, message);
    LLVMDisposeMessage(message);
    return !bad;
}

// The 32-bit intrinsic for a minimum or maximum of fewer bits; NULL: v is none.
static const char *wide_extreme(LLVMValueRef v, bool *is_signed)
{
    static const struct {
        const char *name;
        bool is_signed;
    } rows[] = {
        {"llvm.smin", true}, {"llvm.smax", true}, {"llvm.umin", false}, {"llvm.umax", false}};
    if (!LLVMIsACallInst(v) || LLVMGetTypeKind(LLVMTypeOf(v)) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(LLVMTypeOf(v)) >= 32)
        return NULL;
    unsigned id = LLVMGetIntrinsicID(LLVMGetCalledValue(v));
    for (uint32_t i = 0; id && i < TIR_COUNT_OF(rows); i++)
        if (id == LLVMLookupIntrinsicID(rows[i].name, strlen(rows[i].name))) {
            *is_signed = rows[i].is_signed;
            return rows[i].name;
        }
    return NULL;
}

static void widen_extreme(struct tir_llvm *ll, LLVMValueRef v, const char *name, bool is_signed)
{
    LLVMPositionBuilderBefore(ll->builder, v);
    LLVMValueRef args[2];
    for (uint32_t i = 0; i < 2; i++)
        args[i] = is_signed ? LLVMBuildSExt(ll->builder, LLVMGetOperand(v, i), ll->i32, "")
                            : LLVMBuildZExt(ll->builder, LLVMGetOperand(v, i), ll->i32, "");
    LLVMValueRef wide = tir_llvm_call(ll, name, &ll->i32, 1, args, 2);
    LLVMReplaceAllUsesWith(v, LLVMBuildTrunc(ll->builder, wide, LLVMTypeOf(v), ""));
    LLVMInstructionEraseFromParent(v);
}

// Minima and maxima of 8 and 16 bits are computed in 32. Where the assembler of driver 580 finds
// that a or b is 0, it makes a wrong comparison of
//     min.s16 x, a, b;  setp.eq.b16 p, x, 0;
// and of the same with max.s16 (seen on sm_90a, 2026-11-22). LLVM makes such a minimum of a choice
// too, so they are looked for once it is done.
static void widen_extremes(struct tir_llvm *ll)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(ll->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef v = LLVMGetFirstInstruction(b), next; v; v = next) {
                next = LLVMGetNextInstruction(v);
                bool is_signed;
                const char *name = wide_extreme(v, &is_signed);
                if (name)
                    widen_extreme(ll, v, name, is_signed);
            }
}

// Several values at once, of which a flag is not the last: those of a matrix.
static bool is_of_elements(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMVoidTypeKind:
    case LLVMIntegerTypeKind:
    case LLVMPointerTypeKind:
        return false;
    case LLVMStructTypeKind: {
        LLVMTypeRef last = LLVMStructGetTypeAtIndex(type, LLVMCountStructElementTypes(type) - 1);
        return LLVMGetTypeKind(last) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(last) > 1;
    }
    default: // floats and vectors
        return true;
    }
}

// Does the instruction move or make elements? Tensor copies, products whose sums are registers of
// inline PTX, and stores of these do not: they have places alone.
static bool sees_elements(LLVMValueRef v)
{
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMAlloca:
    case LLVMLoad:
    case LLVMStore:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        return true;
    case LLVMCall:
        if (LLVMIsAInlineAsm(LLVMGetCalledValue(v)) &&
            LLVMGetTypeKind(LLVMTypeOf(v)) != LLVMVoidTypeKind)
            return true;
        break;
    default:
        break;
    }
    return is_of_elements(LLVMTypeOf(v));
}

static const char *passes_for(LLVMValueRef f, bool has_buffers)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef v = LLVMGetFirstInstruction(b); v; v = LLVMGetNextInstruction(v))
            if (sees_elements(v))
                return has_buffers ? BUFFER_PASSES : ELEMENT_PASSES;
    return PLACE_PASSES;
}

bool tir_llvm_optimize(struct tir_llvm *ll)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = NULL;
    for (LLVMValueRef f = LLVMGetFirstFunction(ll->module); f && !error; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            error =
                LLVMRunPassesOnFunction(f, passes_for(f, ll->has_buffers), ll->machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (error) {
        char *message = LLVMGetErrorMessage(error);
        set_message(ll, message);
        LLVMDisposeErrorMessage(message);
    } else {
        widen_extremes(ll);
    }
    return !error;
}

bool tir_llvm_generate(struct tir_llvm *ll)
{
    char *message = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(ll->machine, ll->module, LLVMAssemblyFile, &message,
                                            &ll->ptx)) {
        set_message(ll, message);
        LLVMDisposeMessage(message);
        return false;
    }
    return !ll->message[0]; // an error diagnostic without a failed return
}

tir_str tir_llvm_ptx(const struct tir_llvm *ll)
{
    return (tir_str){LLVMGetBufferStart(ll->ptx), LLVMGetBufferSize(ll->ptx)};
}

tir_str tir_llvm_text(struct tir_llvm *ll, struct tir_arena *arena)
{
    ll->text = LLVMPrintModuleToString(ll->module);
    tir_str copy = tir_str_copy(arena, tir_str_of(ll->text));
    LLVMDisposeMessage(ll->text);
    ll->text = NULL;
    return copy;
}

LLVMMetadataRef tir_llvm_file(struct tir_llvm *ll, struct tir_arena *arena, tir_str name)
{
    struct tir_text text;
    tir_text_init(&text, arena, 0);
    for (size_t i = 0; i < name.len; i++)
        tir_text_char(&text, name.ptr[i] == '"' ? '\'' : name.ptr[i]);
    const tir_str shown = tir_text_str(&text);
    return LLVMDIBuilderCreateFile(ll->debug, shown.ptr, shown.len, "", 0);
}

LLVMValueRef tir_llvm_call(struct tir_llvm *ll, const char *name, const LLVMTypeRef *overloads,
                           uint32_t overload_count, LLVMValueRef *args, uint32_t count)
{
    LLVMTypeRef types[4];
    assert(overload_count <= TIR_COUNT_OF(types));
    for (uint32_t i = 0; i < overload_count; i++)
        types[i] = overloads[i];
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    assert(id && LLVMIntrinsicIsOverloaded(id) == (overload_count > 0));
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(ll->module, id, types, overload_count);
    LLVMTypeRef type = LLVMIntrinsicGetType(ll->context, id, types, overload_count);
    return LLVMBuildCall2(ll->builder, type, callee, args, count, "");
}

LLVMValueRef tir_llvm_asm(struct tir_llvm *ll, LLVMTypeRef type, tir_str text, tir_str constraints,
                          uint32_t flags, LLVMValueRef *args, uint32_t count)
{
    LLVMTypeRef types[TIR_ASM_INPUTS];
    assert(count <= TIR_COUNT_OF(types));
    for (uint32_t i = 0; i < count; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef signature = LLVMFunctionType(type, types, count, false);
    LLVMValueRef callee =
        LLVMGetInlineAsm(signature, text.ptr, text.len, constraints.ptr, constraints.len,
                         flags & TIR_ASM_EFFECT, false, LLVMInlineAsmDialectATT, false);
    LLVMValueRef call = LLVMBuildCall2(ll->builder, signature, callee, args, count, "");
    if (flags & TIR_ASM_CONVERGENT)
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, ll->convergent);
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, ll->nounwind);
    if (!(flags & TIR_ASM_EFFECT)) {
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, ll->no_memory);
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, ll->willreturn);
    }
    return call;
}

void tir_llvm_add_string_attribute(struct tir_llvm *ll, LLVMValueRef function, const char *key,
                                   const char *value)
{
    LLVMAddAttributeAtIndex(
        function, LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(ll->context, key, strlen(key), value, strlen(value)));
}
