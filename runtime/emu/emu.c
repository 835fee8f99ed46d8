// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The device: memory objects, host access to them, modules.

#include "emu/device.h"

#include <inttypes.h>
#include <string.h>

#include "emu/decode/isa.h"
#include "emu/parse/parse.h"

enum { MAX_THREADS = 256 }; // of the host
static const uint64_t FIRST_ADDRESS = 0x10000000;
static const uint64_t GAP = (uint64_t)1 << 24; // between objects
static const uint64_t LAST_ADDRESS = EMU_SHARED_WINDOW;

// --- objects ---

static tir_status object_room(struct emu *emu, tir_error *error)
{
    if (emu->object_count < emu->object_cap)
        return TIR_OK;
    const uint32_t cap = emu->object_cap ? emu->object_cap * 2 : 16;
    struct emu_object **grown =
        emu_resize(&emu->allocator, emu->objects, emu->object_cap * sizeof *emu->objects,
                   cap * sizeof *emu->objects);
    if (!grown)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "out of memory");
    emu->objects = grown;
    emu->object_cap = cap;
    return TIR_OK;
}

// How many objects begin at the address or below it.
static uint32_t objects_up_to(const struct emu *emu, uint64_t address)
{
    uint32_t low = 0, high = emu->object_count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (emu->objects[mid]->address <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

// From `address` on. Odd multiples of 256: code that relies on more than the promised alignment
// shows.
static uint64_t aligned_from(uint64_t address, uint64_t align)
{
    return align <= 256 ? emu_align_up(address, 512) + 256 : emu_align_up(address, align);
}

// The first address from `from` on with so much room, and GAP on both sides; *index: where such an
// object belongs among the others. LAST_ADDRESS: there is none.
static uint64_t room_from(const struct emu *emu, uint64_t from, uint64_t size, uint64_t align,
                          uint32_t *index)
{
    uint64_t at = aligned_from(from, align);
    uint32_t i = objects_up_to(emu, at);
    for (i -= i > 0; i < emu->object_count; i++) {
        const struct emu_object *o = emu->objects[i];
        if (at < o->address && size + GAP <= o->address - at)
            break;
        if (at < o->address + o->capacity + GAP)
            at = aligned_from(o->address + o->capacity + GAP, align);
    }
    *index = i;
    return size < LAST_ADDRESS && at <= LAST_ADDRESS - size - 2 * GAP ? at : LAST_ADDRESS;
}

// Addresses are used again as late as possible, so that accesses to freed memory are found.
static uint64_t find_room(const struct emu *emu, uint64_t size, uint64_t align, uint32_t *index)
{
    const uint64_t at = room_from(emu, emu->next_address, size, align, index);
    return at < LAST_ADDRESS ? at : room_from(emu, FIRST_ADDRESS, size, align, index);
}

static tir_status object_new(struct emu *emu, uint64_t size, uint64_t align, uint64_t *out,
                             tir_error *error)
{
    if (size > emu->options.memory_limit - emu->memory_used)
        return tir_error_set(error, TIR_ERR_NO_MEMORY,
                             "device memory: %" PRIu64 " bytes asked for, %" PRIu64 " of %" PRIu64
                             " in use",
                             size, emu->memory_used, emu->options.memory_limit);
    uint32_t index;
    const uint64_t at = find_room(emu, size, align, &index);
    if (at == LAST_ADDRESS)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "device addresses are used up");
    tir_status status = object_room(emu, error);
    if (status)
        return status;
    struct emu_object *o = emu_resize(&emu->allocator, NULL, 0, sizeof *o);
    if (!o)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "out of memory");
    *o = (struct emu_object){.address = at,
                             .size = size,
                             .capacity = size,
                             .race = {.address = at, .size = size, .is_global = true}};
    o->bytes = emu_resize(&emu->allocator, NULL, 0, size + 1);
    o->shadow = o->bytes ? emu_resize(&emu->allocator, NULL, 0, size + 1) : NULL;
    if (!o->shadow) {
        if (o->bytes)
            emu_resize(&emu->allocator, o->bytes, size + 1, 0);
        emu_resize(&emu->allocator, o, sizeof *o, 0);
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "out of memory");
    }
    memset(o->bytes, 0xcd, size); // so that a missed check shows in the result too
    memset(o->shadow, EMU_UNSET, size);
    memmove(emu->objects + index + 1, emu->objects + index,
            (emu->object_count - index) * sizeof *emu->objects);
    emu->objects[index] = o;
    emu->object_count++;
    emu->memory_used += size;
    emu->next_address = at + size + GAP;
    *out = at;
    return TIR_OK;
}

struct emu_object *emu_object_at(struct emu *emu, uint64_t address)
{
    const uint32_t count = objects_up_to(emu, address);
    return count ? emu->objects[count - 1] : NULL;
}

static void object_free(struct emu *emu, struct emu_object *o)
{
    emu_resize(&emu->allocator, o->bytes, o->capacity + 1, 0);
    emu_resize(&emu->allocator, o->shadow, o->capacity + 1, 0);
    emu->memory_used -= o->capacity;
    emu_resize(&emu->allocator, o, sizeof *o, 0);
}

void emu_object_drop(struct emu *emu, uint64_t address)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < emu->object_count; i++)
        if (emu->objects[i]->address == address)
            object_free(emu, emu->objects[i]);
        else
            emu->objects[kept++] = emu->objects[i];
    emu->object_count = kept;
}

void emu_object_sweep(struct emu *emu)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < emu->object_count; i++)
        if (emu->objects[i]->size < emu->objects[i]->capacity)
            object_free(emu, emu->objects[i]);
        else
            emu->objects[kept++] = emu->objects[i];
    emu->object_count = kept;
}

uint64_t emu_object_new(struct emu *emu, uint64_t size, uint64_t align, struct emu_trap *trap)
{
    uint64_t address = 0;
    if (object_new(emu, size, align, &address, trap->error))
        longjmp(trap->env, 1);
    return address;
}

void emu_object_init(struct emu *emu, uint64_t address, const uint8_t *bytes, uint64_t size,
                     bool is_constant)
{
    struct emu_object *o = emu_object_at(emu, address);
    if (bytes)
        memcpy(o->bytes, bytes, size);
    else
        memset(o->bytes, 0, size);
    memset(o->shadow, EMU_SET, size);
    o->is_constant = is_constant;
}

// --- host access ---

static tir_status host_range(struct emu *emu, uint64_t address, uint64_t size,
                             struct emu_object **out, tir_error *error)
{
    struct emu_object *o = *out = emu_object_at(emu, address);
    if (!o || address - o->address > o->size || size > o->size - (address - o->address))
        return tir_error_set(error, TIR_ERR_INVALID,
                             "no %" PRIu64 " bytes of device memory at 0x%" PRIx64, size, address);
    return TIR_OK;
}

tir_status emu_alloc(struct emu *emu, uint64_t size, uint64_t *out, tir_error *error)
{
    *out = 0;
    return object_new(emu, size, 256, out, error);
}

tir_status emu_free(struct emu *emu, uint64_t address, tir_error *error)
{
    if (address == 0)
        return TIR_OK;
    const struct emu_object *o = emu_object_at(emu, address);
    if (!o || o->address != address)
        return tir_error_set(error, TIR_ERR_INVALID, "0x%" PRIx64 " is not an allocation", address);
    emu_object_drop(emu, address);
    return TIR_OK;
}

tir_status emu_write(struct emu *emu, uint64_t dst, const void *src, uint64_t size,
                     tir_error *error)
{
    struct emu_object *o = NULL;
    if (size == 0)
        return TIR_OK;
    tir_status status = host_range(emu, dst, size, &o, error);
    if (status)
        return status;
    memcpy(o->bytes + (dst - o->address), src, size);
    memset(o->shadow + (dst - o->address), EMU_SET, size);
    return TIR_OK;
}

tir_status emu_read(struct emu *emu, void *dst, uint64_t src, uint64_t size, tir_error *error)
{
    struct emu_object *o = NULL;
    if (size == 0)
        return TIR_OK;
    tir_status status = host_range(emu, src, size, &o, error);
    if (status)
        return status;
    memcpy(dst, o->bytes + (src - o->address), size);
    return TIR_OK;
}

tir_status emu_copy(struct emu *emu, uint64_t dst, uint64_t src, uint64_t size, tir_error *error)
{
    struct emu_object *from = NULL, *to = NULL;
    if (size == 0)
        return TIR_OK;
    tir_status status = host_range(emu, src, size, &from, error);
    if (!status)
        status = host_range(emu, dst, size, &to, error);
    if (status)
        return status;
    memmove(to->bytes + (dst - to->address), from->bytes + (src - from->address), size);
    memmove(to->shadow + (dst - to->address), from->shadow + (src - from->address), size);
    return TIR_OK;
}

tir_status emu_fill(struct emu *emu, uint64_t dst, uint8_t value, uint64_t size, tir_error *error)
{
    struct emu_object *o = NULL;
    if (size == 0)
        return TIR_OK;
    tir_status status = host_range(emu, dst, size, &o, error);
    if (status)
        return status;
    memset(o->bytes + (dst - o->address), value, size);
    memset(o->shadow + (dst - o->address), EMU_SET, size);
    return TIR_OK;
}

// --- the device ---

bool emu_policy_parse(const char *text, enum emu_policy *policy, uint64_t *seed)
{
    static const char *const words[] = {[EMU_LAZY] = "lazy",
                                        [EMU_EAGER] = "eager",
                                        [EMU_RANDOM] = "random",
                                        [EMU_ADVERSARIAL] = "adversarial"};
    const size_t length = strcspn(text, ":");
    *seed = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i]) != length || memcmp(text, words[i], length) != 0)
            continue;
        *policy = (enum emu_policy)i;
        const bool seeded = text[length] == ':';
        if (!seeded || i < EMU_RANDOM)
            return !seeded && i != EMU_RANDOM; // random needs its seed
        const char *digit = text + length + 1;
        if (!*digit)
            return false;
        for (; *digit >= '0' && *digit <= '9'; digit++) {
            const uint64_t value = (uint64_t)(*digit - '0');
            if (*seed > (UINT64_MAX - value) / 10)
                return false;
            *seed = *seed * 10 + value;
        }
        return !*digit;
    }
    return false;
}

tir_status emu_create(const struct emu_options *options, struct emu **out, tir_error *error)
{
    *out = NULL;
    const tir_allocator allocator = options->allocator;
    struct emu *emu = emu_resize(&allocator, NULL, 0, sizeof *emu);
    if (!emu)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "out of memory");
    *emu = (struct emu){.allocator = allocator, .options = *options, .next_address = FIRST_ADDRESS};
    if (!emu->options.sm_count)
        emu->options.sm_count = 8;
    if (!emu->options.memory_limit)
        emu->options.memory_limit = (uint64_t)8 << 30;
    if (emu->options.threads > MAX_THREADS)
        emu->options.threads = MAX_THREADS;
    if (!emu->options.step_limit)
        emu->options.step_limit = (uint64_t)1 << 40;
    emu->isa = emu_isa_create(&emu->allocator);
    if (!emu->isa) {
        emu_resize(&allocator, emu, sizeof *emu, 0);
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "out of memory");
    }
    emu->findings.arena.allocator = emu->allocator;
    *out = emu;
    return TIR_OK;
}

static void module_free(struct emu *emu, struct emu_module *m)
{
    for (uint32_t i = 0; i < m->objects.len; i++)
        emu_object_drop(emu, m->objects.at[i]);
    if (m->pool)
        emu_resize(&emu->allocator, m->pool, m->pool_cap, 0);
    emu_arena_free(&m->arena);
    emu_resize(&emu->allocator, m, sizeof *m, 0);
}

void emu_destroy(struct emu *emu)
{
    if (!emu)
        return;
    while (emu->modules) {
        struct emu_module *next = emu->modules->next;
        module_free(emu, emu->modules);
        emu->modules = next;
    }
    for (uint32_t i = 0; i < emu->object_count; i++)
        object_free(emu, emu->objects[i]);
    if (emu->objects)
        emu_resize(&emu->allocator, emu->objects, emu->object_cap * sizeof *emu->objects, 0);
    emu_isa_destroy(emu->isa, &emu->allocator);
    emu_arena_free(&emu->findings.arena);
    const tir_allocator allocator = emu->allocator;
    emu_resize(&allocator, emu, sizeof *emu, 0);
}

void emu_unload(struct emu *emu, struct emu_module *module)
{
    for (struct emu_module **m = &emu->modules; *m; m = &(*m)->next)
        if (*m == module) {
            *m = module->next;
            module_free(emu, module);
            return;
        }
}

// Nothing here changes between setjmp and a jump back, so no local needs to be volatile.
static tir_status load(struct emu_loader *ld, const char *text, size_t len)
{
    if (setjmp(ld->trap.env))
        return ld->trap.error->status;
    char *copy = emu_arena_alloc(&ld->scratch, len + 1);
    if (len)
        memcpy(copy, text, len);
    ld->lexer = (struct emu_lexer){.cursor = copy, .end = copy + len, .line = 1};
    emu_parse(ld);
    return TIR_OK;
}

tir_status emu_load(struct emu *emu, tir_str ptx, struct emu_module **out, tir_error *error)
{
    tir_error ignored;
    *out = NULL;
    struct emu_loader *ld = emu_resize(&emu->allocator, NULL, 0, sizeof *ld);
    struct emu_module *m = ld ? emu_resize(&emu->allocator, NULL, 0, sizeof *m) : NULL;
    if (!m) {
        if (ld)
            emu_resize(&emu->allocator, ld, sizeof *ld, 0);
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "out of memory");
    }
    memset(ld, 0, sizeof *ld);
    *m = (struct emu_module){.emu = emu};
    m->arena = (struct emu_arena){.allocator = emu->allocator, .trap = &ld->trap};
    ld->scratch = m->arena;
    ld->emu = emu;
    ld->module = m;
    ld->keep = &m->arena;
    ld->isa = emu->isa;
    ld->trap.error = error ? error : &ignored;
    const tir_status status = load(ld, ptx.ptr, ptx.len);
    emu_arena_free(&ld->scratch);
    emu_resize(&emu->allocator, ld, sizeof *ld, 0);
    m->arena.trap = NULL; // nothing is added to a loaded module
    if (status) {
        module_free(emu, m);
        return status;
    }
    m->next = emu->modules;
    emu->modules = m;
    *out = m;
    return TIR_OK;
}
