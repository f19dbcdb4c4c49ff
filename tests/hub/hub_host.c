/* A parameter hub as a process, for tests that kill it.
 *
 *     hub_host ADDRESS [CHECKPOINT_FOLDER]
 *
 * says "listening ADDRESS" when it does. SIGTERM ends it in good order. */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "phloem/hub_server.h"

enum { TRIES = 200 }; /* to listen where another process may still be about to go */

static volatile int stop_signal;

static void stop(int signal)
{
    stop_signal = signal;
}

static ph_status create(const struct ph_hub_server_options *options, struct ph_hub_server **server_out)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    ph_status status = ph_hub_server_create(options, server_out);
    for (int i = 0; i < TRIES && status == PH_ERROR_PEER; i++) {
        nanosleep(&pause, NULL);
        status = ph_hub_server_create(options, server_out);
    }
    return status;
}

static ph_status serve(const char *address, const char *folder)
{
    const struct ph_hub_server_options options = {
        .size = sizeof options, .address = address, .checkpoint_folder = folder, .num_threads = 2};
    struct ph_hub_server *server;
    PH_TRY(create(&options, &server));
    printf("listening %s\n", ph_hub_server_address(server));
    fflush(stdout);
    const ph_status status = ph_hub_server_run(server, &stop_signal);
    ph_hub_server_destroy(server);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: hub_host ADDRESS [CHECKPOINT_FOLDER]\n");
        return 2;
    }
    signal(SIGTERM, stop);
    const ph_status status = serve(argv[1], argc > 2 ? argv[2] : NULL);
    if (status != PH_OK)
        fprintf(stderr, "hub_host: %s\n", ph_error_text());
    return ph_status_exit_code(status);
}
