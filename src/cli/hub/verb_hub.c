/* phloem hub [--config FILE]: runs a parameter hub; phloem hub destroy; and passes on status and bench. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/stop.h"
#include "cli/arguments.h"
#include "cli/hub/hub_verbs.h"
#include "cli/output.h"
#include "cli/stop_signal.h"
#include "cli/verb.h"
#include "hub/client/client_operator.h"
#include "hub/server/hub_options.h"

/* ---- serving ---- */

struct request {
    const char *config, *address, *threads, *secret_file, *metrics, *trace;
    struct cli_texts sets;
    struct ph__arena arena; /* holds texts of sets that argv does not hold, and of the options */
    struct ph_hub_server_options options;
};

static ph_status add_sets(struct request *request)
{
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "hub.address", request->address));
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "hub.threads", request->threads));
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "hub.secret_file", request->secret_file));
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "hub.metrics_address", request->metrics));
    return cli_sets_add(&request->sets, &request->arena, "hub.trace", request->trace);
}

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const struct cli_flag flags[] = {
        {"--config", CLI_TEXT, &request->config, "FILE", "config with keys under hub (phloem config --docs)"},
        {"--set", CLI_TEXTS, &request->sets, "KEY=VALUE", "overrides the config's value"},
        {"--address", CLI_TEXT, &request->address, "HOST:PORT", "same as --set hub.address=HOST:PORT"},
        {"--threads", CLI_TEXT, &request->threads, "N", "same as --set hub.threads=N"},
        {"--secret-file", CLI_TEXT, &request->secret_file, "FILE", "same as --set hub.secret_file=FILE"},
        {"--metrics", CLI_TEXT, &request->metrics, "HOST:PORT",
            "same as --set hub.metrics_address=HOST:PORT"},
        {"--trace", CLI_TEXT, &request->trace, "FILE", "same as --set hub.trace=FILE"},
    };
    const struct cli_command command = {"hub", "hub --address 127.0.0.1:4711",
        "Starts a parameter hub and prints its address; a signal ends it.\n"
        "phloem hub status shows the state of a hub, phloem hub bench measures it, phloem hub destroy\n"
        "ends a service that its workers left behind.",
        "", 0, 0, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    return *is_done ? PH_OK : add_sets(request);
}

static ph_status read_options(struct request *request)
{
    const struct ph__section section = {&ph__hub_options, &request->options};
    PH_TRY(ph__config_read(
        request->config, request->sets.items, request->sets.count, &section, 1, &request->arena));
    request->options.size = sizeof request->options;
    request->options.log_descriptor = STDERR_FILENO;
    return PH_OK;
}

static void print_address(const struct ph_hub_server *server)
{
    const char *metrics = ph_hub_server_metrics_address(server);
    printf("ready at %s", ph_hub_server_address(server));
    if (metrics != NULL)
        printf(", metrics at http://%s/metrics", metrics);
    printf("\n");
    fflush(stdout);
}

static ph_status run_until_stopped(struct ph_hub_server *server)
{
    const volatile int *stop_signal = cli_stop_signal();
    print_address(server);
    PH_TRY(ph_hub_server_run(server, stop_signal));
    return ph_fail(ph__stop_status(stop_signal), "stopped by a signal, after all jobs were ended");
}

static ph_status serve(const struct request *request)
{
    const struct ph_hub_server_options *options = &request->options;
    struct ph_hub_server *server;
    cli_raise_descriptor_limit();
    if (options->trace_path != NULL)
        PH_TRY(cli_output_try(options->trace_path));
    PH_TRY(ph_hub_server_create(options, &server));
    const ph_status status = run_until_stopped(server);
    ph_hub_server_destroy(server);
    return status;
}

static ph_status run_hub(int argc, char **argv)
{
    struct request request = {0};
    bool is_done;
    ph_status status = parse(argc, argv, &request, &is_done);
    if (status == PH_OK && !is_done)
        status = read_options(&request);
    if (status == PH_OK && !is_done)
        status = serve(&request);
    ph__arena_fini(&request.arena);
    return status;
}

/* ---- ending a service ---- */

/* Runs phloem hub destroy ADDRESS SERVICE: ends a service that its own job does not end. */
static ph_status destroy(int argc, char **argv)
{
    struct ph_hub_options options = {.size = sizeof options, .connect_timeout_ms = CLI_HUB_CONNECT_MS};
    const struct cli_flag flags[] = {
        {"--secret-file", CLI_TEXT, &options.secret_file, "FILE", "secret file of the hub"},
    };
    const struct cli_command command = {"hub destroy", "hub destroy 127.0.0.1:4711 job",
        "Ends SERVICE at the hub at ADDRESS, or at several that share it: ADDRESS,ADDRESS.\n"
        "It ends for all its workers, and its checkpoint is removed.\n"
        "Only the hub's own user may do so, on the hub's host.",
        "ADDRESS SERVICE", 2, 2, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    options.address = arguments.positional[0];
    return ph__hub_end_service(&options, arguments.positional[1]);
}

/* ---- choosing ---- */

ph_status verb_hub(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "status") == 0)
        return cli_hub_status(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "bench") == 0)
        return cli_hub_bench(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "destroy") == 0)
        return destroy(argc - 1, argv + 1);
    return run_hub(argc, argv);
}
