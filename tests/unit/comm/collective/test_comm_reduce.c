#include <stdlib.h>

#include "base/memory/memory.h"
#include "comm/collective/comm_inside.h"
#include "support/thread_ranks.h"
#include "unit/comm/wire_oracle.h"

enum { MOST_NUMBERS = 1200 };

static const size_t worlds[] = {1, 2, 3, 4, 7};
enum { NUM_WORLDS = sizeof worlds / sizeof *worlds };

static const struct {
    size_t rows, columns;
} shapes[] = {{0, 3}, {1, 1}, {2, 5}, {1, 1200}, {5, 7}, {64, 17}, {3, 1}};
enum { NUM_SHAPES = sizeof shapes / sizeof *shapes };

/* sum (n): the contributions of the members, as each reads on its way, added in their order. */
static void serial_sum(const struct ph__group *group, enum ph_wire_format wire, size_t rows, size_t columns,
    uint64_t salt, float *sum)
{
    const size_t n = rows * columns;
    float numbers[MOST_NUMBERS], travelled[MOST_NUMBERS];
    for (size_t member = 0; member < group->size; member++) {
        wire_oracle_numbers(group->ranks[member], salt, n, numbers);
        wire_oracle(wire, rows, columns, numbers, travelled);
        for (size_t i = 0; i < n; i++)
            sum[i] = member == 0 ? travelled[i] : sum[i] + travelled[i];
    }
}

/* ---- all reduce ---- */

static ph_status check_all_reduce(struct ph_comm *comm, const struct ph__group *group,
    enum ph_wire_format wire, size_t rows, size_t columns)
{
    enum { MORE = 64 };
    const size_t n = rows * columns, bytes = ph__comm_staging_bytes(comm, group, wire, rows, columns);
    const struct ph__comm_call call = {(uint32_t)wire, "dense gradients"};
    unsigned char *staging;
    float data[MOST_NUMBERS + 1], sum[MOST_NUMBERS], wanted[MOST_NUMBERS];
    uint64_t ticket;
    wire_oracle_numbers(ph_comm_rank(comm), n, n, data);
    data[n] = 77;
    serial_sum(group, wire, rows, columns, n, sum);
    wire_oracle(wire, rows, columns, sum, wanted);
    PH_TRY(ph__comm_all_reduce_start(comm, &call, group, wire, rows, columns, data, NULL, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    RANK_CHECK(memcmp(data, wanted, n * sizeof *data) == 0);
    RANK_CHECK(data[n] == 77);

    /* staging memory of the caller */
    const uint64_t num_growths = comm->operations.num_growths;
    PH_TRY(ph__memory_alloc(bytes + MORE, "staging memory", (void **)&staging));
    memset(staging, 0x5a, bytes + MORE);
    wire_oracle_numbers(ph_comm_rank(comm), n, n, data);
    PH_TRY(ph__comm_all_reduce_start(comm, &call, group, wire, rows, columns, data, staging, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    RANK_CHECK(memcmp(data, wanted, n * sizeof *data) == 0);
    RANK_CHECK(comm->operations.num_growths == num_growths);
    for (size_t i = bytes; i < bytes + MORE; i++)
        RANK_CHECK(staging[i] == 0x5a);
    ph__memory_free(staging, bytes + MORE);
    return PH_OK;
}

static ph_status all_reduce_all(struct ph_comm *comm, void *context)
{
    (void)context;
    for (int wire = 0; wire < PH_WIRE_COUNT; wire++)
        for (size_t s = 0; s < NUM_SHAPES; s++)
            PH_TRY(check_all_reduce(
                comm, ph__comm_world(comm), (enum ph_wire_format)wire, shapes[s].rows, shapes[s].columns));
    return PH_OK;
}

static void all_reduce_is_the_serial_sum_in_the_order_of_the_ranks(void **state)
{
    (void)state;
    for (size_t w = 0; w < NUM_WORLDS; w++)
        thread_ranks_run(&(struct thread_ranks){.world_size = worlds[w]}, all_reduce_all, NULL, NULL);
}

static void messages_that_come_in_another_order_make_the_same_sum(void **state)
{
    (void)state;
    const struct thread_fault slow[] = {
        {.kind = THREAD_IS_SLOW, .rank = 0, .count = 40}, {.kind = THREAD_IS_SLOW, .rank = 2, .count = 9}};
    for (uint64_t seed = 1; seed <= 5; seed++)
        thread_ranks_run(
            &(struct thread_ranks){.world_size = 4, .seed = seed, .faults = slow, .num_faults = 2},
            all_reduce_all, NULL, NULL);
}

static void messages_that_are_cut_make_the_same_sum(void **state)
{
    (void)state;
    for (size_t cut = 16; cut <= 256; cut += 48)
        thread_ranks_run(
            &(struct thread_ranks){.world_size = 3, .cut_bytes = cut}, all_reduce_all, NULL, NULL);
}

/* ---- reduce scatter ---- */

static ph_status check_reduce_scatter(
    struct ph_comm *comm, const struct ph__group *group, enum ph_wire_format wire, size_t columns)
{
    const struct ph__comm_call call = {5, "partial sums"};
    size_t rows_of[THREAD_RANKS_MOST], rows = 0, first = 0;
    float data[MOST_NUMBERS], kept[MOST_NUMBERS], found[MOST_NUMBERS + 1], wanted[MOST_NUMBERS];
    uint64_t ticket;
    for (size_t member = 0; member < group->size; member++) {
        rows_of[member] = (member * 3 + 1) % 5; /* 1, 4, 2, 0, 3 ... */
        first += member < group->own ? rows_of[member] : 0;
        rows += rows_of[member];
    }
    const size_t own = rows_of[group->own] * columns;
    wire_oracle_numbers(ph_comm_rank(comm), columns, rows * columns, data);
    memcpy(kept, data, sizeof kept);
    found[own] = 77;
    serial_sum(group, wire, rows, columns, columns, wanted);
    PH_TRY(ph__comm_reduce_scatter_start(comm, &call, group, wire, rows_of, columns, data, found, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    RANK_CHECK(memcmp(found, wanted + first * columns, own * sizeof *found) == 0);
    RANK_CHECK(found[own] == 77);
    RANK_CHECK(memcmp(kept, data, rows * columns * sizeof *kept) == 0);
    return PH_OK;
}

static ph_status reduce_scatter_all(struct ph_comm *comm, void *context)
{
    (void)context;
    for (int wire = 0; wire < PH_WIRE_COUNT; wire++)
        for (size_t columns = 1; columns <= 64; columns += 21)
            PH_TRY(check_reduce_scatter(comm, ph__comm_world(comm), (enum ph_wire_format)wire, columns));
    return PH_OK;
}

static void reduce_scatter_leaves_each_its_part_of_the_serial_sum(void **state)
{
    (void)state;
    for (size_t w = 0; w < NUM_WORLDS; w++) {
        thread_ranks_run(&(struct thread_ranks){.world_size = worlds[w]}, reduce_scatter_all, NULL, NULL);
        thread_ranks_run(
            &(struct thread_ranks){.world_size = worlds[w], .cut_bytes = 20}, reduce_scatter_all, NULL, NULL);
    }
}

/* ---- groups ---- */

/* Even and odd ranks, on one channel at the same time; then hosts of two, and their peers. */
static ph_status sum_in_groups(struct ph_comm *comm, void *context)
{
    (void)context;
    uint32_t ranks[THREAD_RANKS_MOST];
    struct ph__group group = {.own = ph_comm_rank(comm) / 2, .ranks = ranks};
    for (size_t rank = ph_comm_rank(comm) % 2; rank < ph_comm_world_size(comm); rank += 2)
        ranks[group.size++] = (uint32_t)rank;
    for (int wire = 0; wire < PH_WIRE_COUNT; wire++) {
        PH_TRY(check_all_reduce(comm, &group, (enum ph_wire_format)wire, 9, 11));
        PH_TRY(check_reduce_scatter(comm, &group, (enum ph_wire_format)wire, 6));
        PH_TRY(check_all_reduce(comm, ph__comm_host(comm), (enum ph_wire_format)wire, 4, 5));
        PH_TRY(check_reduce_scatter(comm, ph__comm_peers(comm), (enum ph_wire_format)wire, 8));
    }
    return PH_OK;
}

static void groups_sum_by_themselves(void **state)
{
    (void)state;
    for (size_t world_size = 2; world_size <= 8; world_size += 2)
        thread_ranks_run(&(struct thread_ranks){.world_size = world_size, .options = {.ranks_per_host = 2}},
            sum_in_groups, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reduce_is_the_serial_sum_in_the_order_of_the_ranks),
        cmocka_unit_test(messages_that_come_in_another_order_make_the_same_sum),
        cmocka_unit_test(messages_that_are_cut_make_the_same_sum),
        cmocka_unit_test(reduce_scatter_leaves_each_its_part_of_the_serial_sum),
        cmocka_unit_test(groups_sum_by_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
