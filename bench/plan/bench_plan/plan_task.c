#include "plan_task.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "figures.h"
#include "plan/plan_choice.h"
#include "plan/plan_cost.h"
#include "sim/exchange_time.h"

/* ---- the model ---- */

static ph_status describe(
    void *context, const struct ph__cost_part *parts, size_t count, float *descriptions_out)
{
    const struct ph__cost_model *model = &((const struct plan_task *)context)->computing;
    return model->describe(model->context, parts, count, descriptions_out);
}

static ph_status compute(void *context, const float *sets, size_t count, double *ms_out)
{
    const struct ph__cost_model *model = &((const struct plan_task *)context)->computing;
    return model->compute(model->context, sets, count, ms_out);
}

static ph_status exchange(void *context, enum ph__exchange_way way, const struct ph__topology *topology,
    const double *columns, const double *starts_ms, double *ms_out)
{
    const struct ph__cost_model *model = &((const struct plan_task *)context)->exchanging;
    return model->exchange(model->context, way, topology, columns, starts_ms, ms_out);
}

static ph_status simulate(void *context, enum ph__exchange_way way, const struct ph__topology *topology,
    const double *columns, const double *starts_ms, double *ms_out)
{
    const struct plan_task *task = context;
    struct ph__fabric fabric = *task->costs.fabric;
    fabric.ranks_per_host = topology->ranks_per_host;
    const struct ph__exchange_case simulated = {.way = way,
        .world_size = topology->world_size,
        .bytes = PLAN_BATCH / (double)topology->world_size * sizeof(ph_real),
        .columns = columns,
        .starts_ms = starts_ms};
    return ph__exchange_simulate(&fabric, &simulated, ms_out);
}

/* ---- tasks ---- */

static void make_model(struct plan_task *task, const struct plan_costs *costs)
{
    const struct ph__cost_model analytic = ph__analytic_model(&task->analytic);
    task->costs = *costs;
    task->computing = costs->compute != NULL ? ph__cost_nets_model(costs->compute) : analytic;
    task->exchanging = costs->exchange != NULL ? ph__cost_nets_model(costs->exchange) : analytic;
    task->model = (struct ph__cost_model){task->computing.name, task, task->computing.width,
        task->computing.lookup_share, describe, compute, exchange};
}

void plan_task_finish(struct plan_task *task, const struct plan_costs *costs, double num_gb)
{
    double bytes = 0;
    for (size_t i = 0; i < task->num_tables; i++) {
        const struct ph__cost_table *table = &task->tables[i];
        snprintf(task->names[i], sizeof task->names[i], "embedding.%zu", i);
        task->facts[i] = (struct ph__table_facts){.name = task->names[i],
            .num_rows = table->num_rows,
            .dim = table->dim,
            .num_features = 1,
            .ids_per_sample = table->ids_per_sample,
            .weight_bytes = table->dim * sizeof(ph_real),
            .accesses = table->accesses};
        bytes += (double)table->num_rows * (double)task->facts[i].weight_bytes;
    }
    task->step = (struct ph__plan_step){PLAN_BATCH, false, {sizeof(ph_real), 0}, {sizeof(ph_real), 0}};
    task->machine =
        ph__plan_machine_nominal((uint64_t)(bytes * 16 / num_gb / (double)task->topology.world_size));
    task->analytic = (struct ph__analytic_cost){task->machine, task->step};
    make_model(task, costs);
    task->pricing = (struct ph__pricing){.model = &task->model,
        .machine = &task->machine,
        .topology = &task->topology,
        .step = &task->step,
        .tables = task->facts,
        .num_tables = task->num_tables};
}

void plan_task_draw(const struct plan_draw *draw, const struct plan_costs *costs, struct plan_task *task_out)
{
    struct ph__rng_sequence *rng = &task_out->rng;
    *rng = (struct ph__rng_sequence){.key = {draw->seed, 0, ph__hash_name("bench.plan")}};
    task_out->topology = draw->topology;
    task_out->num_tables =
        draw->least_tables + (size_t)ph__rng_below(rng, draw->end_tables - draw->least_tables);
    uint32_t order[PLAN_POOL];
    for (uint32_t i = 0; i < PLAN_POOL; i++)
        order[i] = i;
    ph__rng_shuffle(rng, order, PLAN_POOL);
    for (size_t i = 0; i < task_out->num_tables; i++) {
        task_out->tables[i] = draw->pool[order[i]];
        do
            task_out->tables[i].dim = ph__cost_dims[ph__rng_below(rng, PH_COST_NUM_DIMS)];
        while (task_out->tables[i].dim < draw->least_dim || task_out->tables[i].dim > draw->most_dim);
    }
    const double share = ph__rng_next_uniform(rng);
    plan_task_finish(task_out, costs, draw->least_gb + share * (draw->most_gb - draw->least_gb));
}

/* ---- prices ---- */

double plan_task_price(const struct plan_task *task, const struct ph__plan *plan)
{
    struct ph__rank_price prices[PLAN_MOST_RANKS];
    double ms;
    bench_check(ph__plan_price(&task->pricing, plan, prices, &ms));
    return ms;
}

/* Makes the part of a table that a rank has: rows and columns of it, and a share of its reads. */
static struct ph__cost_table part_of(
    const struct ph__cost_table *table, uint64_t num_rows, size_t columns, double share)
{
    struct ph__cost_table part = {.num_rows = num_rows, .dim = ph__cost_dims[0]};
    for (size_t i = 1; i < PH_COST_NUM_DIMS; i++)
        if (fabs((double)ph__cost_dims[i] - (double)columns) <= fabs((double)part.dim - (double)columns))
            part.dim = ph__cost_dims[i];
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
        part.rows[bin] = (uint64_t)round((double)table->rows[bin] * share);
        part.ids[bin] = part.rows[bin] > 0 ? (uint64_t)round((double)table->ids[bin] * share) : 0;
        part.ids[bin] = part.ids[bin] < part.rows[bin] ? part.rows[bin] : part.ids[bin];
        part.num_read += part.rows[bin];
        part.num_ids += part.ids[bin];
    }
    part.ids_per_sample = (double)part.num_ids / PLAN_BATCH;
    return part;
}

/* Fills the parts that a rank reads. Of a replica it reads the ids of its own samples; these are measured
 * with as many bags as the whole batch has, so that replicas cost too much. */
static size_t find_parts(
    const struct plan_task *task, const struct ph__plan *plan, size_t rank, struct ph__cost_table *parts_out)
{
    size_t count = 0;
    assert(plan->num_tables <= PH_COST_MOST_MEASURED);
    for (size_t t = 0; t < plan->num_tables; t++) {
        const struct ph__cost_table *table = &task->tables[t];
        const struct ph__plan_table *planned = &plan->tables[t];
        struct ph__cost_table part = {0};
        if (planned->kind == PH_SHARD_DATA_PARALLEL)
            part = part_of(table, table->num_rows, table->dim, 1 / (double)task->topology.world_size);
        for (size_t i = 0; i < planned->num_shards; i++) {
            const struct ph__table_shard *shard = &plan->shards[planned->first_shard + i];
            if (shard->rank == rank)
                part = part_of(table, shard->num_rows, shard->num_columns,
                    (double)shard->num_rows / (double)table->num_rows);
        }
        if (part.num_ids > 0)
            parts_out[count++] = part;
    }
    return count;
}

static size_t count_rounded(const struct ph__plan *plan)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->num_shards; i++) {
        size_t dim = 0;
        while (dim < PH_COST_NUM_DIMS && ph__cost_dims[dim] != plan->shards[i].num_columns)
            dim++;
        count += dim == PH_COST_NUM_DIMS;
    }
    return count;
}

/* Measures a rank's parts until nothing disturbs, three times at most; the calmest counts. */
static double measure_rank(
    const struct plan_task *task, const struct ph__plan *plan, size_t rank, struct ph__cost_measure *measure)
{
    enum { TRIES = 3 };
    const double calm = .15;
    struct ph__cost_table parts[PH_COST_MOST_MEASURED];
    const size_t count = find_parts(task, plan, rank, parts);
    double best_ms = 0, least = INFINITY, ms, disturbance;
    for (size_t i = 0; i < TRIES && count > 0 && least > calm; i++) {
        bench_check(ph__cost_measure_set(measure, parts, count, rank, &ms, &disturbance));
        if (disturbance < least)
            best_ms = ms;
        least = fmin(least, disturbance);
    }
    return best_ms;
}

double plan_task_measure(const struct plan_task *task, const struct ph__plan *plan,
    struct ph__cost_measure *measure, size_t *num_rounded_out)
{
    struct ph__rank_price prices[PLAN_MOST_RANKS];
    struct ph__cost_model simulated = task->model;
    struct ph__pricing pricing = task->pricing;
    double ms;
    bench_check(ph__plan_price(&task->pricing, plan, prices, &ms)); /* replicas and columns */
    for (size_t rank = 0; rank < task->topology.world_size; rank++)
        prices[rank].compute_ms = measure_rank(task, plan, rank, measure);
    simulated.exchange = task->costs.fabric != NULL ? simulate : simulated.exchange;
    pricing.model = &simulated;
    bench_check(ph__price_exchanges(&pricing, prices, &ms));
    *num_rounded_out = count_rounded(plan);
    return ms;
}
