// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contents of a section as one zstd frame that states their size (RFC 8878).
#ifndef TIR_RUNTIME_COMPRESS_H
#define TIR_RUNTIME_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "tir/base.h"

// Contents that are more than so many times as large as their frame are stored as they are: readers
// refuse such frames, so that a small file cannot ask for much memory.
#define TIR_COMPRESS_MOST 1024

// How contents are kept; the numbers are in artifacts.
enum tir_form { TIR_FORM_STORED, TIR_FORM_ZSTD }; // as they are, or as a frame

// Writes the frame of `bytes`, and of a zero byte after them if is_text, to `out`.
// Returns its size; 0: it does not fit into `room`, or the contents are too large for it.
size_t tir_compress(tir_str bytes, bool is_text, void *out, size_t room);

// The size of the contents of a frame; 0: it states none that a reader accepts.
size_t tir_decompressed_size(const void *frame, size_t size);

// Writes the contents. False: the frame is damaged, or there is no memory to work with.
bool tir_decompress(const void *frame, size_t size, void *out, size_t contents);

#endif
