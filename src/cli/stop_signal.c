#include "cli/stop_signal.h"

#include <signal.h>
#include <stddef.h>

static volatile int stop_signal; /* set by the handler alone */

static void remember_signal(int number)
{
    stop_signal = number;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

const volatile int *cli_stop_signal(void)
{
    struct sigaction action = {.sa_handler = remember_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &stop_signal;
}
