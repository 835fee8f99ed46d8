// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cache of assembled code: what is found is what was kept, whatever became of the files, and
// whoever else uses the folder or is killed in the middle.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache.h"
#include "host.h"
#include "rig.h"

// ---- a folder for each test

struct fixture {
    char folder[64];
    struct counting counting;
    tir_allocator allocator;
    struct cache cache;
};

static void open_cache(struct fixture *f, uint64_t limit)
{
    tir_cache_close(&f->cache);
    assert_int_equal(tir_cache_open(&f->cache, f->folder, limit, &f->allocator, NULL), TIR_OK);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "cache_test.XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->counting.countdown = -1;
    f->allocator = counting_allocator(&f->counting);
    open_cache(f, 0);
    *state = f;
    return 0;
}

static void path_of(const struct fixture *f, const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", f->folder, name);
}

// Calls `each` on every name in the folder; gives how many there are.
static int visit(const struct fixture *f, void (*each)(const char *path))
{
    char path[512];
    int count = 0;
    DIR *dir = opendir(f->folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        path_of(f, entry->d_name, path);
        if (each)
            each(path);
        count++;
    }
    closedir(dir);
    return count;
}

static void erase(const char *path)
{
    assert_int_equal(remove(path), 0);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tir_cache_close(&f->cache);
    assert_int_equal(f->counting.live, 0);
    visit(f, erase);
    assert_int_equal(rmdir(f->folder), 0);
    free(f);
    return 0;
}

// ---- entries of the numbers

static void make_key(uint32_t number, uint8_t key[TIR_SHA256_BYTES])
{
    struct sha256 sha;
    tir_sha256_init(&sha);
    tir_sha256_add(&sha, &number, sizeof number);
    tir_sha256_end(&sha, key);
}

static size_t size_of(uint32_t number)
{
    return 1000 + number * 377 % 9000;
}

static void fill(uint32_t number, uint8_t *bytes)
{
    for (size_t i = 0; i < size_of(number); i++)
        bytes[i] = (uint8_t)(number * 31 + i * i);
}

static void put(const struct fixture *f, uint32_t number)
{
    uint8_t key[TIR_SHA256_BYTES], bytes[10000];
    make_key(number, key);
    fill(number, bytes);
    tir_cache_put(&f->cache, key, bytes, size_of(number));
}

enum found { NOTHING, RIGHT, WRONG };

static enum found get(const struct fixture *f, uint32_t number)
{
    uint8_t key[TIR_SHA256_BYTES], want[10000];
    size_t size;
    make_key(number, key);
    uint8_t *bytes = tir_cache_get(&f->cache, key, &size);
    if (!bytes)
        return NOTHING;
    fill(number, want);
    const bool right = size == size_of(number) && memcmp(bytes, want, size) == 0 && !bytes[size];
    f->allocator.resize(f->allocator.user, bytes, size + 1, 0);
    return right ? RIGHT : WRONG;
}

static void entry_path(const struct fixture *f, uint32_t number, char path[512])
{
    uint8_t key[TIR_SHA256_BYTES];
    char name[80];
    make_key(number, key);
    for (int i = 0; i < TIR_SHA256_BYTES; i++)
        snprintf(name + 2 * i, 3, "%02x", key[i]);
    snprintf(name + 2 * TIR_SHA256_BYTES, sizeof ".cubin", ".cubin");
    path_of(f, name, path);
}

// ---- SHA-256: the examples of FIPS 180-4

static void expect_digest(const char *text, size_t times, const char *want)
{
    struct sha256 sha;
    uint8_t digest[TIR_SHA256_BYTES];
    char hex[65];
    tir_sha256_init(&sha);
    for (size_t i = 0; i < times; i++)
        tir_sha256_add(&sha, text, strlen(text));
    tir_sha256_end(&sha, digest);
    for (int i = 0; i < TIR_SHA256_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(hex, want);
}

static void test_digest(void **state)
{
    (void)state;
    expect_digest("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_digest("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect_digest("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// ---- what is kept

static void test_kept(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(get(f, 1), NOTHING);
    put(f, 1);
    put(f, 2);
    assert_int_equal(get(f, 1), RIGHT);
    assert_int_equal(get(f, 2), RIGHT);
    assert_int_equal(get(f, 3), NOTHING);
    put(f, 1); // again
    assert_int_equal(get(f, 1), RIGHT);
    assert_int_equal(visit(f, NULL), 2); // nothing else is left
    uint8_t key[TIR_SHA256_BYTES];
    make_key(1, key);
    tir_cache_drop(&f->cache, key);
    assert_int_equal(get(f, 1), NOTHING);
    assert_int_equal(get(f, 2), RIGHT);
}

static void change(const char *path, long at, int by)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ by, file);
    fclose(file);
}

// Any byte that is not what it was makes it another file, which is removed.
static void test_damaged(void **state)
{
    struct fixture *f = *state;
    char path[512], other[512];
    entry_path(f, 1, path);
    const long end = 80 + (long)size_of(1);
    for (long at = 0; at < end; at += at < 100 ? 1 : 97) {
        put(f, 1);
        change(path, at, 1 << at % 8);
        assert_int_equal(get(f, 1), NOTHING);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    for (long size = 0; size < end; size += size < 100 ? 1 : 97) {
        put(f, 1);
        assert_int_equal(truncate(path, size), 0);
        assert_int_equal(get(f, 1), NOTHING);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    put(f, 1);
    assert_int_equal(truncate(path, end + 1), 0);
    assert_int_equal(get(f, 1), NOTHING);
    // Another entry's file under this name.
    put(f, 2);
    entry_path(f, 2, other);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(get(f, 1), NOTHING);
    // What is no file at all.
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(get(f, 1), NOTHING);
    put(f, 1);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(strrchr(other, '/') + 1, path), 0);
    assert_int_equal(get(f, 1), NOTHING);
    erase(path);
    put(f, 1);
    assert_int_equal(get(f, 1), RIGHT);
}

static void set_time(const char *path, time_t when)
{
    const struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

// What was used longest ago goes, and what was read is used.
static void test_limit(void **state)
{
    struct fixture *f = *state;
    char path[512];
    const time_t now = time(NULL);
    open_cache(f, 40000);
    for (uint32_t i = 0; i < 6; i++) { // 6 entries of up to 4000 bytes
        put(f, i);
        entry_path(f, i, path);
        set_time(path, now - 1000 + (time_t)i);
    }
    assert_int_equal(visit(f, NULL), 6);
    assert_int_equal(get(f, 0), RIGHT); // the oldest is the newest now
    uint64_t size = 0;
    for (uint32_t i = 6; i < 40; i++)
        put(f, i);
    for (uint32_t i = 0; i < 40; i++) {
        struct stat info;
        entry_path(f, i, path);
        if (stat(path, &info) == 0)
            size += (uint64_t)info.st_size;
    }
    assert_in_range(size, 20000, 40000);
    assert_int_equal(get(f, 1), NOTHING);
    assert_int_equal(get(f, 39), RIGHT);
    // One more than fits: 0 was read after 2 to 5 were written, and outlives them.
    visit(f, erase);
    open_cache(f, 0);
    for (uint32_t i = 0; i < 4; i++) {
        put(f, i);
        entry_path(f, i, path);
        set_time(path, now - 1000 + (time_t)i);
    }
    assert_int_equal(get(f, 0), RIGHT);
    open_cache(f, size_of(0) + size_of(1) + size_of(2) + size_of(3) + 4 * 80 + 100);
    put(f, 4);
    assert_int_equal(get(f, 1), NOTHING);
    assert_int_equal(get(f, 0), RIGHT);
    assert_int_equal(get(f, 4), RIGHT);
}

// What a killed process left is removed once it is old; files of other names are not touched.
static void test_leftovers(void **state)
{
    struct fixture *f = *state;
    char stale[512], fresh[512], other[512];
    path_of(f, "tmp-1-2-3", stale);
    path_of(f, "tmp-4-5-6", fresh);
    path_of(f, "notes.txt", other);
    for (int i = 0; i < 3; i++)
        close(open(((const char *[]){stale, fresh, other})[i], O_CREAT | O_WRONLY, 0600));
    set_time(stale, time(NULL) - 7200);
    set_time(other, time(NULL) - 7200);
    put(f, 1);
    assert_int_not_equal(access(stale, F_OK), 0);
    assert_int_equal(access(fresh, F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
}

static void test_no_memory(void **state)
{
    struct fixture *f = *state;
    put(f, 1);
    f->counting.countdown = 1;
    assert_int_equal(get(f, 1), NOTHING);
    assert_int_equal(get(f, 1), RIGHT); // it was not taken for damaged
    f->counting.countdown = 1;
    put(f, 2); // without looking at the folder
    f->counting.countdown = -1;
    assert_int_equal(get(f, 2), RIGHT);
}

// ---- which folder

static void expect_folder(const char *option, const char *want)
{
    struct cache cache;
    const tir_allocator allocator = tir_host_allocator(NULL);
    assert_int_equal(tir_cache_open(&cache, option, 0, &allocator, NULL), TIR_OK);
    if (want)
        assert_string_equal(cache.folder, want);
    else
        assert_null(cache.folder);
    tir_cache_close(&cache);
}

static void test_folder(void **state)
{
    (void)state;
    setenv("HOME", "/my", 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("TIR_CACHE_DIR");
    expect_folder("/some/where", "/some/where");
    expect_folder("", NULL);
    expect_folder(NULL, "/my/.cache/tir");
    setenv("XDG_CACHE_HOME", "/var/cache", 1);
    expect_folder(NULL, "/var/cache/tir");
    setenv("XDG_CACHE_HOME", "relative", 1); // which the specification has ignored
    expect_folder(NULL, "/my/.cache/tir");
    setenv("TIR_CACHE_DIR", "here", 1);
    expect_folder(NULL, "here");
    setenv("TIR_CACHE_DIR", "", 1);
    expect_folder(NULL, NULL);
    unsetenv("TIR_CACHE_DIR");
    unsetenv("HOME");
    expect_folder(NULL, NULL);
}

// A folder is made with those above it. One that others may write to, or that is none, is not used.
static void test_unusable(void **state)
{
    struct fixture *f = *state;
    char deep[512], above[512], file[512];
    struct fixture other = *f;
    struct stat info;
    snprintf(above, sizeof above, "%s/a", f->folder);
    snprintf(deep, sizeof deep, "%s/a/b", f->folder);
    assert_int_equal(tir_cache_open(&other.cache, deep, 0, &f->allocator, NULL), TIR_OK);
    assert_int_equal(get(&other, 1), NOTHING);
    put(&other, 1);
    assert_int_equal(get(&other, 1), RIGHT);
    assert_int_equal(stat(deep, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    chmod(deep, 0770);
    assert_int_equal(get(&other, 1), NOTHING);
    put(&other, 2);
    chmod(deep, 0700);
    assert_int_equal(get(&other, 2), NOTHING);
    assert_int_equal(get(&other, 1), RIGHT);
    tir_cache_close(&other.cache);
    snprintf(other.folder, sizeof other.folder, "%.*s/a/b", 32, f->folder);
    visit(&other, erase);
    rmdir(deep);
    rmdir(above);
    path_of(f, "file", file);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(tir_cache_open(&other.cache, file, 0, &f->allocator, NULL), TIR_OK);
    put(&other, 1);
    assert_int_equal(get(&other, 1), NOTHING);
    tir_cache_close(&other.cache);
}

// ---- many processes

enum { PROCESSES = 16, NUMBERS = 12, ROUNDS = 150 };

// Uses the folder until the rounds are over; exits with 1 at the first wrong thing.
static void use(const struct fixture *f, uint32_t seed)
{
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1664525 + 1013904223;
        const uint32_t number = (seed >> 16) % NUMBERS;
        const enum found found = get(f, number);
        if (found == WRONG)
            _exit(1);
        if (found == NOTHING || seed >> 30 == 0)
            put(f, number);
    }
    _exit(0);
}

// Sixteen processes keep, read and evict at once; every fourth is killed somewhere in between.
static void test_processes(void **state)
{
    struct fixture *f = *state;
    pid_t children[PROCESSES];
    open_cache(f, 30000); // about half of all
    for (uint32_t i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            use(f, i + 1);
    }
    for (int i = 0; i < PROCESSES; i += 4) {
        const struct timespec pause = {0, 3000000 + i * 1000000};
        nanosleep(&pause, NULL);
        kill(children[i], SIGKILL);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        if (i % 4)
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (uint32_t i = 0; i < NUMBERS; i++)
        assert_int_not_equal(get(f, i), WRONG);
    put(f, 0);
    assert_int_equal(get(f, 0), RIGHT);
}

// ---- the runtime

static tir_artifact_desc ptx_only(void)
{
    tir_artifact_desc desc = sample;
    desc.cubin.len = desc.cubin_arch.len = 0;
    return desc;
}

struct counts {
    int assembled, cubins;
};

// Loads the sample's PTX in a runtime of its own and launches it.
static struct counts launch(const struct fixture *f, struct fake_cuda *fake)
{
    const tir_artifact_desc desc = ptx_only();
    struct rig rig = {.counting.countdown = -1, .desc = &desc, .cache = f->folder};
    struct gemm_args g;
    rig.fake = fake;
    fake->assembled = fake->cubins = 0;
    if (rig_open(&rig))
        fail_msg("%s", rig.error.message);
    rig_gemm_args(&g);
    if (tir_rt_launch(rig.gemm, NULL, g.args, 5, NULL, &rig.error))
        fail_msg("%s", rig.error.message);
    assert_string_equal(fake->last.function, "gemm_fast");
    rig_close(&rig);
    return (struct counts){fake->assembled, fake->cubins};
}

#define EXPECT(what, want_assembled, want_cubins)           \
    do {                                                    \
        const struct counts counts = what;                  \
        assert_int_equal(counts.assembled, want_assembled); \
        assert_int_equal(counts.cubins, want_cubins);       \
    } while (0)

static void truncate_one(const char *path)
{
    assert_int_equal(truncate(path, 90), 0);
}

static void test_launches(void **state)
{
    struct fixture *f = *state;
    struct fake_cuda *fake = rig_fake(FAKE_CUDA);
    EXPECT(launch(f, fake), 1, 1); // linked, and the cubin loaded
    EXPECT(launch(f, fake), 0, 1);
    assert_int_equal(visit(f, NULL), 1);
    // Another driver, another GPU.
    fake->version = 13000;
    EXPECT(launch(f, fake), 1, 1);
    EXPECT(launch(f, fake), 0, 1);
    fake->minor = 3;
    EXPECT(launch(f, fake), 1, 1);
    assert_int_equal(visit(f, NULL), 3);
    // Damage is mended.
    visit(f, truncate_one);
    EXPECT(launch(f, fake), 1, 1);
    EXPECT(launch(f, fake), 0, 1);
    // What the driver does not take any more goes, and the PTX is assembled as ever.
    fake->refuse_cubin = 1;
    EXPECT(launch(f, fake), 2, 0); // linked in vain
    fake->refuse_cubin = 0;
    EXPECT(launch(f, fake), 1, 1);
    // A driver that does not link.
    visit(f, erase);
    fake->refuse_link = 1;
    EXPECT(launch(f, fake), 1, 0);
    fake->refuse_link = 0;
    fake->missing = "cuLinkComplete";
    EXPECT(launch(f, fake), 1, 0);
    assert_int_equal(visit(f, NULL), 0);
    fake->missing = NULL;
}

// A driver that refuses to link what it assembles is not asked for each variant again.
static void test_refused_link(void **state)
{
    struct fixture *f = *state;
    const tir_artifact_desc desc = ptx_only();
    struct rig rig = {
        .fake = rig_fake(FAKE_CUDA), .counting.countdown = -1, .desc = &desc, .cache = f->folder};
    rig.fake->refuse_link = 1;
    assert_int_equal(rig_open(&rig), TIR_OK);
    assert_int_equal(rig_load_all(&rig, rig.module), TIR_OK);
    assert_int_equal(rig.fake->links, 1);
    assert_int_equal(rig.fake->assembled, 5);
    rig_close(&rig);
}

// The driver's reason for refusing the PTX is what it is without a cache.
static void test_refused(void **state)
{
    struct fixture *f = *state;
    const tir_artifact_desc desc = ptx_only();
    struct rig rig = {
        .fake = rig_fake(FAKE_CUDA), .counting.countdown = -1, .desc = &desc, .cache = f->folder};
    struct gemm_args g;
    rig_gemm_args(&g);
    assert_int_equal(rig_open(&rig), TIR_OK);
    rig.fake->jit_error = "ptxas application ptx input, line 7; error: bad";
    rig_expect(&rig, tir_rt_launch(rig.gemm, NULL, g.args, 5, NULL, &rig.error),
               TIR_ERR_UNSUPPORTED, "gemm_fast: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX");
    assert_non_null(strstr(rig.error.message, "line 7; error: bad"));
    assert_int_equal(visit(f, NULL), 0);
    // In a capture too.
    rig.fake->jit_error = NULL;
    rig.fake->capturing = 1;
    assert_int_equal(tir_rt_launch(rig.gemm, NULL, g.args, 5, NULL, &rig.error), TIR_OK);
    assert_int_equal(visit(f, NULL), 1);
    rig.fake->capturing = 0;
    rig_close(&rig);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digest),
        TEST(test_kept),
        TEST(test_damaged),
        TEST(test_limit),
        TEST(test_leftovers),
        TEST(test_no_memory),
        cmocka_unit_test(test_folder),
        TEST(test_unusable),
        TEST(test_processes),
        TEST(test_launches),
        TEST(test_refused_link),
        TEST(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
