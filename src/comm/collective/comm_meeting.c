/* What ranks tell each other first: whether they are of one build and were asked for the same, and where each runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/collective/comm_create.h"
#include "comm/collective/comm_inside.h"
#include "phloem/version.h"

enum { VERSION_BYTES = 32 };

/* ---- one build and one wish ---------------------------------------------------------------------------------- */

/* By itself, since greetings of another version may have another size. */
static ph_status compare_versions(struct ph_comm *comm)
{
    char own[VERSION_BYTES] = {0};
    char(*all)[VERSION_BYTES] = malloc(comm->places.world.size * sizeof *all);
    if (all == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu ranks", comm->places.world.size);
    snprintf(own, sizeof own, "%s", ph_version());
    ph_status status = ph__comm_gather_once(comm, "meeting of the ranks", own, sizeof own, all);
    for (size_t rank = 1; status == PH_OK && rank < comm->places.world.size; rank++)
        if (memcmp(all[rank], all[0], sizeof own) != 0)
            status = ph_fail(PH_ERROR_CONFIG, "rank 0 runs phloem %.*s, and rank %zu %.*s", VERSION_BYTES - 1,
                all[0], rank, VERSION_BYTES - 1, all[rank]);
    free(all);
    return status;
}

static void read_line(const char *path, char *line_out, size_t size)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    if (fgets(line_out, (int)size, file) == NULL)
        line_out[0] = '\0';
    line_out[strcspn(line_out, "\n")] = '\0';
    fclose(file);
}

static void greet(const struct ph_comm_options *options, struct ph_greeting *greeting)
{
    memset(greeting, 0, sizeof *greeting);
    snprintf(greeting->transport, sizeof greeting->transport, "%s",
        options->transport != NULL ? options->transport : "auto");
    greeting->timeout_seconds = options->timeout_seconds;
    greeting->ranks_per_host = options->ranks_per_host;
    greeting->has_failed = options->has_failed;
    snprintf(greeting->task, sizeof greeting->task, "%s", options->task != NULL ? options->task : "");
    gethostname(greeting->host, sizeof greeting->host - 1);
    read_line("/proc/sys/kernel/random/boot_id", greeting->boot, sizeof greeting->boot);
    greeting->process = getpid();
    ph__processors_own(&greeting->processors);
}

/* One that has failed knows no wishes, and ends the job before those of the others count. */
static bool forget_options(struct ph_comm_places *places)
{
    bool has_failed = false;
    for (size_t rank = 0; rank < places->world.size; rank++)
        has_failed = has_failed || places->greetings[rank].has_failed;
    for (size_t rank = 0; has_failed && rank < places->world.size; rank++)
        places->greetings[rank].ranks_per_host = 0;
    return has_failed;
}

/* Ranks that have been started with different tasks hear that first: their options may differ because of it. */
static ph_status compare_tasks(const struct ph_comm_places *places)
{
    const char *first = places->greetings[0].task;
    for (size_t rank = 1; rank < places->world.size; rank++) {
        const char *task = places->greetings[rank].task;
        if (strncmp(task, first, sizeof places->greetings[0].task) != 0)
            return ph_fail(PH_ERROR_CONFIG,
                "rank %zu runs '%s', rank 0 '%s': start one of them under one mpirun", rank, task, first);
    }
    return PH_OK;
}

static ph_status compare_options(const struct ph_comm_places *places)
{
    const struct ph_greeting *first = &places->greetings[0];
    for (size_t rank = 1; rank < places->world.size; rank++) {
        const struct ph_greeting *greeting = &places->greetings[rank];
        const char *what = NULL;
        if (strncmp(greeting->transport, first->transport, sizeof first->transport) != 0)
            what = "transport";
        else if (greeting->timeout_seconds != first->timeout_seconds)
            what = "timeout_seconds";
        else if (greeting->ranks_per_host != first->ranks_per_host)
            what = "ranks_per_host";
        if (what != NULL)
            return ph_fail(PH_ERROR_CONFIG, "%s differs between ranks 0 and %zu", what, rank);
    }
    if (first->ranks_per_host != 0 && places->world.size % first->ranks_per_host != 0)
        return ph_fail(PH_ERROR_CONFIG, "%zu ranks are no multiple of ranks_per_host = %llu",
            places->world.size, (unsigned long long)first->ranks_per_host);
    return PH_OK;
}

/* ---- together ------------------------------------------------------------------------------------------------ */

ph_status ph__comm_meet(struct ph_comm *comm, const struct ph_comm_options *options)
{
    struct ph_comm_places *places = &comm->places;
    struct ph_greeting own;
    PH_TRY(ph__comm_places_init(places, comm->transport.rank, comm->transport.world_size));
    PH_TRY(compare_versions(comm));
    greet(options, &own);
    PH_TRY(ph__comm_gather_once(comm, "meeting of the ranks", &own, sizeof own, places->greetings));
    PH_TRY(compare_tasks(places));
    if (!forget_options(places))
        PH_TRY(compare_options(places));
    PH_TRY(ph__comm_places_find(places));
    ph__comm_set_threads(comm, 1);
    return PH_OK;
}

void ph__comm_name_rank(const struct ph_comm *comm, size_t rank, char *name_out, size_t size)
{
    const struct ph_greeting *greeting = &comm->places.greetings[rank];
    if (greeting->process == 0) /* they have not met */
        snprintf(name_out, size, "rank %zu", rank);
    else
        snprintf(name_out, size, "rank %zu (process %lld on %s)", rank, (long long)greeting->process,
            greeting->host);
}
