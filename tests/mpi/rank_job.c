/* See rank_job.h. */
#include "rank_job.h"

#include <stdio.h>
#include <string.h>

#include "comm/collective/comm.h"

enum { MAX_SETS = 24 };

const char rank_job_mixed_plan[] = "tables:\n"
                                   "  \"*.C1\": {kind: row_wise}\n"
                                   "  \"*.C2\": {kind: column_wise}\n"
                                   "  \"*.C3\": {kind: data_parallel}\n"
                                   "  \"*.C4\": {kind: grid}\n"
                                   "  \"*.C5\": {kind: table_row_wise}\n"
                                   "  \"*.C6\": {kind: table_column_wise}\n"
                                   "default: {kind: table_wise}\n";

ph_status rank_job_make_data(const char *folder)
{
    static const char *const sets[] = {"synth.train_rows=2000", "synth.valid_rows=200", "synth.test_rows=0",
        "synth.dense=3", "synth.sparse=7", "synth.table_rows=90,40,7,300,1,25,60",
        "synth.bag_sizes=1,2,1,4,1,1,2", "synth.planted_dense=2", "synth.planted=3"};
    struct ph_config *config;
    char path[1024];
    snprintf(path, sizeof path, "%s/data", folder);
    PH_TRY(ph_config_read(NULL, sets, sizeof sets / sizeof *sets, &config));
    const ph_status status = ph_synth_write(ph_config_synth(config), path, NULL);
    ph_config_destroy(config);
    return status;
}

ph_status rank_job_write_plan(const char *path, size_t world_size, const char *text)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return ph_fail(PH_ERROR_DISK, "%s: cannot be written", path);
    fprintf(file, "version: 1\nworld_size: %zu\n%s", world_size, text);
    return fclose(file) == 0 ? PH_OK : ph_fail(PH_ERROR_DISK, "%s: cannot be written", path);
}

ph_status rank_job_share_plan(struct ph_comm *comm, const char *path, const char *text)
{
    if (ph_comm_rank(comm) == 0)
        PH_TRY(rank_job_write_plan(path, ph_comm_world_size(comm), text));
    return ph__comm_barrier(comm);
}

static ph_status note_loss(void *context, const struct ph_train_progress *progress)
{
    struct rank_job *job = context;
    if (progress->valid == NULL && progress->step <= RANK_JOB_STEPS)
        job->losses[progress->step - 1] = progress->loss;
    return PH_OK;
}

/* Nothing here has a gradient that is zero but for rounding, which Adam would make as large as any other. */
static ph_status read_config(
    struct rank_job *job, const char *folder, const char *plan, size_t num_sets, const char *const *sets)
{
    static const char *const own[] = {"seed=11", "threads=1", "model.kind=dlrm", "model.embedding_dim=32",
        "model.embedding_init_std=0.1", "model.bottom_units=16", "model.top_units=16,8", "model.dropout=0.1",
        "train.epochs=1", "train.batch_size=100", "train.report_seconds=0", "optimizer.kind=adagrad",
        "optimizer.learning_rate=0.02", "optimizer.embedding_kind=rowwise_adagrad"};
    const size_t num_own = sizeof own / sizeof *own;
    const char *all[MAX_SETS];
    char path[1024], plan_set[1100];
    snprintf(path, sizeof path, "%s/data/synth.yaml", folder);
    snprintf(plan_set, sizeof plan_set, "parallel.plan=%s", plan);
    if (num_own + 1 + num_sets > MAX_SETS)
        return ph_fail(PH_ERROR_BUG, "%zu settings are too many", num_sets);
    memcpy(all, own, sizeof own);
    all[num_own] = plan_set;
    for (size_t i = 0; i < num_sets; i++)
        all[num_own + 1 + i] = sets[i];
    return ph_config_read(path, all, num_own + 1 + num_sets, &job->config);
}

ph_status rank_job_init(struct rank_job *job, struct ph_comm *comm, const char *folder, const char *out,
    const char *plan, size_t num_sets, const char *const *sets)
{
    *job = (struct rank_job){.observer = {.context = job, .on_progress = note_loss}};
    PH_TRY(read_config(job, folder, plan, num_sets, sets));
    PH_TRY(ph_encoder_create(ph_config_data(job->config), &job->encoder));
    job->job = ph__config_job(job->config);
    job->job.encoder = job->encoder;
    job->job.options.comm = comm;
    job->job.options.folder = out;
    job->job.options.observer = &job->observer;
    return PH_OK;
}

void rank_job_fini(struct rank_job *job)
{
    ph_encoder_destroy(job->encoder);
    ph_config_destroy(job->config);
}
