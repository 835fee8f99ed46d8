// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole files in and out.
#define _XOPEN_SOURCE 700 // realpath
#include "driver/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail_errno(tir_error *error, const char *path, const char *what)
{
    int number = errno;
    tir_fail(error, TIR_ERR_IO, "%s: %s: %s", path, what, strerror(number));
    error->native = number;
    return false;
}

static bool read_all(FILE *file, const char *path, size_t limit, char **out, size_t *size,
                     tir_error *error)
{
    size_t capacity = 0, got;
    do {
        if (capacity - *size < 2) {
            capacity = capacity ? 2 * capacity : 1 << 16;
            char *grown = realloc(*out, capacity);
            if (!grown)
                return tir_fail(error, TIR_ERR_NO_MEMORY, "%s: no memory to read it", path);
            *out = grown;
        }
        got = fread(*out + *size, 1, capacity - *size - 1, file);
        *size += got;
        if (*size > limit)
            return tir_fail(error, TIR_ERR_IO, "%s: larger than %zu bytes", path, limit);
    } while (got);
    if (ferror(file))
        return fail_errno(error, path, "cannot be read");
    (*out)[*size] = 0;
    return true;
}

bool tir_file_read(const char *path, size_t limit, char **out, size_t *size, tir_error *error)
{
    bool standard = !strcmp(path, "-");
    FILE *file = standard ? stdin : fopen(path, "rb");
    *out = NULL;
    *size = 0;
    if (!file)
        return fail_errno(error, path, "cannot be opened");
    bool done = read_all(file, path, limit, out, size, error);
    if (!standard)
        fclose(file);
    if (!done) {
        free(*out);
        *out = NULL;
    }
    return done;
}

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t wrote = write(fd, bytes, TIR_MIN(size, (size_t)1 << 30));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        bytes += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

static bool write_in_place(const char *path, const void *bytes, size_t size, tir_error *error)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    if (fd < 0)
        return fail_errno(error, path, "cannot be opened");
    bool done = write_all(fd, bytes, size);
    if (!done)
        fail_errno(error, path, "cannot be written");
    if (close(fd) && done)
        return fail_errno(error, path, "cannot be written");
    return done;
}

// The new file has the mode of the one it replaces, or what the umask leaves of 0666.
static bool write_beside(const char *path, char *beside, mode_t mode, const void *bytes,
                         size_t size, tir_error *error)
{
    int fd = mkstemp(beside);
    if (fd < 0)
        return fail_errno(error, path, "cannot be created");
    bool done = write_all(fd, bytes, size) && !fchmod(fd, mode);
    if (!done)
        fail_errno(error, path, "cannot be written");
    if (close(fd) && done)
        done = fail_errno(error, path, "cannot be written");
    if (done && rename(beside, path))
        done = fail_errno(error, path, "cannot be replaced");
    if (!done)
        unlink(beside);
    return done;
}

bool tir_file_write(const char *path, const void *bytes, size_t size, tir_error *error)
{
    if (!strcmp(path, "-"))
        return fwrite(bytes, 1, size, stdout) == size ||
               fail_errno(error, "standard output", "cannot be written");
    struct stat old;
    bool exists = !stat(path, &old);
    if (exists && !S_ISREG(old.st_mode))
        return write_in_place(path, bytes, size, error);
    mode_t mask = umask(0);
    umask(mask);
    // A link stays a link: what it leads to is replaced.
    char *real = exists ? realpath(path, NULL) : NULL;
    const char *target = real ? real : path;
    size_t room = strlen(target) + sizeof(".XXXXXX");
    char *beside = malloc(room);
    bool done = false;
    if (beside) {
        snprintf(beside, room, "%s.XXXXXX", target);
        done = write_beside(target, beside, exists ? old.st_mode & 07777 : 0666 & ~mask, bytes,
                            size, error);
    } else {
        tir_fail(error, TIR_ERR_NO_MEMORY, "out of memory");
    }
    free(beside);
    free(real);
    return done;
}

bool tir_stdout_finish(tir_error *error)
{
    bool failed = ferror(stdout);
    if (fflush(stdout) || failed)
        return fail_errno(error, "standard output", "cannot be written");
    return true;
}
