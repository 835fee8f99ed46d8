// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A folder of files that can be made again, which processes share.
//
// An entry is a file named by its key, 64 hexadecimal digits and ".cubin":
//      0   "TIRC"
//      4   u32   version, 1
//      8   u64   size of the contents in bytes
//     16   the key
//     48   SHA-256 of the contents
//     80   contents
// It is written under another name and renamed, so an entry is whole or not there, and no process
// waits for another one. What is read is checked all the same: disks fill up and files are copied.
// Of two processes that keep the same entry, the later one's file stays.
//
// A file's time of modification says when it was last used. Whoever keeps an entry looks at the
// whole folder, and removes the files that were used longest ago while all take more than the
// limit, and what a process that was killed has left behind.
//
// Code that is read here runs on the GPU. So the folder must belong to the user, and nobody else
// may write to it.

#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "host.h"

enum {
    VERSION = 1,
    HEADER_BYTES = 80,
    NAME_BYTES = 2 * TIR_SHA256_BYTES + sizeof ".cubin",
    LONGEST_PATH = 4096,
    STALE_SECONDS = 3600, // after which nobody writes to a temporary file any more
    TRIES = 8,
};
static const char temporary[] = "tmp-";

// ---- the folder

static char *join(const struct cache *cache, const char *folder, const char *rest, bool *no_memory)
{
    const size_t size = strlen(folder) + strlen(rest) + 1;
    char *path = size < LONGEST_PATH ? tir_host_alloc(cache->allocator, size) : NULL;
    *no_memory = !path && size < LONGEST_PATH;
    if (path)
        snprintf(path, size, "%s%s", folder, rest);
    return path;
}

// The folder by the environment; *rest follows it. NULL: none.
static const char *folder_by_environment(const char **rest)
{
    *rest = "";
    if (getuid() != geteuid() || getgid() != getegid())
        return NULL; // the environment is somebody else's
    const char *own = getenv("TIR_CACHE_DIR");
    if (own)
        return own[0] ? own : NULL;
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    *rest = "/tir";
    if (xdg && xdg[0] == '/') // the specification has others ignored
        return xdg;
    *rest = "/.cache/tir";
    return home && home[0] == '/' ? home : NULL;
}

tir_status tir_cache_open(struct cache *cache, const char *folder, uint64_t limit,
                          const tir_allocator *allocator, tir_error *error)
{
    const char *rest = "";
    bool no_memory = false;
    *cache = (struct cache){.allocator = allocator, .limit = limit ? limit : TIR_CACHE_BYTES};
    if (!folder)
        folder = folder_by_environment(&rest);
    if (folder && folder[0])
        cache->folder = join(cache, folder, rest, &no_memory);
    return no_memory ? tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a cache") : TIR_OK;
}

void tir_cache_close(struct cache *cache)
{
    if (cache->folder)
        tir_host_free(cache->allocator, cache->folder, strlen(cache->folder) + 1);
    cache->folder = NULL;
}

// The folder, opened. Below 0: it is not there, or is not the user's alone.
static int open_folder(const struct cache *cache)
{
    struct stat info;
    if (!cache->folder)
        return -1;
    int folder = open(cache->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    if (!fstat(folder, &info) && info.st_uid == geteuid() && !(info.st_mode & (S_IWGRP | S_IWOTH)))
        return folder;
    close(folder);
    return -1;
}

static void make_folder(const struct cache *cache)
{
    char path[LONGEST_PATH];
    const size_t len = strlen(cache->folder);
    for (size_t i = 1; i <= len; i++)
        if (i == len || cache->folder[i] == '/') {
            memcpy(path, cache->folder, i);
            path[i] = 0;
            (void)!mkdir(path, 0700); // whether it is there now is asked later
        }
}

// ---- entries

static void name_of(const uint8_t key[TIR_SHA256_BYTES], char name[NAME_BYTES])
{
    for (int i = 0; i < TIR_SHA256_BYTES; i++)
        snprintf(name + 2 * i, 3, "%02x", key[i]);
    snprintf(name + 2 * TIR_SHA256_BYTES, sizeof ".cubin", ".cubin");
}

static bool is_entry(const char *name)
{
    return strspn(name, "0123456789abcdef") == 2 * TIR_SHA256_BYTES &&
           strcmp(name + 2 * TIR_SHA256_BYTES, ".cubin") == 0;
}

static void put_le(uint8_t *bytes, uint64_t value, int count)
{
    for (int i = 0; i < count; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

static void make_header(const uint8_t key[TIR_SHA256_BYTES], const void *bytes, size_t size,
                        uint8_t header[HEADER_BYTES])
{
    struct sha256 sha;
    memcpy(header, "TIRC", 4);
    put_le(header + 4, VERSION, 4);
    put_le(header + 8, size, 8);
    memcpy(header + 16, key, TIR_SHA256_BYTES);
    tir_sha256_init(&sha);
    tir_sha256_add(&sha, bytes, size);
    tir_sha256_end(&sha, header + 48);
}

static bool read_all(int file, void *bytes, size_t size)
{
    for (uint8_t *at = bytes; size;) {
        const ssize_t got = read(file, at, size);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return false;
        at += got > 0 ? got : 0;
        size -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool write_all(int file, const void *bytes, size_t size)
{
    for (const uint8_t *at = bytes; size;) {
        const ssize_t put = write(file, at, size);
        if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

// The contents of an opened entry. NULL with *damaged: it is none. NULL without: no memory.
static void *read_entry(const struct cache *cache, int file, const uint8_t *key, size_t *size,
                        bool *damaged)
{
    uint8_t header[HEADER_BYTES], want[HEADER_BYTES];
    struct stat info;
    *damaged = true;
    if (fstat(file, &info) || !S_ISREG(info.st_mode) || info.st_size < HEADER_BYTES ||
        (uint64_t)info.st_size > cache->limit + HEADER_BYTES ||
        !read_all(file, header, sizeof header))
        return NULL;
    *size = (size_t)info.st_size - HEADER_BYTES;
    uint8_t *bytes = tir_host_alloc(cache->allocator, *size + 1);
    *damaged = bytes != NULL;
    if (!bytes)
        return NULL;
    if (read_all(file, bytes, *size)) {
        make_header(key, bytes, *size, want);
        if (memcmp(header, want, sizeof want) == 0) {
            *damaged = false;
            return bytes;
        }
    }
    tir_host_free(cache->allocator, bytes, *size + 1);
    return NULL;
}

void *tir_cache_get(const struct cache *cache, const uint8_t key[TIR_SHA256_BYTES], size_t *size)
{
    char name[NAME_BYTES];
    void *bytes = NULL;
    bool damaged = false;
    const int folder = open_folder(cache);
    if (folder < 0)
        return NULL;
    name_of(key, name);
    const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file >= 0) {
        bytes = read_entry(cache, file, key, size, &damaged);
        if (bytes)
            (void)!futimens(file, NULL); // it was used now
        close(file);
    }
    if (damaged)
        (void)!unlinkat(folder, name, 0);
    close(folder);
    return bytes;
}

void tir_cache_drop(const struct cache *cache, const uint8_t key[TIR_SHA256_BYTES])
{
    char name[NAME_BYTES];
    const int folder = open_folder(cache);
    if (folder < 0)
        return;
    name_of(key, name);
    (void)!unlinkat(folder, name, 0);
    close(folder);
}

// ---- the limit

struct file {
    struct timespec used;
    uint64_t size;
    char name[NAME_BYTES];
};

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct file *)a)->used,
                          *y = &((const struct file *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

struct listing {
    const tir_allocator *allocator;
    struct file *files;
    size_t count, room;
    uint64_t size;
};

static void add_file(struct listing *list, const char *name, const struct stat *info)
{
    if (list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 64;
        struct file *files = list->allocator->resize(
            list->allocator->user, list->files, list->room * sizeof *files, room * sizeof *files);
        if (!files)
            return; // it stays, this time
        list->files = files;
        list->room = room;
    }
    struct file *file = &list->files[list->count++];
    *file = (struct file){.used = info->st_mtim, .size = (uint64_t)info->st_size};
    memcpy(file->name, name, sizeof file->name);
    list->size += file->size;
}

static void look_at(struct listing *list, int folder, const char *name)
{
    struct stat info;
    const bool is_temporary = strncmp(name, temporary, sizeof temporary - 1) == 0;
    if ((!is_temporary && !is_entry(name)) || fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW))
        return;
    if (is_entry(name))
        add_file(list, name, &info);
    else if (time(NULL) - info.st_mtime > STALE_SECONDS)
        (void)!unlinkat(folder, name, 0);
}

// Removes what is too much, down to three quarters of the limit, so that it is not done each time.
static void keep_limit(const struct cache *cache, int folder)
{
    struct listing list = {.allocator = cache->allocator};
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    if (!dir) {
        if (own >= 0)
            close(own);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(dir));)
        look_at(&list, folder, entry->d_name);
    closedir(dir);
    if (list.size > cache->limit) {
        qsort(list.files, list.count, sizeof *list.files, by_use);
        for (size_t i = 0; i < list.count && list.size > cache->limit / 4 * 3; i++) {
            (void)!unlinkat(folder, list.files[i].name, 0);
            list.size -= list.files[i].size;
        }
    }
    tir_host_free(cache->allocator, list.files, list.room * sizeof *list.files);
}

// ---- keeping

// A file of this process's own to write to. Below 0: there can be none.
static int open_temporary(int folder, char name[64])
{
    for (int i = 0; i < TRIES; i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(name, 64, "%s%ld-%lld-%ld", temporary, (long)getpid(), (long long)now.tv_sec,
                 now.tv_nsec);
        const int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

void tir_cache_put(const struct cache *cache, const uint8_t key[TIR_SHA256_BYTES],
                   const void *bytes, size_t size)
{
    char name[NAME_BYTES], other[64];
    uint8_t header[HEADER_BYTES];
    if (!cache->folder || size > cache->limit / 2)
        return;
    int folder = open_folder(cache);
    if (folder < 0) {
        make_folder(cache);
        folder = open_folder(cache);
    }
    const int file = folder < 0 ? -1 : open_temporary(folder, other);
    if (file >= 0) {
        name_of(key, name);
        make_header(key, bytes, size, header);
        bool ok = write_all(file, header, sizeof header) && write_all(file, bytes, size);
        ok = !close(file) && ok;
        if (!ok || renameat(folder, other, folder, name))
            (void)!unlinkat(folder, other, 0);
        keep_limit(cache, folder);
    }
    if (folder >= 0)
        close(folder);
}
