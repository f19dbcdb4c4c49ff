/* phloem prepare: MB of Criteo-like text a second into prepared data with hashed ids, on one core in
 * processor time, and on one and two threads by the clock. The limit of one core is finding the lines of the
 * same file, without looking into them. The limit of two threads is their gain over one thread in work that
 * shares nothing, in the same minutes: processors of a virtual machine may be halves of one core, or have a
 * busy neighbour.
 *
 * bench_prepare [--rounds N] [--rows N] [--json FILE] */
#include "base/sum/checksum.h"
#include "base/thread/clock.h"
#include "base/thread/parallel.h"
#include "bench_data.h"

/* Returns the MB a second of one core for reading and finding lines. */
static double line_speed(const char *path, uint64_t num_bytes)
{
    double best = 0;
    for (int i = 0; i < 3; i++) {
        struct ph__reader *reader;
        char *line;
        size_t length;
        double start = bench_cpu_seconds();
        bench_check(ph__reader_open(path, &reader));
        do
            bench_check(ph__reader_line(reader, &line, &length));
        while (line != NULL);
        ph__reader_close(reader);
        best = fmax(best, (double)num_bytes * 1e-6 / (bench_cpu_seconds() - start));
    }
    return best;
}

/* Sums bytes that stay in the first-level cache, again and again. */
static void check_sums(void *argument, size_t task, size_t worker)
{
    static const unsigned char bytes[16384] = {1};
    uint64_t *sums = argument;
    (void)worker;
    for (int i = 0; i < 100000; i++)
        sums[task * 8] += ph__checksum(bytes, sizeof bytes);
}

/* Returns how many times faster two threads do two tasks of check_sums than one thread. */
static double second_thread_gain(void)
{
    static uint64_t sums[16]; /* a cache line each */
    double seconds[2];
    for (size_t i = 0; i < 2; i++) {
        struct ph__team *team;
        bench_check(ph__team_create(i + 1, &team));
        double start = ph__clock_seconds();
        ph__parallel_for(team, 2, check_sums, sums);
        seconds[i] = ph__clock_seconds() - start;
        ph__team_destroy(team);
    }
    return seconds[0] / seconds[1];
}

/* Returns the MB a second of one preparation by the clock, and gives those of a core by processor time. */
static double prepare_speed(struct bench *bench, const struct ph_data_settings *settings, size_t num_threads,
    double *core_speed_out, struct ph_prepare_summary *summary)
{
    double start = bench_cpu_seconds();
    const char *folder = bench_prepare(bench, settings, "prepared", num_threads, summary);
    double megabytes = (double)summary->num_text_bytes * 1e-6;
    *core_speed_out = megabytes / (bench_cpu_seconds() - start);
    bench_remove_folder(folder);
    return megabytes / summary->seconds;
}

int main(int argc, char **argv)
{
    struct bench bench = bench_begin(argc, argv, "bench_prepare", 1000000);
    struct ph_prepare_summary summary;
    double one[64], two[64], core[64], gain[64], unused;
    size_t rounds = bench.rounds < 64 ? bench.rounds : 64;
    const char *path = bench_write_file(&bench, "train.tsv", false);
    struct ph_data_settings settings = bench_settings(&bench, path, false);
    for (size_t round = 0; round < rounds; round++) {
        one[round] = prepare_speed(&bench, &settings, 1, &core[round], &summary);
        two[round] = prepare_speed(&bench, &settings, 2, &unused, &summary);
        gain[round] = second_thread_gain();
    }
    char limit[128];
    double lines = line_speed(path, summary.num_text_bytes);
    snprintf(limit, sizeof limit, "finding lines at %.0f MB/s", lines);
    printf("prepare, %zu rows, %.1f MB of text, %.1f MB prepared\n", bench.num_rows,
        (double)summary.num_text_bytes * 1e-6, (double)summary.num_bytes * 1e-6);
    double by_clock = bench_median(one, rounds);
    bench_tell(&bench, "data.prepare.core", "MB/s", bench_median(core, rounds), NULL, 0, limit, lines);
    bench_tell(&bench, "data.prepare.threads1", "MB/s", by_clock, NULL, 0, NULL, 0);
    double by_gain = bench_median(gain, rounds);
    snprintf(limit, sizeof limit, "two threads at checksums are %.2f x one", by_gain);
    bench_tell(&bench, "data.prepare.threads2", "MB/s", bench_median(two, rounds), "one thread", by_clock,
        limit, by_clock * by_gain);
    bench_end(&bench);
    return 0;
}
