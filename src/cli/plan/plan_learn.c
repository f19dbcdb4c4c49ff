#include "cli/plan/plan_learn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/sizes.h"
#include "cli/progress.h"
#include "sim/exchange_time.h"
#include "train/cost/cost_folder.h"
#include "train/cost/cost_labels.h"

enum {
    NUM_TABLES = 10000,     /* far more than sets have: nets learn of tables, not of sets alone */
    NUM_RUNS = 7,           /* of a set, each time that it is measured */
    MOST_EXCHANGES = 10000, /* each way; at most EXCHANGES_OF_SET times as many as sets of tables */
    EXCHANGES_OF_SET = 4,
    NUM_EPOCHS = 1000,
    LEAST_SETS = 100,
    LEAST_LABELS = 2, /* to train on, to validate by, to test by: an order takes two */
    SEED = 1,
    MOST_TOPOLOGY_BYTES = 1 << 24
};
#define ARENA_BYTES ((uint64_t)1 << 30) /* far beyond caches */

static const char default_topology[] =
    "# Exchanges were learnt for these links: 10 Gb/s Ethernet, latencies assumed.\n"
    "version: 1\nkind: star\nhosts: 8\nranks_per_host: 8\n"
    "host: {gbits_per_s: 10, latency_us: 10}\nmessages: {send_us: 2, receive_us: 2, eager_bytes: 4194304}\n";

struct learner {
    const struct cli_plan_learning *learning;
    struct ph__arena arena;
    struct ph__fabric fabric;
    struct ph__cost_table *tables; /* (NUM_TABLES) */
    struct ph__cost_split split;
    struct ph__cost_measure *measure;
    struct ph__cost_labels sets;
    struct ph__cost_nets *nets;
    struct ph__cost_facts facts;
    struct cli_progress progress;
};

/* ---- files ---- */

static ph_status write_text(const char *path, const char *text, size_t size)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    return ph__writer_end(writer, ph__writer_write(writer, text, size));
}

/* Reads the topology, and keeps a copy of it in the folder. */
static ph_status prepare_folder(struct learner *learner)
{
    const struct cli_plan_learning *learning = learner->learning;
    const char *kept = ph__path_join(&learner->arena, learning->folder, "topology.yaml");
    char *text = NULL;
    size_t size = 0;
    if (kept == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__directory_create(learning->folder));
    if (learning->topology == NULL) {
        PH_TRY(write_text(kept, default_topology, strlen(default_topology)));
        return ph__fabric_read(kept, &learner->fabric);
    }
    PH_TRY(ph__fabric_read(learning->topology, &learner->fabric));
    if (learner->fabric.num_hosts * learner->fabric.ranks_per_host < 2)
        return ph_fail(
            PH_ERROR_CONFIG, "%s: a cluster of one rank has no exchanges to learn", learning->topology);
    PH_TRY(ph__file_read(&learner->arena, learning->topology, MOST_TOPOLOGY_BYTES, &text, &size));
    return write_text(kept, text, size);
}

/* ---- sets of tables ---- */

static void show_sets(void *context, size_t done, size_t count)
{
    char line[128];
    snprintf(line, sizeof line, "measured %zu of %zu sets of tables", done, count);
    cli_progress_show_text(context, line);
}

static ph_status make_tables(struct learner *learner)
{
    const struct cli_plan_learning *learning = learner->learning;
    struct ph__locality locality;
    learner->tables = ph__arena_alloc_array(&learner->arena, NUM_TABLES, sizeof *learner->tables);
    if (learner->tables == NULL)
        return PH_ERROR_MEMORY;
    ph__locality_default(&locality);
    if (learning->locality != NULL)
        PH_TRY(ph__locality_read(learning->locality, &locality));
    PH_TRY(ph__cost_tables_make(&locality, learning->batch_size, NUM_TABLES, SEED, learner->tables));
    learner->split = ph__cost_tables_split(learner->tables, NUM_TABLES, SEED);
    return PH_OK;
}

static ph_status measure_sets(struct learner *learner)
{
    const struct ph__cost_measure_options options = {.batch_size = learner->learning->batch_size,
        .num_threads = learner->learning->num_threads,
        .num_runs = NUM_RUNS,
        .arena_bytes = ARENA_BYTES,
        .optimizer = learner->learning->optimizer};
    PH_TRY(ph__cost_measure_open(&options, &learner->measure));
    PH_TRY(ph__cost_labels_measure(learner->measure, learner->tables, &learner->split,
        learner->learning->num_sets, SEED, show_sets, &learner->progress, &learner->sets));
    cli_progress_end(&learner->progress);
    const struct ph__cost_split *counts = &learner->sets.counts;
    if (counts->num_train < LEAST_LABELS || counts->num_valid < LEAST_LABELS ||
        counts->num_test < LEAST_LABELS)
        return ph_fail(PH_ERROR_USAGE,
            "%zu of %zu sets of tables were disturbed too much to count: measure again when the machine is "
            "idle",
            learner->sets.num_dropped, learner->learning->num_sets);
    return PH_OK;
}

static ph_status predict(
    const struct ph__cost_model *model, const struct ph__cost_label *label, double *ms_out)
{
    float description[PH_COST_MOST_WIDTH], all[PH_COST_MOST_WIDTH] = {0};
    for (size_t part = 0; part < label->num_parts; part++) {
        PH_TRY(model->describe(model->context, &label->parts[part], 1, description));
        for (size_t k = 0; k < model->width; k++)
            all[k] += description[k];
    }
    return model->compute(model->context, all, 1, ms_out);
}

/* Returns Kendall's tau: how many more pairs are in order than not, as a share. */
static double kendall_tau(const struct ph__cost_label *labels, size_t count, const double *ms)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++) {
            const double order = (ms[i] - ms[k]) * (labels[i].ms - labels[k].ms);
            sum += (order > 0) - (order < 0);
        }
    return 2 * sum / ((double)count * (double)(count - 1));
}

/* Gives the mean relative error and Kendall's tau on the sets that are tested by. */
static ph_status test_sets(struct learner *learner)
{
    const struct ph__cost_model model = ph__cost_nets_model(learner->nets);
    const size_t count = learner->sets.counts.num_test;
    const struct ph__cost_label *labels = learner->sets.labels + learner->sets.num_labels - count;
    double *ms = ph__arena_alloc_array(&learner->arena, count, sizeof *ms), sum = 0;
    if (ms == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        PH_TRY(predict(&model, &labels[i], &ms[i]));
        sum += fabs(ms[i] - labels[i].ms) / labels[i].ms;
    }
    learner->facts.mape = sum / (double)count;
    learner->facts.tau = kendall_tau(labels, count, ms);
    return PH_OK;
}

static ph_status learn_sets(struct learner *learner)
{
    const struct ph__cost_labels *sets = &learner->sets;
    const struct ph__cost_training training = {
        sets->counts.num_train + sets->counts.num_valid, sets->counts.num_valid, NUM_EPOCHS};
    double mape;
    learner->nets->lookup_share = ph__cost_measure_lookup_share(learner->measure);
    PH_TRY(ph__cost_learn_compute(learner->nets, sets->labels, &training, &mape));
    PH_TRY(test_sets(learner));
    learner->facts.labels = sets->num_labels;
    learner->facts.repeat_error = sets->repeat_error;
    printf(
        "computing: mean error %.1f %%, Kendall's tau %.3f, on %zu sets of tables that the net has not seen; "
        "measuring again differs by %.1f %%; lookups are %.0f %% of the time\n",
        100 * learner->facts.mape, learner->facts.tau, sets->counts.num_test, 100 * sets->repeat_error,
        100 * learner->nets->lookup_share);
    printf("sets of tables: %zu measured twice, %zu of them a third time, %zu dropped\n",
        learner->learning->num_sets, sets->num_again, sets->num_dropped);
    return PH_OK;
}

/* ---- exchanges ---- */

static ph_status learn_exchanges(struct learner *learner, enum ph__exchange_way way)
{
    const struct ph__exchange_drawing drawing = {&learner->fabric, way, learner->learning->batch_size, SEED};
    const size_t count = ph__min(EXCHANGES_OF_SET * learner->learning->num_sets, (size_t)MOST_EXCHANGES);
    const struct ph__cost_training training = {count, count / 10, NUM_EPOCHS};
    struct ph__exchange_label *labels = ph__arena_alloc_array(&learner->arena, count, sizeof *labels);
    const char *what = way == PH_EXCHANGE_FORWARD ? "vectors" : "gradients";
    double mape;
    if (labels == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__exchange_labels_draw(&drawing, count, &learner->arena, labels));
    PH_TRY(ph__cost_learn_exchange(learner->nets, labels, &training, &mape));
    printf("exchanges of %s: mean error %.1f %% of the time behind the last start, on %zu simulated ones\n",
        what, 100 * mape, training.num_validation);
    return PH_OK;
}

/* ---- all ---- */

static ph_status learn(struct learner *learner)
{
    PH_TRY(ph__cost_facts_here(&learner->facts));
    PH_TRY(prepare_folder(learner));
    PH_TRY(make_tables(learner));
    PH_TRY(measure_sets(learner));
    PH_TRY(ph__cost_nets_create(SEED, learner->learning->batch_size, &learner->nets));
    PH_TRY(learn_sets(learner));
    PH_TRY(learn_exchanges(learner, PH_EXCHANGE_BACKWARD));
    PH_TRY(learn_exchanges(learner, PH_EXCHANGE_FORWARD));
    PH_TRY(ph__cost_save(learner->nets, learner->learning->folder, &learner->facts));
    printf("costs of batches of %zu samples on '%s' (%s) are in %s\n", learner->learning->batch_size,
        learner->facts.processor, learner->facts.isa, learner->learning->folder);
    return PH_OK;
}

ph_status cli_plan_learn(const struct cli_plan_learning *learning)
{
    struct learner learner = {.learning = learning, .progress = cli_progress_on(stdout)};
    if (learning->num_sets < LEAST_SETS)
        return ph_fail(PH_ERROR_USAGE, "--sets must be at least %d, not %zu", LEAST_SETS, learning->num_sets);
    const ph_status status = learn(&learner);
    ph__cost_nets_destroy(learner.nets);
    ph__cost_labels_fini(&learner.sets);
    ph__cost_measure_close(learner.measure);
    ph__fabric_fini(&learner.fabric);
    ph__arena_fini(&learner.arena);
    return status;
}
