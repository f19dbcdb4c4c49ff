/* A program that a rank runs, or one alone, and what it runs with, for tests of operators over ranks. */
#ifndef PH_TEST_RANK_FIXTURE_H
#define PH_TEST_RANK_FIXTURE_H

#include "graph/distribution.h"
#include "phloem/op.h"
#include "shard/plan_distribution.h"
#include "support/thread_ranks.h"

struct rank_model {
    const struct ph_distribution *distribution; /* NULL: alone */
    struct ph_program *program;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
};

/* Puts the whole program into the builder. */
typedef void rank_model_build(
    struct ph_builder *builder, const struct ph_distribution *distribution, const void *context);

static inline ph_status rank_model_program(rank_model_build *build, const void *context, enum ph_mode mode,
    const struct ph_distribution *distribution, struct ph_program **program_out)
{
    struct ph_builder *builder;
    PH_TRY(ph_builder_create(mode, &builder));
    build(builder, distribution, context);
    const ph_status status = ph_builder_finish(builder, program_out);
    ph_builder_destroy(builder);
    return status;
}

static inline ph_status rank_model_init(struct rank_model *model, rank_model_build *build,
    const void *context, const struct ph_distribution *distribution)
{
    *model = (struct rank_model){.distribution = distribution};
    PH_TRY(rank_model_program(build, context, PH_TRAINING, distribution, &model->program));
    PH_TRY(ph_store_create(7, &model->store));
    PH_TRY(ph_state_create(&model->state));
    PH_TRY(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1},
        &model->backend));
    PH_TRY(ph_executor_create(model->program, model->store, model->state, model->backend, &model->executor));
    return distribution != NULL ? distribution->create_workspace(
                                      distribution->context, model->executor, 1, 1, &model->workspace)
                                : ph_workspace_create(model->executor, 1, 1, &model->workspace);
}

static inline void rank_model_fini(struct rank_model *model)
{
    ph_workspace_destroy(model->workspace);
    ph_executor_destroy(model->executor);
    ph_backend_destroy(model->backend);
    ph_state_destroy(model->state);
    ph_store_destroy(model->store);
    ph_program_destroy(model->program);
}

static inline ph_status rank_model_run(
    struct rank_model *model, const struct ph_batch *batch, uint64_t step, const char *const *entries)
{
    const struct ph_distribution *distribution = model->distribution;
    if (distribution != NULL)
        PH_TRY(distribution->bind(distribution->context, model->workspace, batch, 1, step));
    else
        PH_TRY(ph_workspace_bind(model->workspace, batch, 1, step));
    for (size_t i = 0; entries[i] != NULL; i++)
        PH_TRY(ph_workspace_run(model->workspace, entries[i]));
    return PH_OK;
}

static inline ph_status rank_distribution_create(
    struct ph_comm *comm, const struct ph__plan *plan, struct ph_distribution **distribution_out)
{
    const struct ph__distribution_options options = {
        .comm = comm, .plan = plan, .bucket_bytes = 1 << 20, .overlaps = true};
    return ph__distribution_create(&options, distribution_out);
}

#endif
