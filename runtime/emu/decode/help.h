// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference page of the instructions that the emulator runs, made from its tables.
#ifndef EMU_HELP_H
#define EMU_HELP_H

#include <stddef.h>

// Hands the page on piece by piece, as Markdown.
void emu_help_ptx(void (*print)(void *user, const char *text, size_t size), void *user);

#endif
