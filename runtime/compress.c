// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compress.h"

#include <zstd.h>

// Twice as small as level 1 on text of many variants, and still faster than it is made: a megabyte
// takes 5 ms.
#define LEVEL 3

static bool is_accepted(size_t contents, size_t frame)
{
    return contents / TIR_COMPRESS_MOST <= frame;
}

size_t tir_compress(tir_str bytes, bool is_text, void *out, size_t room)
{
    const size_t contents = bytes.len + is_text;
    ZSTD_CCtx *cx = ZSTD_createCCtx();
    if (!cx)
        return 0;
    ZSTD_outBuffer to = {out, room, 0};
    ZSTD_inBuffer text = {bytes.ptr, bytes.len, 0}, end = {"", is_text, 0};
    ZSTD_CCtx_setParameter(cx, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(cx, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setPledgedSrcSize(cx, contents);
    size_t left = 0;
    while (!ZSTD_isError(left) && text.pos < text.size && to.pos < to.size)
        left = ZSTD_compressStream2(cx, &to, &text, ZSTD_e_continue);
    if (!ZSTD_isError(left))
        left = ZSTD_compressStream2(cx, &to, &end, ZSTD_e_end);
    ZSTD_freeCCtx(cx);
    return left == 0 && text.pos == text.size && is_accepted(contents, to.pos) ? to.pos : 0;
}

size_t tir_decompressed_size(const void *frame, size_t size)
{
    unsigned long long contents = ZSTD_getFrameContentSize(frame, size);
    if (contents == ZSTD_CONTENTSIZE_UNKNOWN || contents == ZSTD_CONTENTSIZE_ERROR ||
        contents > SIZE_MAX || !is_accepted((size_t)contents, size))
        return 0;
    return (size_t)contents;
}

bool tir_decompress(const void *frame, size_t size, void *out, size_t contents)
{
    return ZSTD_decompress(out, contents, frame, size) == contents;
}
