/* Training speed of the DLRM that the field compares by: 13 dense features, 26 tables x 100k rows x 64, bottom
 * 512-256-64, top 512-256-1, dot interaction, batch 2048, ids from a power law; pooling 1 and 20, SGD and Adagrad,
 * one and two threads. Beside it, round by round in turn, the same model in eager PyTorch (bench/peers/torch.py) where that
 * is importable. Batches are made beforehand on both sides: this is the speed of the training step.
 *
 * bench_dlrm [--rounds N] [--steps N] [--rows N] [--peers FOLDER] [--json FILE] [--profile] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"
#include "peer.h"
#include "phloem/model.h"
#include "phloem/op.h"

#define NUM_DENSE 13
#define NUM_TABLES 26
#define DIM 64
#define BATCH 2048
#define NUM_BATCHES 8
#define MAX_ROUNDS 25

struct options {
    size_t rounds, steps, rows;
    const char *peers, *json;
    bool has_profile;
};

struct bench_case {
    size_t pooling, threads;
    enum ph_optimizer_kind optimizer;
};

static const char *optimizer_word(enum ph_optimizer_kind kind)
{
    return kind == PH_SGD ? "sgd" : "adagrad";
}

static void check(ph_status status)
{
    if (status == PH_OK)
        return;
    fprintf(stderr, "bench_dlrm: %s\n", ph_error_text());
    exit(ph_status_exit_code(status));
}

/* ---- batches --------------------------------------------------------------------------------------------------- */

/* Rank with density rank^-1.05, cut at `rows`: about 1% of the ids take most of the accesses. */
static int64_t power_law_id(struct ph_rng_sequence *rng, size_t rows)
{
    const double exponent = 1.05;
    double uniform = ph__rng_next_uniform(rng);
    double rank = pow(1 - uniform * (1 - pow((double)rows + 1, 1 - exponent)), 1 / (1 - exponent));
    int64_t id = (int64_t)rank - 1;
    return id < 0 ? 0 : id >= (int64_t)rows ? (int64_t)rows - 1 : id;
}

static void *allocate(size_t bytes)
{
    void *memory = NULL;
    check(ph__memory_alloc(bytes, "a batch", &memory));
    return memory;
}

static struct ph_batch make_batch(size_t pooling, size_t rows, uint64_t seed)
{
    struct ph_rng_sequence rng = {.key = {.seed = seed}};
    size_t bags = NUM_TABLES * BATCH, num_ids = bags * pooling;
    ph_real *dense = allocate(BATCH * NUM_DENSE * sizeof *dense), *labels = allocate(BATCH * sizeof *labels);
    int32_t *lengths = allocate(bags * sizeof *lengths);
    uint32_t *offsets = allocate((bags + 1) * sizeof *offsets);
    int64_t *ids = allocate(num_ids * sizeof *ids);
    for (size_t i = 0; i < BATCH * NUM_DENSE; i++)
        dense[i] = (ph_real)ph__rng_next_uniform(&rng);
    for (size_t i = 0; i < BATCH; i++)
        labels[i] = ph__rng_next_uniform(&rng) < 0.25 ? 1 : 0;
    for (size_t i = 0; i < bags; i++) {
        lengths[i] = (int32_t)pooling;
        offsets[i + 1] = (uint32_t)((i + 1) * pooling);
    }
    for (size_t i = 0; i < num_ids; i++)
        ids[i] = power_law_id(&rng, rows);
    return (struct ph_batch){.num_samples = BATCH,
        .num_dense = NUM_DENSE,
        .num_sparse = NUM_TABLES,
        .num_tasks = 1,
        .num_ids = num_ids,
        .dense = dense,
        .labels = labels,
        .lengths = lengths,
        .offsets = offsets,
        .ids = ids};
}

static void free_batch(struct ph_batch *batch)
{
    size_t bags = NUM_TABLES * BATCH;
    ph__memory_free((void *)(uintptr_t)batch->dense, BATCH * NUM_DENSE * sizeof *batch->dense);
    ph__memory_free((void *)(uintptr_t)batch->labels, BATCH * sizeof *batch->labels);
    ph__memory_free((void *)(uintptr_t)batch->lengths, bags * sizeof *batch->lengths);
    ph__memory_free((void *)(uintptr_t)batch->offsets, (bags + 1) * sizeof *batch->offsets);
    ph__memory_free((void *)(uintptr_t)batch->ids, batch->num_ids * sizeof *batch->ids);
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

struct machine {
    struct ph_program *program;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    struct ph_batch batches[NUM_BATCHES];
    uint64_t step;
};

static struct ph_program *build_program(const struct bench_case *wanted, size_t rows)
{
    struct ph_builder *builder = NULL;
    check(ph_builder_create(PH_TRAINING, &builder));
    struct ph_table_slice slices[NUM_TABLES];
    char names[NUM_TABLES][8];
    for (size_t i = 0; i < NUM_TABLES; i++) {
        snprintf(names[i], sizeof names[i], "C%zu", i + 1);
        slices[i] = (struct ph_table_slice){names[i], rows};
    }
    const struct ph_model_settings settings = {.kind = ph_model_find("dlrm"),
        .embedding_dim = DIM,
        .embedding_init_std = 0.01,
        .bottom_units = (int64_t[]){512, 256},
        .num_bottom_units = 2,
        .top_units = (int64_t[]){512, 256},
        .num_top_units = 2,
        .activation = PH_RELU,
        .interaction = PH_INTERACTION_DOT};
    const struct ph_model_features features = {
        .num_dense = NUM_DENSE, .num_sparse = NUM_TABLES, .num_tasks = 1, .sparse = slices};
    ph_value logits = ph_model_build(builder, &settings, &features);
    ph_value loss = ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
    ph_output(builder, "loss", loss);
    ph_value parameters[64], gradients[64];
    size_t count = ph_builder_num_parameters(builder);
    for (size_t i = 0; i < count; i++)
        parameters[i] = ph_builder_parameter(builder, i);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, count, parameters, gradients);
    ph_builder_begin_entry(builder, "update");
    const struct ph_optimizer optimizer = {
        .kind = wanted->optimizer, .epsilon = 1e-10, .learning_rate_factor = 1};
    ph_value rate = ph_input_scalar(builder, "learning_rate"), step = ph_input_scalar(builder, "step");
    for (size_t i = 0; i < count; i++)
        ph_update(builder, parameters[i], gradients[i], &optimizer, rate, step, 0);
    struct ph_program *program = NULL;
    check(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

static void start(struct machine *machine, const struct bench_case *wanted, size_t rows)
{
    *machine = (struct machine){.program = build_program(wanted, rows)};
    check(ph_store_create(1, &machine->store));
    check(ph_state_create(&machine->state));
    check(ph_backend_create(&(struct ph_backend_options){.num_threads = wanted->threads}, &machine->backend));
    check(ph_executor_create(
        machine->program, machine->store, machine->state, machine->backend, &machine->executor));
    check(ph_workspace_create(
        machine->executor, BATCH, NUM_TABLES * BATCH * wanted->pooling, &machine->workspace));
    for (size_t i = 0; i < NUM_BATCHES; i++)
        machine->batches[i] = make_batch(wanted->pooling, rows, i + 1);
    check(ph_workspace_set_scalar(machine->workspace, "learning_rate", 0.01));
}

static void stop(struct machine *machine)
{
    for (size_t i = 0; i < NUM_BATCHES; i++)
        free_batch(&machine->batches[i]);
    ph_workspace_destroy(machine->workspace);
    ph_executor_destroy(machine->executor);
    ph_backend_destroy(machine->backend);
    ph_state_destroy(machine->state);
    ph_store_destroy(machine->store);
    ph_program_destroy(machine->program);
}

/* Seconds for `steps` training steps. */
static double run_ours(struct machine *machine, size_t steps)
{
    static const char *const entries[] = {"forward", "backward", "update"};
    double begin = ph__clock_seconds();
    for (size_t i = 0; i < steps; i++) {
        machine->step++;
        check(ph_workspace_bind(
            machine->workspace, &machine->batches[machine->step % NUM_BATCHES], 1, machine->step));
        check(ph_workspace_set_scalar(machine->workspace, "step", (double)machine->step));
        for (size_t k = 0; k < 3; k++)
            check(ph_workspace_run(machine->workspace, entries[k]));
    }
    return ph__clock_seconds() - begin;
}

/* ---- the peer ------------------------------------------------------------------------------------------------------ */

static void peer_case(struct peer *peer, const struct bench_case *wanted, size_t rows)
{
    if (!peer_accepts(peer, "case %zu %s %zu %d %zu %d %d", wanted->pooling,
            optimizer_word(wanted->optimizer), wanted->threads, NUM_TABLES, rows, DIM, BATCH))
        peer_stop(peer);
}

static double run_peer(struct peer *peer, size_t steps)
{
    const char *answer = peer_ask(peer, "run %zu", steps);
    return answer != NULL ? strtod(answer, NULL) : (double)NAN;
}

/* ---- rounds --------------------------------------------------------------------------------------------------------- */

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double median(const double *values, size_t count)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, ascending);
    return count % 2 == 1 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

static void report(const struct bench_case *wanted, const struct peer *peer, size_t rounds,
    const double *ours, const double *theirs, struct ph_json *results)
{
    double ratios[MAX_ROUNDS];
    for (size_t i = 0; i < rounds; i++)
        ratios[i] = ours[i] / theirs[i];
    bool has_peer = peer_is_there(peer);
    double value = median(ours, rounds);
    printf("pooling %2zu  %-8s %zu thread%s  %9.0f samples/s", wanted->pooling,
        optimizer_word(wanted->optimizer), wanted->threads, wanted->threads == 1 ? " " : "s", value);
    if (has_peer)
        printf("   PyTorch %9.0f   ratio %.2f", median(theirs, rounds), median(ratios, rounds));
    printf("\n");
    fflush(stdout);
    char name[96];
    snprintf(name, sizeof name, "train.dlrm.pool%zu.%s.threads%zu", wanted->pooling,
        optimizer_word(wanted->optimizer), wanted->threads);
    struct ph_json *entry = ph__json_object();
    ph__json_set_text(entry, "name", name);
    ph__json_set_text(entry, "unit", "samples/s");
    ph__json_set_number(entry, "value", value);
    ph__json_set_text(entry, "peer", has_peer ? peer->version : NULL);
    ph__json_set_number(entry, "peer_value", has_peer ? median(theirs, rounds) : NAN);
    ph__json_set_number(entry, "ratio", has_peer ? median(ratios, rounds) : NAN);
    ph__json_set_null(entry, "limit");
    ph__json_set_null(entry, "of_limit");
    ph__json_set_text(entry, "label", "measured");
    ph__json_append(results, entry);
}

static void run_case(const struct bench_case *wanted, const struct options *options, struct peer *peer,
    struct ph_json *results)
{
    struct machine machine;
    double ours[MAX_ROUNDS], theirs[MAX_ROUNDS];
    start(&machine, wanted, options->rows);
    peer_case(peer, wanted, options->rows);
    run_ours(&machine, 3);
    run_peer(peer, 3);
    double samples = (double)(options->steps * BATCH);
    for (size_t i = 0; i < options->rounds; i++) {
        ours[i] = samples / run_ours(&machine, options->steps);
        theirs[i] = samples / run_peer(peer, options->steps);
    }
    report(wanted, peer, options->rounds, ours, theirs, results);
    if (options->has_profile) {
        check(ph_executor_profile(machine.executor, true, 0));
        run_ours(&machine, options->steps);
        check(ph_executor_print_profile(machine.executor, stdout));
    }
    stop(&machine);
}

static size_t positive_number(const char *text)
{
    char *end = NULL;
    unsigned long number = text != NULL ? strtoul(text, &end, 10) : 0;
    if (number == 0 || *end != '\0') {
        fprintf(stderr, "bench_dlrm: '%s' is no positive number\n", text != NULL ? text : "");
        exit(2);
    }
    return number;
}

static struct options parse(int argc, char **argv)
{
    struct options options = {.rounds = 7, .steps = 10, .rows = 100000};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--profile") == 0) {
            options.has_profile = true;
            continue;
        }
        if (strcmp(argv[i], "--rounds") == 0)
            options.rounds = positive_number(value);
        else if (strcmp(argv[i], "--steps") == 0)
            options.steps = positive_number(value);
        else if (strcmp(argv[i], "--rows") == 0)
            options.rows = positive_number(value);
        else if (strcmp(argv[i], "--peers") == 0)
            options.peers = value;
        else if (strcmp(argv[i], "--json") == 0)
            options.json = value;
        else {
            fprintf(stderr, "bench_dlrm: unknown flag '%s'\n", argv[i]);
            exit(2);
        }
        i++;
    }
    options.rounds = options.rounds > MAX_ROUNDS ? MAX_ROUNDS : options.rounds;
    return options;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    struct peer peer = {0};
    peer_start(&peer, options.peers, "torch");
    struct ph_json *results = ph__json_array();
    printf("DLRM training step, measured: %d dense, %d tables x %zu x %d, batch %d, %zu rounds of %zu steps, "
           "medians\n",
        NUM_DENSE, NUM_TABLES, options.rows, DIM, BATCH, options.rounds, options.steps);
    for (size_t pooling = 1; pooling <= 20; pooling += 19)
        for (size_t threads = 1; threads <= 2; threads++)
            for (int adagrad = 0; adagrad < 2; adagrad++)
                run_case(&(struct bench_case){pooling, threads, adagrad ? PH_ADAGRAD : PH_SGD}, &options,
                    &peer, results);
    peer_stop(&peer);
    if (options.json != NULL)
        check(ph__json_write(results, options.json));
    ph__json_destroy(results);
    return 0;
}
