/* Plan files: what is accepted covers every number of every table once, and is written as a plan that reads
 * back the same. */
#include <string.h>

#include "base/file/stream.h"
#include "plan/plan.h"
#include "support/fuzz_support.h"

enum { WORLD = 6, ROWS = 9, DIM = 18, NUM_TABLES = 4 };

static const struct ph__topology topology = {WORLD, 3};
static const struct ph__table_facts tables[NUM_TABLES] = {
    {"a.x", ROWS, DIM, 1, 1, 4 * DIM, 4, 4, 0, NULL, false, NULL, NULL},
    {"a.y", 4, DIM, 2, 3, 4 * DIM, 8 * DIM, 0, 0, NULL, false, NULL, NULL},
    {"b.x", ROWS, 1, 1, 1, 4, 4, 4, 0, NULL, false, NULL, NULL},
    {"b.*", 1, 8, 1, 1, 32, 0, 0, 0, NULL, false, NULL, NULL},
};

static void check_cover(const struct ph__plan *plan, const struct ph__plan_table *table)
{
    unsigned char held[ROWS][DIM] = {{0}};
    for (size_t i = 0; i < table->num_shards; i++) {
        const struct ph__table_shard *shard = &plan->shards[table->first_shard + i];
        fuzz_require(shard->rank < WORLD);
        fuzz_require(shard->first_row + shard->num_rows <= table->num_rows);
        fuzz_require(shard->first_column + shard->num_columns <= table->dim);
        for (uint64_t r = 0; r < shard->num_rows; r++)
            for (uint32_t c = 0; c < shard->num_columns; c++)
                held[shard->first_row + r][shard->first_column + c]++;
    }
    for (uint64_t r = 0; r < table->num_rows; r++)
        for (uint32_t c = 0; c < table->dim; c++)
            fuzz_require(held[r][c] == (table->kind == PH_SHARD_DATA_PARALLEL ? 0 : 1));
}

static void check_written(const struct ph__plan *plan)
{
    char path[64];
    struct ph__writer *writer;
    struct ph__plan again;
    fuzz_folder_path("plan.yaml", path);
    fuzz_require(ph__writer_open(path, &writer) == PH_OK);
    fuzz_require(ph__plan_write(plan, writer) == PH_OK);
    fuzz_require(ph__writer_finish(writer) == PH_OK);
    ph__writer_close(writer);
    fuzz_require(ph__plan_read(path, &topology, tables, NUM_TABLES, &again) == PH_OK);
    fuzz_require(again.num_shards == plan->num_shards);
    if (plan->num_shards > 0)
        fuzz_require(memcmp(again.shards, plan->shards, plan->num_shards * sizeof *plan->shards) == 0);
    ph__plan_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ph__plan plan;
    if (ph__plan_read(fuzz_file(0, data, size), &topology, tables, NUM_TABLES, &plan) != PH_OK)
        return 0;
    for (size_t i = 0; i < plan.num_tables; i++)
        check_cover(&plan, &plan.tables[i]);
    check_written(&plan);
    ph__plan_fini(&plan);
    return 0;
}
