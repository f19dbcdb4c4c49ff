/* Statistics that a process gathers, beside metrics.jsonl, for the report at its end (run_report.h). A
 * zero-initialised struct gathers nothing: that is the case where train.report is off. */
#ifndef PH_TRAIN_RUN_STATISTICS_H
#define PH_TRAIN_RUN_STATISTICS_H

#include "train/measure/evaluate.h"

struct ph__run_statistics {
    bool is_on;
    struct ph__id_coverage coverage;
    struct ph__id_counts *valid_ids, *test_ids; /* (F) of the latest evaluation */
    struct ph__calibration calibration;         /* of the latest evaluation */
    uint64_t taken_steps;                       /* by this process */
    uint64_t profiled_steps;                    /* those of them that the executor's profile adds up */
};

/* features: borrowed until fini. PH_ERROR_MEMORY. */
ph_status ph__run_statistics_init(
    const struct ph_model_features *features, struct ph__run_statistics *statistics_out);
void ph__run_statistics_fini(struct ph__run_statistics *statistics);

/* Returns true when the next step is to be profiled by operator: not the first step, which finds caches cold
 * and memory untouched; then some in a row, so that a short training has some; then one of many. */
bool ph__run_statistics_profiles_next(const struct ph__run_statistics *statistics);
/* Counts a step that was taken on this batch. Allocates nothing. */
void ph__run_statistics_step(
    struct ph__run_statistics *statistics, const struct ph_batch *batch, bool is_profiled);

/* Notes that a whole pass over the training data has been learnt from. negative_rate: as in struct
 * ph__train_job; when it leaves rows out, the next pass has other rows, and the coverage of ids stays open.
 */
void ph__run_statistics_pass(struct ph__run_statistics *statistics, double negative_rate);

/* Return the details that ph__scorer_evaluate gathers on data.valid and data.test. */
struct ph__evaluation_details ph__run_statistics_valid(struct ph__run_statistics *statistics);
struct ph__evaluation_details ph__run_statistics_test(struct ph__run_statistics *statistics);

#endif
