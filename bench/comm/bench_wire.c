/* Benchmarks the conversion of numbers into the format in which they travel between ranks, and back: GB/s of
 * fp32 numbers, in rows of 64 numbers. The limit is copying as many bytes as are read and written: for n
 * numbers that take w bytes each on the wire
 *
 *   pack, unpack   n (4 + w)
 *   add            n (8 + w)    the sums are read and written
 *
 * Small arrays stay in the caches. One thread; the ways and copying take turns.
 *
 * bench_wire [--rounds N] [--quick] [--json FILE]
 * --quick: one round of the small array, as a smoke test. */
#include <stdio.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "comm/wire/wire_format.h"
#include "figures.h"
#include "flags.h"
#include "limits.h"

enum { DEFAULT_ROUNDS = 31, COLUMNS = 64, LEAST_ROUND_BYTES = 16 << 20 };

static const size_t array_kib[] = {256, 64 << 10}; /* of fp32 numbers */
enum { NUM_SIZES = sizeof array_kib / sizeof *array_kib };

enum way { PACK, UNPACK, ADD, NUM_WAYS };
static const char *const way_names[NUM_WAYS] = {"pack", "unpack", "add"};

struct bench {
    const struct ph__kernels *kernels;
    struct bench_limits *limits;
    struct ph__json *figures;
    size_t rounds;
    ph_real *numbers;
    void *packed;
};

static void carry_out(struct bench *bench, enum way way, enum ph_wire_format wire, size_t rows)
{
    if (way == PACK)
        ph__wire_pack(bench->kernels, wire, rows, COLUMNS, bench->numbers, COLUMNS, bench->packed);
    else if (way == UNPACK)
        ph__wire_unpack(bench->kernels, wire, rows, COLUMNS, bench->packed, bench->numbers, COLUMNS);
    else
        ph__wire_add(bench->kernels, wire, rows, COLUMNS, bench->packed, bench->numbers, COLUMNS);
}

/* Returns the seconds of one call. */
static double measure(struct bench *bench, enum way way, enum ph_wire_format wire, size_t rows)
{
    const size_t bytes = rows * COLUMNS * sizeof(ph_real);
    const size_t calls = bytes < LEAST_ROUND_BYTES ? LEAST_ROUND_BYTES / bytes : 1;
    const double begin = ph__clock_seconds();
    for (size_t call = 0; call < calls; call++)
        carry_out(bench, way, wire, rows);
    return (ph__clock_seconds() - begin) / (double)calls;
}

static double moved_bytes(enum way way, enum ph_wire_format wire, size_t rows)
{
    const size_t numbers = rows * COLUMNS * sizeof(ph_real) * (way == ADD ? 2 : 1);
    return (double)(numbers + ph__wire_bytes(wire, rows, COLUMNS));
}

static void fill(struct bench *bench, size_t rows)
{
    struct ph__rng_sequence random = {.key = {.seed = 1}};
    for (size_t i = 0; i < rows * COLUMNS; i++)
        bench->numbers[i] = (ph_real)(ph__rng_next_uniform(&random) - .5);
}

static void report(struct bench *bench, enum way way, enum ph_wire_format wire, size_t kib)
{
    const size_t rows = (kib << 10) / (COLUMNS * sizeof(ph_real));
    const double bytes = moved_bytes(way, wire, rows);
    double rates[BENCH_MAX_ROUNDS], copies[BENCH_MAX_ROUNDS], shares[BENCH_MAX_ROUNDS];
    char name[64], limit[96];
    for (size_t round = 0; round < bench->rounds; round++) {
        fill(bench, rows);
        ph__wire_pack(bench->kernels, wire, rows, COLUMNS, bench->numbers, COLUMNS, bench->packed);
        const double seconds = measure(bench, way, wire, rows);
        copies[round] = bench_copy(bench->limits, (size_t)bytes);
        rates[round] = (double)(kib << 10) / seconds * 1e-9;
        shares[round] = bytes / seconds / copies[round];
    }
    const double rate = bench_median(rates, bench->rounds), share = bench_median(shares, bench->rounds);
    snprintf(name, sizeof name, "comm.wire.%s.%s.%zuKiB", way_names[way], ph__wire_name(wire), kib);
    snprintf(limit, sizeof limit, "%.1f MB at %.1f GB/s of copying", bytes * 1e-6,
        bench_median(copies, bench->rounds) * 1e-9);
    bench_record(bench->figures, &(struct bench_figure){.name = name,
                                     .unit = "GB/s",
                                     .value = rate,
                                     .spread = bench_spread(rates, bench->rounds),
                                     .limit = limit,
                                     .of_limit = share,
                                     .placement = bench_placement(1, 0, 0)});
    printf("%-32s %8.2f GB/s, %.2f of copying\n", name, rate, share);
}

static void make_bench(struct bench *bench, size_t largest)
{
    enum ph__isa isa;
    bench_check(ph__cpu_isa(&isa));
    bench->kernels = ph__kernels_for(isa);
    bench_check(ph__memory_alloc(largest, "numbers", (void **)&bench->numbers));
    bench_check(ph__memory_alloc(largest, "packed numbers", &bench->packed));
}

int main(int argc, char **argv)
{
    struct bench_run run = {.rounds = DEFAULT_ROUNDS};
    struct bench bench = {0};
    struct ph__team *team;
    bench_read_flags(argc, argv, &run, NULL, 0);
    const size_t num_sizes = run.is_quick ? 1 : NUM_SIZES, largest = array_kib[num_sizes - 1] << 10;
    bench_check(ph__team_create(1, &team));
    make_bench(&bench, largest);
    bench.limits = bench_limits_create(team);
    bench.figures = ph__json_array();
    bench.rounds = run.rounds;
    for (size_t size = 0; size < num_sizes; size++)
        for (int way = 0; way < NUM_WAYS; way++)
            for (int wire = 0; wire < PH_WIRE_COUNT; wire++)
                report(&bench, (enum way)way, (enum ph_wire_format)wire, array_kib[size]);
    bench_limits_destroy(bench.limits);
    ph__team_destroy(team);
    ph__memory_free(bench.numbers, largest);
    ph__memory_free(bench.packed, largest);
    bench_finish(bench.figures, run.json);
    return 0;
}
