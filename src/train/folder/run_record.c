#include "train/folder/run_record.h"

#include <stdlib.h>

#define PROFILED_AT_FIRST 16 /* steps, the first one apart */
#define PROFILE_STRIDE 64    /* of those behind */

ph_status ph__run_record_init(const struct ph_model_features *features, struct ph__run_record *record_out)
{
    struct ph__run_record record = {
        .is_on = true,
        .valid_ids = calloc(features->num_sparse + 1, sizeof *record.valid_ids),
        .test_ids = calloc(features->num_sparse + 1, sizeof *record.test_ids),
    };
    ph_status status = PH_OK;
    if (record.valid_ids == NULL || record.test_ids == NULL)
        status = ph_fail(PH_ERROR_MEMORY, "no memory to count the ids of %zu features", features->num_sparse);
    if (status == PH_OK)
        status = ph__id_coverage_init(features, PH_COVERAGE_BYTES, PH_COVERAGE_IDS, &record.coverage);
    if (status == PH_OK)
        *record_out = record;
    else
        ph__run_record_fini(&record);
    return status;
}

void ph__run_record_fini(struct ph__run_record *record)
{
    ph__id_coverage_fini(&record->coverage);
    free(record->valid_ids);
    free(record->test_ids);
    *record = (struct ph__run_record){0};
}

bool ph__run_record_profiles_next(const struct ph__run_record *record)
{
    uint64_t taken = record->taken_steps;
    return record->is_on && taken > 0 && (taken <= PROFILED_AT_FIRST || taken % PROFILE_STRIDE == 0);
}

void ph__run_record_step(struct ph__run_record *record, const struct ph_batch *batch, bool is_profiled)
{
    record->taken_steps++;
    record->profiled_steps += is_profiled;
    ph__id_coverage_learn(&record->coverage, batch);
}

void ph__run_record_pass(struct ph__run_record *record, double negative_rate)
{
    bool is_sampled = negative_rate > 0 && negative_rate < 1;
    if (!is_sampled)
        ph__id_coverage_end_pass(&record->coverage);
}

static struct ph__evaluation_details details_of(struct ph__run_record *record, struct ph__id_counts *counts)
{
    if (!record->is_on)
        return (struct ph__evaluation_details){0};
    return (struct ph__evaluation_details){&record->calibration, &record->coverage, counts};
}

struct ph__evaluation_details ph__run_record_valid(struct ph__run_record *record)
{
    return details_of(record, record->valid_ids);
}

struct ph__evaluation_details ph__run_record_test(struct ph__run_record *record)
{
    return details_of(record, record->test_ids);
}
