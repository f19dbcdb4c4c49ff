/* Chooses chunk sizes from measured times; see autotune.h. */
#include "hub/shard/autotune.h"

#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "base/statistics.h"
#include "hub/layout/layout.h"

#define DEFAULT_INDEX 2 /* index of PH_AUTOTUNE_DEFAULT_BYTES */
#define CLEARLY .95     /* most of the default's time */
#define NEARLY 1.05     /* most of the best time */
#define NEARLY_OVER_TCP 1.15
#define LEAST_CHUNK_BYTES ((uint32_t)4 << 10)
#define CHUNKS_A_CORE 8

static const struct ph__autotune_patience patience = {.thread_seconds = .1, .seconds = 1};

/* ---- the choice ---- */

/* Times of one size over those of the default size. Rounds are compared within themselves, since machines
 * drift; and the fastest with the fastest, since a disturbance only ever adds to a time. */
struct ratios {
    double median, third_quartile, fastest;
};

static struct ratios find_ratios(const struct ph__autotune_times *times, size_t size)
{
    double sorted[PH_AUTOTUNE_MAX_ROUNDS], least = (double)INFINITY, least_default = (double)INFINITY;
    const size_t count = times->num_rounds;
    for (size_t round = 0; round < count; round++) {
        const double *seconds = times->seconds[round];
        sorted[round] = seconds[size] / seconds[DEFAULT_INDEX];
        least = fmin(least, seconds[size]);
        least_default = fmin(least_default, seconds[DEFAULT_INDEX]);
    }
    ph__sort_numbers(sorted, count);
    return (struct ratios){.median = ph__sorted_median(sorted, count),
        .third_quartile = sorted[(3 * count - 1) / 4],
        .fastest = least / least_default};
}

static bool is_clearly_better(const struct ratios *ratios)
{
    return ratios->third_quartile <= CLEARLY && ratios->fastest <= CLEARLY;
}

uint32_t ph__autotune_choose(
    const struct ph__autotune_times *times, enum ph__autotune_path path, double *ratio_out)
{
    uint32_t chosen = PH_AUTOTUNE_DEFAULT_BYTES;
    struct ratios ratios[PH_AUTOTUNE_NUM_SIZES];
    const double nearly = path == PH_AUTOTUNE_TCP ? NEARLY_OVER_TCP : NEARLY;
    double best = 1;
    *ratio_out = 1;
    if (times->num_rounds < PH_AUTOTUNE_MIN_ROUNDS)
        return chosen;
    for (size_t i = 0; i < PH_AUTOTUNE_NUM_SIZES; i++) {
        ratios[i] = find_ratios(times, i);
        if (is_clearly_better(&ratios[i]))
            best = fmin(best, ratios[i].median);
    }
    for (size_t i = 0; i < PH_AUTOTUNE_NUM_SIZES; i++) {
        if (!is_clearly_better(&ratios[i]) || ratios[i].median > nearly * best)
            continue;
        *ratio_out = ratios[i].median;
        chosen = ph__autotune_size(i);
        if (path == PH_AUTOTUNE_SHARED)
            break;
    }
    return chosen;
}

uint32_t ph__autotune_limit(uint32_t chunk_bytes, uint64_t num_bytes, uint16_t num_cores)
{
    const uint64_t most = num_bytes / ((uint64_t)num_cores * CHUNKS_A_CORE);
    uint32_t limit = LEAST_CHUNK_BYTES;
    while (limit < chunk_bytes && (uint64_t)limit * 2 <= most)
        limit *= 2;
    return limit < chunk_bytes ? limit : chunk_bytes;
}

uint32_t ph__autotune_fit(uint32_t chunk_bytes, uint64_t num_bytes)
{
    const uint64_t most = PH_LAYOUT_MAX_CHUNKS - PH_LAYOUT_MAX_KEYS; /* each key's last chunk may be short */
    while (num_bytes / chunk_bytes > most && chunk_bytes < PH_HUB_MAX_CHUNK_BYTES)
        chunk_bytes *= 2;
    return chunk_bytes;
}

/* ---- a hub's measurements ---- */

/* Returns true if large jobs write results past the caches: tenant.c. */
static bool is_non_temporal(const struct ph__autotune *tuning, enum ph__autotune_path path)
{
    return tuning->results == PH_HUB_RESULTS_NON_TEMPORAL ||
           (tuning->results == PH_HUB_RESULTS_AUTO && path == PH_AUTOTUNE_TCP);
}

static void measure_path(struct ph__autotune *tuning, enum ph__autotune_path path)
{
    struct ph__autotune_times times;
    double ratio;
    const char *name = path == PH_AUTOTUNE_TCP ? "tcp" : "shared memory";
    char *why = tuning->paths[path].why;
    tuning->paths[path].is_measured = true;
    tuning->paths[path].chunk_bytes = PH_AUTOTUNE_DEFAULT_BYTES;
    if (ph__autotune_measure(path, tuning->kernels, is_non_temporal(tuning, path), &patience, &times) !=
        PH_OK) {
        snprintf(why, PH_AUTOTUNE_TEXT_BYTES, "%s could not be measured: %s", name, ph_error_text());
        return;
    }
    const uint32_t chunk_bytes = ph__autotune_choose(&times, path, &ratio);
    tuning->paths[path].chunk_bytes = chunk_bytes;
    if (chunk_bytes == PH_AUTOTUNE_DEFAULT_BYTES)
        snprintf(why, PH_AUTOTUNE_TEXT_BYTES, "over %s no size is clearly better, in %zu rounds", name,
            times.num_rounds);
    else
        snprintf(why, PH_AUTOTUNE_TEXT_BYTES, "over %s %u bytes take %.2f of the time of %u, in %zu rounds",
            name, chunk_bytes, ratio, PH_AUTOTUNE_DEFAULT_BYTES, times.num_rounds);
}

uint32_t ph__autotune_chunk_bytes(struct ph__autotune *tuning, const struct ph__autotune_job *job)
{
    if (job->wanted_bytes > 0)
        return job->wanted_bytes;
    if (tuning->hub_bytes > 0)
        return tuning->hub_bytes;
    if (job->clips || job->is_of_several_hubs)
        return ph__autotune_fit(PH_AUTOTUNE_DEFAULT_BYTES, job->num_bytes);
    if (!tuning->paths[job->path].is_measured)
        measure_path(tuning, job->path);
    const uint32_t chunk_bytes =
        ph__autotune_limit(tuning->paths[job->path].chunk_bytes, job->num_bytes, job->num_cores);
    return ph__autotune_fit(chunk_bytes, job->num_bytes);
}

void ph__autotune_describe(const struct ph__autotune *tuning, const struct ph__autotune_job *job,
    char text_out[PH_AUTOTUNE_TEXT_BYTES])
{
    const char *why = "not measured yet";
    if (job->wanted_bytes > 0)
        why = "set by the job, or kept by its checkpoint";
    else if (tuning->hub_bytes > 0)
        why = "the hub's setting";
    else if (job->is_of_several_hubs)
        why = "the same on all hubs that share the job";
    else if (job->clips)
        why = "the same on every hub, since the results' bits depend on it";
    else if (tuning->paths[job->path].is_measured)
        why = tuning->paths[job->path].why;
    snprintf(text_out, PH_AUTOTUNE_TEXT_BYTES, "%s", why);
}
