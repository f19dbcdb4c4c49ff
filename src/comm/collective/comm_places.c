/* See comm_places.h. */
#include "comm/collective/comm_places.h"

#include <stdlib.h>
#include <string.h>

ph_status ph__comm_places_init(struct ph_comm_places *places, size_t rank, size_t world_size)
{
    *places = (struct ph_comm_places){.greetings = calloc(world_size, sizeof *places->greetings),
        .ranks = malloc(world_size * sizeof *places->ranks),
        .peer_ranks = malloc(world_size * sizeof *places->peer_ranks)};
    if (places->greetings == NULL || places->ranks == NULL || places->peer_ranks == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu ranks", world_size);
    for (size_t i = 0; i < world_size; i++)
        places->ranks[i] = (uint32_t)i;
    places->world = (struct ph_group){.size = world_size, .own = rank, .ranks = places->ranks};
    return PH_OK;
}

void ph__comm_places_fini(struct ph_comm_places *places)
{
    free(places->greetings);
    free(places->ranks);
    free(places->peer_ranks);
}

/* ---- hosts --------------------------------------------------------------------------------------------------- */

bool ph__comm_places_are_neighbours(const struct ph_comm_places *places, size_t a, size_t b)
{
    const struct ph_greeting *one = &places->greetings[a], *other = &places->greetings[b];
    return memcmp(one->host, other->host, sizeof one->host) == 0 &&
           memcmp(one->boot, other->boot, sizeof one->boot) == 0;
}

static bool is_one_host(const struct ph_comm_places *places, size_t a, size_t b)
{
    const size_t ranks_per_host = (size_t)places->greetings[0].ranks_per_host;
    if (ranks_per_host != 0)
        return a / ranks_per_host == b / ranks_per_host;
    return ph__comm_places_are_neighbours(places, a, b);
}

static size_t host_end(const struct ph_comm_places *places, size_t first)
{
    size_t end = first + 1;
    while (end < places->world.size && is_one_host(places, end, first))
        end++;
    return end;
}

/* The ranks [first, end) are a host: is one of theirs behind them, too? */
static ph_status check_host(const struct ph_comm_places *places, size_t first, size_t end)
{
    for (size_t rank = end; rank < places->world.size; rank++)
        if (is_one_host(places, rank, first))
            return ph_fail(PH_ERROR_CONFIG,
                "ranks %zu and %zu are on one host and rank %zu, between them, is on another: number them "
                "host by host (mpirun --map-by slot, srun --distribution=block)",
                first, rank, end);
    return PH_OK;
}

static ph_status count_hosts(struct ph_comm_places *places)
{
    const size_t own = places->world.own;
    size_t first = 0, end;
    for (; first < places->world.size; first = end) {
        end = host_end(places, first);
        PH_TRY(check_host(places, first, end));
        if (first <= own && own < end) {
            places->own_host = places->num_hosts;
            places->host =
                (struct ph_group){.size = end - first, .own = own - first, .ranks = places->ranks + first};
        }
        if (places->num_hosts == 0)
            places->ranks_per_host = end;
        else if (places->ranks_per_host != end - first)
            places->ranks_per_host = 0;
        places->num_hosts++;
    }
    return PH_OK;
}

static void find_peers(struct ph_comm_places *places)
{
    struct ph_group *peers = &places->peers;
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

static void find_neighbours(struct ph_comm_places *places)
{
    struct ph_processors all = PH_NO_PROCESSORS;
    for (size_t rank = 0; rank < places->world.size; rank++) {
        if (!ph__comm_places_are_neighbours(places, rank, places->world.own))
            continue;
        places->num_neighbours++;
        ph__processors_join(&all, &places->greetings[rank].processors);
    }
    places->num_processors = ph__processors_count(&all);
}

ph_status ph__comm_places_find(struct ph_comm_places *places)
{
    PH_TRY(count_hosts(places));
    find_peers(places);
    find_neighbours(places);
    return PH_OK;
}
