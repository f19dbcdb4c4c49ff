/* Sums and gatherings of each kind, against what one process works out from the documented order of additions
 * (comm_collectives.h). */
#include "comm/collective/comm_collectives.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "comm/collective/comm_inside.h"
#include "support/thread_ranks.h"
#include "unit/comm/wire_oracle.h"

enum { MOST_NUMBERS = 1200, MOST_ARRAYS = 3 };

/* A way to sum, and the groups of the ranks. */
struct way {
    enum ph_collective kind;
    size_t world_size, num_groups;
    uint32_t groups[THREAD_RANKS_MOST];
    size_t cut_bytes;
};

static const struct way rings[] = {
    {PH_COLLECTIVE_RING, 1, 0, {0}, 0},
    {PH_COLLECTIVE_RING, 2, 0, {0}, 0},
    {PH_COLLECTIVE_RING, 3, 0, {0}, 20},
    {PH_COLLECTIVE_RING, 4, 0, {0}, 0},
    {PH_COLLECTIVE_RING, 5, 0, {0}, 0},
    {PH_COLLECTIVE_RING, 7, 0, {0}, 100},
    {PH_COLLECTIVE_RING, 9, 0, {0}, 0},
};
enum { NUM_RINGS = sizeof rings / sizeof *rings };

/* Hosts of 1 to 4 ranks; then ranks that lie among those of other groups, and groups named in any order. */
static const struct way hierarchies[] = {
    {PH_COLLECTIVE_HIERARCHICAL, 1, 1, {0}, 0},
    {PH_COLLECTIVE_HIERARCHICAL, 3, 3, {0, 1, 2}, 0},
    {PH_COLLECTIVE_HIERARCHICAL, 4, 1, {0, 0, 0, 0}, 0},
    {PH_COLLECTIVE_HIERARCHICAL, 4, 2, {0, 0, 1, 1}, 0},
    {PH_COLLECTIVE_HIERARCHICAL, 6, 2, {0, 0, 0, 1, 1, 1}, 0},
    {PH_COLLECTIVE_HIERARCHICAL, 8, 2, {0, 0, 0, 0, 1, 1, 1, 1}, 0},
    {PH_COLLECTIVE_HIERARCHICAL, 8, 4, {0, 0, 1, 1, 2, 2, 3, 3}, 36},
    {PH_COLLECTIVE_HIERARCHICAL, 9, 3, {0, 0, 0, 1, 1, 1, 2, 2, 2}, 0},
    {PH_COLLECTIVE_HIERARCHICAL, 4, 2, {0, 1, 0, 1}, 20},
    {PH_COLLECTIVE_HIERARCHICAL, 6, 3, {2, 1, 0, 0, 1, 2}, 0},
    {PH_COLLECTIVE_HIERARCHICAL, 8, 2, {7, 1, 1, 7, 7, 7, 1, 1}, 0},
    {PH_COLLECTIVE_HIERARCHICAL, 9, 3, {0, 1, 2, 0, 1, 2, 0, 1, 2}, 100},
};
enum { NUM_HIERARCHIES = sizeof hierarchies / sizeof *hierarchies };

static void run_all(thread_rank_run *run)
{
    for (size_t i = 0; i < NUM_RINGS + NUM_HIERARCHIES; i++) {
        struct way way = i < NUM_RINGS ? rings[i] : hierarchies[i - NUM_RINGS];
        const struct thread_fault slow = {.kind = THREAD_IS_SLOW, .rank = way.world_size / 2, .count = 12};
        const struct thread_ranks ranks = {
            .world_size = way.world_size, .cut_bytes = way.cut_bytes, .faults = &slow, .num_faults = i % 2};
        thread_ranks_run(&ranks, run, &way, NULL);
    }
}

static ph_status choose(struct ph_comm *comm, const struct way *way)
{
    const struct ph__collective_choice choice = {0, way->kind};
    return ph__comm_set_collectives(
        comm, &choice, 1, way->kind == PH_COLLECTIVE_HIERARCHICAL ? way->groups : NULL);
}

/* ---- the order of additions, by the book ---- */

/* sum (n) += numbers (n), or = where it is the first. */
static void add_to(size_t n, const float *numbers, bool is_first, float *sum)
{
    for (size_t i = 0; i < n; i++)
        sum[i] = is_first ? numbers[i] : sum[i] + numbers[i];
}

/* s[g] = w(x[g, 0]) + w(x[g, 1]) + ...; s = w(s[0]) + w(s[1]) + ..., groups in the order of their first
 * ranks. One group, or each rank its own: s = w(x[0]) + w(x[1]) + ... */
static void sum_by_groups(
    const struct way *way, enum ph_wire_format wire, size_t rows, size_t columns, uint64_t salt, float *sum)
{
    const bool has_levels = way->num_groups > 1 && way->num_groups < way->world_size;
    const size_t n = rows * columns;
    float numbers[MOST_NUMBERS], travelled[MOST_NUMBERS], group[MOST_NUMBERS];
    bool is_first = true;
    for (size_t first = 0; first < way->world_size; first++) {
        bool is_of_earlier = false;
        for (size_t rank = 0; rank < first; rank++)
            is_of_earlier |= way->groups[rank] == way->groups[first] || !has_levels;
        for (size_t rank = first; !is_of_earlier && rank < way->world_size; rank++) {
            if (way->groups[rank] != way->groups[first] && has_levels)
                continue;
            wire_oracle_numbers(rank, salt, n, numbers);
            wire_oracle(wire, rows, columns, numbers, travelled);
            add_to(n, travelled, rank == first, group);
        }
        if (is_of_earlier)
            continue;
        wire_oracle(has_levels ? wire : PH_WIRE_FP32, rows, columns, group, travelled);
        add_to(n, travelled, is_first, sum);
        is_first = false;
    }
}

/* s = x[m + 1]; s = w(s) + x[m + 2]; ...; s = w(s) + x[m], for rows [first, end) of the owner m. */
static void sum_around(const struct way *way, enum ph_wire_format wire, size_t columns, size_t n,
    uint64_t salt, size_t owner, size_t first, size_t end, float *sum)
{
    float numbers[MOST_NUMBERS], travelled[MOST_NUMBERS];
    float *part = sum + first * columns;
    const size_t count = (end - first) * columns;
    for (size_t k = 1; k <= way->world_size; k++) {
        wire_oracle_numbers((owner + k) % way->world_size, salt, n, numbers);
        wire_oracle(wire, end - first, columns, part, travelled);
        for (size_t i = 0; i < count; i++)
            part[i] = numbers[first * columns + i] + (k > 1 ? travelled[i] : 0);
        if (k == 1)
            memcpy(part, numbers + first * columns, count * sizeof *part);
    }
}

/* A ring's members own as many rows as bounds say. */
static void sum_by_the_book(const struct way *way, enum ph_wire_format wire, size_t rows, size_t columns,
    const size_t *bounds, uint64_t salt, float *sum)
{
    if (way->kind == PH_COLLECTIVE_RING && way->world_size > 1)
        for (size_t m = 0; m < way->world_size; m++)
            sum_around(way, wire, columns, rows * columns, salt, m, bounds[m], bounds[m + 1], sum);
    else
        sum_by_groups(way, wire, rows, columns, salt, sum);
}

/* ---- all reduce ---- */

static const struct {
    size_t rows, columns;
} shapes[] = {{0, 3}, {1, 1}, {2, 5}, {1, 1200}, {5, 7}, {64, 17}, {3, 1}};
enum { NUM_SHAPES = sizeof shapes / sizeof *shapes };

/* Cuts rows as evenly as can be: the first parts are one longer. */
static void cut_evenly(size_t rows, size_t num_parts, size_t *bounds_out)
{
    bounds_out[0] = 0;
    for (size_t m = 0; m < num_parts; m++)
        bounds_out[m + 1] = bounds_out[m] + rows / num_parts + (m < rows % num_parts);
}

static ph_status check_all_reduce(
    struct ph_comm *comm, const struct way *way, enum ph_wire_format wire, size_t rows, size_t columns)
{
    enum { MORE = 64 };
    const struct ph__group *world = ph__comm_world(comm);
    const struct ph__comm_call call = {(uint32_t)wire, "dense gradients"};
    const size_t n = rows * columns, bytes = ph__comm_staging_bytes(comm, world, wire, rows, columns);
    const bool has_scales = wire == PH_WIRE_INT8; /* else a number is a row */
    const size_t cut_rows = has_scales ? rows : n, cut_columns = has_scales ? columns : 1;
    size_t bounds[THREAD_RANKS_MOST + 1];
    float data[MOST_NUMBERS + 1], sum[MOST_NUMBERS], wanted[MOST_NUMBERS];
    unsigned char *staging;
    uint64_t ticket;
    cut_evenly(cut_rows, way->world_size, bounds);
    sum_by_the_book(way, wire, cut_rows, cut_columns, bounds, n, sum);
    wire_oracle(wire, rows, columns, sum, wanted);
    PH_TRY(ph__memory_alloc(bytes + MORE, "staging memory", (void **)&staging));
    memset(staging, 0x5a, bytes + MORE);
    data[n] = 77;
    for (int is_own = 0; is_own <= 1; is_own++) {
        wire_oracle_numbers(world->own, n, n, data);
        PH_TRY(ph__comm_all_reduce_start(
            comm, &call, world, wire, rows, columns, data, is_own ? staging : NULL, &ticket));
        PH_TRY(ph__comm_wait(comm, ticket));
        RANK_CHECK(memcmp(data, wanted, n * sizeof *data) == 0);
        RANK_CHECK(data[n] == 77);
    }
    for (size_t i = bytes; i < bytes + MORE; i++)
        RANK_CHECK(staging[i] == 0x5a);
    ph__memory_free(staging, bytes + MORE);
    return PH_OK;
}

static ph_status all_reduce_all(struct ph_comm *comm, void *context)
{
    PH_TRY(choose(comm, context));
    for (int wire = 0; wire < PH_WIRE_COUNT; wire++)
        for (size_t s = 0; s < NUM_SHAPES; s++)
            PH_TRY(check_all_reduce(
                comm, context, (enum ph_wire_format)wire, shapes[s].rows, shapes[s].columns));
    return PH_OK;
}

static void all_reduce_adds_in_the_documented_order(void **state)
{
    (void)state;
    run_all(all_reduce_all);
}

/* Whole numbers, so that no order of additions shows. */
static ph_status add_whole_numbers(struct ph_comm *comm, void *context)
{
    enum { N = 37 };
    const struct ph__group *world = ph__comm_world(comm);
    float data[N];
    uint64_t ticket;
    PH_TRY(choose(comm, context));
    for (size_t i = 0; i < N; i++)
        data[i] = (float)(1000 * world->own + i);
    PH_TRY(ph__comm_all_reduce_start(
        comm, &(struct ph__comm_call){0, "whole numbers"}, world, PH_WIRE_FP32, 1, N, data, NULL, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    for (size_t i = 0; i < N; i++)
        RANK_CHECK(data[i] == (float)(1000 * world->size * (world->size - 1) / 2 + i * world->size));
    return PH_OK;
}

static void whole_numbers_have_their_sum(void **state)
{
    (void)state;
    run_all(add_whole_numbers);
}

/* ---- reduce scatter ---- */

static ph_status check_reduce_scatter(
    struct ph_comm *comm, const struct way *way, enum ph_wire_format wire, size_t columns)
{
    const struct ph__group *world = ph__comm_world(comm);
    size_t rows_of[THREAD_RANKS_MOST], bounds[THREAD_RANKS_MOST + 1] = {0};
    float data[MOST_NUMBERS], kept[MOST_NUMBERS], found[MOST_NUMBERS + 1], wanted[MOST_NUMBERS];
    uint64_t ticket;
    for (size_t m = 0; m < world->size; m++) {
        rows_of[m] = (m * 3 + 1) % 5; /* 1, 4, 2, 0, 3 ... */
        bounds[m + 1] = bounds[m] + rows_of[m];
    }
    const size_t rows = bounds[world->size], own = rows_of[world->own] * columns;
    wire_oracle_numbers(world->own, columns, rows * columns, data);
    memcpy(kept, data, sizeof kept);
    found[own] = 77;
    sum_by_the_book(way, wire, rows, columns, bounds, columns, wanted);
    PH_TRY(ph__comm_reduce_scatter_start(comm, &(struct ph__comm_call){5, "partial sums"}, world, wire,
        rows_of, columns, data, found, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    RANK_CHECK(memcmp(found, wanted + bounds[world->own] * columns, own * sizeof *found) == 0);
    RANK_CHECK(found[own] == 77);
    RANK_CHECK(memcmp(kept, data, rows * columns * sizeof *kept) == 0);
    return PH_OK;
}

static ph_status reduce_scatter_all(struct ph_comm *comm, void *context)
{
    PH_TRY(choose(comm, context));
    for (int wire = 0; wire < PH_WIRE_COUNT; wire++)
        for (size_t columns = 1; columns <= 43; columns += 21)
            PH_TRY(check_reduce_scatter(comm, context, (enum ph_wire_format)wire, columns));
    return PH_OK;
}

static void reduce_scatter_adds_in_the_documented_order(void **state)
{
    (void)state;
    run_all(reduce_scatter_all);
}

/* ---- arrays ---- */

/* Three matrices, of which each member has rows: as many as others, none at all, or one of the first few. */
struct matrices {
    size_t rows[MOST_ARRAYS], columns[MOST_ARRAYS], bounds[MOST_ARRAYS][THREAD_RANKS_MOST + 1];
    float data[MOST_ARRAYS][MOST_NUMBERS];
    struct ph__array arrays[MOST_ARRAYS];
};

static void make_matrices(size_t rank, size_t world_size, struct matrices *all)
{
    static const size_t rows[MOST_ARRAYS] = {29, 3, 10}, columns[MOST_ARRAYS] = {7, 1, 4};
    for (size_t i = 0; i < MOST_ARRAYS; i++) {
        all->rows[i] = rows[i];
        all->columns[i] = columns[i];
        cut_evenly(rows[i], world_size, all->bounds[i]);
        wire_oracle_numbers(rank, i, rows[i] * columns[i], all->data[i]);
        all->arrays[i] = (struct ph__array){all->data[i], columns[i] * sizeof(float), all->bounds[i]};
    }
}

static ph_status reduce_matrices(struct ph_comm *comm, const struct way *way, enum ph_wire_format wire)
{
    const struct ph__group *world = ph__comm_world(comm);
    struct matrices all;
    float found[MOST_NUMBERS], wanted[MOST_NUMBERS], *next = found;
    unsigned char *staging;
    uint64_t ticket;
    make_matrices(world->own, world->size, &all);
    const size_t bytes = ph__comm_array_staging_bytes(comm, world, wire, MOST_ARRAYS, all.arrays);
    PH_TRY(ph__memory_alloc(bytes + 1, "staging memory", (void **)&staging));
    staging[bytes] = 0x5a;
    PH_TRY(ph__comm_reduce_arrays_start(comm, &(struct ph__comm_call){6, "shards"}, world, wire, MOST_ARRAYS,
        all.arrays, staging, found, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    for (size_t i = 0; i < MOST_ARRAYS; i++) {
        const size_t *bounds = all.bounds[i], columns = all.columns[i];
        const size_t count = (bounds[world->own + 1] - bounds[world->own]) * columns;
        sum_by_the_book(way, wire, all.rows[i], columns, bounds, i, wanted);
        RANK_CHECK(memcmp(next, wanted + bounds[world->own] * columns, count * sizeof *next) == 0);
        next += count;
    }
    RANK_CHECK(staging[bytes] == 0x5a);
    ph__memory_free(staging, bytes + 1);
    return PH_OK;
}

static ph_status gather_matrices(struct ph_comm *comm)
{
    const struct ph__group *world = ph__comm_world(comm);
    struct matrices all;
    float wanted[MOST_NUMBERS];
    uint64_t ticket;
    make_matrices(world->own, world->size, &all);
    PH_TRY(ph__comm_gather_arrays_start(
        comm, &(struct ph__comm_call){7, "matrices"}, world, MOST_ARRAYS, all.arrays, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    for (size_t i = 0; i < MOST_ARRAYS; i++)
        for (size_t m = 0; m < world->size; m++) {
            const size_t first = all.bounds[i][m] * all.columns[i];
            const size_t end = all.bounds[i][m + 1] * all.columns[i];
            wire_oracle_numbers(m, i, all.rows[i] * all.columns[i], wanted);
            RANK_CHECK(memcmp(all.data[i] + first, wanted + first, (end - first) * sizeof *wanted) == 0);
        }
    return PH_OK;
}

static ph_status all_matrices(struct ph_comm *comm, void *context)
{
    PH_TRY(choose(comm, context));
    for (int wire = 0; wire < PH_WIRE_INT8; wire++)
        PH_TRY(reduce_matrices(comm, context, (enum ph_wire_format)wire));
    return gather_matrices(comm);
}

static void arrays_are_reduced_and_gathered_by_their_rows(void **state)
{
    (void)state;
    run_all(all_matrices);
}

/* ---- all gather ---- */

static ph_status gather_bytes(struct ph_comm *comm, void *context)
{
    const struct ph__group *world = ph__comm_world(comm);
    PH_TRY(choose(comm, context));
    for (size_t scale = 0; scale <= 80; scale += 40) {
        unsigned char own[200], all[2000];
        uint64_t bytes_of[THREAD_RANKS_MOST], ticket;
        size_t at = 0;
        memset(all, 0xEE, sizeof all);
        memset(own, (int)world->own + 1, sizeof own);
        for (size_t m = 0; m < world->size; m++)
            bytes_of[m] = (m * 2 + 1) % 3 * scale; /* 1, 0, 2 ... */
        PH_TRY(ph__comm_all_gather_start(
            comm, &(struct ph__comm_call){1, "lengths"}, world, own, bytes_of, all, &ticket));
        PH_TRY(ph__comm_wait(comm, ticket));
        for (size_t m = 0; m < world->size; m++)
            for (size_t i = 0; i < bytes_of[m]; i++)
                RANK_CHECK(all[at++] == m + 1);
        RANK_CHECK(all[at] == 0xEE);
    }
    return PH_OK;
}

static void all_gather_puts_everybodys_bytes_behind_each_other(void **state)
{
    (void)state;
    run_all(gather_bytes);
}

/* ---- messages ---- */

enum { NUMBERS = 8 * 60 };

static ph_status sum_once(struct ph_comm *comm)
{
    float data[NUMBERS] = {0};
    uint64_t ticket;
    PH_TRY(ph__comm_all_reduce_start(comm, &(struct ph__comm_call){0, "dense gradients"},
        ph__comm_world(comm), PH_WIRE_FP32, 1, NUMBERS, data, NULL, &ticket));
    return ph__comm_wait(comm, ticket);
}

/* Of 8 ranks in two groups; a part is an 8th. Hierarchical: to a rank of the own group the two parts of its
 * place, and back with their sums the same; to that of the same place one, twice. */
static ph_status count_bytes(struct ph_comm *comm, void *context)
{
    const struct way *way = context;
    const size_t own = ph_comm_rank(comm), part = NUMBERS / 8 * sizeof(float);
    uint64_t before[8];
    PH_TRY(choose(comm, way));
    memcpy(before, ph__comm_counters(comm).sent_bytes, sizeof before);
    PH_TRY(sum_once(comm));
    for (size_t rank = 0; rank < 8; rank++) {
        const uint64_t sent = ph__comm_counters(comm).sent_bytes[rank] - before[rank];
        uint64_t wanted = rank == own ? 0 : 2 * part;
        if (way->kind == PH_COLLECTIVE_RING)
            wanted = rank == (own + 1) % 8 ? 2 * 7 * part : 0;
        else if (way->kind == PH_COLLECTIVE_HIERARCHICAL && rank / 4 == own / 4)
            wanted = rank == own ? 0 : 4 * part;
        else if (way->kind == PH_COLLECTIVE_HIERARCHICAL)
            wanted = rank % 4 == own % 4 ? 2 * part : 0;
        RANK_CHECK(sent == wanted);
    }
    return PH_OK;
}

static void ranks_send_each_other_what_the_algorithm_says(void **state)
{
    (void)state;
    for (enum ph_collective kind = 0; kind < PH_COLLECTIVE_AUTO; kind++) {
        struct way way = {kind, 8, 2, {0, 0, 0, 0, 1, 1, 1, 1}, 0};
        thread_ranks_run(&(struct thread_ranks){.world_size = 8}, count_bytes, &way, NULL);
    }
}

/* ---- choices ---- */

static ph_status check_choices(struct ph_comm *comm, void *context)
{
    static const struct ph__collective_choice choices[] = {
        {0, PH_COLLECTIVE_EXCHANGE}, {100, PH_COLLECTIVE_RING}, {1000, PH_COLLECTIVE_HIERARCHICAL}};
    static const uint32_t pairs[] = {0, 0, 1, 1}, alone[] = {0, 1, 2, 3};
    const struct ph__group *world = ph__comm_world(comm), *host = ph__comm_host(comm);
    (void)context;
    RANK_CHECK(ph__comm_collective(comm, world, 1 << 30) == PH_COLLECTIVE_EXCHANGE);
    PH_TRY(ph__comm_set_collectives(comm, choices, 3, pairs));
    RANK_CHECK(ph__comm_collective(comm, world, 99) == PH_COLLECTIVE_EXCHANGE);
    RANK_CHECK(ph__comm_collective(comm, world, 100) == PH_COLLECTIVE_RING);
    RANK_CHECK(ph__comm_collective(comm, world, 999) == PH_COLLECTIVE_RING);
    RANK_CHECK(ph__comm_collective(comm, world, 1 << 30) == PH_COLLECTIVE_HIERARCHICAL);
    RANK_CHECK(ph__comm_collective(comm, host, 1 << 30) == PH_COLLECTIVE_EXCHANGE);
    PH_TRY(ph__comm_set_collectives(comm, choices, 3, alone));
    RANK_CHECK(ph__comm_collective(comm, world, 1 << 30) == PH_COLLECTIVE_EXCHANGE);
    return PH_OK;
}

static void choices_go_by_bytes_for_the_whole_world_alone(void **state)
{
    (void)state;
    thread_ranks_run(
        &(struct thread_ranks){.world_size = 4, .options = {.ranks_per_host = 2}}, check_choices, NULL, NULL);
}

/* Memory that is asked for where choices may change does for each of them. */
static ph_status check_changes(struct ph_comm *comm, void *context)
{
    static const uint32_t pairs[] = {0, 0, 1, 1};
    static const size_t bounds[] = {0, 10, 30, 31, 77};
    const struct ph__group *world = ph__comm_world(comm);
    const struct ph__array array = {NULL, 4, bounds};
    size_t most[2] = {0};
    (void)context;
    for (enum ph_collective kind = 0; kind < PH_COLLECTIVE_AUTO; kind++) {
        const struct ph__collective_choice choice = {0, kind};
        PH_TRY(ph__comm_set_collectives(comm, &choice, 1, pairs));
        RANK_CHECK(ph__comm_always_exchanges(comm, world, 99) == (kind == PH_COLLECTIVE_EXCHANGE));
        most[0] = ph__max(most[0], ph__comm_staging_bytes(comm, world, PH_WIRE_BF16, 77, 1));
        most[1] = ph__max(most[1], ph__comm_array_staging_bytes(comm, world, PH_WIRE_FP32, 1, &array));
    }
    ph__comm_vary_collectives(comm);
    PH_TRY(
        ph__comm_set_collectives(comm, &(struct ph__collective_choice){0, PH_COLLECTIVE_EXCHANGE}, 1, NULL));
    RANK_CHECK(ph__comm_staging_bytes(comm, world, PH_WIRE_BF16, 77, 1) == most[0]);
    RANK_CHECK(ph__comm_array_staging_bytes(comm, world, PH_WIRE_FP32, 1, &array) == most[1]);
    RANK_CHECK(!ph__comm_always_exchanges(comm, world, 99));
    RANK_CHECK(ph__comm_always_exchanges(comm, ph__comm_host(comm), 99));
    return PH_OK;
}

static void memory_does_for_each_choice_that_may_come(void **state)
{
    (void)state;
    thread_ranks_run(
        &(struct thread_ranks){.world_size = 4, .options = {.ranks_per_host = 2}}, check_changes, NULL, NULL);
}

/* ---- death ---- */

static ph_status sum_until_the_end(struct ph_comm *comm, void *context)
{
    PH_TRY(choose(comm, context));
    for (;;)
        PH_TRY(sum_once(comm));
}

static void a_death_in_any_stage_ends_all_ranks(void **state)
{
    (void)state;
    for (size_t message = 0; message < 24; message++) {
        const bool is_ring = message % 2 == 1;
        struct way way = {is_ring ? PH_COLLECTIVE_RING : PH_COLLECTIVE_HIERARCHICAL, 4, 2, {0, 0, 1, 1}, 0};
        struct thread_rank_end ends[4];
        const struct thread_fault death = {.kind = THREAD_DIES, .rank = 1, .count = message};
        thread_ranks_run(&(struct thread_ranks){.world_size = 4, .faults = &death, .num_faults = 1},
            sum_until_the_end, &way, ends);
        for (size_t rank = 0; rank < 4; rank++) {
            assert_int_equal(ends[rank].status, PH_ERROR_PEER);
            assert_string_equal(ends[rank].text, "rank 1 has died");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reduce_adds_in_the_documented_order),
        cmocka_unit_test(whole_numbers_have_their_sum),
        cmocka_unit_test(reduce_scatter_adds_in_the_documented_order),
        cmocka_unit_test(arrays_are_reduced_and_gathered_by_their_rows),
        cmocka_unit_test(all_gather_puts_everybodys_bytes_behind_each_other),
        cmocka_unit_test(ranks_send_each_other_what_the_algorithm_says),
        cmocka_unit_test(choices_go_by_bytes_for_the_whole_world_alone),
        cmocka_unit_test(memory_does_for_each_choice_that_may_come),
        cmocka_unit_test(a_death_in_any_stage_ends_all_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
