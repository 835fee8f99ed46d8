// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The emulator on any text: what it accepts as PTX runs to an end, a fault or the step limit.
//
// Every kernel that the text names runs with small grids. Each 8 bytes of its parameters are the
// address of a buffer of data, so pointers are good and other parameters are large numbers.

#include "emu/emu.h"
#include "fuzz.h"

#include <string.h>

enum { PARAMS = 4096, BUFFER = 4096, NAME = 64 };

static void run(struct emu *emu, struct emu_module *module, const char *name)
{
    tir_error error;
    struct emu_kernel_info info;
    if (emu_kernel_info(module, name, &info, &error) != TIR_OK || info.params_size > PARAMS)
        return;
    uint64_t buffer;
    FUZZ_CHECK(emu_alloc(emu, BUFFER, &buffer, &error) == TIR_OK);
    FUZZ_CHECK(emu_fill(emu, buffer, 0x3c, BUFFER, &error) == TIR_OK);
    uint64_t params[PARAMS / 8];
    for (size_t i = 0; i < PARAMS / 8; i++)
        params[i] = buffer;
    struct emu_launch launch = {
        .grid = {2, 1, 1},
        .block = {info.max_threads && info.max_threads < 64 ? info.max_threads : 40, 1, 1},
        .shared_bytes = 1024,
        .params = params,
        .params_size = info.params_size,
    };
    tir_status status = emu_run(emu, module, name, &launch, &error);
    FUZZ_CHECK(status == TIR_OK || error.message[0]);
}

// Copies the name behind `.entry` into `name`; NULL: no more kernels. Returns where to go on.
static const char *next_entry(const char *at, char name[NAME])
{
    at = strstr(at, ".entry");
    if (!at)
        return NULL;
    at += strlen(".entry");
    at += strspn(at, " \t\n\r");
    size_t length = strcspn(at, " \t\n\r(){}");
    snprintf(name, NAME, "%.*s", (int)(length < NAME ? length : 0), at);
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct emu_options options = {
        .memory_limit = 16 << 20, .check = EMU_CHECK_FULL, .step_limit = 2000};
    struct emu *emu;
    struct emu_module *module;
    tir_error error;
    FUZZ_CHECK(emu_create(&options, &emu, &error) == TIR_OK);
    if (emu_load(emu, (tir_str){(const char *)data, size}, &module, &error) != TIR_OK) {
        FUZZ_CHECK(error.message[0]);
        emu_destroy(emu);
        return 0;
    }
    char *text = malloc(size + 1), name[NAME];
    FUZZ_CHECK(text);
    memcpy(text, data, size);
    text[size] = '\0';
    int kernels = 0;
    for (const char *at = text; (at = next_entry(at, name)) && kernels < 4; kernels++)
        run(emu, module, name);
    free(text);
    emu_unload(emu, module);
    emu_destroy(emu);
    return 0;
}
