/* phloem serve REPOSITORY: a scoring server. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/stop.h"
#include "cli/arguments.h"
#include "cli/serve/serve_verbs.h"
#include "cli/stop_signal.h"
#include "cli/verb.h"
#include "serve/server/server_options.h"

struct request {
    const char *config, *http, *grpc, *metrics, *threads, *control, *example;
    struct cli_texts sets;
    struct ph__arena arena; /* holds texts of sets that argv does not hold, and of the options */
    struct ph_server_options options;
};

static ph_status add_sets(struct request *request)
{
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "serve.http_address", request->http));
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "serve.grpc_address", request->grpc));
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "serve.metrics_address", request->metrics));
    PH_TRY(cli_sets_add(&request->sets, &request->arena, "serve.threads", request->threads));
    return cli_sets_add(&request->sets, &request->arena, "serve.control", request->control);
}

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const struct cli_flag flags[] = {
        {"--config", CLI_TEXT, &request->config, "FILE",
            "config with keys under serve (phloem config --docs)"},
        {"--set", CLI_TEXTS, &request->sets, "KEY=VALUE", "overrides the config's value"},
        {"--http", CLI_TEXT, &request->http, "HOST:PORT", "same as --set serve.http_address=HOST:PORT"},
        {"--grpc", CLI_TEXT, &request->grpc, "HOST:PORT", "same as --set serve.grpc_address=HOST:PORT"},
        {"--metrics", CLI_TEXT, &request->metrics, "HOST:PORT",
            "same as --set serve.metrics_address=HOST:PORT"},
        {"--threads", CLI_TEXT, &request->threads, "N", "same as --set serve.threads=N"},
        {"--example", CLI_TEXT, &request->example, "MODEL",
            "prints a request for this model, for curl and for Triton's client, and serves nothing"},
        {"--control", CLI_TEXT, &request->control, "WORD", "same as --set serve.control=WORD"},
    };
    const struct cli_command command = {"serve", "serve runs/mine",
        "Answers requests for scores over REST and gRPC, as Triton's clients send them, until a signal ends "
        "it.\n"
        "REPOSITORY is a folder of folders MODEL/VERSION that phloem train made, or one such folder.\n"
        "phloem serve status shows what a running server serves.",
        "REPOSITORY", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    request->options.repository = arguments.positional[0];
    return add_sets(request);
}

static ph_status read_options(struct request *request)
{
    struct ph__section sections[PH_NUM_SERVER_SECTIONS];
    const char *repository = request->options.repository;
    ph__server_sections(&request->options, sections);
    PH_TRY(ph__config_read(request->config, request->sets.items, request->sets.count, sections,
        PH_NUM_SERVER_SECTIONS, &request->arena));
    request->options.size = sizeof request->options;
    request->options.repository = repository;
    request->options.log_descriptor = STDERR_FILENO;
    return PH_OK;
}

static void print_addresses(const struct ph_server *server)
{
    const char *http = ph_server_http_address(server), *grpc = ph_server_grpc_address(server);
    const char *metrics = ph_server_metrics_address(server);
    if (http != NULL)
        printf("REST     http://%s\n", http);
    if (grpc != NULL)
        printf("gRPC     %s\n", grpc);
    if (metrics != NULL)
        printf("metrics  http://%s/metrics\n", metrics);
    fflush(stdout);
}

static ph_status serve(const struct request *request)
{
    struct ph_server *server;
    const volatile int *stop_signal = cli_stop_signal();
    cli_raise_descriptor_limit();
    PH_TRY(ph_server_create(&request->options, &server));
    print_addresses(server);
    ph_status status = ph_server_run(server, stop_signal);
    ph_server_destroy(server);
    if (status == PH_OK)
        status =
            ph_fail(ph__stop_status(stop_signal), "stopped by a signal, after all requests were answered");
    return status;
}

ph_status verb_serve(int argc, char **argv)
{
    struct request request = {0};
    bool is_done;
    if (argc > 1 && strcmp(argv[1], "status") == 0)
        return cli_serve_status(argc - 1, argv + 1);
    ph_status status = parse(argc, argv, &request, &is_done);
    if (status == PH_OK && !is_done)
        status = read_options(&request);
    if (status == PH_OK && !is_done && request.example != NULL)
        status = cli_serve_example(request.options.repository, request.example, request.options.http_address);
    else if (status == PH_OK && !is_done)
        status = serve(&request);
    ph__arena_fini(&request.arena);
    return status;
}
