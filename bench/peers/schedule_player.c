/* An MPI program that runs schedules of messages (src/preload/schedules.h), under Open MPI, MPICH, SimGrid's
 * SMPI, or phloem sim run:
 *
 *   schedule_player RACK MICROSECONDS ROUNDS ALGORITHM:ORDER:BYTES...
 *
 * Rank 0 prints a line for each of each round: its seconds from the common start to the last rank's end. All
 * ranks sleep until the start, which lies MICROSECONDS after they have met: the ranks of a real run share a
 * machine, and its clock. One buffer serves all messages; nothing is added up, or packed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/preload/schedules.h"

#ifndef SMPI_SHARED_MALLOC /* memory that SMPI's ranks share, and does not copy */
#define SMPI_SHARED_MALLOC(size) malloc(size)
#define SMPI_SHARED_FREE(data) free(data)
#endif

struct player {
    struct schedule schedule;
    uint32_t *order, place;
    char *buffer;
    struct schedule_message *messages;
    MPI_Request *requests;
};

static void *allocate(size_t size)
{
    void *data = malloc(size);
    if (data == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return data;
}

static void play(const struct player *player)
{
    for (size_t step = 0; step < schedule_num_steps(&player->schedule); step++) {
        const size_t count = schedule_step(&player->schedule, player->place, step, player->messages);
        for (size_t i = 0; i < count; i++) {
            const struct schedule_message *message = &player->messages[i];
            char *data =
                player->buffer + (message->is_receive ? player->schedule.bytes : 0) + message->offset;
            if (message->is_receive)
                MPI_Irecv(data, (int)message->bytes, MPI_BYTE, (int)message->peer, 0, MPI_COMM_WORLD,
                    &player->requests[i]);
            else
                MPI_Isend(data, (int)message->bytes, MPI_BYTE, (int)message->peer, 0, MPI_COMM_WORLD,
                    &player->requests[i]);
        }
        MPI_Waitall((int)count, player->requests, MPI_STATUSES_IGNORE);
    }
}

/* Returns the start, which is the same for all ranks, when it has come: a whole nanosecond, so that simulated
 * ranks wake at the same time. A fraction between them would decide which messages queue behind which. */
static double start_together(double after_s)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = (double)(long long)((MPI_Wtime() + after_s) * 1e9) * 1e-9;
    MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const long long rest_ns = (long long)((start - MPI_Wtime()) * 1e9 + .5);
    const struct timespec nap = {(time_t)(rest_ns / 1000000000), (long)(rest_ns % 1000000000)};
    if (rest_ns > 0)
        nanosleep(&nap, NULL);
    return start;
}

/* Plays a schedule once; rank 0 prints its time. */
static void play_timed(const struct player *player, double after_s)
{
    const double start = start_together(after_s);
    play(player);
    double last = 0, took = MPI_Wtime() - start;
    MPI_Reduce(&took, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("%.9f\n", last);
    fflush(stdout);
}

static struct player create(char *words, uint32_t rack)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const enum schedule_kind kind = schedule_find(strtok(words, ":"));
    const enum schedule_order by = schedule_order_find(strtok(NULL, ":"));
    const size_t bytes = strtoull(strtok(NULL, ":"), NULL, 10);
    uint32_t *order = allocate((size_t)ranks * sizeof *order);
    struct player player = {.schedule = {kind, (uint32_t)ranks, bytes, order}};
    const size_t most = schedule_most_messages(&player.schedule);
    schedule_fill_order(by, (uint32_t)ranks, rack, order);
    while (order[player.place] != (uint32_t)rank)
        player.place++;
    player.order = order;
    player.messages = allocate(most * sizeof *player.messages);
    player.requests = allocate(most * sizeof *player.requests);
    player.buffer = SMPI_SHARED_MALLOC(2 * bytes + 1);
    memset(player.buffer, 1, 2 * bytes + 1);
    return player;
}

static void destroy(const struct player *player)
{
    SMPI_SHARED_FREE(player->buffer);
    free(player->messages);
    free(player->requests);
    free(player->order);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int num_players = argc - 4, rounds = atoi(argv[3]);
    struct player *players = allocate((size_t)argc * sizeof *players);
    for (int i = 0; i < num_players; i++)
        players[i] = create(argv[4 + i], (uint32_t)atoi(argv[1]));
    for (int i = 0; i < rounds * num_players; i++)
        play_timed(&players[i % num_players], atof(argv[2]) * 1e-6);
    for (int i = 0; i < num_players; i++)
        destroy(&players[i]);
    free(players);
    MPI_Finalize();
    return 0;
}
