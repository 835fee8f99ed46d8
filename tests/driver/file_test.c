// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files: whole or not at all, with their mode, through links, and onto a full disk.

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "driver/file.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "file_test.XXXXXX");
    return mkdtemp(folder) ? chdir(folder) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "link"};
    for (size_t i = 0; i < TIR_COUNT_OF(names); i++)
        unlink(names[i]);
    return chdir("..") || rmdir(folder); // fails if a temporary file was left behind
}

static void expect_contents(const char *path, const char *text)
{
    char *got;
    size_t size;
    tir_error error;
    assert_true(tir_file_read(path, 1 << 20, &got, &size, &error));
    assert_int_equal(size, strlen(text));
    assert_string_equal(got, text);
    free(got);
}

static void test_write(void **state)
{
    (void)state;
    tir_error error;
    struct stat info;
    assert_true(tir_file_write("a", "one", 3, &error));
    expect_contents("a", "one");
    assert_int_equal(chmod("a", 0640), 0);
    assert_int_equal(symlink("a", "link"), 0);
    assert_true(tir_file_write("link", "two!", 4, &error));
    expect_contents("a", "two!");
    assert_int_equal(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat("a", &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
}

// In place of the C library's: the system may not follow links of others
// (/proc/sys/fs/protected_symlinks).
static const char *protected_link;

int stat(const char *restrict path, struct stat *restrict info)
{
    if (protected_link && strcmp(path, protected_link) == 0) {
        errno = EACCES;
        return -1;
    }
    return fstatat(AT_FDCWD, path, info, 0);
}

// A link that may not be followed leaves what it leads to as it was.
static void test_protected_link(void **state)
{
    (void)state;
    tir_error error;
    assert_true(tir_file_write("a", "old", 3, &error));
    assert_int_equal(symlink("a", "protected"), 0);
    protected_link = "protected";
    assert_false(tir_file_write("protected", "new", 3, &error));
    protected_link = NULL;
    assert_non_null(strstr(error.message, "protected: cannot be created: Permission denied"));
    expect_contents("a", "old");
    assert_int_equal(unlink("protected"), 0);
}

// Links that lead to each other, or to a file that is not there yet.
static void test_links(void **state)
{
    (void)state;
    tir_error error;
    struct stat info;
    assert_int_equal(mkdir("sub", 0700), 0);
    assert_int_equal(symlink("sub/first", "second"), 0);
    assert_int_equal(symlink("../later", "sub/first"), 0);
    assert_true(tir_file_write("second", "three", 5, &error));
    expect_contents("later", "three");
    assert_true(!lstat("second", &info) && S_ISLNK(info.st_mode));
    assert_true(!lstat("sub/first", &info) && S_ISLNK(info.st_mode));
    assert_int_equal(unlink("later"), 0);
    assert_int_equal(symlink("second", "later"), 0);
    assert_false(tir_file_write("later", "x", 1, &error));
    assert_non_null(strstr(error.message, "later: cannot be created"));
    static const char *const names[] = {"second", "sub/first", "later"};
    for (size_t i = 0; i < TIR_COUNT_OF(names); i++)
        assert_int_equal(unlink(names[i]), 0);
    assert_int_equal(rmdir("sub"), 0);
}

// The longest name that the system takes.
static void test_long_name(void **state)
{
    (void)state;
    tir_error error;
    char path[NAME_MAX + 1] = "";
    memset(path, 'n', NAME_MAX);
    assert_true(tir_file_write(path, "long", 4, &error));
    expect_contents(path, "long");
    assert_int_equal(unlink(path), 0);
}

// Links to open files: as /dev/stdout is one, onto a file that was begun, or that has no name.
static void test_open_files(void **state)
{
    (void)state;
    tir_error error;
    struct stat info;
    char path[64], got[16] = "";
    fflush(stdout);
    const int out = dup(STDOUT_FILENO), file = open("open", O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(out >= 0 && file >= 0);
    assert_int_equal(dup2(file, STDOUT_FILENO), STDOUT_FILENO);
    const bool begun = write(file, "one ", 4) == 4 && !symlink("/proc/self/fd/1", "begun") &&
                       tir_file_write("begun", "two", 3, &error) && tir_stdout_finish(&error);
    assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
    close(out);
    assert_true(begun);
    expect_contents("open", "one two");
    assert_int_equal(unlink("open"), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    assert_int_equal(symlink(path, "nameless"), 0);
    assert_true(tir_file_write("nameless", "three", 5, &error));
    assert_int_equal(pread(file, got, sizeof(got), 0), 5);
    assert_string_equal(got, "three");
    close(file);
    static const char *const links[] = {"begun", "nameless"};
    for (size_t i = 0; i < TIR_COUNT_OF(links); i++) {
        assert_true(!lstat(links[i], &info) && S_ISLNK(info.st_mode));
        unlink(links[i]);
    }
}

// In place of the C library's: a signal arrives when the file is written, but not yet in its place.
static bool is_interrupted;

int fchmod(int fd, mode_t mode)
{
    if (is_interrupted)
        raise(SIGTERM);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return chmod(path, mode);
}

// A program that is ended leaves the file as it was or as it shall be, and nothing beside it.
static void test_signals(void **state)
{
    (void)state;
    tir_error error;
    int status;
    assert_true(tir_file_write("a", "old", 3, &error));
    const pid_t child = fork();
    if (child == 0) {
        is_interrupted = true;
        _exit(tir_file_write("a", "new", 3, &error) ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    expect_contents("a", "new");
}

static void test_failures(void **state)
{
    (void)state;
    tir_error error = {0};
    char *got;
    size_t size;
    assert_false(tir_file_write("none/a", "x", 1, &error));
    assert_int_equal(error.status, TIR_ERR_IO);
    assert_true(strstr(error.message, "none/a"));
    assert_false(tir_file_read("none", 10, &got, &size, &error));
    assert_null(got);
    assert_true(tir_file_write("a", "0123456789", 10, &error));
    assert_true(tir_file_read("a", 10, &got, &size, &error));
    free(got);
    assert_false(tir_file_read("a", 9, &got, &size, &error));
    assert_false(tir_file_read(".", 10, &got, &size, &error));
    if (!access("/dev/full", W_OK)) {
        assert_false(tir_file_write("/dev/full", "x", 1, &error));
        assert_true(strstr(error.message, "No space"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write),      cmocka_unit_test(test_protected_link),
        cmocka_unit_test(test_links),      cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_open_files), cmocka_unit_test(test_signals),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
