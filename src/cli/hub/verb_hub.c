/* phloem hub [status|bench|destroy] */
#include <string.h>

#include "cli/arguments.h"
#include "cli/hub/hub_verbs.h"
#include "cli/verb.h"
#include "hub/client/client_operator.h"

/* Runs phloem hub destroy ADDRESS SERVICE: ends a service that nobody else does. */
static ph_status destroy(int argc, char **argv)
{
    struct ph_hub_options options = {.size = sizeof options, .connect_timeout_ms = CLI_HUB_CONNECT_MS};
    const struct cli_flag flags[] = {
        {"--secret-file", CLI_TEXT, &options.secret_file, "FILE", "the hub's secret"},
    };
    const struct cli_command command = {"hub destroy",
        "Ends SERVICE at the hub at ADDRESS, or at several that share it: ADDRESS,ADDRESS. For all its\n"
        "workers, and its checkpoint is removed.\n"
        "The hub's own user may, on the hub's host.",
        "ADDRESS SERVICE", 2, 2, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    options.address = arguments.positional[0];
    return ph__hub_end_service(&options, arguments.positional[1]);
}

ph_status verb_hub(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "status") == 0)
        return cli_hub_status(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "bench") == 0)
        return cli_hub_bench(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "destroy") == 0)
        return destroy(argc - 1, argv + 1);
    return cli_hub_serve(argc, argv);
}
