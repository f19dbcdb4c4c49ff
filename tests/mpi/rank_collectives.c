/* A rank with a communicator, as programs have one:
 *
 *     rank_collectives check          each collective, against what one process works out alone
 *     rank_collectives fail           the last rank fails with PH_ERROR_DATA while the others wait for it
 *     rank_collectives leave RANK     that rank dies when all have come to leave
 *     rank_collectives wait FOLDER    meets the others until one is killed; process ids as in rank_ends.c
 *
 * It ends with the exit code of its status, and the rank that speaks prints why. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/collective/comm.h"
#include "comm/collective/comm_inside.h"
#include "rank_main.h"
#include "rank_support.h"

enum { COLUMNS = 5, MOST_ROWS = 4000, CUT_BYTES = 1 << 16, LONGEST_WAIT_SECONDS = 30 };

#define TRY_THAT(condition)                                                                    \
    do {                                                                                       \
        if (!(condition))                                                                      \
            return ph_fail(PH_ERROR_BUG, "%s:%d: not so: %s", __FILE__, __LINE__, #condition); \
    } while (0)

/* Numbers whose sums depend on the order in which they are added. */
static ph_real number_of(size_t rank, size_t place)
{
    return (ph_real)sin((double)(rank * 7919 + place)) * (ph_real)pow(10, (double)(rank % 5));
}

static ph_real sum_of(size_t world, size_t place)
{
    ph_real sum = number_of(0, place);
    for (size_t rank = 1; rank < world; rank++)
        sum += number_of(rank, place);
    return sum;
}

static ph_status fill(size_t rank, size_t count, ph_real **numbers_out)
{
    ph_real *numbers = malloc((count + 1) * sizeof *numbers);
    if (numbers == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu numbers", count);
    for (size_t i = 0; i < count; i++)
        numbers[i] = number_of(rank, i);
    *numbers_out = numbers;
    return PH_OK;
}

static ph_status check_all_reduce(struct ph_comm *comm, size_t rows)
{
    const struct ph__comm_call call = {1, "sum"};
    const size_t world = ph_comm_world_size(comm);
    ph_real *data;
    uint64_t ticket;
    PH_TRY(fill(ph_comm_rank(comm), rows * COLUMNS, &data));
    PH_TRY(ph__comm_all_reduce_start(
        comm, &call, ph__comm_world(comm), PH_WIRE_FP32, rows, COLUMNS, data, NULL, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    for (size_t i = 0; i < rows * COLUMNS; i++)
        TRY_THAT(data[i] == sum_of(world, i));
    free(data);
    return PH_OK;
}

/* Rank r gets 3 r rows, the first rank none. */
static ph_status check_reduce_scatter(struct ph_comm *comm)
{
    const struct ph__comm_call call = {2, "parts of a sum"};
    const size_t world = ph_comm_world_size(comm), own = ph_comm_rank(comm);
    size_t rows_of[64], rows = 0, first_row = 0;
    ph_real *data, sum[3 * 64 * COLUMNS];
    uint64_t ticket;
    TRY_THAT(world <= 64);
    for (size_t rank = 0; rank < world; rank++) {
        rows_of[rank] = 3 * rank;
        first_row += rank < own ? rows_of[rank] : 0;
        rows += rows_of[rank];
    }
    PH_TRY(fill(own, rows * COLUMNS, &data));
    PH_TRY(ph__comm_reduce_scatter_start(
        comm, &call, ph__comm_world(comm), PH_WIRE_FP32, rows_of, COLUMNS, data, sum, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    for (size_t i = 0; i < rows_of[own] * COLUMNS; i++)
        TRY_THAT(sum[i] == sum_of(world, first_row * COLUMNS + i));
    free(data);
    return PH_OK;
}

/* Rank r gives 100 r bytes of r + 1. */
static ph_status check_all_gather(struct ph_comm *comm)
{
    const struct ph__comm_call call = {3, "all bytes"};
    const size_t world = ph_comm_world_size(comm), own = ph_comm_rank(comm);
    unsigned char given[100 * 64], all[100 * 64 * 64], *next = all;
    uint64_t bytes_of[64], ticket;
    TRY_THAT(world <= 64);
    memset(given, (int)own + 1, sizeof given);
    for (size_t rank = 0; rank < world; rank++)
        bytes_of[rank] = 100 * rank;
    PH_TRY(ph__comm_all_gather_start(comm, &call, ph__comm_world(comm), given, bytes_of, all, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    for (size_t rank = 0; rank < world; rank++)
        for (size_t i = 0; i < bytes_of[rank]; i++)
            TRY_THAT(*next++ == rank + 1);
    return PH_OK;
}

static ph_status check_broadcast(struct ph_comm *comm, size_t root)
{
    const struct ph__comm_call call = {4, "the root's numbers"};
    ph_real *data;
    uint64_t ticket;
    PH_TRY(fill(ph_comm_rank(comm), MOST_ROWS, &data));
    PH_TRY(ph__comm_broadcast_start(
        comm, &call, ph__comm_world(comm), root, data, MOST_ROWS * sizeof *data, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    for (size_t i = 0; i < MOST_ROWS; i++)
        TRY_THAT(data[i] == number_of(root, i));
    free(data);
    return PH_OK;
}

static ph_status check(struct ph_comm *comm)
{
    ph__comm_set_cut(comm, CUT_BYTES); /* so that what is large goes in several messages */
    PH_TRY(check_all_reduce(comm, 0));
    PH_TRY(check_all_reduce(comm, 1));
    PH_TRY(check_all_reduce(comm, MOST_ROWS * ph_comm_world_size(comm) + 1));
    PH_TRY(check_reduce_scatter(comm));
    PH_TRY(check_all_gather(comm));
    for (size_t root = 0; root < ph_comm_world_size(comm); root++)
        PH_TRY(check_broadcast(comm, root));
    PH_TRY(ph__comm_agree(comm, "the test=one\n"));
    return ph__comm_barrier(comm);
}

static ph_status fail_last(struct ph_comm *comm)
{
    if (ph_comm_rank(comm) + 1 < ph_comm_world_size(comm))
        return ph__comm_barrier(comm);
    const ph_status status = ph_fail(PH_ERROR_DATA, "row 7 is no row");
    ph_comm_fail(comm, status);
    return status;
}

static ph_status wait_for_death(struct ph_comm *comm, const char *folder)
{
    PH_TRY(ph__comm_barrier(comm));
    rank_leave_process(folder, ph_comm_rank(comm));
    for (;;)
        PH_TRY(ph__comm_barrier(comm));
}

/* After all messages of the job, in the first of the meetings of which leaving consists. A rank that waits
 * for ever ends by itself, too late. */
static ph_status die_leaving(struct ph_comm *comm, size_t victim)
{
    alarm(LONGEST_WAIT_SECONDS);
    if (ph_comm_rank(comm) != victim)
        return PH_OK;
    PH_TRY(ph__comm_barrier(comm));
    raise(SIGKILL);
    return PH_OK;
}

static ph_status run(struct ph_comm *comm, int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "wait") == 0)
        return wait_for_death(comm, argv[2]);
    if (argc == 3 && strcmp(argv[1], "leave") == 0)
        return die_leaving(comm, strtoul(argv[2], NULL, 10));
    return argc == 2 && strcmp(argv[1], "fail") == 0 ? fail_last(comm) : check(comm);
}

int main(int argc, char **argv)
{
    return rank_main("rank_collectives", 0, run, argc, argv);
}
