// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random tile programs before their judges. Usage: random_tiles [--count=N] [--seed=S] ...; --help
// says more.
//
// Programs are judged in processes of their own, each of which does many: where one crashes or
// takes too long, that is the finding, and another process goes on behind it. What fails is made
// smaller in the same way, a process for each trial.
#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "judge.h"
#include "rules.h"
#include "shrink.h"
#include "target/nvptx/ptxas.h"

#define MOST_JOBS 256

struct settings {
    struct judge_options judge;
    uint64_t seed, count;
    enum program_kind kind; // PROGRAM_KINDS: any
    bool is_wide;           // their tiles are those of products on warpgroups
    uint32_t jobs;
    time_t start;
    uint32_t seconds;      // of the run; 0: no limit
    uint32_t limit;        // CPU seconds of one program
    uint32_t tries;        // of making one smaller
    uint32_t most;         // findings, then it is enough
    const char *known[16]; // findings whose key has one of these are counted, not told
    uint32_t known_count;
    bool prints; // the program of the seed, and nothing else
};

struct report { // of one process, in memory shared with its parent
    uint64_t seed;
    char stage[40], arch[16];
    char where[20]; // of a crash: address in this program, as addr2line takes it
    struct tally tally;
    bool has_finding;
    struct finding finding;
};

struct job {
    pid_t pid;     // 0: none
    uint64_t next; // seed
    struct report *report;
};

// ---- one program

// The choices of a seed. Of pairs, the seeds in turn take every two rules.
static void begin(const struct settings *s, struct choices *c, uint64_t seed)
{
    const uint32_t forced[][2] = {
        {KIND_CHOICE, s->kind},
        {OUTER_CHOICE, (uint32_t)(seed % grow_rule_count)},
        {INNER_CHOICE, (uint32_t)(seed / grow_rule_count % grow_rule_count)},
        {WIDE_CHOICE, 99},
    };
    const uint32_t first = s->kind == PROGRAM_KINDS, count = s->kind == PAIR ? 3 : 1;
    c->forced_count = 0;
    for (uint32_t i = first; i < count; i++)
        memcpy(c->forced[c->forced_count++], forced[i], sizeof(forced[i]));
    if (s->is_wide)
        memcpy(c->forced[c->forced_count++], forced[3], sizeof(forced[3]));
    choices_seed(c, seed);
}

static void out_of_memory(void *user)
{
    (void)user;
    fputs("random_tiles: out of memory\n", stderr);
    _Exit(3);
}

// Ends this process where the program takes too long, by its own time or by the clock.
static void set_limit(uint32_t seconds)
{
    struct itimerval own = {.it_value.tv_sec = seconds};
    setitimer(ITIMER_PROF, &own, NULL);
    alarm(seconds * 20);
}

static void judge_one(struct judge *j, const struct settings *s, struct choices *c, uint64_t seed,
                      struct report *r)
{
    struct tir_arena arena;
    static struct program p;
    tir_arena_init(&arena, NULL, out_of_memory, NULL);
    set_limit(s->limit);
    snprintf(r->stage, sizeof(r->stage), "generate");
    program_make(&p, &arena, c);
    r->has_finding = !judge_program(j, &p, seed, &r->finding);
    set_limit(0);
    tir_arena_finish(&arena);
}

static void print_program(FILE *file, struct choices *c)
{
    struct tir_arena arena;
    static struct program p;
    tir_arena_init(&arena, NULL, out_of_memory, NULL);
    program_make(&p, &arena, c);
    for (uint32_t i = 0; i < p.launch_count; i++)
        fprintf(file, "// launch %u:%s\n", i, p.launches[i].ptr);
    fputs(p.source, file);
    if (strstr(p.source, "own.tir"))
        fprintf(file, "/* own.tir:\n%s*/\n", own_module);
    tir_arena_finish(&arena);
}

static struct report *crashing; // of this process

// Says where, then crashes.
static void note_crash(int number, siginfo_t *info, void *context)
{
    extern const char __executable_start;
    void *frames[3] = {NULL}; // this function, the system's, and where it was
    (void)info;
    (void)context;
    if (backtrace(frames, 3) == 3)
        snprintf(crashing->where, sizeof(crashing->where), "%#zx",
                 (size_t)((const char *)frames[2] - &__executable_start));
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_crashes(struct report *r)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static char stack[1 << 16]; // an overflow of the stack is a crash, too
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
    const struct sigaction action = {.sa_sigaction = note_crash,
                                     .sa_flags = SA_SIGINFO | SA_ONSTACK};
    crashing = r;
    sigaltstack(&other, NULL);
    for (size_t i = 0; i < TIR_COUNT_OF(signals); i++)
        sigaction(signals[i], &action, NULL);
}

static bool open_judge(const struct settings *s, struct judge *j, struct report *r)
{
    tir_error error;
    *j =
        (struct judge){.options = s->judge, .stage = r->stage, .arch = r->arch, .tally = &r->tally};
    if (!strcmp(s->judge.device, "emu")) {
        struct rlimit memory = {.rlim_cur = (rlim_t)6 << 30, .rlim_max = (rlim_t)6 << 30};
        setrlimit(RLIMIT_AS, &memory);
    }
    struct rlimit core = {0, 0};
    setrlimit(RLIMIT_CORE, &core);
    watch_crashes(r);
    if (judge_open(j, &error))
        return true;
    fprintf(stderr, "random_tiles: %s\n", error.message);
    return false;
}

// What a process that ended otherwise than by itself says about the program it had.
static void blame(struct report *r, int status)
{
    struct finding *f = &r->finding;
    char what[60];
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        if (number == SIGPROF || number == SIGALRM)
            snprintf(what, sizeof(what), "takes too long");
        else
            snprintf(what, sizeof(what), "crashes at %s", r->where);
        snprintf(f->key, sizeof(f->key), "%s: %s", r->stage, what);
        snprintf(f->text, sizeof(f->text), "%s: %s (signal %d)", r->stage, what, number);
    } else {
        snprintf(f->key, sizeof(f->key), "%s: exit %d", r->stage, WEXITSTATUS(status));
        memcpy(f->text, f->key, sizeof(f->key));
    }
    memcpy(f->arch, r->arch, sizeof(f->arch));
    r->has_finding = true;
}

// ---- making it smaller

struct again {
    const struct settings *settings;
    struct report *report;
    uint64_t seed;
    char key[sizeof(((struct finding *)NULL)->key)];
};

static bool fails_again(void *user, struct choices *c)
{
    struct again *a = user;
    struct choices *shared =
        mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    *shared = *c;
    a->report->has_finding = false;
    pid_t pid = fork();
    if (pid == 0) {
        struct judge j;
        if (!freopen("/dev/null", "w", stderr) || !open_judge(a->settings, &j, a->report))
            _Exit(4);
        judge_one(&j, a->settings, shared, a->seed, a->report);
        _Exit(0);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status)
        blame(a->report, status);
    *c = *shared;
    munmap(shared, sizeof(*c));
    return a->report->has_finding && !strcmp(a->report->finding.key, a->key);
}

static bool is_known(const struct settings *s, const struct finding *f)
{
    for (uint32_t i = 0; i < s->known_count; i++)
        if (strstr(f->key, s->known[i]))
            return true;
    return false;
}

static void tell(const struct settings *s, struct report *r, uint64_t seed)
{
    static struct choices c;
    struct settings alone = *s; // with the target that failed
    struct again again = {.settings = &alone, .report = r, .seed = seed};
    static char arch[sizeof(r->finding.arch)];
    memcpy(arch, r->finding.arch, sizeof(arch));
    if (*arch)
        alone.judge.only = arch;
    begin(s, &c, seed);
    printf("seed %" PRIu64 ": %s\n", seed, r->finding.text);
    fflush(stdout);
    if (s->tries) {
        memcpy(again.key, r->finding.key, sizeof(again.key));
        if (fails_again(&again, &c)) {
            shrink(&c, s->tries, fails_again, &again);
            choices_replay(&c, c.made, c.count);
            fails_again(&again, &c);
            choices_replay(&c, c.made, c.count);
            printf("smaller: %s\n", r->finding.text);
        } else {
            printf("alone it does not fail like that\n");
            begin(s, &c, seed);
        }
    }
    print_program(stdout, &c);
    printf("\n");
    fflush(stdout);
}

// ---- many programs

static bool is_late(const struct settings *s)
{
    return s->seconds && time(NULL) - s->start >= (time_t)s->seconds;
}

static void work(const struct settings *s, uint64_t first, uint64_t end, struct report *r)
{
    struct judge j;
    static struct choices c;
    if (!open_judge(s, &j, r))
        _Exit(4);
    for (uint64_t seed = first; seed < end && !is_late(s); seed += s->jobs) {
        r->seed = seed;
        begin(s, &c, seed);
        judge_one(&j, s, &c, seed, r);
        if (r->has_finding)
            _Exit(0); // the parent tells, and starts another one
    }
    r->seed = end;
    judge_close(&j);
    _Exit(0);
}

static void start(const struct settings *s, struct job *job)
{
    job->report->has_finding = false;
    fflush(stdout);
    job->pid = fork();
    if (job->pid == 0)
        work(s, job->next, s->seed + s->count, job->report);
}

static uint64_t run(const struct settings *s)
{
    struct job jobs[MOST_JOBS] = {{.pid = 0}};
    uint64_t findings = 0, known = 0;
    uint32_t alive = 0;
    for (uint32_t i = 0; i < s->jobs; i++) {
        jobs[i].report = mmap(NULL, sizeof(struct report), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (jobs[i].report == MAP_FAILED)
            exit(3);
        jobs[i].next = s->seed + i;
        start(s, &jobs[i]);
        alive++;
    }
    while (alive) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        uint32_t i = 0;
        while (i < s->jobs && jobs[i].pid != pid)
            i++;
        if (pid < 0 || i == s->jobs)
            continue;
        struct job *job = &jobs[i];
        if (WIFEXITED(status) && WEXITSTATUS(status) == 4)
            exit(4);
        if (status)
            blame(job->report, status);
        job->pid = 0;
        alive--;
        if (!job->report->has_finding)
            continue;
        if (is_known(s, &job->report->finding)) {
            known++;
        } else {
            findings++;
            tell(s, job->report, job->report->seed);
        }
        job->next = job->report->seed + s->jobs;
        if (job->next < s->seed + s->count && !is_late(s) && findings < s->most) {
            start(s, job);
            alive++;
        }
    }
    struct tally sum = {0};
    for (uint32_t i = 0; i < s->jobs; i++) {
        sum.programs += jobs[i].report->tally.programs;
        sum.refused += jobs[i].report->tally.refused;
        sum.launches += jobs[i].report->tally.launches;
        sum.assembled += jobs[i].report->tally.assembled;
        sum.products += jobs[i].report->tally.products;
        sum.spilling += jobs[i].report->tally.spilling;
        if (jobs[i].report->tally.spilled > sum.spilled) {
            sum.spilled = jobs[i].report->tally.spilled;
            sum.spilled_seed = jobs[i].report->tally.spilled_seed;
        }
        if (jobs[i].report->tally.longest > sum.longest) {
            sum.longest = jobs[i].report->tally.longest;
            sum.longest_seed = jobs[i].report->tally.longest_seed;
        }
    }
    if (s->judge.notes)
        printf("%" PRIu64 " programs with products on warpgroups, %" PRIu64
               " of them with local memory, at most %" PRIu64 " bytes (seed %" PRIu64 ")\n",
               sum.products, sum.spilling, sum.spilled, sum.spilled_seed);
    printf("at most %" PRIu64 " bytes of PTX an entry (seed %" PRIu64 ")\n", sum.longest,
           sum.longest_seed);
    printf("%" PRIu64 " programs from seed %" PRIu64 ", %" PRIu64 " launches, %" PRIu64
           " assembled, %" PRIu64 " too large for a target, %" PRIu64 " known, %" PRIu64
           " findings\n",
           sum.programs, s->seed, sum.launches, sum.assembled, sum.refused, known, findings);
    return findings;
}

// ---- the command line

static const char help[] =
    "usage: random_tiles [OPTION...]\n"
    "  --count=N       programs, default 100\n"
    "  --seed=S        of the first one, default 1; 0: by the clock, and printed\n"
    "  --jobs=N        processes, default 1\n"
    "  --seconds=N     no more programs are begun after that long\n"
    "  --limit=N       CPU seconds that a program may take, default 60\n"
    "  --device=NAME   emu, or cuda: compares what a GPU computes\n"
    "  --ptxas=N       every so manieth program is assembled, where there is ptxas; default 0, none\n"
    "  --all-targets   every program for every target; else for sm_80, sm_90a and one other\n"
    "  --target=NAME   every program for this one alone\n"
    "  --unchecked     what sync_check could not check is a finding\n"
    "  --pairs         every rule of rules.def on every other one, in turn\n"
    "  --roles         programs of two roles and a ring alone\n"
    "  --wide          programs whose tiles are those of products on warpgroups alone\n"
    "  --notes         nothing but what ptxas says of products on warpgroups for sm_90a (or --target):\n"
    "                  a note (C75xx, C76xx) is a finding, kernels that use local memory are counted\n"
    "  --spills        with --notes: local memory is a finding, too\n"
    "  --shrink=N      programs tried to make a finding smaller, default 0\n"
    "  --known=TEXT    findings with this in their first line are counted, not told; several times\n"
    "  --reread=N      every so manieth program is printed half-way and read again; default 5\n"
    "  --most=N        findings, default 20\n"
    "  --print         the program of --seed, and nothing else\n"
    "Ends with 1 where something was found, with 77 where there is no ptxas for --notes.\n";

static bool number(const char *argument, const char *name, uint64_t *out)
{
    size_t len = strlen(name);
    if (strncmp(argument, name, len) || argument[len] != '=')
        return false;
    *out = strtoull(argument + len + 1, NULL, 10);
    return true;
}

static bool parse(int argc, char **argv, struct settings *s)
{
    uint64_t value;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (number(a, "--count", &value))
            s->count = value;
        else if (number(a, "--seed", &value))
            s->seed = value;
        else if (number(a, "--jobs", &value) && value && value <= MOST_JOBS)
            s->jobs = (uint32_t)value;
        else if (number(a, "--seconds", &value))
            s->seconds = (uint32_t)value;
        else if (number(a, "--limit", &value) && value)
            s->limit = (uint32_t)value;
        else if (number(a, "--ptxas", &value))
            s->judge.ptxas = (uint32_t)value;
        else if (number(a, "--shrink", &value))
            s->tries = (uint32_t)value;
        else if (number(a, "--most", &value))
            s->most = (uint32_t)value;
        else if (number(a, "--reread", &value))
            s->judge.reread = (uint32_t)value;
        else if (!strncmp(a, "--known=", 8) && s->known_count < TIR_COUNT_OF(s->known))
            s->known[s->known_count++] = a + 8;
        else if (!strncmp(a, "--target=", 9))
            s->judge.only = a + 9;
        else if (!strncmp(a, "--device=", 9))
            s->judge.device = a + 9;
        else if (!strcmp(a, "--all-targets"))
            s->judge.all_targets = true;
        else if (!strcmp(a, "--unchecked"))
            s->judge.unchecked = true;
        else if (!strcmp(a, "--pairs"))
            s->kind = PAIR;
        else if (!strcmp(a, "--roles"))
            s->kind = ROLES;
        else if (!strcmp(a, "--wide"))
            s->is_wide = true;
        else if (!strcmp(a, "--notes"))
            s->judge.notes = true;
        else if (!strcmp(a, "--spills"))
            s->judge.spills = true;
        else if (!strcmp(a, "--print"))
            s->prints = true;
        else
            return false;
    }
    if (s->judge.notes && !s->judge.only)
        s->judge.only = "sm_90a";
    return true;
}

static bool has_ptxas(void)
{
    struct tir_arena arena;
    tir_arena_init(&arena, NULL, out_of_memory, NULL);
    const bool has = tir_ptxas_find(&arena) != NULL;
    tir_arena_finish(&arena);
    return has;
}

// Writes the file that programs import to a folder of its own.
static bool make_folder(struct judge_options *judge)
{
    static char folder[] = "/tmp/random_tiles.XXXXXX", path[80];
    if (!mkdtemp(folder))
        return false;
    snprintf(path, sizeof path, "%s/own.tir", folder);
    FILE *file = fopen(path, "w");
    const bool fine = file && fputs(own_module, file) >= 0;
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "%s/random.tir", folder);
    judge->folder = folder;
    judge->path = path;
    return fine;
}

static void remove_folder(const struct judge_options *judge)
{
    char path[80];
    snprintf(path, sizeof path, "%s/own.tir", judge->folder);
    remove(path);
    rmdir(judge->folder);
}

int main(int argc, char **argv)
{
    struct settings s = {.judge.device = "emu",
                         .kind = PROGRAM_KINDS,
                         .start = time(NULL),
                         .judge.reread = 5,
                         .seed = 1,
                         .count = 100,
                         .jobs = 1,
                         .limit = 60,
                         .most = 20};
    if (!parse(argc, argv, &s)) {
        fputs(help, stderr);
        return 2;
    }
    if (s.judge.notes && !has_ptxas()) {
        puts("no ptxas");
        return 77;
    }
    if (!s.seed) {
        s.seed = (uint64_t)time(NULL) * 1000;
        printf("--seed=%" PRIu64 "\n", s.seed);
    }
    if (s.prints) {
        static struct choices c;
        begin(&s, &c, s.seed);
        print_program(stdout, &c);
        return 0;
    }
    if (!make_folder(&s.judge)) {
        perror("random_tiles");
        return 4;
    }
    const uint64_t findings = run(&s);
    remove_folder(&s.judge);
    return findings > 0;
}
