/* phloem topology VERB: measures a network, and orders a program's hosts by it. */
#include <string.h>

#include "cli/arguments.h"
#include "cli/topology/topology_verbs.h"
#include "cli/verb.h"

ph_status verb_topology(int argc, char **argv)
{
    static const char *const names[] = {"probe", "agent", "order", "show"};
    static ph_status (*const verbs[])(int, char **) = {
        cli_topology_probe, cli_topology_agent, cli_topology_order, cli_topology_show};
    for (size_t i = 0; argc > 1 && i < sizeof names / sizeof *names; i++)
        if (strcmp(argv[1], names[i]) == 0)
            return verbs[i](argc - 1, argv + 1);
    struct cli_arguments arguments;
    const struct cli_command command = {"topology",
        "topology order cluster.yaml --collective ring --bytes 4194304",
        "Measures a network, shows it, and orders a program's hosts by it: probe, agent, show, order.\n"
        "Each has a help of its own: phloem topology order --help.",
        "VERB", 1, 1, NULL, 0};
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    return arguments.has_printed_help ? PH_OK
                                      : cli_unknown("verb of topology", arguments.positional[0], names,
                                            sizeof names / sizeof *names);
}
