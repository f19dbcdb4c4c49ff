#include "cli/one_process.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/transport_choice.h"

#define MEETING_SECONDS 10.

/* They meet for that alone: a launcher ends all others once one has ended with a failure, maybe before it could speak. Where
 * they cannot meet, the first of each host speaks. */
static bool is_speaker(const char *text)
{
    const struct ph_comm_options options = {.timeout_seconds = MEETING_SECONDS};
    struct ph_comm *comm = NULL;
    bool speaks = ph_comm_speaks(NULL);
    if (ph_comm_create(&options, &comm) == PH_OK) {
        speaks = ph_comm_rank(comm) == 0;
        ph_fail(PH_ERROR_USAGE, "%s", text);
        if (speaks)
            ph_comm_fail(comm, PH_ERROR_USAGE);
        else
            (void)ph__comm_barrier(comm); /* until the first one has failed */
    }
    ph_comm_destroy(comm);
    return speaks;
}

ph_status cli_check_one_process(const char *verb)
{
    struct ph_transport_choice choice;
    char text[256];
    if (ph__transport_choose(NULL, &choice) != PH_OK || strcmp(choice.name, "self") == 0 ||
        choice.num_ranks < 2)
        return PH_OK;
    snprintf(text, sizeof text,
        "phloem %s is for one process, and a launcher has started %zu of them: start it without, or say "
        "PHLOEM_MPI=self where they have nothing to do with each other",
        verb, choice.num_ranks);
    return ph_fail(PH_ERROR_USAGE, "%s", is_speaker(text) ? text : "");
}
