#include "train/ranks/rank_costs.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/statistics.h"
#include "comm/collective/comm.h"
#include "train/config/table_facts.h"

enum { MOST_STEPS = 256 }; /* latest ones */

#define NS_PER_MS 1e6

/* ---- measuring ---- */

static bool is_table(const struct ph__graph *graph, ph_value value)
{
    if (value == 0)
        return false;
    const struct ph__value_info *info = &graph->values[ph__graph_root(graph, value)];
    return info->storage == PH_STORAGE_PARAMETER && graph->declarations[info->source].is_table;
}

/* Returns the group of an operator that sends to other ranks or awaits them. */
static size_t exchange_group(const char *op)
{
    static const struct {
        const char *start; /* of the operators' names (src/shard/lookup) */
        size_t group;
    } exchanges[] = {{"exchange_vectors_", PH_RANK_FORWARD}, {"exchange_items_", PH_RANK_FORWARD},
        {"host_sums_", PH_RANK_FORWARD}, {"exchange_gradients_", PH_RANK_BACKWARD},
        {"host_gradients_", PH_RANK_BACKWARD}};
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++)
        if (strncmp(op, exchanges[i].start, strlen(exchanges[i].start)) == 0)
            return exchanges[i].group;
    return 0;
}

static size_t group_of(const struct ph__graph *graph, const struct ph__node *node)
{
    if ((node->op->traits & (PH_OP_SENDS | PH_OP_AWAITS)) != 0)
        return exchange_group(node->op->name);
    bool is_of_tables = (node->op->traits & PH_OP_OF_IDS) != 0;
    for (uint32_t i = 0; i < node->num_inputs; i++)
        is_of_tables |= is_table(graph, node->inputs[i]);
    return is_of_tables ? PH_RANK_COMPUTE : 0;
}

ph_status ph__rank_costs_init(struct ph__rank_costs *costs, struct ph_executor *executor)
{
    *costs = (struct ph__rank_costs){.executor = executor};
    double *steps = calloc(MOST_STEPS, PH_RANK_GROUPS * sizeof *steps);
    if (steps == NULL)
        return ph__out_of_memory("the costs of tables");
    for (size_t group = 0; group < PH_RANK_GROUPS; group++)
        costs->steps_ms[group] = steps + group * MOST_STEPS;
    return ph__executor_watch(executor, group_of);
}

void ph__rank_costs_fini(struct ph__rank_costs *costs)
{
    free(costs->steps_ms[0]);
    *costs = (struct ph__rank_costs){0};
}

void ph__rank_costs_step(struct ph__rank_costs *costs)
{
    if (costs->executor == NULL)
        return;
    for (size_t group = 1; group < PH_RANK_GROUPS; group++) {
        const uint64_t total_ns = ph__executor_watched_ns(costs->executor, group);
        costs->steps_ms[group][costs->num_steps % MOST_STEPS] =
            (double)(total_ns - costs->total_ns[group]) / NS_PER_MS;
        costs->total_ns[group] = total_ns;
    }
    costs->num_steps += costs->has_begun;
    costs->has_begun = true;
}

/* ---- writing ---- */

static ph_status find_medians(const struct ph__rank_costs *costs, struct ph__measured_cost *medians_out)
{
    const size_t count = (size_t)ph__min(costs->num_steps, MOST_STEPS);
    PH_TRY(ph__median(costs->steps_ms[PH_RANK_COMPUTE], count, &medians_out->compute_ms));
    PH_TRY(ph__median(costs->steps_ms[PH_RANK_BACKWARD], count, &medians_out->backward_ms));
    return ph__median(costs->steps_ms[PH_RANK_FORWARD], count, &medians_out->forward_ms);
}

static ph_status write_alone(
    struct ph__kept_costs *kept, const struct ph__train_job *job, const struct ph_program *program)
{
    struct ph__table_list list;
    struct ph__plan plan = {0};
    ph_status status = ph__table_list_init(program, job->train->row_format, NULL, &list);
    if (status == PH_OK)
        status = ph__plan_replicate(&kept->topology, list.tables, list.num_tables, &plan);
    if (status == PH_OK)
        status = ph__kept_costs_write(job->options.folder, kept, &plan);
    ph__plan_fini(&plan);
    ph__table_list_fini(&list);
    return status;
}

static ph_status write_all(struct ph__kept_costs *kept, const struct ph__ranks *ranks,
    const struct ph__train_job *job, const struct ph_program *program)
{
    PH_TRY(ph__cost_facts_here(&kept->facts));
    if (ranks->comm == NULL)
        return write_alone(kept, job, program);
    kept->topology = ranks->plan->topology;
    const struct ph__measured_cost own = kept->ranks[0];
    PH_TRY(ph__comm_gather_once(ranks->comm, "costs of the ranks", &own, sizeof own, kept->ranks));
    return ph__ranks_is_first(ranks) ? ph__kept_costs_write(job->options.folder, kept, ranks->plan) : PH_OK;
}

ph_status ph__rank_costs_write(const struct ph__rank_costs *costs, const struct ph__ranks *ranks,
    const struct ph__train_job *job, const struct ph_program *program)
{
    struct ph__kept_costs kept = {.facts.batch_size = (uint64_t)job->train->batch_size,
        .topology = {1, 1},
        .num_steps = ph__min(costs->num_steps, MOST_STEPS)};
    if (costs->num_steps == 0)
        return PH_OK;
    kept.ranks = calloc(ranks->world_size, sizeof *kept.ranks);
    if (kept.ranks == NULL)
        return ph__out_of_memory("the costs of %zu ranks", ranks->world_size);
    ph_status status = find_medians(costs, &kept.ranks[0]);
    if (status == PH_OK)
        status = write_all(&kept, ranks, job, program);
    free(kept.ranks);
    return status;
}
