/* Groups of hosts: of made networks whose groups are known, of random ones against the definition of average
 * linkage by brute force, and of measured ones. */
#include "plan/fabric/host_groups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/stream.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "support/test_support.h"

struct draws {
    uint64_t state;
};

static struct draws begin_draws(uint64_t number)
{
    return (struct draws){ph__hash_mix(test_seed() + number)};
}

/* Returns a number of [0, 1). */
static double draw(struct draws *draws)
{
    return (double)(ph__hash_mix(draws->state++) >> 11) * 0x1p-53;
}

static size_t find(const double *ns_per_byte, const double *latency_ns, size_t num_hosts, uint32_t *groups)
{
    const struct ph__host_distances measured = {num_hosts, ns_per_byte, latency_ns};
    size_t num_groups;
    assert_ok(ph__host_groups_find(&measured, groups, &num_groups));
    return num_groups;
}

static double noise(struct draws *draws, double share)
{
    return 1 + share * (2 * draw(draws) - 1);
}

/* Fills numbers by the racks of hosts, each with some noise. */
static void make_racks(
    struct draws *draws, size_t n, const uint32_t *racks, double within, double between, double *numbers)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            numbers[i * n + k] =
                i == k ? (double)NAN : noise(draws, .15) * (racks[i] == racks[k] ? within : between);
}

/* ---- made networks ---- */

static void hosts_of_a_rack_are_a_group_in_any_order(void **state)
{
    (void)state;
    struct draws draws = begin_draws(0);
    double numbers[12 * 12];
    uint32_t racks[12], groups[12];
    for (int round = 0; round < 50; round++) {
        uint32_t next = 0;
        uint32_t number_of[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
        for (size_t i = 0; i < 12; i++)
            racks[i] = i < 3 ? (uint32_t)i : (uint32_t)(3 * draw(&draws));
        make_racks(&draws, 12, racks, 10, 40, numbers);
        assert_int_equal(find(numbers, NULL, 12, groups), 3);
        for (size_t i = 0; i < 12; i++) {
            if (number_of[racks[i]] == UINT32_MAX)
                number_of[racks[i]] = next++;
            assert_int_equal(groups[i], number_of[racks[i]]);
        }
    }
}

static void a_flat_network_is_one_group(void **state)
{
    (void)state;
    struct draws draws = begin_draws(1);
    double numbers[8 * 8], latencies[8 * 8];
    const uint32_t racks[8] = {0};
    uint32_t groups[8];
    for (int round = 0; round < 50; round++) {
        make_racks(&draws, 8, racks, 10, 10, numbers);
        make_racks(&draws, 8, racks, 30000, 30000, latencies);
        assert_int_equal(find(numbers, latencies, 8, groups), 1);
        for (size_t i = 0; i < 8; i++)
            assert_int_equal(groups[i], 0);
    }
}

static void latencies_decide_where_bandwidths_are_alike(void **state)
{
    (void)state;
    struct draws draws = begin_draws(2);
    double numbers[8 * 8], latencies[8 * 8];
    const uint32_t flat[8] = {0}, racks[8] = {0, 1, 0, 1, 1, 0, 1, 0}, others[8] = {0, 0, 0, 0, 1, 1, 1, 1};
    uint32_t groups[8];
    make_racks(&draws, 8, flat, 10, 10, numbers);
    make_racks(&draws, 8, racks, 15000, 35000, latencies);
    assert_int_equal(find(numbers, latencies, 8, groups), 2);
    assert_memory_equal(groups, racks, sizeof groups);
    make_racks(&draws, 8, others, 10, 40, numbers); /* bandwidths come first */
    assert_int_equal(find(numbers, latencies, 8, groups), 2);
    assert_memory_equal(groups, others, sizeof groups);
}

static void the_widest_step_decides_between_racks_and_sites(void **state)
{
    (void)state;
    struct draws draws = begin_draws(3);
    double numbers[8 * 8];
    const uint32_t racks[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    uint32_t groups[8];
    make_racks(&draws, 8, racks, 10, 25, numbers);
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < 8; k++)
            if (i / 4 != k / 4)
                numbers[i * 8 + k] = noise(&draws, .15) * 250; /* tenfold, beside 2.5 between racks */
    assert_int_equal(find(numbers, NULL, 8, groups), 2);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(groups[i], i / 4);
}

static void a_direction_may_be_missing_and_directions_may_differ(void **state)
{
    (void)state;
    struct draws draws = begin_draws(4);
    double numbers[6 * 6];
    const uint32_t racks[6] = {0, 1, 0, 1, 0, 1};
    uint32_t groups[6];
    make_racks(&draws, 6, racks, 10, 60, numbers);
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < i; k++)
            numbers[i * 6 + k] = (i + k) % 3 == 0 ? (double)NAN : .9 * numbers[i * 6 + k];
    assert_int_equal(find(numbers, NULL, 6, groups), 2);
    assert_memory_equal(groups, racks, sizeof groups);
    numbers[0 * 6 + 2] = numbers[2 * 6 + 0] = (double)NAN; /* 4 is near both */
    assert_int_equal(find(numbers, NULL, 6, groups), 2);
    assert_memory_equal(groups, racks, sizeof groups);
}

static void one_or_two_hosts_are_one_group(void **state)
{
    (void)state;
    const double numbers[4] = {0, 10, 1000, 0};
    uint32_t groups[2] = {7, 7};
    assert_int_equal(find(numbers, numbers, 1, groups), 1);
    assert_int_equal(groups[0], 0);
    assert_int_equal(find(numbers, NULL, 2, groups), 1);
    assert_int_equal(groups[1], 0);
    assert_int_equal(find(NULL, NULL, 2, groups), 1);
}

/* ---- the definition ---- */

/* Mean of the logarithms between all members of two groups, by labels. */
static double linkage(const double *numbers, size_t n, const uint32_t *labels, uint32_t a, uint32_t b)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            if (labels[i] == a && labels[k] == b) {
                sum += (log(numbers[i * n + k]) + log(numbers[k * n + i])) / 2;
                count++;
            }
        }
    }
    return sum / count;
}

/* Joins the nearest groups until num_groups are left. Returns the distances between the last two that were
 * joined, and the two that would be next, through two pointers. */
static void join_until(
    const double *numbers, size_t n, size_t num_groups, uint32_t *labels, double *last_out, double *next_out)
{
    for (size_t i = 0; i < n; i++)
        labels[i] = (uint32_t)i;
    for (size_t left = n; left >= num_groups; left--) {
        uint32_t best_a = 0, best_b = 0;
        double best = HUGE_VAL;
        for (uint32_t a = 0; a < n; a++) {
            for (uint32_t b = a + 1; b < n; b++) {
                const double distance = linkage(numbers, n, labels, a, b);
                if (distance < best) {
                    best = distance;
                    best_a = a;
                    best_b = b;
                }
            }
        }
        *next_out = best;
        if (left == num_groups)
            return;
        *last_out = best;
        for (size_t i = 0; i < n; i++)
            if (labels[i] == best_b)
                labels[i] = best_a;
    }
}

static void random_networks_are_grouped_by_the_definition(void **state)
{
    (void)state;
    enum { N = 9 };
    struct draws draws = begin_draws(5);
    double numbers[N * N];
    uint32_t groups[N], labels[N];
    size_t num_flat = 0, num_grouped = 0;
    for (int round = 0; round < 200; round++) {
        double widest = log(PH_HOST_GROUPS_RATIO), last, next;
        size_t wanted = 1;
        for (size_t i = 0; i < N * N; i++)
            numbers[i] = exp(2 * draw(&draws));
        for (size_t num_groups = N - 1; num_groups >= 2; num_groups--) {
            join_until(numbers, N, num_groups, labels, &last, &next);
            if (next - last >= widest) {
                widest = next - last;
                wanted = num_groups;
            }
        }
        assert_int_equal(find(numbers, NULL, N, groups), wanted);
        num_flat += wanted == 1;
        num_grouped += wanted > 1;
        if (wanted > 1)
            join_until(numbers, N, wanted, labels, &last, &next);
        for (size_t i = 0; i < N; i++)
            for (size_t k = 0; k < N; k++)
                assert_int_equal(groups[i] == groups[k], wanted == 1 || labels[i] == labels[k]);
    }
    assert_true(num_flat > 0 && num_grouped > 0);
}

/* ---- measured networks ---- */

/* Reads 490 x 490 round trips. */
static void read_planetlab(const char *path, double *latencies)
{
    struct ph__reader *reader;
    char *line;
    size_t length, count = 0;
    assert_ok(ph__reader_open(path, &reader));
    for (;;) {
        assert_ok(ph__reader_line(reader, &line, &length));
        if (line == NULL)
            break;
        for (char *at = line, *end; *at != '\0'; at = *end == '\0' ? end : end + 1) {
            end = at + strcspn(at, "\t ");
            if (end == at)
                continue;
            assert_true(count < 490 * 490);
            assert_true(ph__decimal_parse(at, (size_t)(end - at), &latencies[count++]));
        }
    }
    assert_int_equal(count, 490 * 490);
    ph__reader_close(reader);
}

/* Whatever PlanetLab's groups are: hosts of one group are nearer to each other than to those of others. */
static void groups_of_planetlab_are_nearer_within_than_between(void **state)
{
    (void)state;
    const char *path = test_data("latency/planetlab_490.txt.zst");
    if (path == NULL)
        test_skip("no PlanetLab under $PHLOEM_DATA");
    double *latencies = calloc(490 * 490, sizeof *latencies), within = 0, between = 0;
    uint32_t groups[490];
    size_t num_within = 0, num_between = 0;
    assert_non_null(latencies);
    read_planetlab(path, latencies);
    const size_t num_groups = find(NULL, latencies, 490, groups);
    for (size_t i = 0; i < 490; i++) {
        assert_in_range(groups[i], 0, num_groups - 1);
        for (size_t k = 0; k < 490; k++) {
            if (i == k || latencies[i * 490 + k] <= 0)
                continue;
            *(groups[i] == groups[k] ? &within : &between) += log(latencies[i * 490 + k]);
            *(groups[i] == groups[k] ? &num_within : &num_between) += 1;
        }
    }
    print_message("PlanetLab: %zu groups\n", num_groups);
    assert_true(num_groups > 1 && num_groups < 490);
    assert_true(between / (double)num_between - within / (double)num_within > log(PH_HOST_GROUPS_RATIO));
    free(latencies);
    free((void *)(uintptr_t)path);
}

/* ---- cloud regions ---- */

struct regions {
    size_t num_regions, num_rows;
    char names[64][64];
    double ns_per_byte[64 * 64], latency_ns[64 * 64]; /* (64, 64): sums, then means */
    double counts[64 * 64];
};

static size_t region(struct regions *regions, const char *cloud, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s %s", cloud, name);
    for (size_t i = 0; i < regions->num_regions; i++)
        if (strcmp(regions->names[i], full) == 0)
            return i;
    assert_true(regions->num_regions < 64);
    memcpy(regions->names[regions->num_regions], full, sizeof full);
    return regions->num_regions++;
}

static void read_regions(const char *path, struct regions *regions)
{
    struct ph__reader *reader;
    char *line, *cells[10];
    size_t length;
    assert_ok(ph__reader_open(path, &reader));
    for (assert_ok(ph__reader_line(reader, &line, &length));; regions->num_rows++) {
        double bytes_per_s, round_trip_ms;
        assert_ok(ph__reader_line(reader, &line, &length));
        if (line == NULL)
            break;
        for (size_t i = 0; i < 10; i++) {
            cells[i] = line;
            line += strcspn(line, ",");
            if (*line != '\0')
                *line++ = '\0';
        }
        if (!ph__number_parse(cells[6], &bytes_per_s) || !ph__number_parse(cells[7], &round_trip_ms))
            continue;
        const size_t from = region(regions, cells[2], cells[3]), to = region(regions, cells[4], cells[5]);
        regions->counts[from * 64 + to]++;
        regions->ns_per_byte[from * 64 + to] += 1e9 / bytes_per_s;
        regions->latency_ns[from * 64 + to] += round_trip_ms * 5e5;
    }
    ph__reader_close(reader);
}

/* Compacts a matrix of means; pairs that were not measured are NaN. */
static void compact(const struct regions *regions, const double *sums, double *means)
{
    const size_t n = regions->num_regions;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            means[i * n + k] = sums[i * 64 + k] / regions->counts[i * 64 + k];
}

static void regions_of_the_clouds_are_grouped_though_pairs_are_missing(void **state)
{
    (void)state;
    static struct regions regions;
    static double ns_per_byte[64 * 64], latency_ns[64 * 64];
    const char *path = test_data("latency/intercloud_202202.csv.zst");
    if (path == NULL)
        test_skip("no regions of clouds under $PHLOEM_DATA");
    uint32_t groups[64];
    read_regions(path, &regions);
    assert_int_equal(regions.num_regions, 45);
    compact(&regions, regions.ns_per_byte, ns_per_byte);
    compact(&regions, regions.latency_ns, latency_ns);
    const size_t num_groups = find(ns_per_byte, latency_ns, 45, groups);
    print_message("clouds: %zu groups\n", num_groups);
    assert_in_range(num_groups, 1, 45);
    for (size_t i = 0; i < 45; i++)
        assert_in_range(groups[i], 0, num_groups - 1);
    free((void *)(uintptr_t)path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_of_a_rack_are_a_group_in_any_order),
        cmocka_unit_test(a_flat_network_is_one_group),
        cmocka_unit_test(latencies_decide_where_bandwidths_are_alike),
        cmocka_unit_test(the_widest_step_decides_between_racks_and_sites),
        cmocka_unit_test(a_direction_may_be_missing_and_directions_may_differ),
        cmocka_unit_test(one_or_two_hosts_are_one_group),
        cmocka_unit_test(random_networks_are_grouped_by_the_definition),
        cmocka_unit_test(groups_of_planetlab_are_nearer_within_than_between),
        cmocka_unit_test(regions_of_the_clouds_are_grouped_though_pairs_are_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
