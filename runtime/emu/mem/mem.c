// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory: spaces, bounds, alignment, initialisation; loads and stores.
//
// A load of a byte of shared or global memory that was never written is an error even where it is
// only copied on: hardware would allow that, but it is nearly always a bug, and the first place
// that shows it is the best. What is loaded from local memory is followed (check/undefined.h).

#include <inttypes.h>
#include <stdalign.h>
#include <string.h>

#include "emu/check/undefined.h"
#include "emu/run/run.h"
#include "emu/run/state.h"

static const char *const access_names[] = {"load", "store", "atomic"};
static const char *const space_names[] = {"generic", "global", "const",          "shared",
                                          "local",   "param",  "shared::cluster"};

static _Noreturn void bad(struct emu_warp *w, uint32_t lane, const char *what, enum emu_space space,
                          enum emu_access access, uint64_t address, uint32_t size)
{
    emu_fault_access(w, lane, what, access_names[access], space_names[space], address, size);
}

bool emu_all_set(const uint8_t *shadow, uint32_t size)
{
    uint64_t wrong = 0, eight;
    uint32_t i = 0;
    for (; i + 8 <= size; i += 8) {
        memcpy(&eight, shadow + i, 8);
        wrong |= eight ^ (EMU_SET * 0x0101010101010101u);
    }
    for (; i < size; i++)
        wrong |= shadow[i] ^ EMU_SET;
    return !wrong;
}

static bool any(const uint8_t *shadow, uint32_t size, uint8_t what)
{
    bool found = false;
    for (uint32_t i = 0; i < size; i++)
        found |= shadow[i] == what;
    return found;
}

// Initialisation, and copies that have not landed.
static void check_shadow(struct emu_warp *w, uint32_t lane, const uint8_t *shadow,
                         enum emu_space space, enum emu_access access, uint64_t address,
                         uint32_t size)
{
    if (space == EMU_LOCAL) { // its marks are of bits
        if (access != EMU_STORE && w->in->run != emu_run_ld && !emu_all_set(shadow, size))
            bad(w, lane, "uninitialised", space, access, address, size);
        return;
    }
    if (access == EMU_STORE) {
        if (any(shadow, size, EMU_MBARRIER))
            bad(w, lane, "an mbarrier as data:", space, access, address, size);
        if (any(shadow, size, EMU_IN_FLIGHT))
            bad(w, lane, "overwritten while a copy is in flight:", space, access, address, size);
        return;
    }
    if (emu_all_set(shadow, size))
        return;
    if (any(shadow, size, EMU_MBARRIER))
        bad(w, lane, "an mbarrier as data:", space, access, address, size);
    if (any(shadow, size, EMU_IN_FLIGHT))
        bad(w, lane, "read while a copy is in flight:", space, access, address, size);
    bad(w, lane, "uninitialised", space, access, address, size);
}

static struct emu_cell resolve_global(struct emu_warp *w, uint32_t lane, enum emu_space space,
                                      uint64_t address, uint32_t size, enum emu_access access)
{
    struct emu_grid *l = w->launch;
    struct emu_object *o = l->object;
    if (!o || address - o->address >= o->size) {
        o = emu_object_at(l->emu, address);
        if (!o || address - o->address >= o->size)
            bad(w, lane, "out-of-bounds", space, access, address, size);
        l->object = o;
    }
    const uint64_t at = address - o->address;
    if (size > o->size - at)
        bad(w, lane, "out-of-bounds", space, access, address, size);
    if (access != EMU_LOAD && o->is_constant)
        bad(w, lane, "read-only memory:", EMU_CONST, access, address, size);
    return (struct emu_cell){
        .bytes = o->bytes + at, .shadow = o->shadow + at, .map = &o->race, .at = at};
}

struct emu_cell emu_global_range(struct emu_warp *w, uint32_t lane, uint64_t address, uint32_t size,
                                 bool is_write)
{
    w->launch->events += is_write;
    return resolve_global(w, lane, EMU_GLOBAL, address, size, is_write ? EMU_STORE : EMU_LOAD);
}

static struct emu_cell resolve_local(struct emu_warp *w, uint32_t lane, uint64_t address,
                                     uint32_t size, enum emu_access access)
{
    struct emu_frame *f = w->path->frame;
    while (f && address < f->local_base)
        f = f->parent;
    if (!f || address - f->local_base >= f->func->local_bytes ||
        size > f->func->local_bytes - (address - f->local_base))
        bad(w, lane, "out-of-bounds", EMU_LOCAL, access, address, size);
    const size_t at = (size_t)lane * f->func->local_bytes + (size_t)(address - f->local_base);
    return (struct emu_cell){.bytes = f->local + at, .shadow = f->local_shadow + at};
}

// Shared memory of another CTA, which must be named as such and still be there.
static void check_remote(struct emu_warp *w, uint32_t lane, const struct emu_cta *cta,
                         enum emu_space space, enum emu_access access, uint64_t address,
                         uint32_t size)
{
    if (space != EMU_SHARED_CLUSTER)
        bad(w, lane, "another CTA's address:", space, access, address, size);
    if (!cta->alive)
        bad(w, lane, "shared memory of a CTA that has exited:", space, access, address, size);
}

struct emu_cta *emu_shared_at(struct emu_warp *w, uint32_t lane, enum emu_space space,
                              uint64_t address, uint32_t size, uint32_t *offset)
{
    if (space == EMU_GENERIC) {
        if ((address & EMU_WINDOW_MASK) != EMU_SHARED_WINDOW)
            bad(w, lane, "no shared memory:", space, EMU_LOAD, address, size);
        address &= ~EMU_WINDOW_MASK;
        space = EMU_SHARED_CLUSTER;
    }
    const struct emu_grid *l = w->launch;
    const uint64_t rank = address >> EMU_RANK_SHIFT;
    const uint32_t start = EMU_SHARED_START;
    *offset = (uint32_t)(address & EMU_RANK_MASK) - start;
    if (rank >= w->cta->cluster->size || *offset >= l->shared_size ||
        size > l->shared_size - *offset)
        bad(w, lane, "out-of-bounds", space, EMU_LOAD, address, size);
    struct emu_cta *cta = &w->cta->cluster->ctas[rank];
    if (cta != w->cta)
        check_remote(w, lane, cta, space, EMU_LOAD, address, size);
    return cta;
}

// Bounds and alignment. A generic space becomes that of the address, and the address one in it.
static struct emu_cell locate(struct emu_warp *w, uint32_t lane, enum emu_space *where,
                              uint64_t *from, uint32_t size, enum emu_access access)
{
    struct emu_grid *l = w->launch;
    enum emu_space space = *where;
    uint64_t address = *from;
    struct emu_cell cell;
    if (space == EMU_GENERIC) {
        const uint64_t window = address & EMU_WINDOW_MASK;
        space = window == EMU_SHARED_WINDOW  ? EMU_SHARED_CLUSTER
                : window == EMU_LOCAL_WINDOW ? EMU_LOCAL
                : window == EMU_PARAM_WINDOW ? EMU_PARAM
                                             : EMU_GLOBAL;
        if (space != EMU_GLOBAL)
            address &= ~EMU_WINDOW_MASK;
    }
    switch (space) {
    case EMU_SHARED:
    case EMU_SHARED_CLUSTER: {
        const uint32_t rank = (uint32_t)(address >> EMU_RANK_SHIFT), start = EMU_SHARED_START;
        const uint32_t at = (uint32_t)(address & EMU_RANK_MASK) - start;
        if (rank >= w->cta->cluster->size || at >= l->shared_size || size > l->shared_size - at)
            bad(w, lane, "out-of-bounds", space, access, address, size);
        struct emu_cta *cta = &w->cta->cluster->ctas[rank];
        if (cta != w->cta)
            check_remote(w, lane, cta, space, access, address, size);
        cell = (struct emu_cell){.bytes = cta->shared + at,
                                 .shadow = cta->shared_shadow + at,
                                 .map = &cta->race,
                                 .at = at};
        break;
    }
    case EMU_LOCAL:
        cell = resolve_local(w, lane, address, size, access);
        break;
    case EMU_PARAM:
        if (access != EMU_LOAD || address >= l->params_size || size > l->params_size - address)
            bad(w, lane, access == EMU_LOAD ? "out-of-bounds" : "read-only memory:", space, access,
                address, size);
        // Only loads get here, and a load does not write through the cell.
        cell = (struct emu_cell){.bytes = l->params + address};
        break;
    default:
        cell = resolve_global(w, lane, space, address, size, access);
    }
    l->events += access == EMU_STORE && space != EMU_LOCAL;
    if (address & (size - 1))
        bad(w, lane, "misaligned", space, access, address, size);
    *where = space;
    *from = address;
    return cell;
}

struct emu_cell emu_locate(struct emu_warp *w, uint32_t lane, enum emu_space space,
                           uint64_t address, uint32_t size, enum emu_access access)
{
    const struct emu_cell cell = locate(w, lane, &space, &address, size, access);
    if (cell.shadow && w->launch->emu->options.check)
        check_shadow(w, lane, cell.shadow, space, access, address, size);
    return cell;
}

// The access as one of the running instruction's, for races and for what it orders.
static void order_access(struct emu_warp *w, uint32_t lane, struct emu_cell *cell, uint32_t size,
                         enum emu_access access, bool is_again)
{
    const struct emu_insn *in = w->in;
    const enum emu_scope scope = (enum emu_scope)in->scope;
    const struct emu_who who = emu_who_agent(w->agent);
    const uint32_t pc = (uint32_t)(in - w->launch->module->code.at);
    const uint32_t what = emu_record_what(pc, EMU_PROXY_GENERIC, in->order & EMU_STRONG, scope) |
                          (access == EMU_ATOMIC ? EMU_REC_ATOMIC : 0) |
                          (access == EMU_ATOMIC && in->op ? EMU_REC_CAS : 0) |
                          (is_again ? EMU_REC_AGAIN : 0);
    cell->is_shared = emu_race_access(&w->launch->race, &who, 1u << lane, cell->map, cell->at, size,
                                      access != EMU_LOAD, what);
    if (!(in->order & EMU_STRONG))
        return;
    const uint64_t flag = cell->map->address + cell->at;
    w->agent->acting = 1u << lane;
    if (access == EMU_LOAD)
        emu_order_flag_load(w->agent, flag, in->order, scope);
    else if (access == EMU_STORE)
        emu_order_flag_store(w->agent, flag, in->order, scope);
    else
        emu_order_flag_atomic(w->agent, flag, in->order, scope);
    w->agent->acting = EMU_FULL;
}

void emu_sync_access(struct emu_warp *w, uint32_t lane, struct emu_race_map *map, uint64_t at,
                     uint32_t size, bool ends)
{
    if (!w->agent)
        return;
    struct emu_who who = emu_who_agent(w->agent);
    who.also = EMU_FENCED_INIT;
    const uint32_t pc = (uint32_t)(w->in - w->launch->module->code.at);
    emu_race_access(
        &w->launch->race, &who, 1u << lane, map, at, size, ends,
        emu_record_what(pc, EMU_PROXY_GENERIC, ends ? 0 : EMU_STRONG, EMU_SCOPE_CLUSTER));
}

struct emu_who emu_group_who(const struct emu_warp *w, const struct emu_view *view,
                             enum emu_warp_agent which, uint32_t group)
{
    return (struct emu_who){.order = &w->launch->order,
                            .view = view,
                            .uid = w->agent->uid + which,
                            .clock = group + 1,
                            .own = w->agent->uid,
                            .own_end = w->agent->uid + EMU_AGENTS_PER_WARP};
}

void emu_group_wait_of(struct emu_warp *w, const struct emu_warp *other, enum emu_warp_agent which,
                       uint32_t end)
{
    if (w->agent)
        emu_view_learn(&w->launch->order, &w->agent->view, other->agent->uid + which, end);
}

void emu_group_wait(struct emu_warp *w, enum emu_warp_agent which, uint32_t end)
{
    emu_group_wait_of(w, w, which, end);
}

struct emu_cell emu_resolve(struct emu_warp *w, uint32_t lane, enum emu_space space,
                            uint64_t address, uint32_t size, enum emu_access access)
{
    struct emu_cell cell = emu_locate(w, lane, space, address, size, access);
    if (w->agent && cell.map)
        order_access(w, lane, &cell, size, access, false);
    return cell;
}

void emu_addresses(struct emu_warp *w, const struct emu_insn *in, uint64_t *out)
{
    const void *base = emu_at_ref(w, in->src[0]);
    const uint64_t offset = (uint64_t)in->offset;
    if (in->type2 == EMU_none) { // the frame's memory: no register
        for (int i = 0; i < EMU_WARP; i++)
            out[i] = w->path->frame->local_base + offset;
    } else if (in->type2 == EMU_b64) {
        const uint64_t *b = base;
        for (int i = 0; i < EMU_WARP; i++)
            out[i] = b[i] + offset;
    } else {
        const uint32_t *b = base;
        for (int i = 0; i < EMU_WARP; i++)
            out[i] = (uint32_t)(b[i] + offset);
    }
}

// --- loads ---

// One element from memory into a register that may be wider.
static void widen(uint8_t *to, uint32_t width, const uint8_t *from, uint32_t size, bool is_signed)
{
    memcpy(to, from, size);
    if (width > size)
        memset(to + size, is_signed && from[size - 1] & 0x80 ? 0xff : 0, width - size);
}

void emu_poll(struct emu_warp *w, const struct emu_insn *in, uint64_t address)
{
    struct emu_poll *p = &w->polls[(in - w->launch->module->code.at) % EMU_POLLS];
    if (p->in == in && p->address == address && p->events == w->launch->events) {
        w->path->is_tired = true;
        w->yield = w->is_polling = true;
    }
    *p = (struct emu_poll){in, address, w->launch->events};
    w->poll = p;
}

// A load that the compiler has widened: of its bytes only those of a mask are read.
static struct emu_cell resolve_used(struct emu_warp *w, const struct emu_insn *in, uint32_t lane,
                                    uint64_t address)
{
    const uint32_t size = (uint32_t)in->size * in->count;
    enum emu_space space = (enum emu_space)in->space;
    const struct emu_cell cell = locate(w, lane, &space, &address, size, EMU_LOAD);
    for (uint32_t at = 0, end; at < size; at = end) {
        const bool used = in->target >> at & 1;
        for (end = at + 1; end < size && (in->target >> end & 1) == used; end++)
            ;
        if (!used)
            continue;
        if (cell.shadow && w->launch->emu->options.check)
            check_shadow(w, lane, cell.shadow + at, space, EMU_LOAD, address + at, end - at);
        struct emu_cell part = cell;
        part.at += at;
        if (w->agent && cell.map)
            order_access(w, lane, &part, end - at, EMU_LOAD, false);
    }
    return cell;
}

// list: values; size: of each; target: which bytes are used, 0: all
EMU_RUN(ld)
{
    alignas(16) uint8_t out[8][16 * EMU_WARP];
    uint64_t address[EMU_WARP];
    uint64_t undefined[8][EMU_WARP];
    uint32_t unset[8] = {0};
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t size = in->size, count = in->count, width = in->width;
    const bool is_signed = emu_types[in->type].kind == EMU_KIND_SINT;
    emu_addresses(w, in, address);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const struct emu_cell cell = in->target ? resolve_used(w, in, i, address[i])
                                                : emu_resolve(w, i, (enum emu_space)in->space,
                                                              address[i], size * count, EMU_LOAD);
        const bool is_local = !cell.map, checks = cell.shadow && w->launch->emu->options.check;
        for (uint32_t k = 0; k < count; k++) {
            if (checks && (is_local || in->target) && !emu_all_set(cell.shadow + k * size, size)) {
                uint8_t bits[16], wide[16];
                for (uint32_t b = 0; b < size; b++) {
                    const uint8_t mark = cell.shadow[k * size + b];
                    bits[b] = is_local ? emu_unset_bits(mark) : mark == EMU_SET ? 0 : 0xff;
                }
                widen(wide, width, bits, size, is_signed);
                undefined[k][i] = 0;
                memcpy(&undefined[k][i], wide, width < 8 ? width : 8);
                undefined[k][i] = width > 8 ? UINT64_MAX : undefined[k][i];
                unset[k] |= 1u << i;
            }
            if (width == 4 && size == 4)
                memcpy(out[k] + i * 4, cell.bytes + k * 4, 4);
            else
                widen(out[k] + i * width, width, cell.bytes + k * size, size, is_signed);
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        emu_commit(w, args[k].ref, out[k], width, mask);
        if (unset[k])
            emu_undefined_set(w, args[k].ref, undefined[k], unset[k]);
    }
    if (in->flags & EMU_INSN_POLL)
        emu_poll(w, in, address[emu_first_lane(mask)]);
}

// A parameter of the kernel: one value for all lanes.
EMU_RUN(ld_param)
{
    alignas(16) uint8_t out[16 * EMU_WARP];
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t size = in->size, width = in->width;
    const bool is_signed = emu_types[in->type].kind == EMU_KIND_SINT;
    const struct emu_cell cell = emu_resolve(w, emu_first_lane(mask), EMU_PARAM,
                                             (uint64_t)in->offset, size * in->count, EMU_LOAD);
    for (uint32_t k = 0; k < in->count; k++) {
        for (uint32_t i = 0; i < EMU_WARP; i++)
            widen(out + i * width, width, cell.bytes + k * size, size, is_signed);
        emu_commit(w, args[k].ref, out, width, mask);
    }
}

// --- stores ---

static const uint8_t *element(const struct emu_warp *w, const struct emu_arg *arg, uint32_t lane)
{
    return (const uint8_t *)emu_at_ref(w, arg->ref) + lane * arg->width;
}

// Elements `from` to `end` of one lane's store, which are all there.
static void store(struct emu_warp *w, const struct emu_insn *in, uint32_t lane, uint64_t address,
                  uint32_t from, uint32_t end)
{
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t size = in->size, bytes = size * (end - from);
    address += (uint64_t)from * size;
    struct emu_cell cell =
        emu_locate(w, lane, (enum emu_space)in->space, address, bytes, EMU_STORE);
    if (w->agent && cell.map) {
        bool is_again = true;
        for (uint32_t k = from; k < end && is_again; k++)
            is_again = memcmp(cell.bytes + (size_t)(k - from) * size, element(w, &args[k], lane),
                              size) == 0;
        order_access(w, lane, &cell, bytes, EMU_STORE, is_again);
    }
    for (uint32_t k = from; k < end; k++) {
        const uint8_t *value = element(w, &args[k], lane);
        uint8_t *to = cell.bytes + (size_t)(k - from) * size;
        if (cell.is_shared && memcmp(to, value, size) != 0)
            emu_report(w, lane, "lanes store different values: %u bytes at 0x%" PRIx64, bytes,
                       address);
        memcpy(to, value, size);
    }
    memset(cell.shadow, EMU_SET, bytes);
    for (uint32_t k = from; k < end && w->undefined_count; k++) {
        const uint64_t bits = emu_undefined_bits(w, args[k].ref, lane);
        for (uint32_t b = 0; bits && b < size; b++) {
            const uint8_t unset = size > 8 ? 0xff : (uint8_t)(bits >> b * 8);
            if (unset && cell.map)
                emu_undefined_fault(w, 1u << lane, "is stored where others see it");
            cell.shadow[(size_t)(k - from) * size + b] = emu_unset_mark(unset);
        }
    }
}

// A store of 256 bits that leaves out elements is several.
static void store_parts(struct emu_warp *w, const struct emu_insn *in, uint32_t lane,
                        uint64_t address)
{
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t size = in->size, all = in->count * size;
    if (address % all)
        emu_fault_access(w, lane, "misaligned", "store", "global", address, all);
    for (uint32_t k = 0; k < in->count; k++)
        if (args[k].ref != EMU_NO_REF)
            store(w, in, lane, address, k, k + 1);
}

// list: values; size: of each; op: 1 when some are left out
EMU_RUN(st)
{
    uint64_t address[EMU_WARP];
    emu_addresses(w, in, address);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        if (in->op)
            store_parts(w, in, i, address[i]);
        else
            store(w, in, i, address[i], 0, in->count);
    }
}

// --- fences ---

static void fence(struct emu_warp *w, const struct emu_insn *in, uint32_t order)
{
    if (order)
        emu_order_fence_memory(w->agent, order, (enum emu_scope)in->scope);
}

EMU_RUN(fence)
{
    if (!w->agent)
        return;
    w->agent->acting = mask;
    fence(w, in, in->order);
    w->agent->acting = EMU_FULL;
}

// Between what it acquires and what it releases.
EMU_RUN(fence_proxy)
{
    if (!w->agent)
        return;
    w->agent->acting = mask;
    fence(w, in, in->order & EMU_ACQUIRE);
    if (in->op != EMU_FENCE_MAP || in->order & EMU_ACQUIRE) // readers of maps must have acquired
        emu_order_fence(w->agent, in->op, w->alive);
    fence(w, in, in->order & EMU_RELEASE);
    w->agent->acting = EMU_FULL;
}
