/* Random tables, worlds and choices for tests of plans. */
#ifndef PH_TEST_PLAN_FIXTURE_H
#define PH_TEST_PLAN_FIXTURE_H

#include "support/test_support.h"

#include <stdio.h>

#include "base/rng.h"
#include "plan/plan_choice.h"

enum { MAX_WORLD = 9, MAX_TABLES = 12, MAX_READS = 3 };

struct drawing {
    struct ph__rng_sequence rng;
    struct ph__topology topology;
    size_t num_tables;
    struct ph__table_facts tables[MAX_TABLES];
    struct ph__table_read reads[MAX_TABLES][MAX_READS]; /* of MAX_TABLES * MAX_READS features */
    char names[MAX_TABLES][32];
    struct ph__plan_choice choices[MAX_TABLES];
    uint32_t places[MAX_TABLES][MAX_WORLD];
};

static inline size_t draw(struct drawing *drawing, size_t bound)
{
    return (size_t)ph__rng_below(&drawing->rng, bound);
}

/* A world of 1 to MAX_WORLD ranks on hosts of equal size. */
static inline void draw_topology(struct drawing *drawing)
{
    drawing->topology.world_size = 1 + draw(drawing, MAX_WORLD);
    do
        drawing->topology.ranks_per_host = 1 + draw(drawing, drawing->topology.world_size);
    while (drawing->topology.world_size % drawing->topology.ranks_per_host != 0);
}

/* Features of the table's own, or those of the table before it, which has as many rows. */
static inline void draw_reads(struct drawing *drawing, size_t table)
{
    struct ph__table_facts *facts = &drawing->tables[table];
    const struct ph__table_facts *before = facts - 1;
    const bool is_alike = table > 0 && draw(drawing, 2) == 0;
    if (is_alike)
        facts->num_rows = before->num_rows;
    for (size_t i = 0; i < facts->num_features; i++)
        drawing->reads[table][i] =
            (struct ph__table_read){is_alike ? before->reads[draw(drawing, before->num_features)].feature
                                             : (uint32_t)(table * MAX_READS + i),
                draw(drawing, 4) == 0};
    facts->reads = drawing->reads[table];
}

static inline void draw_tables(struct drawing *drawing, size_t most_rows)
{
    drawing->num_tables = 1 + draw(drawing, MAX_TABLES);
    for (size_t i = 0; i < drawing->num_tables; i++) {
        struct ph__table_facts *table = &drawing->tables[i];
        const bool has_row_state = draw(drawing, 2) == 0;
        snprintf(drawing->names[i], sizeof drawing->names[i], "embedding.f%zu", i);
        *table = (struct ph__table_facts){.name = drawing->names[i],
            .num_rows = 1 + draw(drawing, most_rows),
            .dim = 1 + draw(drawing, 40),
            .num_features = 1 + draw(drawing, MAX_READS),
            .parameter = (uint32_t)draw(drawing, 3)};
        draw_reads(drawing, i);
        table->ids_per_sample = (double)table->num_features * (0.5 + (double)draw(drawing, 8));
        table->weight_bytes = 4 * table->dim;
        table->row_slot_bytes = has_row_state ? 4 : 0;
        table->slot_bytes = has_row_state ? 4 : 4 * table->dim * draw(drawing, 3);
    }
}

/* Tables from small to large, of many sizes. */
static inline void draw_scattered(struct drawing *drawing, size_t most_tables)
{
    draw_tables(drawing, 1000);
    if (drawing->num_tables > most_tables)
        drawing->num_tables = most_tables;
    for (size_t i = 0; i < drawing->num_tables; i++) {
        drawing->tables[i].num_rows <<= draw(drawing, 12);
        drawing->tables[i].ids_per_sample *= (double)(1 + draw(drawing, 10));
    }
}

static inline uint64_t bytes_of_all(const struct drawing *drawing)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < drawing->num_tables; i++)
        bytes +=
            ph__table_shard_bytes(&drawing->tables[i], drawing->tables[i].num_rows, drawing->tables[i].dim);
    return bytes;
}

/* A kind, and every other time a place that fits it. */
static inline void draw_choice(struct drawing *drawing, size_t table, enum ph__shard_kind kind)
{
    const enum ph__place place = ph__shard_kind_place(kind);
    const bool is_host = place == PH_PLACE_HOST || place == PH_PLACE_HOSTS;
    const size_t num_hosts = drawing->topology.world_size / drawing->topology.ranks_per_host;
    const size_t count = is_host ? num_hosts : drawing->topology.world_size;
    size_t most = place == PH_PLACE_RANKS || place == PH_PLACE_HOSTS ? count : 1;
    if ((kind == PH_SHARD_COLUMN_WISE || kind == PH_SHARD_GRID) &&
        most > ph__most_column_shards(&drawing->tables[table]))
        most = ph__most_column_shards(&drawing->tables[table]);
    uint32_t order[MAX_WORLD];
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    ph__rng_shuffle(&drawing->rng, order, count);
    struct ph__plan_choice *choice = &drawing->choices[table];
    *choice = (struct ph__plan_choice){.kind = kind, .places = drawing->places[table]};
    if (place != PH_PLACE_NONE && draw(drawing, 2) == 0)
        choice->num_places = 1 + draw(drawing, most);
    for (size_t i = 0; i < choice->num_places; i++)
        drawing->places[table][i] = order[i];
}

static inline void draw_choices(struct drawing *drawing)
{
    for (size_t i = 0; i < drawing->num_tables; i++)
        draw_choice(drawing, i, (enum ph__shard_kind)draw(drawing, PH_SHARD_KIND_COUNT));
}

/* The plan of the choices as drawn, with places for those that have none. */
static inline void build_drawn(struct drawing *drawing, struct ph__plan *plan_out)
{
    struct ph__arena arena = {0};
    for (size_t i = 0; i < drawing->num_tables; i++)
        assert_ok(ph__choice_check(&drawing->topology, &drawing->tables[i], &drawing->choices[i]));
    assert_ok(
        ph__plan_places(&drawing->topology, drawing->tables, drawing->num_tables, drawing->choices, &arena));
    assert_ok(
        ph__plan_build(&drawing->topology, drawing->tables, drawing->num_tables, drawing->choices, plan_out));
    ph__arena_fini(&arena);
}

#endif
