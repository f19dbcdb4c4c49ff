#include "train/ranks/planned_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "comm/collective/comm.h"
#include "comm/wire/transport_open.h"
#include "graph/executor.h"
#include "op/update/op_update.h"
#include "serve/scorer.h"
#include "shard/dense/dense_passes.h"
#include "shard/plan_distribution.h"
#include "shard/units/units.h"
#include "train/config/training_program.h"
#include "train/job_rows.h"
#include "train/ranks/collective_choice.h"

/* ---- classes ---- */

/* Returns true for operators that sum gradients over ranks or micro-batches, or update by them. */
static bool takes_gradients(const struct ph__op *op)
{
    return ph__sums_gradients(op) || op == &ph__op_reduce_unit_start || op == &ph__op_reduce_unit_wait ||
           op == &ph__op_gradient_sum || op == &ph__op_update_dense;
}

static bool gives_parameters(const struct ph__op *op)
{
    return op == &ph__op_gather_unit_start || op == &ph__op_gather_unit_start_kept ||
           op == &ph__op_gather_unit_wait || (op->traits & PH_OP_ONCE_PER_VERSION) != 0;
}

static size_t class_of(const struct ph__graph *graph, ph_value value)
{
    const uint32_t producer = graph->values[value].producer;
    const struct ph__op *op = producer != PH_NO_NODE ? graph->nodes[producer].op : NULL;
    if (op != NULL && gives_parameters(op))
        return PH_MEMORY_PARAMETERS;
    if (op != NULL && takes_gradients(op))
        return PH_MEMORY_GRADIENTS;
    for (size_t i = 0; i < graph->num_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].num_inputs; k++)
            if (graph->nodes[i].inputs[k] == value && takes_gradients(graph->nodes[i].op))
                return PH_MEMORY_GRADIENTS;
    return PH_MEMORY_OTHERS;
}

/* ---- the program ---- */

/* A rank 0 that is never run. */
struct stand_in {
    struct ph_comm *comm;
    struct ph_distribution *distribution;
    struct ph_model_features features;
    struct ph__training_program learning;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
};

static void stand_in_fini(struct stand_in *rank)
{
    ph_workspace_destroy(rank->workspace);
    ph_executor_destroy(rank->executor);
    ph_backend_destroy(rank->backend);
    ph_state_destroy(rank->state);
    ph_store_destroy(rank->store);
    ph_program_destroy(rank->learning.program);
    ph__features_fini(&rank->features);
    ph__distribution_destroy(rank->distribution);
    ph_comm_destroy(rank->comm);
}

static ph_status set_collectives(
    struct ph_comm *comm, const struct ph__train_job *job, const struct ph__topology *topology)
{
    struct ph__collective_settings settings;
    uint32_t *groups = calloc(topology->world_size, sizeof *groups);
    if (groups == NULL)
        return ph__out_of_memory("groups of %zu ranks", topology->world_size);
    ph_status status = ph__collectives_settle(job, topology, &settings, groups);
    if (status == PH_OK)
        status = ph__collectives_set(comm, &settings, groups);
    free(groups);
    return status;
}

static ph_status create_comm(const struct ph__plan *plan, struct ph_comm **comm_out)
{
    const struct ph_comm_options options = {
        .size = sizeof options, .ranks_per_host = plan->topology.ranks_per_host, .timeout_seconds = 1};
    struct ph__transport transport;
    PH_TRY(ph__transport_self_open(plan->topology.world_size, &transport));
    return ph__comm_create_on(&transport, &options, comm_out);
}

static ph_status create_distribution(
    const struct ph__train_job *job, const struct ph__plan *plan, struct stand_in *rank)
{
    const struct ph_parallel_settings *settings = job->parallel;
    const struct ph__distribution_options options = {.comm = rank->comm,
        .plan = plan,
        .forward = settings->forward,
        .backward = settings->backward,
        .dense = settings->dense,
        .bucket_bytes = (size_t)settings->bucket_bytes,
        .overlaps = settings->overlap};
    return ph__distribution_create(&options, &rank->distribution);
}

/* Plans rank 0's memory for as many samples as it learns from at once, with the ids of the first batch. */
static ph_status create_workspace(const struct ph__train_job *job, const struct ph__plan *plan,
    double ids_per_sample, struct stand_in *rank)
{
    const size_t batch_size = (size_t)job->train->batch_size, num_parts = ph__num_micro_batches(job->train);
    const size_t world_size = plan->topology.world_size;
    const size_t own = ph__divide_up(ph__divide_up(batch_size, world_size), num_parts);
    return rank->distribution->create_workspace(rank->distribution->context, rank->executor, own * world_size,
        (size_t)((double)own * ids_per_sample) + 1, &rank->workspace);
}

static ph_status create(const struct ph__train_job *job, const struct ph__plan *plan, double ids_per_sample,
    struct stand_in *rank)
{
    const struct ph_backend_options options = {.size = sizeof options,
        .num_threads = job->run.num_threads,
        .is_fast = !job->train->deterministic,
        .team = job->run.team};
    PH_TRY(create_comm(plan, &rank->comm));
    PH_TRY(set_collectives(rank->comm, job, &plan->topology));
    PH_TRY(create_distribution(job, plan, rank));
    PH_TRY(ph__features_init(job->encoder, &rank->features));
    PH_TRY(ph__training_program_build(job, &rank->features, rank->distribution, &rank->learning));
    PH_TRY(ph_store_create(job->run.seed, &rank->store));
    ph__store_learn_rows(rank->store, job->train->row_format);
    PH_TRY(ph_state_create(&rank->state));
    PH_TRY(ph_backend_create(&options, &rank->backend));
    PH_TRY(
        ph_executor_create(rank->learning.program, rank->store, rank->state, rank->backend, &rank->executor));
    return create_workspace(job, plan, ids_per_sample, rank);
}

/* ---- the report ---- */

static ph_status take_figures(const struct stand_in *rank, struct ph__memory_report *report)
{
    const struct ph_program *program = rank->learning.program;
    const size_t num_nodes = program->graph.num_nodes;
    uint64_t *bytes = ph__arena_alloc_array(&report->arena, num_nodes * PH_MEMORY_CLASS_COUNT, sizeof *bytes);
    report->nodes = ph__arena_alloc_array(&report->arena, num_nodes, sizeof *report->nodes);
    if (bytes == NULL || report->nodes == NULL)
        return PH_ERROR_MEMORY;
    ph__memory_plan_sum(program, &rank->workspace->plan, PH_MEMORY_SCRATCH, class_of, bytes);
    for (size_t i = 0; i < num_nodes; i++) {
        struct ph__memory_node *node = &report->nodes[report->num_nodes++];
        node->entry = ph__arena_strdup(&report->arena, program->graph.entries[program->graph.nodes[i].entry]);
        node->name = ph__arena_strdup(&report->arena, program->graph.nodes[i].name);
        if (node->entry == NULL || node->name == NULL)
            return PH_ERROR_MEMORY;
        memcpy(node->bytes, bytes + i * PH_MEMORY_CLASS_COUNT, sizeof node->bytes);
    }
    report->parameter_bytes = ph_store_parameter_bytes(rank->store);
    report->slot_bytes = ph_store_slot_bytes(rank->store);
    report->planned_bytes = rank->workspace->plan.memory.planned_bytes;
    return PH_OK;
}

ph_status ph__memory_report_init(const struct ph__train_job *job, const struct ph__plan *plan,
    double ids_per_sample, struct ph__memory_report *report)
{
    struct stand_in rank = {0};
    struct ph__absent absent;
    *report = (struct ph__memory_report){0};
    PH_TRY(ph__absent_init(&absent));
    ph__absent_use(&absent);
    ph_status status = create(job, plan, ids_per_sample, &rank);
    if (status == PH_OK)
        status = take_figures(&rank, report);
    stand_in_fini(&rank);
    ph__absent_use(NULL);
    ph__absent_fini(&absent);
    return status;
}

void ph__memory_report_fini(struct ph__memory_report *report)
{
    ph__arena_fini(&report->arena);
    *report = (struct ph__memory_report){0};
}
