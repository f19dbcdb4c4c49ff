/* Every kind of shard, and all of them in one plan, on the ranks that mpirun has started:
 *
 *     rank_kinds FOLDER RANKS_PER_HOST
 *
 * Lookups and updates given the gradients that one rank has (shard_learner.h): where rows are whole, its
 * bits. Trainings of a whole model (rank_job.h): the same bits twice, the same whichever plan leaves rows
 * whole, and at each step one rank's loss but for rounding. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/collective/comm.h"
#include "rank_job.h"
#include "rank_main.h"
#include "unit/shard/shard_learner.h"

#define TOLERANCE 1e-5 /* relative, where sums are made in another order */

struct kind {
    const char *name;
    double tolerance; /* of lookups and updates */
    const char *lookup_plan,
        *training_plan; /* behind a plan file's head; NULL: all tables are of this kind */
};

static const struct kind kinds[] = {
    {.name = "table_wise"},
    {.name = "column_wise"},
    {.name = "table_column_wise"},
    {.name = "row_wise", .tolerance = TOLERANCE},
    {.name = "table_row_wise", .tolerance = TOLERANCE},
    {.name = "grid", .tolerance = TOLERANCE},
    {.name = "data_parallel", .tolerance = TOLERANCE},
    {"mixed", TOLERANCE,
        "tables:\n  a: {kind: row_wise}\n  b: {kind: table_row_wise}\n  c: {kind: column_wise}\n"
        "  d: {kind: data_parallel}\n  f: {kind: grid}\ndefault: {kind: table_wise}\n",
        rank_job_mixed_plan},
};
enum { NUM_KINDS = sizeof kinds / sizeof *kinds };

static const char *plan_text(const struct kind *kind, const char *own, char text[64])
{
    snprintf(text, 64, "default: {kind: %s}\n", kind->name);
    return own != NULL ? own : text;
}

/* ---- lookups and updates ---- */

static ph_status learn_alone(const struct training *training, struct learner *alone)
{
    PH_TRY(make_learner(training, NULL, alone));
    for (size_t step = 0; step < NUM_STEPS; step++)
        PH_TRY(take_step(alone, NULL, step, 0, batch_sizes[step]));
    return PH_OK;
}

static ph_status check_lookups_by(
    struct ph_comm *comm, const struct kind *kind, const char *path, const struct training *training)
{
    struct learner *alone = calloc(1, sizeof *alone);
    const struct comparison comparison = {
        .training = training, .alone = alone, .plan_path = path, .tolerance = kind->tolerance};
    if (alone == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a model");
    ph_status status = learn_alone(training, alone);
    if (status == PH_OK)
        status = run_rank(comm, (void *)&comparison);
    learner_fini(alone);
    free(alone);
    return status;
}

/* Weighted sums with a number of state for each weight, and means with one for each row. */
static ph_status check_lookups(struct ph_comm *comm, const struct kind *kind, const char *path)
{
    const struct training sums = {.optimizer = PH_ADAM, .has_weights = true};
    const struct training means = {.optimizer = PH_ROWWISE_ADAGRAD, .pooling = PH_POOL_MEAN};
    char text[64];
    PH_TRY(rank_job_share_plan(comm, path, plan_text(kind, kind->lookup_plan, text)));
    PH_TRY(check_lookups_by(comm, kind, path, &sums));
    return check_lookups_by(comm, kind, path, &means);
}

/* ---- whole trainings ---- */

struct outcome {
    double losses[RANK_JOB_STEPS];
    char sha256[65];
};

static ph_status train(
    struct ph_comm *comm, const char *folder, const char *out, const char *plan, struct outcome *outcome)
{
    struct ph_train_summary summary;
    struct rank_job job;
    ph_status status = rank_job_init(&job, comm, folder, out, plan, 0, NULL);
    if (status == PH_OK)
        status = ph__train(&job.job, &summary);
    if (status == PH_OK) {
        memcpy(outcome->losses, job.losses, sizeof outcome->losses);
        memcpy(outcome->sha256, summary.checkpoint_sha256, sizeof outcome->sha256);
    }
    rank_job_fini(&job);
    return status;
}

/* Returns the largest difference, in proportion to the loss; INFINITY where there was no loss. */
static double loss_distance(const struct outcome *is, const struct outcome *should_be)
{
    double largest = 0;
    for (size_t i = 0; i < RANK_JOB_STEPS; i++) {
        const double distance = fabs(is->losses[i] - should_be->losses[i]) / should_be->losses[i];
        largest = distance >= 0 ? fmax(largest, distance) : INFINITY;
    }
    return largest;
}

/* exact_sha256: of the model that all plans without cut rows come to, "" before the first of them. */
static ph_status check_training(struct ph_comm *comm, const struct kind *kind, const char *folder,
    const char *plan, const struct outcome *alone, char exact_sha256[65])
{
    const double tolerance = ph_comm_world_size(comm) == 1 ? 0 : TOLERANCE;
    struct outcome outcomes[2];
    char text[64];
    PH_TRY(rank_job_share_plan(comm, plan, plan_text(kind, kind->training_plan, text)));
    for (size_t i = 0; i < 2; i++) {
        char out[1024];
        snprintf(out, sizeof out, "%s/%s.%zu", folder, kind->name, i);
        PH_TRY(train(comm, folder, out, plan, &outcomes[i]));
    }
    RANK_CHECK(strcmp(outcomes[0].sha256, outcomes[1].sha256) == 0);
    RANK_CHECK(memcmp(outcomes[0].losses, outcomes[1].losses, sizeof outcomes->losses) == 0);
    const double distance = loss_distance(&outcomes[0], alone);
    if (ph_comm_rank(comm) == 0)
        printf("%-17s losses of %d steps within %.1e of one rank's; twice sha256 %.12s...\n", kind->name,
            RANK_JOB_STEPS, distance, outcomes[0].sha256);
    RANK_CHECK(distance <= tolerance);
    if (kind->tolerance == 0 && exact_sha256[0] == '\0')
        memcpy(exact_sha256, outcomes[0].sha256, sizeof outcomes->sha256);
    RANK_CHECK(kind->tolerance > 0 || strcmp(exact_sha256, outcomes[0].sha256) == 0);
    return PH_OK;
}

/* ---- all kinds ---- */

static ph_status check_kind(struct ph_comm *comm, const struct kind *kind, const char *folder,
    const struct outcome *alone, char exact_sha256[65])
{
    char plan[1024], why[512];
    snprintf(plan, sizeof plan, "%s/%s.yaml", folder, kind->name);
    ph_status status = check_lookups(comm, kind, plan);
    if (status == PH_OK)
        status = check_training(comm, kind, folder, plan, alone, exact_sha256);
    if (status == PH_OK)
        return PH_OK;
    snprintf(why, sizeof why, "%s", ph_error_text());
    return ph_fail(status, "%s: %s", kind->name, why);
}

static ph_status run(struct ph_comm *comm, int argc, char **argv)
{
    const char *folder = argv[1];
    struct outcome alone = {0};
    char out[1024], exact_sha256[65] = "";
    (void)argc;
    if (ph_comm_rank(comm) == 0)
        PH_TRY(rank_job_make_data(folder));
    PH_TRY(ph__comm_barrier(comm));
    snprintf(out, sizeof out, "%s/alone.%zu", folder, ph_comm_rank(comm));
    PH_TRY(train(NULL, folder, out, "auto", &alone));
    for (size_t i = 0; i < NUM_KINDS; i++)
        PH_TRY(check_kind(comm, &kinds[i], folder, &alone, exact_sha256));
    return PH_OK;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    return rank_main("rank_kinds", (size_t)atoi(argv[2]), run, argc, argv);
}
