/* The two passes of a preparation over the tasks of its plan: the first, where an encoder learns from the
 * training data, in parallel, within a bound of memory, and taken up again after a crash; and the second,
 * which reads the rows of a file, or of a piece of it, and writes them as parts. */
#ifndef PH_DATA_PREPARE_PASSES_H
#define PH_DATA_PREPARE_PASSES_H

#include "data/prepared/part_file.h"
#include "data/prepared/prepare_plan.h"
#include "data/prepared/prepare_tasks.h"
#include "data/prepared/prepared_manifest.h"

/* ---- learning ---- */

/* Completes an encoder that was outlined from the settings, by the plan's tasks of the training split. What
 * is learnt of a part is kept in `folder`, for this plan alone, until the caller removes it by
 * ph__prepare_learn_clean. The encoder is what ph_encoder_create would have made, to the bit. */
ph_status ph__prepare_learn(const struct ph_data_settings *settings, const struct ph__prepare_plan *plan,
    const char *folder, const struct ph_prepare_options *options, struct ph_encoder *encoder);

/* Removes the folder with what is in it; nothing happens when it is not there. */
ph_status ph__prepare_learn_clean(const char *folder);

/* ---- making parts ---- */

/* What all tasks of a preparation share: read alone. */
struct ph__prepare_context {
    const struct ph_encoder *encoder;
    struct ph__row_layout layout;
    unsigned char digest[PH_ENCODER_DIGEST_BYTES];
    const char *folder;
    struct ph_prepare_settings cut;
    uint64_t max_bad_rows;
    bool may_resume;         /* parts that are there and fit are kept */
    struct ph__tasks *tasks; /* to which the task belongs */
};

/* What a task has made. */
struct ph__prepare_result {
    struct ph__manifest_part *parts;      /* in the order of the rows */
    size_t num_parts, capacity, num_kept; /* kept: of those, they were there */
    uint64_t num_text_bytes, num_lines, num_rows, num_bad_rows;
    uint64_t first_bad_line;                 /* among the task's lines */
    char first_bad_reason[512];              /* "": no row was bad, or its part was kept */
    bool has_kept_bad;                       /* its part was kept */
    uint64_t kept_bad_begin, kept_bad_lines; /* where that part begins, and the task's lines before it */
};

/* `rows` is memory that a thread keeps from task to task. The result is to be fini'ed also on failure.
 * PH_ERROR_INTERRUPTED when the tasks are stopped: parts that are finished stay, of the others nothing is
 * left. */
ph_status ph__prepare_task(const struct ph__prepare_context *context, const struct ph__prepare_task *task,
    size_t number, struct ph__rows *rows, struct ph__prepare_result *result);
void ph__prepare_result_fini(struct ph__prepare_result *result);

#endif
