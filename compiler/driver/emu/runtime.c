// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The emulator's settings of the command line.
#include "driver/emu/runtime.h"

#include <stdio.h>
#include <string.h>

#include "driver/say.h"

uint32_t tir_emu_rounds(const struct tir_options *options)
{
    int64_t n = options->integer[TIR_OPTION_EXPLORE];
    return n > UINT32_MAX ? UINT32_MAX : n > 1 ? (uint32_t)n : 1;
}

const char *tir_emu_schedule(struct tir_arena *arena, const struct tir_options *options, uint32_t i)
{
    static const char *const fixed[] = {"lazy", "eager", "adversarial"};
    if (!options->given[TIR_OPTION_EXPLORE] || options->given[TIR_OPTION_SCHEDULE])
        return options->text[TIR_OPTION_SCHEDULE];
    if (i < TIR_COUNT_OF(fixed))
        return fixed[i];
    return tir_str_format(arena, "random:%u", i - (uint32_t)TIR_COUNT_OF(fixed) + 1).ptr;
}

static void print(void *user, const char *text, size_t size)
{
    fwrite(text, 1, size, user);
}

static uint32_t check_level(const char *word)
{
    static const char *const words[] = {[TIR_RT_EMU_CHECK_OFF] = "off",
                                        [TIR_RT_EMU_CHECK_MEMORY] = "memory",
                                        [TIR_RT_EMU_CHECK_RACE] = "race",
                                        [TIR_RT_EMU_CHECK_FULL] = "full"};
    uint32_t level = TIR_RT_EMU_CHECK_DEFAULT;
    for (uint32_t i = 1; word && i < TIR_COUNT_OF(words); i++)
        if (!strcmp(word, words[i]))
            level = i;
    return level;
}

bool tir_emu_runtime(const struct tir_options *options, const char *schedule, void *log,
                     struct tir_timeline *timeline, tir_runtime **out, tir_error *error)
{
    tir_runtime_options settings = TIR_RUNTIME_OPTIONS_INIT;
    settings.emu_check = check_level(options->text[TIR_OPTION_EMU_CHECK]);
    settings.emu_schedule = schedule;
    settings.emu_threads = (uint32_t)TIR_MIN(options->integer[TIR_OPTION_THREADS], UINT32_MAX);
    settings.emu_sm_count = (uint32_t)TIR_MIN(options->integer[TIR_OPTION_SMS], UINT32_MAX);
    settings.emu_steps = (uint64_t)options->integer[TIR_OPTION_STEPS];
    settings.emu_timeout_ms =
        (uint32_t)TIR_MIN(options->integer[TIR_OPTION_TIMEOUT], UINT32_MAX / 1000) * 1000;
    settings.emu_print = print;
    settings.emu_print_user = log;
    settings.emu_trace = timeline ? tir_timeline_add : NULL;
    settings.emu_trace_user = timeline;
    return !tir_runtime_create(&settings, out, error);
}

const char *tir_emu_findings_text(struct tir_arena *arena, tir_rt_device *device, uint32_t json)
{
    if (!device)
        return json ? "[]" : "";
    size_t size = tir_rt_emu_findings(device, json, NULL, 0) + 1;
    char *text = arena_array(arena, char, size);
    tir_rt_emu_findings(device, json, text, size);
    return text;
}

bool tir_emu_print_findings(struct tir_arena *arena, tir_rt_device *device)
{
    const char *text = tir_emu_findings_text(arena, device, 0);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        tir_say(stderr, "%s%.*s", *line == ' ' ? "" : "tirc: ", (int)strcspn(line, "\n"), line);
    return *text;
}

enum tir_exit tir_emu_complain(struct tir_arena *arena, tir_rt_device *device,
                               const tir_error *error)
{
    if (error->status != TIR_ERR_DEVICE || !tir_emu_print_findings(arena, device))
        return tir_command_fail(error);
    return TIR_EXIT_WRONG;
}
