/* phloem topology agent: lets other hosts measure the network to this one. */
#include <poll.h>
#include <stdio.h>

#include "base/thread/stop.h"
#include "cli/arguments.h"
#include "cli/stop_signal.h"
#include "cli/topology/topology_verbs.h"
#include "cli/with_ranks.h"
#include "comm/probe/probe_agent.h"

#define LOOK_MS 50

static ph_status serve(const char *address, const struct ph__secret *secret)
{
    const volatile int *stop_signal = cli_stop_signal();
    struct ph__netprobe_agent *agent;
    PH_TRY(ph__netprobe_agent_create(address, secret, &agent));
    printf("ready at %s\n", ph__netprobe_agent_address(agent));
    fflush(stdout);
    while (!ph__is_stopped(stop_signal))
        poll(NULL, 0, LOOK_MS);
    ph__netprobe_agent_destroy(agent);
    return ph_fail(ph__stop_status(stop_signal), "stopped by a signal");
}

ph_status cli_topology_agent(int argc, char **argv)
{
    const char *address = "127.0.0.1:4712", *secret_file = NULL;
    struct ph__secret secret;
    const struct cli_flag flags[] = {
        {"--listen", CLI_TEXT, &address, "HOST:PORT",
            "address of this host; port 0: a free one. Default: 127.0.0.1:4712"},
        {"--secret-file", CLI_TEXT, &secret_file, "FILE",
            "secret that the probe and all agents share; required but on the loopback"},
    };
    const struct cli_command command = {"topology agent", "topology agent --listen 127.0.0.1:4712",
        "Lets other hosts measure the network to this one, and measures it to them, for\n"
        "phloem topology probe --hosts. Prints its address; a signal ends it.",
        "", 0, 0, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_check_one_process("topology agent"));
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    if (secret_file != NULL)
        PH_TRY(ph__secret_read(secret_file, &secret));
    const ph_status status = serve(address, secret_file != NULL ? &secret : NULL);
    ph__secret_fini(&secret);
    return status;
}
