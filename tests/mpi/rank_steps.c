/* A rank that trains by every kind of plan and wire, and compares what MPI was given to send (pmpi_traffic.c,
 * preloaded) with what theory says, for each class of messages and pair of ranks, to the byte:
 *
 *     rank_steps CONFIG DATA FOLDER RANKS_PER_HOST
 *
 * What CONFIG says of the rows DATA is trained in FOLDER/<case>. The first rank prints a table of all cases.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/text_table.h"
#include "comm/collective/comm.h"
#include "comm/wire/transport.h"
#include "rank_job.h"
#include "rank_main.h"
#include "shard/sharding.h"
#include "step_theory.h"

enum { SUMS_CHANNEL = PH_CHANNEL_EXCHANGES - 1, MOST_RANKS = 8 };

/* pmpi_traffic.c's. */
typedef void visitor(void *context, int to, int tag, uint64_t bytes);
typedef void visit_function(visitor *visit, void *context);

struct steps {
    const char *config, *data, *folder;
    struct ph_comm *comm;
    struct ph__topology topology;
    visit_function *visit;
    struct ph__text_table table;
};

/* A plan of one kind, or the mixed one; mode: of dense parameters, NULL where they are replicated. */
struct step_case {
    const char *model, *kind;
    enum ph_wire_format wire;
    const char *mode;
};

/* ---- counting ---- */

/* Bytes of this rank by class and by whom they go to. */
struct counts {
    uint64_t bytes[PH_TRAFFIC_COUNT][MOST_RANKS];
};

/* PH_TRAFFIC_COUNT: of none. */
static enum ph__traffic class_of(uint32_t channel)
{
    if (channel >= PH_CHANNEL_SQUARES)
        return PH_TRAFFIC_SQUARES;
    if (channel >= PH_CHANNEL_UNIT_REDUCTIONS && channel < PH_CHANNEL_UNIT_REDUCTIONS + PH_UNIT_CHANNELS)
        return PH_TRAFFIC_DENSE;
    if (channel >= PH_CHANNEL_UNIT_GATHERS && channel < PH_CHANNEL_UNIT_REDUCTIONS)
        return PH_TRAFFIC_PARAMETERS;
    if (channel >= PH_CHANNEL_STATISTICS)
        return PH_TRAFFIC_COUNT;
    if (channel >= PH_CHANNEL_REPLICAS)
        return PH_TRAFFIC_REPLICAS;
    if (channel >= PH_CHANNEL_DENSE)
        return PH_TRAFFIC_DENSE;
    if (channel >= PH_CHANNEL_EXCHANGES)
        return (channel - PH_CHANNEL_EXCHANGES) % 2 == 0 ? PH_TRAFFIC_POOLED : PH_TRAFFIC_GRADIENTS;
    switch (channel) {
    case PH_CHANNEL_LENGTHS:
        return PH_TRAFFIC_LENGTHS;
    case PH_CHANNEL_IDS:
        return PH_TRAFFIC_IDS;
    case PH_CHANNEL_ID_WEIGHTS:
        return PH_TRAFFIC_WEIGHTS;
    default:
        return PH_TRAFFIC_COUNT;
    }
}

/* A channel has several tags: of its stages. Those of channel 0 are the communicator's own. */
static void count_flow(void *context, int to, int tag, uint64_t bytes)
{
    struct counts *counts = context;
    const int tags_a_channel = (PH_TRANSPORT_MAX_TAG + 1) / (int)PH_COMM_MAX_CHANNELS;
    const enum ph__traffic what = class_of((uint32_t)(tag / tags_a_channel));
    if (what != PH_TRAFFIC_COUNT)
        counts->bytes[what][to] += bytes;
}

static struct counts count_so_far(const struct steps *steps)
{
    struct counts counts = {0};
    steps->visit(count_flow, &counts);
    return counts;
}

static void subtract(struct counts *counts, const struct counts *before)
{
    for (size_t what = 0; what < PH_TRAFFIC_COUNT; what++)
        for (size_t to = 0; to < MOST_RANKS; to++)
            counts->bytes[what][to] -= before->bytes[what][to];
}

/* ---- comparing ---- */

static const char *mode_of(const struct step_case *of)
{
    return of->mode != NULL ? of->mode : "replicated";
}

static ph_status compare(
    const struct steps *steps, const struct step_case *of, const struct counts *counted, const double *theory)
{
    const size_t world_size = steps->topology.world_size, own = ph_comm_rank(steps->comm);
    for (size_t what = 0; what < PH_TRAFFIC_COUNT; what++)
        for (size_t to = 0; to < world_size; to++) {
            const double wanted = theory[(what * world_size + own) * world_size + to];
            if (wanted != (double)counted->bytes[what][to])
                return ph_fail(PH_ERROR_BUG,
                    "%s, %s, %s, %s: rank %zu has sent rank %zu %" PRIu64 " bytes of %s; theory says %.0f",
                    of->model, of->kind, ph__wire_name(of->wire), mode_of(of), own, to,
                    counted->bytes[what][to], ph__traffic_name((enum ph__traffic)what), wanted);
        }
    return PH_OK;
}

/* Bytes of each class that all ranks have sent. */
static ph_status add_up(const struct steps *steps, const struct counts *counted, uint64_t *sums_out)
{
    static const struct ph__comm_call call = {SUMS_CHANNEL, "what was counted"};
    const size_t world_size = steps->topology.world_size;
    uint64_t all[MOST_RANKS][PH_TRAFFIC_COUNT], own[PH_TRAFFIC_COUNT] = {0}, bytes[MOST_RANKS], ticket;
    for (size_t what = 0; what < PH_TRAFFIC_COUNT; what++)
        for (size_t to = 0; to < world_size; to++)
            own[what] += counted->bytes[what][to];
    for (size_t rank = 0; rank < world_size; rank++)
        bytes[rank] = sizeof own;
    PH_TRY(
        ph__comm_all_gather_start(steps->comm, &call, ph__comm_world(steps->comm), own, bytes, all, &ticket));
    PH_TRY(ph__comm_wait(steps->comm, ticket));
    memset(sums_out, 0, sizeof own);
    for (size_t rank = 0; rank < world_size; rank++)
        for (size_t what = 0; what < PH_TRAFFIC_COUNT; what++)
            sums_out[what] += all[rank][what];
    return PH_OK;
}

static void add_line(struct steps *steps, const struct step_case *of, const uint64_t *sums, double theory)
{
    uint64_t counted = 0;
    ph__text_table_cell(&steps->table, "%s", of->model);
    ph__text_table_cell(&steps->table, "%s", of->kind);
    ph__text_table_cell(&steps->table, "%s", ph__wire_name(of->wire));
    ph__text_table_cell(&steps->table, "%s", mode_of(of));
    for (size_t what = 0; what < PH_TRAFFIC_COUNT; what++) {
        ph__text_table_cell(&steps->table, "%" PRIu64, sums[what]);
        counted += sums[what];
    }
    ph__text_table_cell(&steps->table, "%" PRIu64, counted);
    ph__text_table_cell(&steps->table, "%.0f", theory);
}

static double total_of(const struct steps *steps, const double *theory)
{
    const size_t world_size = steps->topology.world_size;
    double total = 0;
    for (size_t i = 0; i < PH_TRAFFIC_COUNT * world_size * world_size; i++)
        total += theory[i];
    return total;
}

/* ---- a case ---- */

static const char mixed[] = "tables:\n  embedding.user: {kind: table_row_wise}\n  \"*.item\": {kind: grid}\n"
                            "  embedding.tags: {kind: column_wise}\n  \"*.shop\": {kind: data_parallel}\n"
                            "default: {kind: row_wise}\n";

static const char towers[] =
    "tables:\n  embedding.user: {kind: table_row_wise}\n  embedding.item: {kind: table_row_wise}\n"
    "default: {kind: table_wise}\ntowers: {x: 1, y: 0}\n";

static ph_status share_plan(const struct steps *steps, const struct step_case *of, const char *path)
{
    char text[256];
    snprintf(text, sizeof text, "default: {kind: %s}\ndense: {mode: %s, unit_bytes: 40000%s}\n", of->kind,
        mode_of(of), of->mode != NULL && strcmp(of->mode, "hybrid") == 0 ? ", group: 2" : "");
    if (strcmp(of->kind, "towers") == 0)
        return rank_job_share_plan(steps->comm, path, towers);
    return rank_job_share_plan(steps->comm, path, strcmp(of->kind, "mixed") == 0 ? mixed : text);
}

static ph_status train(
    struct steps *steps, const struct step_case *of, struct ph__train_job *job, double *theory)
{
    struct ph_train_summary summary;
    uint64_t sums[PH_TRAFFIC_COUNT];
    const struct counts before = count_so_far(steps);
    PH_TRY(ph__train(job, &summary));
    struct counts counted = count_so_far(steps);
    subtract(&counted, &before);
    PH_TRY(step_theory(job, &steps->topology, theory));
    PH_TRY(compare(steps, of, &counted, theory));
    PH_TRY(add_up(steps, &counted, sums));
    add_line(steps, of, sums, total_of(steps, theory));
    return PH_OK;
}

static ph_status train_by_config(struct steps *steps, const struct step_case *of, const char *plan,
    struct ph_config *config, double *theory)
{
    char folder[4096];
    struct ph_encoder *encoder;
    struct ph__train_job job = ph__config_job(config);
    snprintf(folder, sizeof folder, "%s/%s_%s_%s_%s", steps->folder, of->model, of->kind,
        ph__wire_name(of->wire), mode_of(of));
    PH_TRY(ph_encoder_create(ph_config_data(config), &encoder));
    job.encoder = encoder;
    job.options.comm = steps->comm;
    job.options.folder = folder;
    ph_status status = share_plan(steps, of, plan);
    if (status == PH_OK)
        status = train(steps, of, &job, theory);
    ph_encoder_destroy(encoder);
    return status;
}

static ph_status run_case(struct steps *steps, const struct step_case *of)
{
    enum { NUM_SETS = 9, OWN_SETS = 2 };
    const bool is_din = strcmp(of->model, "din") == 0, is_dlrm = strcmp(of->model, "dlrm") == 0;
    char sets[NUM_SETS][4096], plan[4000];
    const char *texts[NUM_SETS];
    const char *wire = ph__wire_name(of->wire);
    struct ph_config *config;
    const size_t world_size = steps->topology.world_size;
    double *theory = calloc(PH_TRAFFIC_COUNT * world_size * world_size, sizeof *theory);
    if (theory == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for what theory says");
    snprintf(plan, sizeof plan, "%s/%s_%s_%s.yaml", steps->folder, of->kind, wire, mode_of(of));
    snprintf(sets[0], sizeof sets[0], "data.train=%s", steps->data);
    snprintf(sets[1], sizeof sets[1], "model.kind=%s", of->model);
    snprintf(sets[2], sizeof sets[2], "parallel.plan=%s", plan);
    snprintf(sets[3], sizeof sets[3], "parallel.forward=%s", wire);
    snprintf(sets[4], sizeof sets[4], "parallel.backward=%s", wire);
    snprintf(sets[5], sizeof sets[5], "parallel.dense=%s", wire);
    snprintf(sets[6], sizeof sets[6], "model.hidden_units=%s", of->mode != NULL ? "200,150,100" : "8");
    snprintf(sets[7], sizeof sets[7], "%s",
        is_din ? "model.din.targets=item" : "model.towers=x: user, tags | y: item, shop, history");
    snprintf(sets[8], sizeof sets[8], "%s", is_din ? "model.din.histories=history" : "model.tower_dim=8");
    for (size_t i = 0; i < NUM_SETS; i++)
        texts[i] = sets[i];
    const size_t num_sets = is_din || is_dlrm ? NUM_SETS : NUM_SETS - OWN_SETS;
    ph_status status = ph_config_read(steps->config, texts, num_sets, &config);
    if (status == PH_OK) {
        status = train_by_config(steps, of, plan, config, theory);
        ph_config_destroy(config);
    }
    free(theory);
    return status;
}

/* ---- all ---- */

/* Of every kind, and mixed. */
static ph_status run_kinds(struct steps *steps, const char *model, enum ph_wire_format wire)
{
    for (size_t kind = 0; kind <= PH_SHARD_KIND_COUNT; kind++) {
        const bool is_mixed = kind == PH_SHARD_KIND_COUNT;
        const struct step_case of = {
            model, is_mixed ? "mixed" : ph__shard_kind_name((enum ph__shard_kind)kind), wire, NULL};
        PH_TRY(run_case(steps, &of));
    }
    return PH_OK;
}

/* Of every mode of dense parameters, exact and in fewer bytes. */
static ph_status run_modes(struct steps *steps)
{
    for (size_t mode = PH_DENSE_ZERO1; mode < PH_DENSE_MODE_COUNT; mode++)
        for (enum ph_wire_format wire = PH_WIRE_FP32; wire <= PH_WIRE_FP16; wire++) {
            const struct step_case of = {
                "deepfm", "row_wise", wire, ph__dense_mode_name((enum ph__dense_mode)mode)};
            PH_TRY(run_case(steps, &of));
        }
    return PH_OK;
}

/* Pooled lookups of two tables by each feature, then towers, on their hosts and on all ranks, and then some
 * lookups item by item. */
static ph_status run_all(struct steps *steps)
{
    for (enum ph_wire_format wire = 0; wire < PH_WIRE_COUNT; wire++) {
        PH_TRY(run_kinds(steps, "deepfm", wire));
        PH_TRY(run_case(steps, &(struct step_case){"dlrm", "towers", wire, NULL}));
    }
    PH_TRY(run_case(steps, &(struct step_case){"dlrm", "table_row_wise", PH_WIRE_FP32, NULL}));
    PH_TRY(run_kinds(steps, "din", PH_WIRE_INT8));
    return run_modes(steps);
}

static ph_status print_table(const struct steps *steps)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open("-", &writer));
    ph_status status = ph__text_table_write(&steps->table, writer);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    ph__writer_close(writer);
    return status;
}

static ph_status run_with(struct steps *steps)
{
    const struct ph__text_column columns[] = {{"model", false}, {"plan", false}, {"wire", false},
        {"dense", false},
#define COLUMN(name, text) {text, true},
        PH_TRAFFIC_LIST(COLUMN)
#undef COLUMN
            {"counted", true},
        {"theory", true}};
    ph__text_table_init(&steps->table, columns, sizeof columns / sizeof *columns);
    ph_status status = run_all(steps);
    if (status == PH_OK && ph_comm_rank(steps->comm) == 0)
        status = print_table(steps);
    ph__text_table_fini(&steps->table);
    return status;
}

static ph_status run(struct ph_comm *comm, int argc, char **argv)
{
    struct steps steps = {.config = argv[1],
        .data = argv[2],
        .folder = argv[3],
        .comm = comm,
        .topology = {ph_comm_world_size(comm), ph_comm_ranks_per_host(comm)}};
    void *symbol = dlsym(RTLD_DEFAULT, "pmpi_traffic_visit");
    (void)argc;
    memcpy(&steps.visit, &symbol, sizeof symbol);
    if (steps.visit == NULL || steps.topology.world_size > MOST_RANKS)
        return ph_fail(PH_ERROR_USAGE, "pmpi_traffic is not preloaded, or there are too many ranks");
    return run_with(&steps);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    return rank_main("rank_steps", (size_t)atoi(argv[4]), run, argc, argv);
}
