// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the compiler library and the runtime library: status, error, string view, allocator.
#ifndef TIR_BASE_H
#define TIR_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version of this API. It grows by one whenever a declaration is added or changed; the
// CHANGELOG says what came with each number.
#define TIR_API_VERSION 39

#if defined(__GNUC__)
#define TIR_API     __attribute__((visibility("default")))
#define TIR_CHECKED __attribute__((warn_unused_result))
#else
#define TIR_API
#define TIR_CHECKED
#endif

// The outcome of every call that can fail. The values are ABI: they are added to, never renumbered.
typedef enum tir_status {
    TIR_OK = 0,
    TIR_ERR_DIAGNOSED = 1,   // the source is wrong; the diagnostics say why
    TIR_ERR_INVALID = 2,     // the caller broke a documented rule
    TIR_ERR_NO_MEMORY = 3,   // the allocator returned NULL
    TIR_ERR_IO = 4,          // a file could not be read or written
    TIR_ERR_UNSUPPORTED = 5, // correct, but not for this target, driver or device
    TIR_ERR_NO_DRIVER = 6,   // no usable CUDA driver on this machine
    TIR_ERR_DEVICE = 7,      // the device reported a fault
    TIR_ERR_INTERNAL = 8,    // a bug in this library
    TIR_ERR_STOPPED = 9      // by a limit that the caller set, or by the caller
} tir_status;

// Why a call failed. It lives in the caller's own storage: there is nothing to free, and no state
// is shared between threads. Every fallible call takes one as its last parameter; NULL is allowed.
typedef struct tir_error {
    tir_status status;
    int32_t native;    // the driver's CUresult, or errno, else 0
    char message[248]; // one line, always terminated
} tir_error;

// A borrowed view of bytes. Not terminated.
typedef struct tir_str {
    const char *ptr;
    size_t len;
} tir_str;

// The host allocator. `resize` allocates (ptr NULL, old_size 0), resizes, and frees (new_size 0,
// result ignored). Memory is aligned for any type. It must be callable from every thread that uses
// an object made with it. NULL in place of an allocator means the C library's. What libzstd needs
// while it works, up to two megabytes for an artifact that is written, is always the C library's.
typedef struct tir_allocator {
    void *(*resize)(void *user, void *ptr, size_t old_size, size_t new_size);
    void *user;
} tir_allocator;

// The name of a status as it is spelled in this header, e.g. "TIR_ERR_DEVICE". Never NULL.
TIR_API const char *tir_status_name(tir_status status);

#ifdef __cplusplus
}
#endif
#endif
