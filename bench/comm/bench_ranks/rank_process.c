/* Runs one rank of the benchmarks: see rank_process.h. */
#include "rank_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/collective/comm.h"
#include "figures.h"
#include "rank_model.h"
#include "training_step.h"

/* Channels above those of programs that are spread over ranks. */
enum { ORDER_CHANNEL = PH_COMM_MAX_CHANNELS - 2, TURN_CHANNEL };

static const double timeout_seconds = 1800; /* other contestants take turns meanwhile */
#define TOLD_SECONDS 1e-5

enum verb { VERB_END, VERB_OVERLAPPED, VERB_PLAIN, NUM_VERBS };
static const char *const verb_names[NUM_VERBS] = {"", "overlapped", "plain"};

struct order {
    uint32_t verb, count;
};

/* A rank's measurement of the steps ordered. */
struct turn {
    double seconds, exposed;
    uint64_t sent;
};

static struct order read_order(void)
{
    char line[128], verb[32];
    struct order order = {0};
    if (fgets(line, sizeof line, stdin) == NULL || sscanf(line, "%31s %u", verb, &order.count) != 2 ||
        order.count == 0)
        return (struct order){0};
    while (order.verb < NUM_VERBS && strcmp(verb, verb_names[order.verb]) != 0)
        order.verb++;
    return order.verb < NUM_VERBS ? order : (struct order){0};
}

/* Returns the order that the first rank has read, on all ranks. */
static struct order receive_order(struct ph_comm *comm)
{
    static const struct ph__comm_call call = {ORDER_CHANNEL, "an order"};
    struct order order = {0};
    uint64_t ticket;
    if (ph_comm_rank(comm) == 0)
        order = read_order();
    bench_check(
        ph__comm_broadcast_start(comm, &call, ph__comm_world(comm), 0, &order, sizeof order, &ticket));
    bench_check(ph__comm_wait(comm, ticket));
    return order;
}

static uint64_t sum_sent(const struct ph__comm_profile *profile)
{
    uint64_t sum = 0;
    for (size_t rank = 0; rank < profile->world_size; rank++)
        sum += profile->sent_bytes[rank];
    return sum;
}

/* Measures the ordered steps. Polls count as waits: otherwise time spent copying between operators would not
 * show. */
static struct turn take_turn(struct rank_model *model, struct ph_comm *comm, const struct order *order)
{
    struct ph__comm_profile *profile;
    bench_check(ph__comm_profile_create(comm, 0, &profile));
    bench_check(ph__comm_barrier(comm));
    ph__comm_profile_begin(profile);
    const double seconds = rank_model_train(model, order->verb == VERB_OVERLAPPED, order->count);
    const struct turn turn = {.seconds = seconds / order->count,
        .exposed = 1e-9 * (double)(profile->waited_ns + profile->polled_ns) / order->count,
        .sent = sum_sent(profile) / order->count};
    ph__comm_profile_destroy(profile);
    return turn;
}

/* Returns the greatest of each number over all ranks. */
static struct turn most_of_all(struct ph_comm *comm, const struct turn *own)
{
    static const struct ph__comm_call call = {TURN_CHANNEL, "times of the steps"};
    const size_t world_size = ph_comm_world_size(comm);
    struct turn *turns = calloc(world_size, sizeof *turns), most = *own;
    uint64_t *bytes = calloc(world_size, sizeof *bytes), ticket;
    if (turns == NULL || bytes == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu ranks", world_size));
    for (size_t rank = 0; rank < world_size; rank++)
        bytes[rank] = sizeof *turns;
    bench_check(ph__comm_all_gather_start(comm, &call, ph__comm_world(comm), own, bytes, turns, &ticket));
    bench_check(ph__comm_wait(comm, ticket));
    for (size_t rank = 0; rank < world_size; rank++) {
        most.seconds = turns[rank].seconds > most.seconds ? turns[rank].seconds : most.seconds;
        most.exposed = turns[rank].exposed > most.exposed ? turns[rank].exposed : most.exposed;
        most.sent = turns[rank].sent > most.sent ? turns[rank].sent : most.sent;
    }
    free(turns);
    free(bytes);
    return most;
}

static void take_orders(struct rank_model *model, struct ph_comm *comm)
{
    struct order order;
    while ((order = receive_order(comm)).verb != VERB_END) {
        const struct turn own = take_turn(model, comm, &order);
        const struct turn most = most_of_all(comm, &own);
        if (ph_comm_rank(comm) == 0)
            printf("%.9f %.9f %llu\n", most.seconds, most.exposed, (unsigned long long)most.sent);
        fflush(stdout);
    }
}

/* Prints the operators of the latest steps that took TOLD_SECONDS or more. */
static void tell_operators(const struct step *step, size_t rank)
{
    for (size_t node = 0; node < step_num_nodes(step); node++)
        if (step_seconds(step, node) >= TOLD_SECONDS)
            fprintf(stderr, "rank %zu %9.3f ms %s\n", rank, 1e3 * step_seconds(step, node),
                step_node_name(step, node));
}

void rank_process_run(const struct rank_settings *settings)
{
    const struct ph_comm_options options = {.size = sizeof options, .timeout_seconds = timeout_seconds};
    struct ph_comm *comm;
    bench_check(ph_comm_create(&options, &comm));
    struct rank_model *model = rank_model_create(settings, comm);
    bench_check(ph__comm_barrier(comm));
    if (ph_comm_rank(comm) == 0)
        printf("%s %s\n", RANK_PROCESS_NAME, ph_comm_describe(comm));
    fflush(stdout);
    take_orders(model, comm);
    if (settings->tells_operators)
        tell_operators(rank_model_step(model), ph_comm_rank(comm));
    rank_model_destroy(model);
    ph_comm_destroy(comm);
}
