#include "cli/stop_signal.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static volatile int stop_signal; /* set by the handler alone */

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
    give_back(SIGINT);
    give_back(SIGTERM);
}

/* Who started the program may have wanted it to ignore the signal, as a shell does for what runs in the background. */
static void take_over(int number)
{
    const struct sigaction action = {.sa_handler = remember_signal};
    if (!has_handler(number, SIG_IGN))
        sigaction(number, &action, NULL);
}

const volatile int *cli_stop_signal(void)
{
    take_over(SIGINT);
    take_over(SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    return &stop_signal;
}
