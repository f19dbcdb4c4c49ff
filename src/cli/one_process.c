#include "cli/one_process.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "comm/collective/comm.h"
#include "comm/wire/transport_choice.h"

#define MEETING_SECONDS 10.

/* Fails with the text, which one rank alone keeps: the one that is to print it. They meet for that alone, as a launcher ends all
 * others once one has ended with a failure, maybe before it could speak. Ranks that disagree, of which some run another verb, say
 * so instead. Where they cannot meet, the first of each host speaks. */
static ph_status refuse(const char *task, const char *text)
{
    const struct ph_comm_options options = {.timeout_seconds = MEETING_SECONDS, .task = task};
    struct ph_comm *comm = NULL;
    const ph_status meeting = ph_comm_create(&options, &comm);
    const bool disagree = meeting == PH_ERROR_CONFIG && comm != NULL;
    const bool speaks = meeting == PH_OK ? ph_comm_rank(comm) == 0 : ph_comm_speaks(disagree ? comm : NULL);
    if (!disagree)
        ph_fail(PH_ERROR_USAGE, "%s", text);
    if (meeting == PH_OK && speaks)
        ph_comm_fail(comm, PH_ERROR_USAGE);
    else if (meeting == PH_OK)
        (void)ph__comm_barrier(comm); /* until the first one has failed */
    ph_comm_destroy(comm);
    return speaks ? PH_ERROR_USAGE : ph_fail(PH_ERROR_USAGE, "%s", "");
}

ph_status cli_check_one_process(const char *verb)
{
    struct ph_transport_choice choice;
    char task[32], text[256];
    if (ph__transport_choose(NULL, &choice) != PH_OK || strcmp(choice.name, "self") == 0 ||
        choice.num_ranks < 2)
        return PH_OK;
    snprintf(task, sizeof task, "phloem %s", verb);
    snprintf(text, sizeof text,
        "%s is for one process, and a launcher has started %zu of them: start it without, or say "
        "PHLOEM_MPI=self where they have nothing to do with each other",
        task, choice.num_ranks);
    return refuse(task, text);
}
