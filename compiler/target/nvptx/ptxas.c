// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs ptxas as a child process: PTX in and the cubin out through its standard streams, so that
// there are no temporary files. Standard input is a socket because a write to one can be asked not
// to raise SIGPIPE, which is the host program's.
//
// The host may ignore SIGCHLD or wait for any child: then nobody tells how this one ended. What it
// wrote tells it: ptxas writes the cubin last, and whether an ELF file is complete can be seen.
#define _GNU_SOURCE // pipe2

#include "target/nvptx/ptxas.h"

#include "base/diag.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *in_folder(struct tir_arena *arena, tir_str folder)
{
    tir_str path = tir_str_format(arena, STR_FMT "/ptxas", STR_ARG(folder));
    return access(path.ptr, X_OK) ? NULL : path.ptr;
}

const char *tir_ptxas_find(struct tir_arena *arena)
{
    const char *rest = getenv("PATH");
    while (rest && *rest) {
        size_t len = strcspn(rest, ":");
        const char *path = len ? in_folder(arena, (tir_str){rest, len}) : NULL;
        if (path)
            return path;
        rest += len + (rest[len] == ':');
    }
    return in_folder(arena, STR("/usr/local/cuda/bin"));
}

struct child {
    pid_t pid;
    int input, output, errors; // our ends; -1: closed
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

// Above the standard streams, which the host may have closed: dup2 onto one of them must not hit
// the other ends.
static bool move_up(int *fd)
{
    if (*fd > 2)
        return true;
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    close(*fd);
    *fd = moved;
    return moved >= 0;
}

// Closed in whatever else the host starts, from the first moment on.
static bool private_pair(int fds[2], bool is_socket)
{
    fds[0] = fds[1] = -1;
    if (is_socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) : pipe2(fds, O_CLOEXEC))
        return false;
    bool first = move_up(&fds[0]);
    return move_up(&fds[1]) && first;
}

// Signals as they are in a new program, not as the host has them: none blocked, SIGCHLD and SIGPIPE
// by default.
static bool plain_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGCHLD);
    sigaddset(&usual, SIGPIPE);
    return !posix_spawnattr_setsigmask(attributes, &none) &&
           !posix_spawnattr_setsigdefault(attributes, &usual) &&
           !posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static bool spawn(struct child *child, const char *path, const char *arch,
                  const posix_spawn_file_actions_t *actions)
{
    static char name[] = "ptxas", verbose[] = "-v", to[] = "-o", file[] = "/proc/self/fd/1",
                from[] = "-";
    char option[32], *arguments[] = {name, option, verbose, to, file, from, NULL};
    posix_spawnattr_t attributes;
    snprintf(option, sizeof(option), "-arch=%s", arch);
    if (posix_spawnattr_init(&attributes))
        return false;
    bool ok = plain_signals(&attributes) &&
              !posix_spawn(&child->pid, path, actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    return ok;
}

static bool start(struct child *child, const char *path, const char *arch)
{
    int in[2], out[2], err[2];
    bool ok = private_pair(in, true);
    ok = private_pair(out, false) && ok;
    ok = private_pair(err, false) && ok;
    posix_spawn_file_actions_t actions;
    ok = ok && !posix_spawn_file_actions_init(&actions);
    if (ok) {
        ok = !posix_spawn_file_actions_adddup2(&actions, in[1], 0) &&
             !posix_spawn_file_actions_adddup2(&actions, out[1], 1) &&
             !posix_spawn_file_actions_adddup2(&actions, err[1], 2) &&
             spawn(child, path, arch, &actions);
        posix_spawn_file_actions_destroy(&actions);
    }
    close_fd(&in[1]);
    close_fd(&out[1]);
    close_fd(&err[1]);
    child->input = in[0];
    child->output = out[0];
    child->errors = err[0];
    if (!ok) {
        close_fd(&child->input);
        close_fd(&child->output);
        close_fd(&child->errors);
    }
    return ok;
}

static void send_some(struct child *child, tir_str *left)
{
    ssize_t n = send(child->input, left->ptr, left->len, MSG_NOSIGNAL);
    if (n > 0) {
        left->ptr += n;
        left->len -= (size_t)n;
    }
    if (left->len == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        close_fd(&child->input);
}

static void receive_some(int *fd, struct tir_text *text)
{
    char buffer[16384];
    ssize_t n = read(*fd, buffer, sizeof(buffer));
    if (n > 0)
        tir_text_add(text, (tir_str){buffer, (size_t)n});
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        close_fd(fd);
}

static void exchange(struct child *child, tir_str ptx, struct tir_text *out, struct tir_text *err)
{
    fcntl(child->input, F_SETFL, O_NONBLOCK);
    while (child->output >= 0 || child->errors >= 0) {
        struct pollfd fds[] = {
            {child->input, POLLOUT, 0}, {child->output, POLLIN, 0}, {child->errors, POLLIN, 0}};
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            break;
        if (fds[0].revents)
            send_some(child, &ptx);
        if (fds[1].revents)
            receive_some(&child->output, out);
        if (fds[2].revents)
            receive_some(&child->errors, err);
    }
    close_fd(&child->input);
    close_fd(&child->output);
    close_fd(&child->errors);
}

// Where the word is in the line, or NULL.
static const char *find(tir_str line, const char *word)
{
    const size_t len = strlen(word);
    for (size_t i = 0; i + len <= line.len; i++)
        if (!memcmp(line.ptr + i, word, len))
            return line.ptr + i;
    return NULL;
}

static bool has(tir_str line, const char *word)
{
    return find(line, word) != NULL;
}

// Takes the first line off the text.
static tir_str next_line(tir_str *text)
{
    const char *end = memchr(text->ptr, '\n', text->len);
    const tir_str line = {text->ptr, end ? (size_t)(end - text->ptr) : text->len};
    text->ptr += line.len + (end != NULL);
    text->len -= line.len + (end != NULL);
    return line;
}

// What stands in the line between `before` and the next quote; empty: `before` is not there.
static tir_str quoted(tir_str line, const char *before)
{
    const char *at = find(line, before);
    if (!at)
        return (tir_str){NULL, 0};
    at += strlen(before);
    const char *quote = memchr(at, '\'', (size_t)(line.ptr + line.len - at));
    return (tir_str){at, quote ? (size_t)(quote - at) : 0};
}

// The number in front of `unit` in a line, 0 when it is not there.
static uint32_t number_before(tir_str line, const char *unit)
{
    size_t len = strlen(unit);
    for (size_t i = 0; i + len <= line.len; i++) {
        if (memcmp(line.ptr + i, unit, len))
            continue;
        size_t digits = i;
        while (digits > 0 && line.ptr[digits - 1] >= '0' && line.ptr[digits - 1] <= '9')
            digits--;
        uint32_t value = 0;
        for (; digits < i; digits++)
            value = value * 10 + (uint32_t)(line.ptr[digits] - '0');
        return value;
    }
    return 0;
}

// Of a line such as
//     ptxas info    : (C7514) Potential Performance Loss: ... in the function 'k'
// what follows the parenthesis, up to the function; empty: it is no note about products on
// warpgroups or about registers that warps hand on.
static tir_str note_in(tir_str line)
{
    static const char *const ends[] = {" in the function '", " in function '",
                                       " for the function '"};
    const char *end = line.ptr + line.len, *at = find(line, "(C75");
    for (size_t i = 0; i < TIR_COUNT_OF(ends); i++) {
        const char *here = find(line, ends[i]);
        end = here ? here : end;
    }
    at = at ? at : find(line, "(C76");
    return at && at < end ? (tir_str){at + 1, (size_t)(end - at - 1)} : (tir_str){NULL, 0};
}

// Adds a note to a kernel, unless it has one with that code: they differ by lines of the PTX.
static void add_note(struct tir_arena *arena, struct tir_ptxas_kernel *k, tir_str note)
{
    static const char loss[] = "Potential Performance Loss: ";
    enum { CODE = sizeof("C7514") - 1 };
    if (note.len < CODE + 2)
        return;
    vec_foreach(const tir_str, other, &k->notes)
        if (!memcmp(other->ptr, note.ptr, CODE))
            return;
    tir_str text = {note.ptr + CODE + 2, note.len - CODE - 2};
    if (find(text, loss) == text.ptr)
        text = (tir_str){text.ptr + sizeof(loss) - 1, text.len - (sizeof(loss) - 1)};
    vec_push(arena, &k->notes,
             tir_str_format(arena, "%.*s: " STR_FMT, (int)CODE, note.ptr, STR_ARG(text)));
}

// Lines look like
//     ptxas info    : Compiling entry function 'k' for 'sm_90a'
//         8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
//     ptxas info    : Used 12 registers, used 1 barriers
static void parse_log(struct tir_arena *arena, struct tir_ptxas_result *result)
{
    VEC(struct tir_ptxas_kernel) kernels = {0};
    for (tir_str rest = result->log; rest.len;) {
        const tir_str line = next_line(&rest), name = quoted(line, "Compiling entry function '");
        if (name.len)
            vec_push(arena, &kernels, ((struct tir_ptxas_kernel){.name = name}));
        if (!kernels.len)
            continue;
        struct tir_ptxas_kernel *k = &vec_last(&kernels);
        k->registers += number_before(line, " registers");
        k->stack_bytes += number_before(line, " bytes stack frame");
        k->spill_bytes +=
            number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    }
    for (tir_str rest = result->log; rest.len;) {
        const tir_str line = next_line(&rest), name = quoted(line, "function '");
        vec_foreach(struct tir_ptxas_kernel, k, &kernels)
            if (!name.len || tir_str_equal(name, k->name)) // without a name it is about all
                add_note(arena, k, note_in(line));
    }
    result->kernels = kernels.at;
    result->kernel_count = kernels.len;
}

// ---- the cubin

static uint64_t number_at(tir_str bytes, size_t at, uint32_t size)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; i++)
        value |= (uint64_t)(unsigned char)bytes.ptr[at + i] << 8 * i;
    return value;
}

static bool is_within(tir_str file, uint64_t offset, uint64_t size)
{
    return offset <= file.len && size <= file.len - offset;
}

// A 64-bit ELF file all of whose sections are there.
static bool is_complete(tir_str file)
{
    enum { HEADER = 64, TABLE_AT = 40, COUNT_AT = 60, ENTRY = 64 };
    enum { TYPE_AT = 4, OFFSET_AT = 24, SIZE_AT = 32, NOTHING_STORED = 8 };
    if (file.len < HEADER || memcmp(file.ptr, "\177ELF\2\1", 6) != 0)
        return false;
    const uint64_t table = number_at(file, TABLE_AT, 8), count = number_at(file, COUNT_AT, 2);
    if (!is_within(file, table, count * ENTRY))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        const size_t at = (size_t)(table + i * ENTRY);
        if (number_at(file, at + TYPE_AT, 4) != NOTHING_STORED &&
            !is_within(file, number_at(file, at + OFFSET_AT, 8), number_at(file, at + SIZE_AT, 8)))
            return false;
    }
    return true;
}

// Waits for the end. False: it failed. If its status is unknown, true.
static bool ended_well(pid_t pid)
{
    int status = 0;
    pid_t got;
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    return got < 0 ? errno == ECHILD : WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The first line of the log that names an error, else its first one but what -v asks for.
static tir_str reason(struct tir_arena *arena, tir_str log)
{
    tir_str best = {NULL, 0};
    for (tir_str rest = log; rest.len;) {
        const tir_str line = next_line(&rest);
        const bool is_error = has(line, "error") || has(line, "fatal");
        const bool is_info = has(line, "ptxas info") || find(line, " ") == line.ptr;
        if (is_error || (!best.len && !is_info))
            best = line;
        if (is_error)
            break;
    }
    struct tir_text text;
    tir_text_init(&text, arena, 0);
    tir_text_message(&text, best.len ? best : STR("no cubin came out, and no reason"));
    return tir_text_str(&text);
}

bool tir_ptxas_run(struct tir_arena *arena, const char *path, const struct tir_target *target,
                   tir_str ptx, struct tir_ptxas_result *result)
{
    memset(result, 0, sizeof(*result));
    struct child child = {.pid = -1};
    if (!start(&child, path, target->name))
        return false;
    struct tir_text out, err;
    tir_text_init(&out, arena, 0);
    tir_text_init(&err, arena, 0);
    exchange(&child, ptx, &out, &err);
    result->cubin = tir_text_str(&out);
    result->ok = ended_well(child.pid) && is_complete(result->cubin);
    result->log = tir_text_str(&err);
    result->reason = reason(arena, result->log);
    parse_log(arena, result);
    return true;
}
