// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels: their signature, their attributes, and how they begin and end.

#include "target/nvptx/emit.h"

#include <inttypes.h>
#include <stdio.h>

#include "ir/crew.h"
#include "ir/live.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "target/nvptx/nvptx.h"
#include "tir/tensor_map.h"

#define PTX_KERNEL      71 // LLVM's calling convention number
#define MAP_ALIGN       64
#define WATCHDOG_PARAMS 3

static bool is_tensor(const struct tir_param *param)
{
    return param->value->type->space == TIR_SPACE_GLOBAL;
}

// A bool arrives as a byte.
static LLVMTypeRef param_type(const struct emit *e, const struct tir_type *type)
{
    return type->elem == TIR_BOOL ? e->ll->i8 : tir_emit_type(e, type);
}

// The order of the kernel's parameters is the launch ABI; see nvptx.h.
static LLVMTypeRef kernel_type(const struct emit *e)
{
    const struct tir_func *f = e->f;
    VEC(LLVMTypeRef) types = {0};
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct tir_type *type = f->params[i].value->type;
        if (!is_tensor(&f->params[i])) {
            vec_push(e->arena, &types, param_type(e, type));
            continue;
        }
        vec_push(e->arena, &types, LLVMPointerTypeInContext(e->ll->context, TIR_AS_GLOBAL));
        for (uint32_t d = 0; d < type->rank; d++)
            vec_push(e->arena, &types, e->ll->i64);
    }
    for (uint32_t i = 0; i < f->dim_count; i++)
        vec_push(e->arena, &types, e->ll->i64);
    for (uint32_t i = 0; i < e->maps.len; i++)
        vec_push(e->arena, &types, LLVMPointerTypeInContext(e->ll->context, TIR_AS_GENERIC));
    for (uint32_t i = 0; i < WATCHDOG_PARAMS && e->has_watchdog; i++)
        vec_push(e->arena, &types, e->ll->i64);
    return LLVMFunctionType(e->ll->none, types.at, types.len, false);
}

static void add_param_attribute(struct emit *e, uint32_t index, const char *name)
{
    LLVMAddAttributeAtIndex(e->function, index + 1, tir_llvm_enum_attribute(e->ll, name, 0));
}

static void bind_tensor(struct emit *e, uint32_t param, uint32_t *next)
{
    const struct tir_param *p = &e->f->params[param];
    const struct tir_type *type = p->value->type;
    uint32_t index = (*next)++;
    V pointer = LLVMGetParam(e->function, index);
    e->slots[p->value->id].v = pointer;
    if (!e->waits)
        add_param_attribute(e, index, "noalias");
    if (p->direction == TIR_IN && !e->waits)
        add_param_attribute(e, index, "readonly");
    uint32_t aligned = tir_tensor_begin(e->f, p->value);
    if (aligned)
        LLVMSetParamAlignment(pointer, aligned);
    for (uint32_t d = 0; d < type->rank; d++) {
        V stride = LLVMGetParam(e->function, (*next)++);
        if (d == type->rank - 1 && tir_tensor_is_dense(e->f, p->value))
            stride = LLVMConstInt(e->ll->i64, 1, false);
        e->strides[param * TIR_MAX_RANK + d] = stride;
    }
}

// A map stays where the launch has put it: without the second attribute LLVM would copy it to
// local memory, which is no place for one.
static void bind_map(struct emit *e, uint32_t index)
{
    static const char constant[] = "nvvm.grid_constant";
    LLVMContextRef c = e->ll->context;
    unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5);
    LLVMTypeRef type = LLVMArrayType2(e->ll->i8, TIR_TENSOR_MAP_BYTES);
    LLVMAddAttributeAtIndex(e->function, index + 1, LLVMCreateTypeAttribute(c, byval, type));
    LLVMAddAttributeAtIndex(e->function, index + 1,
                            LLVMCreateStringAttribute(c, constant, sizeof(constant) - 1, "", 0));
    LLVMSetParamAlignment(LLVMGetParam(e->function, index), MAP_ALIGN);
}

// One thread fetches the maps before anything else, so that the first copies do not wait for them.
static void prefetch_maps(struct emit *e)
{
    LLVMTypeRef param = LLVMPointerTypeInContext(e->ll->context, TIR_AS_PARAM);
    LLVMBasicBlockRef fetch = tir_emit_block(e, "maps"), begin = tir_emit_block(e, "begin");
    V tid = tir_llvm_call(e->ll, "llvm.nvvm.read.ptx.sreg.tid.x", NULL, 0, NULL, 0);
    LLVMBuildCondBr(e->b, tir_emit_icmp(e, LLVMIntEQ, tid, tir_emit_i32(e, 0)), fetch, begin);
    tir_emit_at(e, fetch);
    for (uint32_t i = 0; i < e->maps.len; i++) {
        V map = LLVMGetParam(e->function, e->first_map + i);
        map = LLVMBuildAddrSpaceCast(e->b, map, param, "");
        tir_llvm_call(e->ll, "llvm.nvvm.prefetch.tensormap", &param, 1, &map, 1);
    }
    LLVMBuildBr(e->b, begin);
    tir_emit_at(e, begin);
}

static void bind_params(struct emit *e)
{
    struct tir_func *f = e->f;
    uint32_t next = 0;
    e->strides = arena_array(e->arena, V, f->param_count * TIR_MAX_RANK);
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct tir_value *value = f->params[i].value;
        if (is_tensor(&f->params[i])) {
            bind_tensor(e, i, &next);
            continue;
        }
        V v = LLVMGetParam(e->function, next++);
        if (value->type->elem == TIR_BOOL)
            v = tir_emit_icmp(e, LLVMIntNE, v, LLVMConstInt(e->ll->i8, 0, false));
        tir_emit_set(e, value, v);
    }
    for (uint32_t i = 0; i < f->dim_count; i++)
        tir_emit_set(e, f->dims[i].value, LLVMGetParam(e->function, next++));
    e->first_map = next;
    for (uint32_t i = 0; i < e->maps.len; i++)
        bind_map(e, next++);
    e->first_watch = next;
}

static LLVMMetadataRef new_scope(struct emit *e)
{
    LLVMDIBuilderRef debug = e->ll->debug;
    struct tir_position at = tir_source_locate(e->diags->sources, e->f->span.begin);
    if (!at.file)
        return NULL;
    LLVMMetadataRef file = tir_llvm_file(e->ll, e->arena, at.file->name);
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(debug, file, NULL, 0, LLVMDIFlagZero);
    LLVMMetadataRef scope =
        LLVMDIBuilderCreateFunction(debug, file, e->f->name, strlen(e->f->name), "", 0, file,
                                    at.line, type, false, true, at.line, LLVMDIFlagZero, true);
    LLVMSetSubprogram(e->function, scope);
    return scope;
}

// Facts about the kernel that single operations need.
static void look_around(struct emit *e)
{
    e->maps = tir_tensor_maps(e->arena, e->f);
    e->has_engines = e->maps.len;
    e->waits = tir_nvptx_waits(e->f, e->ll->target);
    e->has_watchdog = e->ll->watchdog && tir_nvptx_can_watch(e->f, e->ll->target);
    const bool emulates = !(e->ll->target->features & TIR_HAS_FP8_UNITS);
    tir_foreach_inst(inst, e->f) {
        const enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
        e->has_remote |= inst->op == TIR_OP_REMOTE || tir_attr_int(inst, TIR_ATTR_multicast, 0);
        e->has_engines |= inst->op == TIR_OP_WGMMA;
        e->moves_registers |= inst->op == TIR_OP_SETMAXNREG;
        e->has_mma |= inst->op == TIR_OP_MMA;
        e->emulates_mma |= emulates && inst->op == TIR_OP_MMA &&
                           (kind == TIR_WORD_kind_e4m3 || kind == TIR_WORD_kind_e5m2);
        e->has_tmem |= inst->op == TIR_OP_TMEM_ALLOC;
    }
}

static void wait_for_launch(struct emit *e)
{
    tir_llvm_asm(e->ll, e->ll->none, STR("griddepcontrol.wait;"), STR("~{memory}"), TIR_ASM_EFFECT,
                 NULL, 0);
}

// CTAs of a multiprocessor that ptxas leaves registers for, or 0: it decides. It must know how many
// registers a thread begins with where it moves them, and beside tensor memory ptxas 13.0 takes too
// few otherwise, and spills. Beside mma.sync, too, it spills a few for one more CTA. It knows
// nothing of shared memory, which may have no room for that one: then registers suffice for all.
// Before Blackwell they must do so with a quarter more than are counted, as where offsets have 64
// bits, of which one register is counted (decision 117).
// Where it makes products of fp8 itself it must not know: then it takes all registers for their
// factors, and spills, where it takes half as many and spills none.
static uint32_t ctas_together(const struct emit *e)
{
    const struct tir_func *f = e->f;
    if (e->moves_registers || (e->has_tmem && !e->emulates_mma))
        return e->moves_registers && f->persistent ? f->persistent : 1;
    if (!e->has_mma || e->emulates_mma || !f->threads)
        return 0;
    const uint32_t ctas = tir_target_ctas_of(e->ll->target, f);
    const struct tir_live *live = tir_live_new(e->arena, f);
    uint32_t registers = 0;
    for (const struct tir_inst *inst = f->body->first; inst; inst = inst->next)
        registers = TIR_MAX(registers, tir_live_most(live, inst));
    if (!(e->ll->target->features & TIR_HAS_ADD_64) || !(f->facts & TIR_FACT_INDEX32))
        registers += registers * TIR_BUDGET_OVERCOUNT / 100;
    return registers <= tir_launch_registers(f->threads * ctas) ? ctas : 0;
}

// The launch after this one may begin where this one's CTAs all run, and this one waits for the end
// of the one before (PTX 9.7.13.13, griddepcontrol). BESIDE that one it needs what the ones before
// it wrote alone: they had ended when the one before let it begin, and the fence keeps it from what
// its multiprocessor had of memory earlier.
static void overlap_steps(struct emit *e)
{
    const enum tir_step_pace pace = e->f->pace;
    if (pace == TIR_PACE_LEADS)
        wait_for_launch(e);
    tir_llvm_call(e->ll, "llvm.nvvm.griddepcontrol.launch.dependents", NULL, 0, NULL, 0);
    if (pace == TIR_PACE_ALONE)
        wait_for_launch(e);
    if (pace == TIR_PACE_BESIDE)
        tir_llvm_asm(e->ll, e->ll->none, STR("fence.acq_rel.gpu;"), STR("~{memory}"),
                     TIR_ASM_EFFECT, NULL, 0);
}

static void emit_function(struct emit *e)
{
    struct tir_func *f = e->f;
    e->slots = arena_array(e->arena, struct emit_slot, f->value_count + 1);
    e->ranges = tir_ranges_new(e->arena, f);
    tir_emit_choose_widths(e);
    look_around(e);
    tir_emit_find_sums(e);
    tir_emit_expansions(e);
    e->function = LLVMAddFunction(e->ll->module, f->name, kernel_type(e));
    LLVMSetFunctionCallConv(e->function, PTX_KERNEL);
    LLVMAddAttributeAtIndex(e->function, LLVMAttributeFunctionIndex, e->ll->nounwind);
    if (f->threads) {
        char threads[32];
        snprintf(threads, sizeof(threads), "%" PRIu32 ",1,1", f->threads);
        tir_llvm_add_string_attribute(e->ll, e->function, "nvvm.reqntid", threads);
    }
    const uint32_t together = ctas_together(e);
    if (together) {
        char ctas[16];
        snprintf(ctas, sizeof(ctas), "%" PRIu32, together);
        tir_llvm_add_string_attribute(e->ll, e->function, "nvvm.minctasm", ctas);
    }
    if (f->cluster[0]) { // of two sizes the launch says both
        const bool two = f->preferred[0];
        char cluster[48];
        snprintf(cluster, sizeof(cluster), "%" PRIu32 ",%" PRIu32 ",%" PRIu32,
                 two ? 0 : f->cluster[0], two ? 0 : f->cluster[1], two ? 0 : f->cluster[2]);
        tir_llvm_add_string_attribute(e->ll, e->function, "nvvm.cluster_dim", cluster);
        snprintf(cluster, sizeof(cluster), "%" PRIu32, tir_func_ctas(f));
        if (two)
            tir_llvm_add_string_attribute(e->ll, e->function, "nvvm.maxclusterrank", cluster);
    }
    e->scope = e->ll->debug ? new_scope(e) : NULL;
    tir_emit_at(e, tir_emit_block(e, "entry"));
    LLVMSetCurrentDebugLocation2(e->b, NULL);
    tir_emit_set_location(e, f->span);
    tir_emit_declare_sums(e);
    if (e->waits)
        overlap_steps(e);
    bind_params(e);
    if (e->maps.len)
        prefetch_maps(e);
    tir_emit_insts(e, f->body);
    if (e->failed)
        return;
    if (e->waits && f->pace == TIR_PACE_BESIDE)
        wait_for_launch(e); // its end is that of all before it
    LLVMBuildRetVoid(e->b);
}

bool tir_emit_kernel(struct tir_llvm *ll, struct tir_arena *arena, struct tir_diags *diags,
                     struct tir_func *f)
{
    struct emit e = {.ll = ll,
                     .b = ll->builder,
                     .arena = arena,
                     .diags = diags,
                     .f = f,
                     .uses = tir_count_uses(arena, f),
                     .moved = bitset_new(arena, f->value_count)};
    emit_function(&e);
    return !e.failed;
}
