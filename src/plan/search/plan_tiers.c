#include "plan/search/plan_tiers.h"

#include <math.h>
#include <stdlib.h>

#include "base/sizes.h"
#include "plan/plan_choice.h"
#include "plan/plan_traffic.h"

/* ---- rows ---- */

/* Cuts a table behind its first rows. */
static struct ph__tier_cut cut_behind(const struct ph__tier_table *table, uint64_t fast_rows)
{
    struct ph__tier_cut cut = {.fast_rows = fast_rows, .fast_bytes = fast_rows * table->row_bytes};
    double left = (double)fast_rows;
    for (size_t i = 0; i < table->num_steps; i++) {
        const struct ph__access_step *step = &table->steps[i];
        const double fast = left < step->rows ? step->reads * left / step->rows : step->reads;
        cut.fast_reads += fast;
        cut.slow_reads += step->reads - fast;
        left -= fmin(left, step->rows);
    }
    return cut;
}

/* Rows of a table that compete for fast memory: those of a step. */
struct item {
    double reads_a_byte;
    size_t table;
    uint64_t end_rows; /* of the table, with those of the steps before it */
};

static int by_falling_gain(const void *a, const void *b)
{
    const struct item *left = a, *right = b;
    if (left->reads_a_byte != right->reads_a_byte)
        return left->reads_a_byte > right->reads_a_byte ? -1 : 1;
    if (left->table != right->table)
        return left->table < right->table ? -1 : 1;
    return left->end_rows < right->end_rows ? -1 : left->end_rows > right->end_rows;
}

static void list_steps(const struct ph__tier_table *table, size_t index, struct item *items_out)
{
    double rows = 0;
    for (size_t i = 0; i < table->num_steps; i++) {
        const struct ph__access_step *step = &table->steps[i];
        rows += step->rows;
        items_out[i] = (struct item){
            step->reads / (step->rows * (double)table->row_bytes), index, (uint64_t)llround(rows)};
    }
}

/* Fills fast memory with rows in the order of the items: cuts' fast_rows, zeros at first. */
static void take_rows(const struct ph__tier_table *tables, const struct item *items, size_t count,
    uint64_t fast_bytes, struct ph__tier_cut *cuts)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t row_bytes = tables[items[i].table].row_bytes;
        uint64_t *fast_rows = &cuts[items[i].table].fast_rows;
        const uint64_t taken = ph__min(items[i].end_rows - *fast_rows, fast_bytes / row_bytes);
        *fast_rows += taken;
        fast_bytes -= taken * row_bytes;
    }
}

ph_status ph__tiers_cut(const struct ph__tier_table *tables, size_t num_tables, uint64_t fast_bytes,
    struct ph__tier_cut *cuts_out)
{
    struct ph__arena arena = {0};
    size_t count = 0, listed = 0;
    for (size_t i = 0; i < num_tables; i++)
        count += tables[i].num_steps;
    struct item *items = ph__arena_alloc_array(&arena, count, sizeof *items);
    if (items == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_tables; listed += tables[i++].num_steps) {
        list_steps(&tables[i], i, items + listed);
        cuts_out[i] = (struct ph__tier_cut){0};
    }
    qsort(items, count, sizeof *items, by_falling_gain);
    take_rows(tables, items, count, fast_bytes, cuts_out);
    for (size_t i = 0; i < num_tables; i++)
        cuts_out[i] = cut_behind(&tables[i], cuts_out[i].fast_rows);
    ph__arena_fini(&arena);
    return PH_OK;
}

/* ---- all ranks of a plan ---- */

static void add_cut(struct ph__tier_cut *sum, const struct ph__tier_cut *cut)
{
    sum->fast_rows += cut->fast_rows;
    sum->fast_bytes += cut->fast_bytes;
    sum->fast_reads += cut->fast_reads;
    sum->slow_reads += cut->slow_reads;
}

/* Finds the rank's shard of a table, or its copy. Returns false when the rank has neither. */
static bool find_shard(
    const struct ph__plan *plan, size_t table, size_t rank, struct ph__table_shard *shard_out)
{
    const struct ph__plan_table *planned = &plan->tables[table];
    for (size_t i = 0; i < planned->num_shards; i++)
        if (plan->shards[planned->first_shard + i].rank == rank) {
            *shard_out = plan->shards[planned->first_shard + i];
            return true;
        }
    *shard_out = (struct ph__table_shard){.num_rows = planned->num_rows, .num_columns = planned->dim};
    return planned->kind == PH_SHARD_DATA_PARALLEL;
}

struct finding {
    const struct ph__plan *plan;
    const struct ph__plan_step *step;
    const struct ph__table_facts *tables;
    uint64_t fast_bytes;
    struct ph__arena *arena;
};

/* Describes a rank's shard of a table, which it reads for so many samples. */
static ph_status describe(const struct finding *finding, const struct ph__table_facts *facts,
    const struct ph__table_shard *shard, double num_samples, struct ph__tier_table *table_out)
{
    const double batch_size = (double)finding->step->batch_size, num_rows = (double)shard->num_rows;
    const double num_ids = facts->ids_per_sample * batch_size * num_rows / (double)facts->num_rows;
    struct ph__access_step *steps =
        ph__arena_alloc_array(finding->arena, PH_MOST_ACCESS_STEPS, sizeof *steps);
    if (steps == NULL)
        return PH_ERROR_MEMORY;
    const size_t count = ph__access_steps(facts, num_rows, num_ids, steps);
    for (size_t i = 0; i < count; i++)
        steps[i].reads *= num_samples / batch_size;
    *table_out = (struct ph__tier_table){
        facts->name, ph__table_shard_bytes(facts, 1, shard->num_columns), steps, count};
    return PH_OK;
}

static ph_status list_tables(const struct finding *finding, size_t rank, struct ph__tier_rank *found)
{
    const struct ph__plan *plan = finding->plan;
    const size_t batch_size = finding->step->batch_size;
    struct ph__table_shard shard;
    found->tables = ph__arena_alloc_array(finding->arena, plan->num_tables, sizeof *found->tables);
    if (found->tables == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < plan->num_tables; i++) {
        const size_t num_samples = plan->tables[i].kind == PH_SHARD_DATA_PARALLEL
                                       ? ph__plan_samples(&plan->topology, batch_size, rank)
                                       : batch_size;
        if (find_shard(plan, i, rank, &shard))
            PH_TRY(describe(finding, &finding->tables[i], &shard, (double)num_samples,
                &found->tables[found->num_tables++]));
    }
    return PH_OK;
}

static ph_status cut_rank(const struct finding *finding, size_t rank, struct ph__tier_rank *found)
{
    PH_TRY(list_tables(finding, rank, found));
    found->cuts = ph__arena_alloc_array(finding->arena, found->num_tables, sizeof *found->cuts);
    found->wholes = ph__arena_alloc_array(finding->arena, found->num_tables, sizeof *found->wholes);
    if (found->cuts == NULL || found->wholes == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__tiers_cut(found->tables, found->num_tables, finding->fast_bytes, found->cuts));
    PH_TRY(ph__tiers_choose_whole(found->tables, found->num_tables, finding->fast_bytes, found->wholes));
    for (size_t i = 0; i < found->num_tables; i++) {
        add_cut(&found->cut, &found->cuts[i]);
        add_cut(&found->whole, &found->wholes[i]);
    }
    return PH_OK;
}

ph_status ph__tiers_find(const struct ph__plan *plan, const struct ph__plan_step *step,
    const struct ph__table_facts *tables, uint64_t fast_bytes, struct ph__arena *arena,
    struct ph__tiers *tiers_out)
{
    const struct finding finding = {plan, step, tables, fast_bytes, arena};
    const size_t world_size = plan->topology.world_size;
    struct ph__tiers tiers = {.ranks = ph__arena_alloc_array(arena, world_size, sizeof *tiers.ranks)};
    if (tiers.ranks == NULL)
        return PH_ERROR_MEMORY;
    for (size_t rank = 0; rank < world_size; rank++) {
        PH_TRY(cut_rank(&finding, rank, &tiers.ranks[rank]));
        add_cut(&tiers.cut, &tiers.ranks[rank].cut);
        add_cut(&tiers.whole, &tiers.ranks[rank].whole);
    }
    *tiers_out = tiers;
    return PH_OK;
}
