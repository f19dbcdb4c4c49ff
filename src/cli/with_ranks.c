#include "cli/with_ranks.h"

#include <stdio.h>

#include "cli/deadline.h"

/* MPI waits at its end for all ranks and hears of no deaths. All is written by then, and what a rank that could not end says is
 * for its launcher. `speaks`: whether this rank tells what has happened. */
static void close_comm(const struct cli_ranks *ranks, struct ph_comm *comm, ph_status status, bool speaks)
{
    char line[1200] = "";
    if (speaks && status == PH_OK)
        snprintf(line, sizeof line,
            "phloem: error: %s, but MPI has not ended within parallel.timeout_seconds: a rank has ended "
            "meanwhile, or hangs\n",
            ranks->done_text);
    else if (speaks)
        snprintf(line, sizeof line, "phloem: error: %s\n", ph_error_text());
    fflush(stdout); /* whose failure the end of the program tells */
    cli_deadline_begin(ranks->parallel->timeout_seconds, status == PH_OK ? PH_ERROR_PEER : status, line);
    ph_comm_destroy(comm);
    cli_deadline_end();
}

ph_status cli_with_ranks(const struct cli_ranks *ranks, ph_status status)
{
    const struct ph_comm_options options = {.transport = ranks->parallel->transport,
        .timeout_seconds = ranks->parallel->timeout_seconds,
        .ranks_per_host = (size_t)ranks->parallel->ranks_per_host,
        .has_failed = status != PH_OK,
        .task = ranks->task};
    struct ph_comm *comm;
    char why[1024];
    snprintf(why, sizeof why, "%s", ph_error_text());
    const ph_status meeting = ph_comm_create(&options, &comm);
    if (status != PH_OK)
        ph_fail(status, "%s", why);
    else
        status = meeting == PH_OK ? ranks->work(ranks->context, comm) : meeting;
    if (status == PH_OK)
        status = ph_comm_leave(comm);
    if (status != PH_OK && comm != NULL)
        status =
            ph_comm_fail(comm, status); /* which is then the last error again, whatever has been tidied up */
    const bool speaks = status == PH_OK ? ph_comm_rank(comm) == 0 : ph_comm_speaks(comm);
    close_comm(ranks, comm, status, speaks);
    return speaks ? status : ph_fail(status, "%s", "");
}
