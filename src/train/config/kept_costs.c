#include "train/config/kept_costs.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/format/json_fields.h"
#include "base/sum/checksum.h"
#include "train/config/kept_plan.h"

enum { VERSION = 1, MOST_JSON_BYTES = 1 << 26 };

/* costs.json, but for its ranks. */
struct head {
    struct ph__kept_costs costs;
    char tables[PH_CHECKSUM_DIGITS + 1];
};

#define HEAD(name) offsetof(struct head, name)
#define TEXT(name) PH_JSON_TEXT, HEAD(name), sizeof((struct head *)0)->name
static const struct ph__json_field head_fields[] = {
    {"machine", TEXT(costs.facts.machine)},
    {"processor", TEXT(costs.facts.processor)},
    {"isa", TEXT(costs.facts.isa)},
    {"date", TEXT(costs.facts.date)},
    {"tables", TEXT(tables)},
    {"batch_size", PH_JSON_COUNT, HEAD(costs.facts.batch_size), 0},
    {"world_size", PH_JSON_SIZE, HEAD(costs.topology.world_size), 0},
    {"ranks_per_host", PH_JSON_SIZE, HEAD(costs.topology.ranks_per_host), 0},
    {"steps", PH_JSON_COUNT, HEAD(costs.num_steps), 0},
};
enum { NUM_HEAD_FIELDS = sizeof head_fields / sizeof *head_fields };

#define RANK(name) offsetof(struct ph__measured_cost, name)
static const struct ph__json_field rank_fields[] = {
    {"compute_ms", PH_JSON_NUMBER, RANK(compute_ms), 0},
    {"backward_ms", PH_JSON_NUMBER, RANK(backward_ms), 0},
    {"forward_ms", PH_JSON_NUMBER, RANK(forward_ms), 0},
};
enum { NUM_RANK_FIELDS = sizeof rank_fields / sizeof *rank_fields };

static const char *costs_path(struct ph__arena *arena, const char *folder)
{
    return ph__path_join(arena, folder, "costs.json");
}

/* Identifies the plan's tables by their names, rows and columns. */
static void identify_tables(const struct ph__plan *plan, char text_out[PH_CHECKSUM_DIGITS + 1])
{
    uint64_t sum = 0;
    for (size_t i = 0; i < plan->num_tables; i++) {
        const struct ph__plan_table *table = &plan->tables[i];
        const uint64_t facts[] = {
            sum, ph__checksum(table->name, strlen(table->name)), table->num_rows, table->dim};
        sum = ph__checksum(facts, sizeof facts);
    }
    ph__checksum_text(sum, text_out);
}

/* ---- writing ---- */

static struct ph__json *ranks_json(const struct ph__kept_costs *costs)
{
    struct ph__json *array = ph__json_array();
    for (size_t rank = 0; rank < costs->topology.world_size; rank++) {
        struct ph__json *object = ph__json_object();
        ph__json_set_integer(object, "rank", (int64_t)rank);
        ph__json_set_fields(object, rank_fields, NUM_RANK_FIELDS, &costs->ranks[rank]);
        ph__json_append(array, object);
    }
    return array;
}

ph_status ph__kept_costs_write(
    const char *folder, const struct ph__kept_costs *costs, const struct ph__plan *plan)
{
    struct ph__arena arena = {0};
    const char *path = costs_path(&arena, folder);
    struct head head = {.costs = *costs};
    struct ph__json *json = ph__json_object();
    identify_tables(plan, head.tables);
    ph__json_set_integer(json, "version", VERSION);
    ph__json_set_fields(json, head_fields, NUM_HEAD_FIELDS, &head);
    ph__json_set(json, "ranks", ranks_json(costs));
    const ph_status status = path != NULL ? ph__json_write(json, path) : PH_ERROR_MEMORY;
    ph__json_destroy(json);
    ph__arena_fini(&arena);
    return status;
}

void ph__kept_costs_remove(const char *folder)
{
    struct ph__arena arena = {0};
    const char *path = costs_path(&arena, folder);
    if (path != NULL)
        unlink(path);
    ph__arena_fini(&arena);
}

/* ---- reading ---- */

static ph_status damaged(const char *path, const char *what)
{
    return ph_fail(PH_ERROR_CHECKPOINT,
        "%s: '%s' is missing or damaged: train there again, or name another run", path, what);
}

static ph_status read_ranks(
    const struct ph__json *json, const char *path, struct ph__arena *arena, struct ph__kept_costs *costs)
{
    const struct ph__json *array = ph__json_get(json, "ranks");
    const struct ph__topology *topology = &costs->topology;
    if (topology->world_size == 0 || ph__json_size(array) != topology->world_size)
        return damaged(path, "ranks");
    if (topology->ranks_per_host == 0 || topology->world_size % topology->ranks_per_host != 0)
        return damaged(path, "ranks_per_host");
    costs->ranks = ph__arena_alloc_array(arena, topology->world_size, sizeof *costs->ranks);
    if (costs->ranks == NULL)
        return PH_ERROR_MEMORY;
    for (size_t rank = 0; rank < topology->world_size; rank++) {
        struct ph__measured_cost *one = &costs->ranks[rank];
        const char *wrong = ph__json_get_fields(ph__json_at(array, rank), rank_fields, NUM_RANK_FIELDS, one);
        const double sum = one->compute_ms + one->backward_ms + one->forward_ms;
        const double least = fmin(one->compute_ms, fmin(one->backward_ms, one->forward_ms));
        if (wrong != NULL || !isfinite(sum) || least < 0)
            return damaged(path, wrong != NULL ? wrong : "ranks");
    }
    return PH_OK;
}

static ph_status read_json(
    const struct ph__json *json, const char *path, struct ph__arena *arena, struct head *head_out)
{
    const char *wrong = ph__json_get_fields(json, head_fields, NUM_HEAD_FIELDS, head_out);
    if (ph__json_as_integer(ph__json_get(json, "version"), 0) != VERSION)
        return damaged(path, "version");
    return wrong != NULL ? damaged(path, wrong) : read_ranks(json, path, arena, &head_out->costs);
}

/* PH_ERROR_CONFIG: the costs are not those of the job that is priced. */
static ph_status check_job(const char *path, const struct head *head, const struct ph__pricing *base)
{
    struct ph__plan plan;
    char tables[PH_CHECKSUM_DIGITS + 1];
    PH_TRY(ph__plan_replicate(&head->costs.topology, base->tables, base->num_tables, &plan));
    identify_tables(&plan, tables);
    ph__plan_fini(&plan);
    if (strcmp(tables, head->tables) != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "%s: costs were measured with other tables: name a run of this config's tables", path);
    if (head->costs.facts.batch_size != base->step->batch_size)
        return ph_fail(PH_ERROR_CONFIG,
            "%s: costs were measured with a batch size of %llu, the config's is %zu: set "
            "train.batch_size, or name another run",
            path, (unsigned long long)head->costs.facts.batch_size, base->step->batch_size);
    return PH_OK;
}

static ph_status read_costs(
    const char *folder, bool may_be_foreign, const struct ph__pricing *base, struct ph__learnt_costs *learnt)
{
    const char *path = costs_path(&learnt->arena, folder);
    struct head head = {0};
    struct ph__json *json;
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__json_read(path, PH_ERROR_CHECKPOINT, MOST_JSON_BYTES, &json));
    ph_status status = read_json(json, path, &learnt->arena, &head);
    ph__json_destroy(json);
    if (status == PH_OK && !may_be_foreign)
        status = ph__cost_check_machine(path, &head.costs.facts);
    if (status == PH_OK)
        status = check_job(path, &head, base);
    learnt->costs = head.costs;
    return status;
}

/* Reads the plan. A rank alone has all tables, and keeps no plan. */
static ph_status read_plan(
    const char *folder, const struct ph__pricing *base, struct ph__learnt_costs *learnt)
{
    const struct ph__topology *topology = &learnt->costs.topology;
    const char *path = ph__kept_plan_path(&learnt->arena, folder);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    return topology->world_size > 1
               ? ph__plan_read(path, topology, base->tables, base->num_tables, &learnt->plan)
               : ph__plan_replicate(topology, base->tables, base->num_tables, &learnt->plan);
}

ph_status ph__kept_costs_learn(const char *folder, bool may_be_foreign, const struct ph__pricing *base,
    struct ph__learnt_costs *learnt_out)
{
    struct ph__pricing pricing = *base;
    *learnt_out = (struct ph__learnt_costs){.scaled.model = *base->model};
    PH_TRY(read_costs(folder, may_be_foreign, base, learnt_out));
    PH_TRY(read_plan(folder, base, learnt_out));
    pricing.topology = &learnt_out->costs.topology;
    pricing.slowness = NULL;
    PH_TRY(
        ph__cost_scale_find(&pricing, &learnt_out->plan, learnt_out->costs.ranks, &learnt_out->scaled.scale));
    learnt_out->model = ph__scaled_model(&learnt_out->scaled);
    return PH_OK;
}

void ph__learnt_costs_fini(struct ph__learnt_costs *learnt)
{
    ph__plan_fini(&learnt->plan);
    ph__arena_fini(&learnt->arena);
    *learnt = (struct ph__learnt_costs){0};
}
