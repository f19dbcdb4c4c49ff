/* Exchanges of pooled vectors between two real ranks, beside what the simulator says of them: labels of a
 * learnt cost are simulated alone, and this tells how far to trust them (tools/plan_steps.py).
 *
 *     mpirun -n 2 bench_exchange --topology FILE [--rounds N] [--exchanges N]
 *
 * Exchanges are drawn as labels are; each is run in rounds, and medians count. As a control, the starts of
 * the ranks are left out of the simulation: its error must rise. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "comm/collective/comm.h"
#include "figures.h"
#include "flags.h"
#include "sim/exchange_time.h"

enum { RANKS = 2, BATCH = 2048, SEED = 3 };
#define LEAST_MS 1 /* shorter ones measure the barrier */

struct bench {
    struct ph_comm *comm;
    struct ph__fabric fabric;
    struct ph__exchange_label *labels; /* (num_labels) */
    size_t num_labels, rounds;
    unsigned char *sent, *received; /* of the largest message */
};

static size_t message_bytes(const struct ph__exchange_label *label, size_t owner)
{
    return (size_t)ceil(label->columns[owner] * BATCH / RANKS * sizeof(ph_real));
}

/* Runs an exchange, from the common start of both ranks on, and gives its milliseconds. */
static double run_once(struct bench *bench, const struct ph__exchange_label *label)
{
    static const struct ph__comm_call call = {1, "an exchange"};
    const size_t own = ph_comm_rank(bench->comm), peer = 1 - own;
    const bool is_forward = label->way == PH_EXCHANGE_FORWARD;
    const struct ph__message send = {peer, bench->sent, message_bytes(label, is_forward ? own : peer)},
                             receive = {peer, bench->received, message_bytes(label, is_forward ? peer : own)};
    const struct ph__exchange exchange = {&send, &receive, send.bytes > 0, receive.bytes > 0};
    uint64_t ticket;
    bench_check(ph__comm_barrier(bench->comm));
    const double begin = ph__clock_seconds() + label->starts_ms[own] * 1e-3;
    while (ph__clock_seconds() < begin) {
    }
    bench_check(ph__comm_exchange_start(bench->comm, &call, &exchange, &ticket));
    bench_check(ph__comm_wait(bench->comm, ticket));
    return 1e3 * (ph__clock_seconds() - begin);
}

/* Fills the medians of both ranks, (num_labels, RANKS). */
static void run_all(struct bench *bench, double *ms_out)
{
    double *runs = calloc(bench->rounds * bench->num_labels, sizeof *runs);
    double *values = calloc(bench->rounds, sizeof *values);
    if (runs == NULL || values == NULL)
        bench_check(ph__out_of_memory("times of exchanges"));
    for (size_t round = 0; round < bench->rounds; round++)
        for (size_t i = 0; i < bench->num_labels; i++)
            runs[i * bench->rounds + round] = run_once(bench, &bench->labels[i]);
    for (size_t i = 0; i < bench->num_labels; i++) {
        memcpy(values, runs + i * bench->rounds, bench->rounds * sizeof *values);
        const double own = bench_median(values, bench->rounds);
        bench_check(ph__comm_gather_once(bench->comm, "medians", &own, sizeof own, ms_out + i * RANKS));
    }
    free(values);
    free(runs);
}

/* Returns the simulation's mean error over all ranks of all exchanges that take their time. */
static double error_of(const struct bench *bench, const double *ms, bool has_starts)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < bench->num_labels; i++) {
        const struct ph__exchange_label *label = &bench->labels[i];
        const double together[RANKS] = {0};
        const struct ph__exchange_case exchange = {label->way, RANKS, (double)BATCH / RANKS * sizeof(ph_real),
            label->columns, has_starts ? label->starts_ms : together};
        double simulated[RANKS];
        bench_check(ph__exchange_simulate(&bench->fabric, &exchange, simulated));
        for (size_t rank = 0; rank < RANKS; rank++) {
            const bool takes_time = ms[i * RANKS + rank] > LEAST_MS;
            sum += takes_time ? fabs(simulated[rank] / ms[i * RANKS + rank] - 1) : 0;
            count += takes_time;
        }
    }
    return sum / count;
}

static void tell(const struct bench *bench, const double *ms, const char *path)
{
    struct ph__json *figures = ph__json_array();
    const double error = error_of(bench, ms, true), control = error_of(bench, ms, false);
    printf("%zu exchanges of two real ranks, %zu rounds: the simulation's mean error is %.1f %%, and %.1f "
           "%% when it starts all ranks together (control)\n",
        bench->num_labels, bench->rounds, 100 * error, 100 * control);
    bench_record(figures, &(struct bench_figure){.name = "plan.exchange.error", .unit = "1", .value = error});
    bench_record(
        figures, &(struct bench_figure){.name = "plan.exchange.control", .unit = "1", .value = control});
    bench_finish(figures, path);
}

static void prepare(struct bench *bench, struct ph__arena *arena)
{
    const struct ph__exchange_drawing drawing = {&bench->fabric, PH_EXCHANGE_FORWARD, BATCH, SEED};
    size_t most = 1;
    bench->labels = ph__arena_alloc_array(arena, bench->num_labels, sizeof *bench->labels);
    if (bench->labels == NULL)
        bench_check(PH_ERROR_MEMORY);
    bench_check(ph__exchange_labels_draw(&drawing, bench->num_labels, arena, bench->labels));
    for (size_t i = 0; i < bench->num_labels * RANKS; i++) {
        const size_t bytes = message_bytes(&bench->labels[i / RANKS], i % RANKS);
        most = bytes > most ? bytes : most;
    }
    bench->sent = calloc(most, 1);
    bench->received = calloc(most, 1);
    if (bench->sent == NULL || bench->received == NULL)
        bench_check(ph__out_of_memory("messages"));
}

int main(int argc, char **argv)
{
    struct bench_run run = {.rounds = 7};
    const char *topology = "configs/topology/two_hosts.yaml";
    size_t num_exchanges = 60;
    const struct bench_flag flags[] = {
        {.name = "--topology", .word = &topology}, {.name = "--exchanges", .number = &num_exchanges}};
    const struct ph_comm_options options = {.size = sizeof options};
    struct ph__arena arena = {0};
    struct bench bench = {0};
    bench_read_flags(argc, argv, &run, flags, sizeof flags / sizeof *flags);
    bench.rounds = run.rounds;
    bench.num_labels = num_exchanges < BENCH_MAX_ROUNDS ? num_exchanges : BENCH_MAX_ROUNDS;
    bench_check(ph_comm_create(&options, &bench.comm));
    if (ph_comm_world_size(bench.comm) != RANKS) {
        printf("bench_exchange compares two ranks with the simulation: mpirun -n 2\n");
        ph_comm_destroy(bench.comm);
        return 0;
    }
    bench_check(ph__fabric_read(topology, &bench.fabric));
    prepare(&bench, &arena);
    double *ms = ph__arena_alloc_array(&arena, bench.num_labels * RANKS, sizeof *ms);
    if (ms == NULL)
        bench_check(PH_ERROR_MEMORY);
    run_all(&bench, ms);
    if (ph_comm_rank(bench.comm) == 0)
        tell(&bench, ms, run.json);
    free(bench.received);
    free(bench.sent);
    ph__fabric_fini(&bench.fabric);
    ph__arena_fini(&arena);
    ph_comm_destroy(bench.comm);
    return 0;
}
