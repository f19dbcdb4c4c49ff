#include "cli/with_ranks.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/collective/comm.h"
#include "comm/wire/transport_open.h"

/* ---- a deadline for calls that cannot be stopped ---- */

static const char *last_line;
static int last_code;

static void end_process(int number)
{
    (void)number;
    if (write(STDERR_FILENO, last_line, strlen(last_line)) < 0)
        _exit(last_code); /* nobody reads it */
    _exit(last_code);
}

/* Ends the process by SIGALRM unless end_deadline comes within so many seconds: with the exit code of
 * `status`, without tidying up, and with `line`, borrowed until then, on stderr. One at a time. */
static void begin_deadline(double seconds, ph_status status, const char *line)
{
    const struct sigaction action = {.sa_handler = end_process};
    last_line = line;
    last_code = ph_status_exit_code(status);
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds < INT_MAX ? (unsigned)ceil(seconds) : INT_MAX);
}

static void end_deadline(void)
{
    alarm(0);
}

/* Prints the last error, while the other ranks wait to leave with this one: once a rank has ended with a
 * failure, a launcher ends all, and what is printed then may be lost. */
static void speak(void)
{
    fflush(stdout);
    fprintf(stderr, "phloem: error: %s\n", ph_error_text());
}

/* ---- work with other ranks ---- */

/* Ends the communicator before a deadline: MPI waits at its end for all ranks, and does not notice their
 * deaths. All results are written by then, and the exit code of a rank that could not end is for its
 * launcher. speaks: true on the rank that reports the outcome. */
static void close_comm(const struct cli_ranks *ranks, struct ph_comm *comm, ph_status status, bool speaks)
{
    char line[1200] = "";
    if (speaks && status == PH_OK)
        snprintf(line, sizeof line,
            "phloem: error: %s, but MPI did not shut down within parallel.timeout_seconds: a rank ended "
            "early or stalled\n",
            ranks->done_text);
    else if (speaks)
        speak();
    fflush(stdout);
    /* The rank that speaks ends first: when a rank fails, MPICH's launcher ends the others, and what they
     * have just written is lost. */
    const double seconds = ranks->parallel->timeout_seconds + (speaks ? 0 : 1);
    begin_deadline(seconds, status == PH_OK ? PH_ERROR_PEER : status, line);
    ph_comm_destroy(comm);
    end_deadline();
}

ph_status cli_with_ranks(const struct cli_ranks *ranks, ph_status status)
{
    const struct ph_comm_options options = {.size = sizeof options,
        .transport = ranks->parallel->transport,
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
        status = ph_comm_fail(comm, status); /* sets the last error again */
    const bool speaks = status == PH_OK ? ph_comm_rank(comm) == 0 : ph_comm_speaks(comm);
    close_comm(ranks, comm, status, speaks);
    return status == PH_OK ? PH_OK : ph_fail(status, "%s", ""); /* the rank that speaks has spoken */
}

/* ---- verbs for one process ---- */

#define MEETING_SECONDS 10.

/* Fails with the text on one rank, which is to print it, and without a text on the others. The ranks meet for
 * that alone: a launcher ends all ranks once one has ended with a failure, maybe before that one could speak.
 * Ranks that disagree, of which some run another verb, report that instead. If they cannot meet, the first of
 * each host speaks. */
static ph_status refuse(const char *task, const char *text)
{
    const struct ph_comm_options options = {
        .size = sizeof options, .timeout_seconds = MEETING_SECONDS, .task = task};
    struct ph_comm *comm = NULL;
    const ph_status meeting = ph_comm_create(&options, &comm);
    const bool disagree = meeting == PH_ERROR_CONFIG && comm != NULL;
    const bool speaks = meeting == PH_OK ? ph_comm_rank(comm) == 0 : ph_comm_speaks(disagree ? comm : NULL);
    if (!disagree)
        ph_fail(PH_ERROR_USAGE, "%s", text);
    if (meeting == PH_OK && speaks)
        ph_comm_fail(comm, PH_ERROR_USAGE);
    else if (meeting == PH_OK)
        (void)ph__comm_barrier(comm); /* wait until the first rank has failed */
    if (speaks)
        speak();
    ph_comm_destroy(comm);
    return ph_fail(PH_ERROR_USAGE, "%s", "");
}

ph_status cli_check_one_process(const char *verb)
{
    struct ph__transport_choice choice;
    char task[32], text[256];
    if (ph__transport_choose(NULL, &choice) != PH_OK || strcmp(choice.name, "self") == 0 ||
        choice.num_ranks < 2)
        return PH_OK;
    snprintf(task, sizeof task, "phloem %s", verb);
    snprintf(text, sizeof text,
        "%s runs as one process, but a launcher started %zu: start it without the launcher, or set "
        "PHLOEM_MPI=self for independent runs",
        task, choice.num_ranks);
    return refuse(task, text);
}
