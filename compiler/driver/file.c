// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole files in and out.
#define _XOPEN_SOURCE 700 // realpath
#include "driver/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_MS = 2000, LOCK_PAUSE_MS = 10 }; // how long a lock is waited for

static bool fail_errno(tir_error *error, const char *path, const char *what)
{
    int number = errno;
    tir_fail(error, TIR_ERR_IO, "%s: %s: %s", path, what, strerror(number));
    error->native = number;
    return false;
}

bool tir_file_append(FILE *file, const char *path, size_t most, char **out, size_t *size,
                     tir_error *error)
{
    const size_t end = *size + most;
    size_t capacity = *out ? *size + 1 : 0, got = 1;
    while (got && *size < end) {
        if (capacity - *size < 2) {
            capacity = TIR_MIN(TIR_MAX(2 * capacity, (size_t)1 << 16), end + 1);
            char *grown = realloc(*out, capacity);
            if (!grown)
                return tir_fail(error, TIR_ERR_NO_MEMORY, "%s: no memory to read it", path);
            *out = grown;
        }
        got = fread(*out + *size, 1, TIR_MIN(capacity - *size - 1, end - *size), file);
        *size += got;
        (*out)[*size] = 0;
    }
    return !ferror(file) || fail_errno(error, path, "cannot be read");
}

static bool read_all(FILE *file, const char *path, size_t limit, char **out, size_t *size,
                     tir_error *error)
{
    *out = NULL;
    *size = 0;
    bool done =
        tir_file_append(file, path, limit + 1, out, size, error) &&
        (*size <= limit || tir_fail(error, TIR_ERR_IO, "%s: larger than %zu bytes", path, limit));
    if (!done) {
        free(*out);
        *out = NULL;
    }
    return done;
}

bool tir_file_open(const char *path, FILE **out, tir_error *error)
{
    *out = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    return *out || fail_errno(error, path, "cannot be opened");
}

void tir_file_close(FILE *file)
{
    if (file && file != stdin)
        fclose(file);
}

bool tir_file_read(const char *path, size_t limit, char **out, size_t *size, tir_error *error)
{
    FILE *file;
    *out = NULL;
    if (!tir_file_open(path, &file, error))
        return false;
    bool done = read_all(file, path, limit, out, size, error);
    tir_file_close(file);
    return done;
}

// Whether `path`, resolved, is in the folder `folder`, resolved.
static bool is_below(const char *path, const char *folder)
{
    char *real = realpath(folder, NULL);
    size_t len = real ? strlen(real) : 0;
    len -= len == 1; // of "/", which everything is below
    bool below = real && !strncmp(path, real, len) && path[len] == '/';
    free(real);
    return below;
}

// Not followed, if it became a link in between, and not waited for, if it is a pipe.
static FILE *open_regular(const char *path, const char *shown, tir_error *error)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    struct stat facts;
    FILE *file = NULL;
    if (fd < 0 || fstat(fd, &facts))
        fail_errno(error, shown, "cannot be opened");
    else if (!S_ISREG(facts.st_mode))
        tir_fail(error, TIR_ERR_IO, "%s: not a regular file", shown);
    else if (!(file = fdopen(fd, "rb")))
        fail_errno(error, shown, "cannot be opened");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

bool tir_file_read_below(const char *path, const char *folder, size_t limit, char **out,
                         size_t *size, tir_error *error)
{
    char *real = realpath(path, NULL);
    FILE *file = NULL;
    *out = NULL;
    if (!real)
        fail_errno(error, path, "cannot be opened");
    else if (!is_below(real, folder))
        tir_fail(error, TIR_ERR_IO, "%s: outside of the folder %s (--import-root)", path, folder);
    else
        file = open_regular(real, path, error);
    bool done = file && read_all(file, path, limit, out, size, error);
    if (file)
        fclose(file);
    free(real);
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
static bool replace(const char *path, char *beside, mode_t mode, const void *bytes, size_t size,
                    tir_error *error)
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

// By way of a new file beside. A signal that ends the program waits until that one has its place or
// is gone.
static bool write_beside(const char *path, char *beside, mode_t mode, const void *bytes,
                         size_t size, tir_error *error)
{
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    bool done = replace(path, beside, mode, bytes, size, error);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return done;
}

// "-", and a link to it such as /dev/stdout: what is there already stays before what is written.
static bool is_standard_output(const char *path)
{
    struct stat link, file, out;
    return !strcmp(path, "-") ||
           (!lstat(path, &link) && S_ISLNK(link.st_mode) && !stat(path, &file) &&
            !fstat(STDOUT_FILENO, &out) && file.st_dev == out.st_dev && file.st_ino == out.st_ino);
}

// `name`, which is relative to the folder that `path` is in. NULL: out of memory.
static char *in_folder_of(const char *path, const char *name)
{
    const char *slash = *name == '/' ? NULL : strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash + 1 - path) : 0, size = strlen(name) + 1;
    char *out = malloc(folder + size);
    if (out) {
        memcpy(out, path, folder);
        memcpy(out + folder, name, size);
    }
    return out;
}

// The file that the path leads to: a link stays a link, also one to a file that is not there yet.
// NULL: it has no name.
static char *target_of(const char *path)
{
    enum { MOST = 40 }; // links, as the system follows
    char link[PATH_MAX], *at = realpath(path, NULL);
    if (at || !access(path, F_OK))
        return at;
    at = strdup(path);
    for (int i = 0; at && i < MOST; i++) {
        const ssize_t size = readlink(at, link, sizeof(link) - 1);
        if (size < 0)
            return at;
        link[size] = 0;
        char *next = in_folder_of(at, link);
        free(at);
        at = next;
    }
    free(at);
    return NULL;
}

bool tir_file_write(const char *path, const void *bytes, size_t size, tir_error *error)
{
    if (is_standard_output(path))
        return fwrite(bytes, 1, size, stdout) == size ||
               fail_errno(error, "standard output", "cannot be written");
    struct stat old;
    const bool exists = !stat(path, &old);
    // Where the system does not follow a link, such as another user's in /tmp, nobody does.
    char *target = exists || errno == ENOENT ? target_of(path) : NULL;
    if (exists && (!S_ISREG(old.st_mode) || !target)) { // an open file may have no name any more
        free(target);
        return write_in_place(path, bytes, size, error);
    }
    const mode_t mask = umask(0);
    umask(mask);
    // The name of the file beside is short: the target's may be as long as the system takes.
    char *beside = target ? in_folder_of(target, ".tirc.XXXXXX") : NULL;
    const bool done =
        beside ? write_beside(target, beside, exists ? old.st_mode & 07777 : 0666 & ~mask, bytes,
                              size, error)
               : fail_errno(error, path, "cannot be created");
    free(beside);
    free(target);
    return done;
}

// Gives up in the end: what has the lock may wait for this program (`flock DIR tirc tune ...`).
static bool take_lock(int lock)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
    for (int waited = 0; flock(lock, LOCK_EX | LOCK_NB); waited += LOCK_PAUSE_MS) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || waited >= LOCK_MS)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

// The folder has the lock: the file itself is replaced.
int tir_file_lock(const char *path)
{
    char *target = target_of(path), *folder = target ? in_folder_of(target, ".") : NULL;
    int lock = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (lock >= 0 && !take_lock(lock)) {
        close(lock);
        lock = -1;
    }
    free(folder);
    free(target);
    return lock;
}

void tir_file_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

bool tir_file_same(const char *a, const char *b)
{
    struct stat x, y;
    return strcmp(a, "-") && strcmp(b, "-") && !stat(a, &x) && !stat(b, &y) && S_ISREG(x.st_mode) &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool tir_stdout_finish(tir_error *error)
{
    bool failed = ferror(stdout);
    if (fflush(stdout) || failed)
        return fail_errno(error, "standard output", "cannot be written");
    return true;
}
