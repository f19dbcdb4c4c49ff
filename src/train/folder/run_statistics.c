#include "train/folder/run_statistics.h"

#include <stdlib.h>

#include "base/memory/memory.h"

#define PROFILED_AT_FIRST 16 /* steps after the very first one */
#define PROFILE_STRIDE 64    /* later, one step in so many */

ph_status ph__run_statistics_init(
    const struct ph_model_features *features, struct ph__run_statistics *statistics_out)
{
    struct ph__run_statistics statistics = {
        .is_on = true,
        .valid_ids = calloc(features->num_sparse + 1, sizeof *statistics.valid_ids),
        .test_ids = calloc(features->num_sparse + 1, sizeof *statistics.test_ids),
    };
    ph_status status = PH_OK;
    if (statistics.valid_ids == NULL || statistics.test_ids == NULL)
        status = ph__out_of_memory("cannot count the ids of %zu features", features->num_sparse);
    if (status == PH_OK)
        status = ph__id_coverage_init(features, PH_COVERAGE_BYTES, PH_COVERAGE_IDS, &statistics.coverage);
    if (status == PH_OK)
        *statistics_out = statistics;
    else
        ph__run_statistics_fini(&statistics);
    return status;
}

void ph__run_statistics_fini(struct ph__run_statistics *statistics)
{
    ph__id_coverage_fini(&statistics->coverage);
    free(statistics->valid_ids);
    free(statistics->test_ids);
    *statistics = (struct ph__run_statistics){0};
}

bool ph__run_statistics_profiles_next(const struct ph__run_statistics *statistics)
{
    uint64_t taken = statistics->taken_steps;
    return statistics->is_on && taken > 0 && (taken <= PROFILED_AT_FIRST || taken % PROFILE_STRIDE == 0);
}

void ph__run_statistics_step(
    struct ph__run_statistics *statistics, const struct ph_batch *batch, bool is_profiled)
{
    statistics->taken_steps++;
    statistics->profiled_steps += is_profiled;
    ph__id_coverage_learn(&statistics->coverage, batch);
}

void ph__run_statistics_pass(struct ph__run_statistics *statistics, double negative_rate)
{
    bool is_sampled = negative_rate > 0 && negative_rate < 1;
    if (!is_sampled)
        ph__id_coverage_end_pass(&statistics->coverage);
}

static struct ph__evaluation_details details_of(
    struct ph__run_statistics *statistics, struct ph__id_counts *counts)
{
    if (!statistics->is_on)
        return (struct ph__evaluation_details){0};
    return (struct ph__evaluation_details){&statistics->calibration, &statistics->coverage, counts};
}

struct ph__evaluation_details ph__run_statistics_valid(struct ph__run_statistics *statistics)
{
    return details_of(statistics, statistics->valid_ids);
}

struct ph__evaluation_details ph__run_statistics_test(struct ph__run_statistics *statistics)
{
    return details_of(statistics, statistics->test_ids);
}
