#include "cli/stop_signal.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define STACK_BYTES (64 << 10) /* several times a signal frame with all vector registers */

static volatile int stop_signal; /* set by the handler alone */
static unsigned grace_seconds;   /* from a signal to a forced end; 0: none */
static char removed_path[4096];  /* of a half-written file; "": none */

static void remember_signal(int number);

static bool has_handler(int number, void (*handler)(int))
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == handler;
}

static void give_back(int number)
{
    if (has_handler(number, remember_signal))
        signal(number, SIG_DFL);
}

static void remember_signal(int number)
{
    stop_signal = number;
    if (grace_seconds > 0)
        alarm(grace_seconds);
    give_back(SIGINT);
    give_back(SIGTERM);
}

/* Moves handlers to a stack of their own: oneDNN 2.6 uses the main thread's stack below its end, where a
 * handler's frame would overwrite its data. */
static void leave_stack(void)
{
    static char memory[STACK_BYTES];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, NULL);
}

/* Installs a handler unless the program was started to ignore the signal, as shells do in the background. */
static void take_over(int number, void (*handler)(int))
{
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    leave_stack();
    if (!has_handler(number, SIG_IGN))
        sigaction(number, &action, NULL);
}

const volatile int *cli_stop_signal(void)
{
    cli_stop_signal_watch(NULL, true);
    return cli_stop_signal_place();
}

const volatile int *cli_stop_signal_place(void)
{
    signal(SIGPIPE, SIG_IGN);
    return &stop_signal;
}

void cli_stop_signal_watch(void *context, bool is_on)
{
    (void)context;
    if (is_on) {
        take_over(SIGINT, remember_signal);
        take_over(SIGTERM, remember_signal);
        return;
    }
    give_back(SIGINT);
    give_back(SIGTERM);
    if (stop_signal != 0)
        raise(stop_signal);
}

static void end_late(int number)
{
    static const char line[] = "phloem: error: stopped by a signal\n";
    (void)number;
    (void)!write(STDERR_FILENO, line, sizeof line - 1);
    _exit(128 + stop_signal);
}

const volatile int *cli_stop_signal_soon(void)
{
    const struct sigaction action = {.sa_handler = end_late, .sa_flags = SA_ONSTACK};
    sigaction(SIGALRM, &action, NULL);
    grace_seconds = 1;
    return cli_stop_signal();
}

static void remove_and_end(int number)
{
    unlink(removed_path);
    signal(number, SIG_DFL);
    raise(number);
}

void cli_stop_signal_removes(const char *path)
{
    const int length = snprintf(removed_path, sizeof removed_path, "%s.tmp", path);
    if (length < 0 || (size_t)length >= sizeof removed_path)
        removed_path[0] = '\0'; /* no file has this name */
    take_over(SIGINT, remove_and_end);
    take_over(SIGTERM, remove_and_end);
}

void cli_raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)!setrlimit(RLIMIT_NOFILE, &limit);
}
