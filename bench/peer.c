#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool read_line(struct peer *peer)
{
    if (peer->from == NULL || getline(&peer->line, &peer->line_capacity, peer->from) < 0)
        return false;
    peer->line[strcspn(peer->line, "\n")] = '\0';
    return true;
}

/* Returns the text behind `word` and a blank at the start of the line, or NULL. */
static const char *behind(const char *line, const char *word)
{
    const size_t length = strlen(word);
    return strncmp(line, word, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

static void say_skipped(const char *name, const char *why)
{
    printf("peer %s: skipped: %s\n", name, why);
    fflush(stdout);
}

void peer_stop(struct peer *peer)
{
    if (peer->to != NULL)
        fclose(peer->to);
    if (peer->from != NULL)
        fclose(peer->from);
    if (peer->process > 0)
        waitpid(peer->process, NULL, 0);
    free(peer->line);
    *peer = (struct peer){0};
}

struct start {
    const char *const *arguments; /* the program first; NULL behind the last */
    bool is_foreign;
};

/* Sets the allocator as a peer's users do: another one if the environment names one; else glibc's keeps large
 * blocks in the heap instead of mapping them anew in each step. */
static void tune_allocator(void)
{
    const char *allocator = getenv("PHLOEM_BENCH_PEER_ALLOCATOR");
    if (allocator != NULL) {
        setenv("LD_PRELOAD", allocator, 1);
        return;
    }
    setenv("MALLOC_MMAP_THRESHOLD_", "1073741824", 1);
    setenv("MALLOC_TRIM_THRESHOLD_", "2147483648", 1);
    setenv("MALLOC_TOP_PAD_", "268435456", 1);
}

/* Removes our settings from the environment of another package's program. */
static void leave_own_settings(void)
{
    unsetenv("GOMP_SPINCOUNT");
    tune_allocator();
}

static _Noreturn void become(const struct start *start, const int *to, const int *from)
{
    signal(SIGPIPE, SIG_DFL);
    dup2(to[0], 0);
    dup2(from[1], 1);
    if (start->is_foreign)
        leave_own_settings();
    execvp(start->arguments[0], (char *const *)(uintptr_t)start->arguments); /* changes none of them */
    _exit(127);
}

/* Starts a peer's process behind two pipes, or returns the reason why it cannot. The pipes close at exec: a
 * peer that held another one's pipes would keep that one from ever seeing the end of its input. */
static const char *start_process(struct peer *peer, const struct start *start)
{
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0)
        return strerror(errno);
    if (pipe2(from, O_CLOEXEC) != 0) {
        const int reason = errno;
        close(to[0]);
        close(to[1]);
        return strerror(reason);
    }
    peer->process = fork();
    if (peer->process == 0)
        become(start, to, from);
    close(to[0]);
    close(from[1]);
    peer->to = fdopen(to[1], "w");
    peer->from = fdopen(from[0], "r");
    return peer->process < 0 ? "cannot start it" : NULL;
}

static void start(struct peer *peer, const char *name, const struct start *how)
{
    *peer = (struct peer){.name = name};
    signal(SIGPIPE, SIG_IGN); /* a peer that has ended shows by its missing answer */
    const char *reason = start_process(peer, how);
    if (reason == NULL && !read_line(peer))
        reason = "it did not start";
    if (reason == NULL && behind(peer->line, name) != NULL) {
        snprintf(peer->version, sizeof peer->version, "%s", peer->line);
        return;
    }
    if (reason == NULL)
        reason = behind(peer->line, "missing") != NULL ? behind(peer->line, "missing") : peer->line;
    say_skipped(name, reason);
    peer_stop(peer);
}

void peer_start(struct peer *peer, const char *folder, const char *name)
{
    char script[4096];
    const char *named = getenv("PHLOEM_BENCH_PYTHON");
    *peer = (struct peer){0};
    if (folder == NULL)
        return;
    snprintf(script, sizeof script, "%s/%s.py", folder, name);
    const char *const arguments[] = {named != NULL ? named : "python3", script, NULL};
    start(peer, name, &(struct start){arguments, true});
}

void peer_start_own(struct peer *peer, const char *name, const char *const *arguments)
{
    start(peer, name, &(struct start){arguments, false});
}

bool peer_is_there(const struct peer *peer)
{
    return peer->to != NULL;
}

static const char *ask(struct peer *peer, const char *format, va_list arguments)
{
    if (peer->to == NULL)
        return NULL;
    vfprintf(peer->to, format, arguments);
    fputc('\n', peer->to);
    fflush(peer->to);
    if (read_line(peer))
        return peer->line;
    say_skipped(peer->name, "it ended unexpectedly");
    peer_stop(peer);
    return NULL;
}

const char *peer_ask(struct peer *peer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *answer = ask(peer, format, arguments);
    va_end(arguments);
    return answer;
}

bool peer_accepts(struct peer *peer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *answer = ask(peer, format, arguments);
    va_end(arguments);
    if (answer == NULL || strcmp(answer, "ready") == 0)
        return answer != NULL;
    say_skipped(peer->name, behind(answer, "skipped") != NULL ? behind(answer, "skipped") : answer);
    return false;
}

double peer_number(const char **text)
{
    char *end = NULL;
    const double number = *text != NULL ? strtod(*text, &end) : 0;
    const bool is_there = *text != end;
    *text = end;
    return is_there ? number : (double)NAN;
}
