// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints what a run gave.
#include "driver/launch/result.h"

#include <math.h>

bool tir_result_passes(const struct tir_result *result)
{
    for (uint32_t i = 0; i < result->output_count; i++)
        if (result->outputs[i].wrong)
            return false;
    return true;
}

// NULL: a variant was launched.
static const tir_artifact_sequence *sequence_of(const struct tir_result *r)
{
    return r->report.variant < r->kernel->variant_count
               ? NULL
               : &r->kernel->sequences[r->report.variant - r->kernel->variant_count];
}

static uint32_t shared_bytes(const struct tir_result *r)
{
    uint32_t fixed = sequence_of(r) ? 0 : r->kernel->variants[r->report.variant].static_shared;
    return r->report.dynamic_shared + fixed;
}

static double gigabytes_per_second(const struct tir_result *r)
{
    return r->median_us > 0 ? (double)r->traffic / r->median_us / 1e3 : 0;
}

// ---- text

static void shape(struct tir_text *out, const struct tir_tensor *t)
{
    tir_text_format(out, "%s", tir_elems[t->elem].name);
    for (uint32_t i = 0; i < t->rank; i++)
        tir_text_format(out, "%s%lld", i ? ", " : "[", (long long)t->shape[i]);
    tir_text_add(out, t->rank ? STR("]") : STR(""));
}

// ", 3 of 128 elements differ, the first at [0, 4]"
static void elements(struct tir_text *out, const struct tir_tensor *t, int64_t count,
                     const char *what, const int64_t *first)
{
    tir_text_format(out, ", %lld of %lld elements %s, the first at [", (long long)count,
                    (long long)t->count, what);
    for (uint32_t i = 0; i < t->rank; i++)
        tir_text_format(out, "%s%lld", i ? ", " : "", (long long)first[i]);
    tir_text_char(out, ']');
}

static void mismatch(struct tir_text *out, const struct tir_result_output *o)
{
    elements(out, &o->bound->tensor, o->difference.mismatches, "differ", o->difference.first);
    tir_text_add(out, STR(": "));
    tir_scalar_print(out, &o->difference.got);
    tir_text_add(out, STR(", the reference has "));
    tir_scalar_print(out, &o->difference.want);
}

static void output_line(struct tir_text *out, const struct tir_result *r,
                        const struct tir_result_output *o)
{
    tir_text_format(out, "%.*s: ", STR_ARG(o->bound->param->name));
    shape(out, &o->bound->tensor);
    if (!r->checked) {
        tir_text_add(out, STR(" ="));
        tir_tensor_glimpse(out, &o->bound->tensor);
        return;
    }
    const struct tir_difference *d = &o->difference;
    tir_text_format(out, ": largest error %.3g, relative %.3g (allowed %.3g", d->max_abs,
                    d->max_rel, d->tolerance);
    if (d->mean_tolerance > 0)
        tir_text_format(out, ", as sums are rounded to %s), root mean square %.3g (allowed %.3g",
                        tir_elems[d->rounded].name, d->error, d->mean_tolerance);
    tir_text_char(out, ')');
    if (o->difference.mismatches)
        mismatch(out, o);
    if (o->unwritten.count)
        elements(out, &o->bound->tensor, o->unwritten.count,
                 o->unwritten.on_device ? "were not written on the device" : "were not written",
                 o->unwritten.first);
    if (o->stray)
        tir_text_add(out, STR(", bytes between the rows were written"));
    tir_text_format(out, ": %s\n", o->wrong ? "FAIL" : "PASS");
}

static void grid_line(struct tir_text *out, const tir_rt_launch_report *report, uint32_t shared)
{
    if (report->launched)
        tir_text_format(out, "grid %u x %u x %u, %u threads, %u bytes shared\n", report->grid[0],
                        report->grid[1], report->grid[2], report->threads, shared);
    else
        tir_text_add(out, STR("nothing to launch\n"));
}

void tir_result_text(const struct tir_result *r, struct tir_text *out)
{
    tir_text_format(out, "%.*s on %s (%s), compiled for %s", STR_ARG(r->kernel->name),
                    r->device->spec, r->device->name, r->arch);
    if (r->report.launched) {
        tir_text_format(out, ": variant %u of %u%s, ", r->report.variant + 1,
                        r->kernel->variant_count + r->kernel->sequence_count,
                        r->report.tuned ? " by the tuned table" : "");
        const tir_artifact_sequence *sequence = sequence_of(r);
        if (!sequence)
            grid_line(out, &r->report, shared_bytes(r));
        for (uint32_t i = 0; sequence && i < sequence->step_count; i++) {
            tir_text_format(out, "%sstep %u of %u: ", i ? "  " : "", i + 1, sequence->step_count);
            grid_line(out, &r->steps[i], r->steps[i].dynamic_shared);
        }
    } else {
        tir_text_add(out, STR(": nothing to launch, the grid or every output is empty\n"));
    }
    for (uint32_t i = 0; i < r->output_count; i++)
        output_line(out, r, &r->outputs[i]);
    if (r->launches)
        tir_text_format(out, "time: median %.2f us, minimum %.2f us of %u launches; %.1f GB/s\n",
                        r->median_us, r->min_us, r->launches, gigabytes_per_second(r));
    if (r->checked)
        tir_text_format(out, "%s\n", tir_result_passes(r) ? "PASS" : "FAIL");
}

// ---- JSON

static void json_number(struct tir_text *out, const char *key, double value)
{
    if (isfinite(value))
        tir_text_format(out, "\"%s\":%.9g", key, value);
    else
        tir_text_format(out, "\"%s\":null", key);
}

static void json_output(struct tir_text *out, const struct tir_result *r,
                        const struct tir_result_output *o)
{
    const struct tir_tensor *t = &o->bound->tensor;
    tir_text_add(out, STR("{\"name\":"));
    tir_text_json(out, o->bound->param->name);
    tir_text_format(out, ",\"type\":\"%s\",\"shape\":[", tir_elems[t->elem].name);
    for (uint32_t i = 0; i < t->rank; i++)
        tir_text_format(out, "%s%lld", i ? "," : "", (long long)t->shape[i]);
    tir_text_char(out, ']');
    if (r->checked) {
        tir_text_char(out, ',');
        json_number(out, "max_abs", o->difference.max_abs);
        tir_text_char(out, ',');
        json_number(out, "max_rel", o->difference.max_rel);
        tir_text_char(out, ',');
        json_number(out, "tolerance", o->difference.tolerance);
        if (o->difference.mean_tolerance > 0) {
            tir_text_format(out, ",\"rounded\":\"%s\",", tir_elems[o->difference.rounded].name);
            json_number(out, "rms", o->difference.error);
            tir_text_char(out, ',');
            json_number(out, "rms_tolerance", o->difference.mean_tolerance);
        }
        tir_text_format(out, ",\"mismatches\":%lld,\"unwritten\":%lld,\"stray\":%s,\"pass\":%s",
                        (long long)o->difference.mismatches, (long long)o->unwritten.count,
                        o->stray ? "true" : "false", o->wrong ? "false" : "true");
    }
    tir_text_char(out, '}');
}

void tir_result_json(const struct tir_result *r, struct tir_text *out)
{
    tir_text_add(out, STR("{\"kernel\":"));
    tir_text_json(out, r->kernel->name);
    tir_text_format(out, ",\"device\":\"%s\",\"device_name\":", r->device->spec);
    tir_text_json(out, tir_str_of(r->device->name));
    tir_text_format(out,
                    ",\"arch\":\"%s\",\"launched\":%s,\"variant\":%u,\"grid\":[%u,%u,%u],"
                    "\"threads\":%u,\"shared\":%u,\"outputs\":[",
                    r->arch, r->report.launched ? "true" : "false", r->report.variant,
                    r->report.grid[0], r->report.grid[1], r->report.grid[2], r->report.threads,
                    shared_bytes(r));
    for (uint32_t i = 0; i < r->output_count; i++) {
        tir_text_add(out, i ? STR(",") : STR(""));
        json_output(out, r, &r->outputs[i]);
    }
    tir_text_char(out, ']');
    if (r->launches) {
        tir_text_format(out, ",\"launches\":%u,", r->launches);
        json_number(out, "median_us", r->median_us);
        tir_text_char(out, ',');
        json_number(out, "min_us", r->min_us);
        tir_text_char(out, ',');
        json_number(out, "gb_per_s", gigabytes_per_second(r));
    }
    if (r->checked)
        tir_text_format(out, ",\"pass\":%s", tir_result_passes(r) ? "true" : "false");
    tir_text_add(out, STR("}\n"));
}
