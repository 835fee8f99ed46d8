// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reports of kernels that end themselves. Warps that wait at the same place for the same mbarrier
// are one entry.

#include "watchdog.h"

#include <inttypes.h>
#include <string.h>

#include "artifact.h"
#include "emu/text.h"
#include "error.h"
#include "host.h"
#include "name.h"

enum {
    DEFAULT_LIMIT_MS = 10000,
    WARPS = 32,
};

tir_status tir_watchdog_create(tir_rt_device *device, const tir_artifact_kernel *kernel,
                               const tir_artifact_variant *variant, struct watchdog **out,
                               tir_error *error)
{
    const struct device_ops *ops = device->ops;
    struct watchdog *watchdog = *out = tir_host_alloc(device->allocator, sizeof *watchdog);
    if (!watchdog)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a watchdog");
    *watchdog = (struct watchdog){.kernel = kernel, .variant = variant};
    pthread_mutex_lock(&device->fault_lock);
    watchdog->next = device->watchdogs;
    device->watchdogs = watchdog;
    pthread_mutex_unlock(&device->fault_lock);
    tir_status status = ops->page_create(device, TIR_WATCHDOG_PAGE, &watchdog->page, error);
    if (!status)
        status = ops->alloc(device, TIR_WATCHDOG_CLAIM, &watchdog->claim, error);
    if (!status)
        status = ops->fill(device, watchdog->claim, 0, TIR_WATCHDOG_CLAIM, NULL, error);
    return status;
}

void tir_watchdog_destroy(tir_rt_device *device, struct watchdog *watchdog)
{
    if (!watchdog)
        return;
    pthread_mutex_lock(&device->fault_lock);
    struct watchdog **at = &device->watchdogs;
    while (*at != watchdog)
        at = &(*at)->next;
    *at = watchdog->next;
    pthread_mutex_unlock(&device->fault_lock);
    if (watchdog->claim)
        device->ops->free(device, watchdog->claim);
    if (watchdog->page.address)
        device->ops->page_destroy(device, &watchdog->page);
    tir_host_free(device->allocator, watchdog, sizeof *watchdog);
}

void tir_watchdog_params(const struct watchdog *watchdog, uint32_t limit_ms, uint8_t *params)
{
    const uint64_t words[] = {watchdog->page.address, watchdog->claim,
                              (uint64_t)(limit_ms ? limit_ms : DEFAULT_LIMIT_MS) * 1000000};
    _Static_assert(sizeof words == TIR_WATCHDOG_BYTES, "the parameters of a watchdog");
    memcpy(params, words, sizeof words);
}

// ---- records

struct record {
    uint32_t line, offset, parity, pending, turn, zero, claim, ms;
};
_Static_assert(sizeof(struct record) == TIR_WATCHDOG_RECORD, "a record");

static bool same_wait(const struct record *a, const struct record *b)
{
    return a->line == b->line && a->offset == b->offset && a->parity == b->parity;
}

// Only the warp that asked an mbarrier first saw it as it was. Its answer is everybody's.
static void share_answers(struct record *records)
{
    for (uint32_t i = 0; i < WARPS; i++)
        for (uint32_t j = 0; j < WARPS; j++) {
            struct record *r = &records[i];
            const struct record *other = &records[j];
            bool same = r->line && other->line && other->offset == r->offset;
            if (same && other->turn && (!r->turn || other->turn < r->turn)) {
                r->turn = other->turn;
                r->pending = other->pending;
            }
        }
}

// ---- text

static void put_barrier(struct emu_text *t, const struct watchdog *w, uint32_t offset)
{
    uint32_t index;
    const tir_artifact_barrier *barrier = tir_name_barrier(w->variant, offset, &index);
    if (!barrier)
        emu_put(t, "the mbarrier at byte %" PRIu32, offset);
    else if (barrier->count == 1)
        emu_put(t, "%.*s", TIR_STR(barrier->name));
    else
        emu_put(t, "%.*s[%" PRIu32 "]", TIR_STR(barrier->name), index);
}

// Warps first to last, which wait for the same.
static void put_wait(struct emu_text *t, const struct watchdog *w, const struct record *r,
                     uint32_t first, uint32_t last)
{
    uint32_t index;
    const tir_artifact_role *role = tir_name_role(w->variant, first);
    const tir_artifact_barrier *barrier = tir_name_barrier(w->variant, r->offset, &index);
    emu_put(t, first == last ? "warp %" PRIu32 : "warps %" PRIu32 " to %" PRIu32, first, last);
    if (role)
        emu_put(t, " (%.*s)", TIR_STR(role->name));
    if (r->line != UINT32_MAX)
        emu_put(t, " at line %" PRIu32, r->line);
    emu_put(t, first == last ? " waits for " : " wait for ");
    put_barrier(t, w, r->offset);
    emu_put(t, ", parity %" PRIu32 ": ", r->parity);
    if (r->turn)
        emu_put(t, "%" PRIu32, r->pending);
    else
        emu_put(t, "an unknown number");
    if (barrier && barrier->arrivals)
        emu_put(t, " of %" PRIu32, barrier->arrivals);
    emu_put(t, !r->turn && !(barrier && barrier->arrivals) ? " of arrivals" : " arrivals");
    emu_put(t, " pending");
    emu_put(t, ", for %" PRIu32 ".%03" PRIu32 " s", r->ms / 1000, r->ms % 1000);
}

static void put_json(struct emu_text *t, const struct watchdog *w, const struct record *r,
                     uint32_t rank, uint32_t first, uint32_t last)
{
    const tir_artifact_role *role = tir_name_role(w->variant, first);
    emu_put(t,
            "{\"cluster\":%" PRIu32 ",\"rank\":%" PRIu32 ",\"warps\":[%" PRIu32 ",%" PRIu32
            "],\"role\":",
            r->claim - 1, rank, first, last);
    if (role) // a name of the source: no character in it needs an escape
        emu_put(t, "\"%.*s\"", TIR_STR(role->name));
    else
        emu_put(t, "null");
    emu_put(t, ",\"line\":%" PRIu32 ",\"mbarrier\":\"", r->line == UINT32_MAX ? 0 : r->line);
    put_barrier(t, w, r->offset);
    emu_put(t, "\",\"parity\":%" PRIu32, r->parity);
    if (r->turn)
        emu_put(t, ",\"pending\":%" PRIu32, r->pending);
    else
        emu_put(t, ",\"pending\":null");
    emu_put(t, ",\"ms\":%" PRIu32 "}", r->ms);
}

// The records of one CTA. `*count` entries have come before.
static void put_cta(struct emu_text *t, const struct watchdog *w, const struct record *records,
                    uint32_t rank, bool json, uint32_t *count)
{
    const uint32_t *c = w->variant->cluster, ctas = c[0] ? c[0] * c[1] * c[2] : 1;
    for (uint32_t i = 0, next; i < WARPS; i = next) {
        next = i + 1;
        if (!records[i].line)
            continue;
        while (next < WARPS && same_wait(&records[i], &records[next]) &&
               tir_name_role(w->variant, next) == tir_name_role(w->variant, i))
            next++;
        const uint32_t cluster = records[i].claim - 1;
        if (json) {
            emu_put(t, "%s", *count ? "," : "");
            put_json(t, w, &records[i], rank, i, next - 1);
        } else {
            emu_put(t, *count ? "\n  " : "hang: kernel %.*s, ", TIR_STR(w->kernel->name));
            emu_put(t, ctas == 1 ? "CTA %" PRIu32 ": " : "cluster %" PRIu32 ", ", cluster);
            if (ctas > 1)
                emu_put(t, "its CTA %" PRIu32 ": ", rank);
            put_wait(t, w, &records[i], i, next - 1);
        }
        ++*count;
    }
}

// All that one page says. Nothing: 0.
static uint32_t put_page(struct emu_text *t, tir_rt_device *device, const struct watchdog *w,
                         bool json)
{
    struct record records[WARPS];
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < TIR_WATCHDOG_PAGE / sizeof records; rank++) {
        if (!w->page.address || device->ops->page_read(device, &w->page, rank * sizeof records,
                                                       records, sizeof records))
            return 0;
        share_answers(records);
        put_cta(t, w, records, rank, json, &count);
    }
    return count;
}

void tir_watchdog_explain(tir_rt_device *device, tir_error *error)
{
    struct emu_text t = {error->message, 0, sizeof error->message};
    char before[sizeof error->message];
    memcpy(before, error->message, sizeof before);
    pthread_mutex_lock(&device->fault_lock);
    for (const struct watchdog *w = device->watchdogs; w && !t.len; w = w->next)
        put_page(&t, device, w, false);
    pthread_mutex_unlock(&device->fault_lock);
    if (!t.len)
        memcpy(error->message, before, sizeof before);
    else
        error->message[strcspn(error->message, "\n")] = 0;
}

size_t tir_watchdog_report(tir_rt_device *device, uint32_t json, char *text, size_t size)
{
    struct emu_text t = {text, 0, size};
    if (size)
        *text = 0;
    if (json)
        emu_put(&t, "[\n");
    uint32_t pages = 0;
    pthread_mutex_lock(&device->fault_lock);
    for (const struct watchdog *w = device->watchdogs; w; w = w->next) {
        const struct emu_text before = t;
        if (json)
            emu_put(&t, "%s{\"kind\":\"HANG\",\"kernel\":\"%.*s\",\"entry\":\"%.*s\",\"waits\":[",
                    pages ? ",\n" : "", TIR_STR(w->kernel->name), TIR_STR(w->variant->entry));
        const bool said = put_page(&t, device, w, json) > 0;
        if (said)
            emu_put(&t, json ? "]}" : "\n");
        else
            t.len = before.len;
        pages += said;
    }
    pthread_mutex_unlock(&device->fault_lock);
    if (json)
        emu_put(&t, pages ? "\n]\n" : "]\n");
    return t.len;
}
