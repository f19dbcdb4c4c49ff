/* First exchange of the ranks: checks that all have one build, task and options, and finds which ranks share
 * a host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "comm/collective/comm_inside.h"
#include "phloem/version.h"

/* ---- places: which ranks are on which host, from their greetings ---- */

ph_status ph__comm_places_init(struct ph__comm_places *places, size_t rank, size_t world_size)
{
    *places = (struct ph__comm_places){.greetings = calloc(world_size, sizeof *places->greetings),
        .ranks = malloc(world_size * sizeof *places->ranks),
        .peer_ranks = malloc(world_size * sizeof *places->peer_ranks)};
    if (places->greetings == NULL || places->ranks == NULL || places->peer_ranks == NULL)
        return ph__out_of_memory("%zu ranks", world_size);
    for (size_t i = 0; i < world_size; i++)
        places->ranks[i] = (uint32_t)i;
    places->world = (struct ph__group){.size = world_size, .own = rank, .ranks = places->ranks};
    return PH_OK;
}

void ph__comm_places_fini(struct ph__comm_places *places)
{
    free(places->greetings);
    free(places->ranks);
    free(places->peer_ranks);
}

/* ---- hosts ---- */

bool ph__comm_places_are_neighbours(const struct ph__comm_places *places, size_t a, size_t b)
{
    const struct ph__greeting *one = &places->greetings[a], *other = &places->greetings[b];
    return memcmp(one->host, other->host, sizeof one->host) == 0 &&
           memcmp(one->boot, other->boot, sizeof one->boot) == 0;
}

static bool is_one_host(const struct ph__comm_places *places, size_t a, size_t b)
{
    const size_t ranks_per_host = (size_t)places->greetings[0].ranks_per_host;
    if (ranks_per_host != 0)
        return a / ranks_per_host == b / ranks_per_host;
    return ph__comm_places_are_neighbours(places, a, b);
}

static size_t host_end(const struct ph__comm_places *places, size_t first)
{
    size_t end = first + 1;
    while (end < places->world.size && is_one_host(places, end, first))
        end++;
    return end;
}

/* Checks that no rank behind [first, end) is on the same host as these. */
static ph_status check_host(const struct ph__comm_places *places, size_t first, size_t end)
{
    for (size_t rank = end; rank < places->world.size; rank++)
        if (is_one_host(places, rank, first))
            return ph_fail(PH_ERROR_CONFIG,
                "ranks %zu and %zu are on one host and rank %zu, between them, is on another: number them "
                "host by host (mpirun --map-by slot, srun --distribution=block)",
                first, rank, end);
    return PH_OK;
}

static ph_status count_hosts(struct ph__comm_places *places)
{
    const size_t own = places->world.own;
    size_t first = 0, end;
    for (; first < places->world.size; first = end) {
        end = host_end(places, first);
        PH_TRY(check_host(places, first, end));
        if (first <= own && own < end) {
            places->own_host = places->num_hosts;
            places->host =
                (struct ph__group){.size = end - first, .own = own - first, .ranks = places->ranks + first};
        }
        if (places->num_hosts == 0)
            places->ranks_per_host = end;
        else if (places->ranks_per_host != end - first)
            places->ranks_per_host = 0;
        places->num_hosts++;
    }
    return PH_OK;
}

static void find_peers(struct ph__comm_places *places)
{
    struct ph__group *peers = &places->peers;
    peers->ranks = places->peer_ranks;
    for (size_t first = 0; first < places->world.size; first = host_end(places, first)) {
        const size_t rank = first + places->host.own;
        if (rank >= host_end(places, first))
            continue;
        if (rank == places->world.own)
            peers->own = peers->size;
        places->peer_ranks[peers->size++] = (uint32_t)rank;
    }
}

static void find_neighbours(struct ph__comm_places *places)
{
    struct ph__processors all = PH_NO_PROCESSORS;
    for (size_t rank = 0; rank < places->world.size; rank++) {
        if (!ph__comm_places_are_neighbours(places, rank, places->world.own))
            continue;
        places->num_neighbours++;
        ph__processors_join(&all, &places->greetings[rank].processors);
    }
    places->num_processors = ph__processors_count(&all);
}

ph_status ph__comm_places_find(struct ph__comm_places *places)
{
    PH_TRY(count_hosts(places));
    find_peers(places);
    find_neighbours(places);
    return PH_OK;
}

/* ---- one build, one set of options ---- */

enum { VERSION_BYTES = 32 };

/* Compares versions in an exchange of their own, since greetings of another version may differ in size. */
static ph_status compare_versions(struct ph_comm *comm)
{
    char own[VERSION_BYTES] = {0};
    char(*all)[VERSION_BYTES] = malloc(comm->places.world.size * sizeof *all);
    if (all == NULL)
        return ph__out_of_memory("%zu ranks", comm->places.world.size);
    snprintf(own, sizeof own, "%s", ph_version());
    ph_status status = ph__comm_gather_once(comm, "meeting of the ranks", own, sizeof own, all);
    for (size_t rank = 1; status == PH_OK && rank < comm->places.world.size; rank++)
        if (memcmp(all[rank], all[0], sizeof own) != 0)
            status = ph_fail(PH_ERROR_CONFIG,
                "rank 0 runs phloem %.*s, but rank %zu runs %.*s: install one version for all ranks",
                VERSION_BYTES - 1, all[0], rank, VERSION_BYTES - 1, all[rank]);
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

static void greet(
    const struct ph_comm *comm, const struct ph_comm_options *options, struct ph__greeting *greeting)
{
    memset(greeting, 0, sizeof *greeting);
    snprintf(greeting->transport, sizeof greeting->transport, "%s",
        options->transport != NULL ? options->transport : "auto");
    greeting->timeout_seconds = options->timeout_seconds;
    greeting->ranks_per_host = options->ranks_per_host;
    greeting->has_failed = options->has_failed;
    snprintf(greeting->task, sizeof greeting->task, "%s", options->task != NULL ? options->task : "");
    if (comm->transport.host != NULL)
        snprintf(greeting->host, sizeof greeting->host, "%s", comm->transport.host);
    else
        gethostname(greeting->host, sizeof greeting->host - 1);
    read_line("/proc/sys/kernel/random/boot_id", greeting->boot, sizeof greeting->boot);
    greeting->process = getpid();
    ph__processors_own(&greeting->processors);
}

/* Clears the options when a rank has failed: that rank knows none, and ends the job before the options
 * matter. */
static bool forget_options(struct ph__comm_places *places)
{
    bool has_failed = false;
    for (size_t rank = 0; rank < places->world.size; rank++)
        has_failed = has_failed || places->greetings[rank].has_failed;
    for (size_t rank = 0; has_failed && rank < places->world.size; rank++)
        places->greetings[rank].ranks_per_host = 0;
    return has_failed;
}

/* Compares tasks before options: options may differ because ranks were started with different tasks. */
static ph_status compare_tasks(const struct ph__comm_places *places)
{
    const char *first = places->greetings[0].task;
    for (size_t rank = 1; rank < places->world.size; rank++) {
        const char *task = places->greetings[rank].task;
        if (strncmp(task, first, sizeof places->greetings[0].task) != 0)
            return ph_fail(PH_ERROR_CONFIG,
                "rank %zu runs '%s', but rank 0 runs '%s': start one command with one mpirun", rank, task,
                first);
    }
    return PH_OK;
}

static ph_status compare_options(const struct ph__comm_places *places)
{
    const struct ph__greeting *first = &places->greetings[0];
    for (size_t rank = 1; rank < places->world.size; rank++) {
        const struct ph__greeting *greeting = &places->greetings[rank];
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
        return ph_fail(PH_ERROR_CONFIG,
            "the number of ranks, %zu, must be a multiple of ranks_per_host = %llu", places->world.size,
            (unsigned long long)first->ranks_per_host);
    return PH_OK;
}

/* ---- the meeting ---- */

ph_status ph__comm_meet(struct ph_comm *comm, const struct ph_comm_options *options)
{
    struct ph__comm_places *places = &comm->places;
    struct ph__greeting own;
    PH_TRY(ph__comm_places_init(places, comm->transport.rank, comm->transport.world_size));
    PH_TRY(compare_versions(comm));
    greet(comm, options, &own);
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
    const struct ph__greeting *greeting = &comm->places.greetings[rank];
    if (greeting->process == 0) /* the ranks have not met */
        snprintf(name_out, size, "rank %zu", rank);
    else
        snprintf(name_out, size, "rank %zu (process %lld on %s)", rank, (long long)greeting->process,
            greeting->host);
}
