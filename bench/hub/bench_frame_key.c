/* Cost of sealing a frame with the key of its connection, and of checking one that has come: GB/s of payload.
 * The limit is a memcpy of as much. One thread; payloads and copies stay in the caches as far as these hold
 * them: the limit names the cache that holds both. The ways take turns; copying comes first and last
 * alternately.
 *
 * bench_frame_key [--rounds N] [--json FILE] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "figures.h"
#include "flags.h"
#include "limits.h"
#include "net/frame_key.h"

enum { DEFAULT_ROUNDS = 51, ROUND_BYTES = 8 << 20, HEADER_BYTES = 24 };

static const size_t payload_kib[] = {4, 32, 512};

enum way { SEAL, CHECK, COPY, NUM_WAYS };
static const char *const way_names[NUM_WAYS] = {"seal", "check", "memcpy"};

struct bench {
    struct ph__frame_key *sealing, *checking; /* the two ends of one connection */
    unsigned char header[HEADER_BYTES];
    unsigned char *payload, *copy;                                   /* (the largest) */
    unsigned char tags[ROUND_BYTES / (4 << 10)][PH_FRAME_TAG_BYTES]; /* one a frame of a round */
};

static void carry_out(struct bench *bench, enum way way, size_t size, unsigned char *tag)
{
    switch (way) {
    case SEAL:
        bench_check(ph__frame_mac(bench->sealing, bench->header, HEADER_BYTES, bench->payload, size, tag));
        break;
    case CHECK:
        bench_check(ph__frame_begin(bench->checking, bench->header, HEADER_BYTES));
        bench_check(ph__frame_add(bench->checking, bench->payload, size));
        bench_check(ph__frame_check(bench->checking, tag, "the other end"));
        break;
    default:
        memcpy(bench->copy, bench->payload, size);
        bench->payload[0] = (unsigned char)(bench->copy[size - 1] + 1); /* so that each copy is made */
    }
}

/* Returns the name of the smallest cache that holds a payload and its copy, by the system's sizes. */
static const char *cache_of(size_t payload_bytes)
{
    static const struct {
        int setting;
        const char *name;
    } caches[] = {{_SC_LEVEL1_DCACHE_SIZE, "the first cache"}, {_SC_LEVEL2_CACHE_SIZE, "the second cache"},
        {_SC_LEVEL3_CACHE_SIZE, "the third cache"}};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++)
        if (sysconf(caches[i].setting) >= (long)(2 * payload_bytes))
            return caches[i].name;
    return "memory";
}

/* Returns GB/s. */
static double measure(struct bench *bench, enum way way, size_t size)
{
    const size_t num_frames = ROUND_BYTES / size;
    const double begin = ph__clock_seconds();
    for (size_t i = 0; i < num_frames; i++)
        carry_out(bench, way, size, bench->tags[i]);
    return (double)(num_frames * size) / (ph__clock_seconds() - begin) * 1e-9;
}

static void record(struct ph__json *figures, const char *way, size_t kib, const double *rates,
    const double *copies, const double *ratios, size_t rounds)
{
    char name[64], limit[96];
    snprintf(limit, sizeof limit, "memcpy of as much within %s, at %.1f GB/s", cache_of(kib << 10),
        bench_median(copies, rounds));
    snprintf(name, sizeof name, "hub.frame_key.%s.%zuKiB", way, kib);
    const double rate = bench_median(rates, rounds);
    bench_record(figures, &(struct bench_figure){.name = name,
                              .unit = "GB/s",
                              .value = rate,
                              .spread = bench_spread(rates, rounds),
                              .limit = limit,
                              .of_limit = bench_median(ratios, rounds),
                              .placement = bench_placement(1, 0, 0)});
}

static void report(struct bench *bench, struct ph__json *figures, size_t kib, size_t rounds)
{
    static double rates[NUM_WAYS][BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS];
    /* CHECK checks what SEAL has sealed: nothing may change the payload in between. */
    static const enum way orders[][NUM_WAYS] = {{SEAL, CHECK, COPY}, {COPY, SEAL, CHECK}};
    for (size_t round = 0; round < rounds; round++) {
        const enum way *order = orders[round % 2];
        for (size_t i = 0; i < NUM_WAYS; i++)
            rates[order[i]][round] = measure(bench, order[i], kib << 10);
    }
    printf("%6zu KiB", kib);
    for (int way = 0; way < NUM_WAYS; way++)
        printf(" %8.2f", bench_median(rates[way], rounds));
    printf("\n");
    for (int way = 0; way < COPY; way++) {
        for (size_t round = 0; round < rounds; round++)
            ratios[round] = rates[way][round] / rates[COPY][round];
        record(figures, way_names[way], kib, rates[way], rates[COPY], ratios, rounds);
    }
}

static void make_bench(struct bench *bench, size_t largest)
{
    static const unsigned char bytes[PH_CONNECTION_KEY_BYTES] = "any key is as fast as another";
    bench_check(ph__frame_key_create(bytes, &bench->sealing));
    bench_check(ph__frame_key_create(bytes, &bench->checking));
    bench->payload = calloc(1, largest);
    bench->copy = calloc(1, largest);
    if (bench->payload == NULL || bench->copy == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: a payload"));
}

int main(int argc, char **argv)
{
    static struct bench bench;
    const size_t num_sizes = sizeof payload_kib / sizeof *payload_kib;
    struct bench_run run = {.rounds = DEFAULT_ROUNDS};
    bench_read_flags(argc, argv, &run, NULL, 0);
    struct ph__json *figures = ph__json_array();
    make_bench(&bench, payload_kib[num_sizes - 1] << 10);
    printf("GB/s of payload, median of %zu rounds\n   payload     seal    check   memcpy\n", run.rounds);
    for (size_t i = 0; i < num_sizes; i++)
        report(&bench, figures, payload_kib[i], run.rounds);
    ph__frame_key_destroy(bench.sealing);
    ph__frame_key_destroy(bench.checking);
    free(bench.payload);
    free(bench.copy);
    bench_finish(figures, run.json);
    return 0;
}
