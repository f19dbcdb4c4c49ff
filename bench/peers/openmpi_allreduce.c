/* The ranks of openmpi.py: an AllReduce of fp32 sums, alone or followed by a momentum pass, and the round
 * trips of small messages. Compiled by that script and started by mpirun; a program of its own that uses
 * MPI's plain C API.
 *
 *     openmpi_allreduce BYTES
 *
 * Rank 0 reads orders, a line each, from standard input, and answers each with one line:
 *
 *     allreduce COUNT  seconds of each AllReduce
 *     training COUNT   two numbers each: seconds of the AllReduce, and of the momentum pass over the rank's
 *                      whole model
 *     latency COUNT    50th and 99th percentile, in microseconds, of AllReduces in a row, as rank 0 sees them
 *     pingpong COUNT   the same for BYTES that go from rank 0 to rank 1 and back
 *
 * latency and pingpong write the sent numbers each time and read the received ones: a number of each cache
 * line. The seconds are those of the slowest rank, from its leaving a barrier. A last word "wrong" says that
 * a sum or a weight was wrong. Between orders no rank spins: rank 0 is blocked reading, the others look for a
 * message every 20 milliseconds. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

#include "peer_model.h"

enum { ORDER_TAG = 1, BALL_TAG, POLL_NS = 20000000, SETTLING_SHARE = 10 };

enum verb { VERB_END, VERB_ALLREDUCE, VERB_TRAINING, VERB_LATENCY, VERB_PINGPONG, NUM_VERBS };

struct world {
    int rank, ranks, count;
    float *gradient, *sum, *weights, *velocity; /* (count) each */
    float expected_sum[PEER_PERIOD];
    struct peer_expected expected;
};

struct round { /* a rank's times of a round, for rank 0 */
    double allreduce, momentum;
};

static bool world_is_made(struct world *world, size_t bytes)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world->ranks);
    const size_t count = bytes / sizeof(float);
    world->count = (int)count;
    world->gradient = peer_floats(count);
    world->sum = peer_floats(count);
    world->weights = peer_floats(count);
    world->velocity = peer_floats(count);
    if (world->gradient == NULL || world->sum == NULL || world->weights == NULL || world->velocity == NULL)
        return false;
    peer_gradient(world->gradient, count, world->rank);
    peer_expected_sum(world->expected_sum, world->ranks);
    return true;
}

static void reduce(struct world *world)
{
    MPI_Allreduce(world->gradient, world->sum, world->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static bool sums_are_right(const struct world *world)
{
    return peer_repeats(world->sum, (size_t)world->count, world->expected_sum);
}

static bool weights_are_right(struct world *world, int num_steps)
{
    for (int i = 0; i < num_steps; i++)
        peer_expect_step(&world->expected, world->ranks);
    return peer_repeats(world->weights, (size_t)world->count, world->expected.weights);
}

static struct round play_round(struct world *world, bool is_training)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    reduce(world);
    const double reduced = MPI_Wtime();
    if (is_training)
        peer_step(world->weights, world->velocity, world->sum, (size_t)world->count, world->ranks);
    return (struct round){reduced - start, MPI_Wtime() - reduced};
}

/* Returns the slowest of all ranks' rounds, (ranks). */
static struct round slowest(const struct round *rounds, int ranks)
{
    struct round found = rounds[0];
    for (int i = 1; i < ranks; i++)
        if (rounds[i].allreduce + rounds[i].momentum > found.allreduce + found.momentum)
            found = rounds[i];
    return found;
}

/* Returns true on rank 0 when all ranks are right. */
static bool all_are_right(bool is_right)
{
    const int own = is_right;
    int all = 0;
    MPI_Reduce(&own, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
    return all != 0;
}

/* Measures rounds. Results are compared after the last round: a look at everything between two rounds would
 * empty the caches. */
static void play_rounds(struct world *world, int num_rounds, bool is_training)
{
    struct round rounds[world->ranks];
    memset(world->sum, 0, (size_t)world->count * sizeof(float));
    for (int i = 0; i < num_rounds; i++) {
        const struct round own = play_round(world, is_training);
        MPI_Gather(&own, 2, MPI_DOUBLE, rounds, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (world->rank != 0)
            continue;
        const struct round round = slowest(rounds, world->ranks);
        printf("%s%.9f", i > 0 ? " " : "", round.allreduce);
        if (is_training)
            printf(" %.9f", round.momentum);
    }
    const bool is_right = sums_are_right(world) && (!is_training || weights_are_right(world, num_rounds));
    const bool are_right = all_are_right(is_right);
    if (world->rank == 0)
        puts(are_right ? "" : " wrong");
}

/* Sends BYTES from rank 0 to rank 1 and back; other ranks do nothing. */
static void throw_ball(struct world *world)
{
    const int other = 1 - world->rank;
    if (world->rank > 1)
        return;
    if (world->rank == 0)
        MPI_Send(world->gradient, world->count, MPI_FLOAT, other, BALL_TAG, MPI_COMM_WORLD);
    MPI_Recv(world->sum, world->count, MPI_FLOAT, other, BALL_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (world->rank == 1)
        MPI_Send(world->sum, world->count, MPI_FLOAT, other, BALL_TAG, MPI_COMM_WORLD);
}

static bool ball_is_whole(const struct world *world)
{
    float period[PEER_PERIOD];
    peer_gradient(period, PEER_PERIOD, 0);
    return peer_repeats(world->sum, (size_t)world->count, period);
}

static int is_above(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Measures calls. A tenth as many come first, to settle, and are not timed. Each call writes the sent numbers
 * and reads the received ones. */
static void measure_latency(struct world *world, int calls, bool is_pingpong)
{
    const int settling = calls / SETTLING_SHARE;
    double *seconds = calloc((size_t)calls, sizeof *seconds);
    if (seconds == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(world->sum, 0, (size_t)world->count * sizeof(float));
    for (int i = -settling; i < calls; i++) {
        const double start = MPI_Wtime();
        peer_rewrite(world->gradient, (size_t)world->count, (float)(world->rank + 1));
        if (is_pingpong)
            throw_ball(world);
        else
            reduce(world);
        peer_look_at(world->sum, (size_t)world->count);
        if (i >= 0)
            seconds[i] = MPI_Wtime() - start;
    }
    if (world->rank == 0) {
        const bool is_right = is_pingpong ? ball_is_whole(world) : sums_are_right(world);
        qsort(seconds, (size_t)calls, sizeof *seconds, is_above);
        printf("%.3f %.3f%s\n", 1e6 * seconds[calls / 2], 1e6 * seconds[calls - 1 - calls / 100],
            is_right ? "" : " wrong");
    }
    free(seconds);
}

/* order_out: the verb and its count. */
static void read_order(int order_out[2])
{
    static const char *const verbs[NUM_VERBS] = {"end", "allreduce", "training", "latency", "pingpong"};
    char line[64], verb[16] = "";
    order_out[0] = VERB_END;
    if (fgets(line, sizeof line, stdin) == NULL || sscanf(line, "%15s %d", verb, &order_out[1]) != 2)
        return;
    for (int i = 0; i < NUM_VERBS; i++)
        if (strcmp(verb, verbs[i]) == 0)
            order_out[0] = i;
}

static void take_order(const struct world *world, int order_out[2])
{
    if (world->rank == 0) {
        read_order(order_out);
        for (int i = 1; i < world->ranks; i++)
            MPI_Send(order_out, 2, MPI_INT, i, ORDER_TAG, MPI_COMM_WORLD);
        return;
    }
    int is_there = 0;
    while (MPI_Iprobe(0, ORDER_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE) == MPI_SUCCESS && !is_there)
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    MPI_Recv(order_out, 2, MPI_INT, 0, ORDER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct world world = {0};
    if (argc != 2 || !world_is_made(&world, strtoull(argv[1], NULL, 10)))
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int order[2] = {0};;) {
        take_order(&world, order);
        if (order[0] == VERB_END)
            break;
        if (order[0] == VERB_ALLREDUCE || order[0] == VERB_TRAINING)
            play_rounds(&world, order[1], order[0] == VERB_TRAINING);
        else
            measure_latency(&world, order[1], order[0] == VERB_PINGPONG);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
