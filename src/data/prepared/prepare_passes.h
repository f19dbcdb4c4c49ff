/* The two passes of a preparation over the tasks of its plan (called by prepare.c). In the first an encoder
 * learns from the training data, in parallel, within a bound of memory, and resumed after a crash. The second
 * reads the rows of a file, or of a piece of it, and writes them as parts. */
#ifndef PH_DATA_PREPARE_PASSES_H
#define PH_DATA_PREPARE_PASSES_H

#include "data/prepared/part_file.h"
#include "data/prepared/prepare_plan.h"
#include "data/prepared/prepare_tasks.h"
#include "data/prepared/prepared_manifest.h"

/* ---- learning ---- */

/* Completes an encoder that was outlined from the settings, by the plan's tasks of the training split.
 * Results of the parts are kept in `folder`, for this plan alone, until the caller removes it by
 * ph__prepare_learn_clean. The encoder is the one that ph_encoder_create would make, bit for bit. */
ph_status ph__prepare_learn(const struct ph_data_settings *settings, const struct ph__prepare_plan *plan,
    const char *folder, const struct ph_prepare_options *options, struct ph_encoder *encoder);

/* Removes the folder and the files in it; does nothing when there is no folder. */
ph_status ph__prepare_learn_clean(const char *folder);

/* ---- making parts ---- */

/* State that all tasks of a preparation share; they only read it. */
struct ph__prepare_context {
    const struct ph_encoder *encoder;
    struct ph__row_layout layout;
    unsigned char digest[PH_ENCODER_DIGEST_BYTES];
    const char *folder;
    struct ph_prepare_settings cut;
    uint64_t max_bad_rows;
    bool may_resume;         /* true: parts that are there and fit are kept */
    struct ph__tasks *tasks; /* tasks that the preparation runs */
};

/* Parts that a task has made, and its totals. */
struct ph__prepare_result {
    struct ph__manifest_part *parts;      /* in the order of the rows */
    size_t num_parts, capacity, num_kept; /* num_kept: parts that were there before */
    uint64_t num_text_bytes, num_lines, num_rows, num_bad_rows;
    uint64_t first_bad_line;                 /* number of the line among the task's lines */
    char first_bad_reason[512];              /* "": no bad row, or its part was kept */
    bool has_kept_bad;                       /* true: a kept part has bad rows */
    uint64_t kept_bad_begin, kept_bad_lines; /* that part's start, and the task's lines before it */
};

/* Runs task `number` of a preparation. `rows` is memory that a thread keeps from task to task. Free the
 * result also on failure. PH_ERROR_INTERRUPTED when the tasks are stopped: finished parts stay, unfinished
 * ones are removed. */
ph_status ph__prepare_task(const struct ph__prepare_context *context, const struct ph__prepare_task *task,
    size_t number, struct ph__rows *rows, struct ph__prepare_result *result);
void ph__prepare_result_fini(struct ph__prepare_result *result);

#endif
