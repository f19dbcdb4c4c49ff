#include "train/folder/data_fingerprint.h"

#include <inttypes.h>
#include <string.h>

#include "base/thread/stop.h"
#include "data/encode/encoder.h"

static ph_status look(
    struct ph__fingerprint *fingerprint, const struct ph__train_job *job, struct ph__rows_origin rows)
{
    if (rows.path == NULL || rows.dataset != NULL)
        return PH_OK;
    const struct ph__input_beside beside = ph__input_beside(job->encoder->format, &job->encoder->graph);
    return ph__fingerprint_look(fingerprint, rows.path, &beside);
}

ph_status ph__data_fingerprint_begin(
    struct ph__data_fingerprint *fingerprint, const struct ph__train_job *job)
{
    *fingerprint = (struct ph__data_fingerprint){.is_kept = true};
    PH_TRY(look(&fingerprint->train, job, ph__job_train(job)));
    return look(&fingerprint->valid, job, ph__job_valid(job));
}

void ph__data_fingerprint_fini(struct ph__data_fingerprint *fingerprint)
{
    ph__fingerprint_fini(&fingerprint->train);
    ph__fingerprint_fini(&fingerprint->valid);
    *fingerprint = (struct ph__data_fingerprint){.is_kept = false};
}

struct ph__rows_origin ph__data_fingerprint_train(
    struct ph__data_fingerprint *fingerprint, const struct ph__train_job *job)
{
    struct ph__rows_origin rows = ph__job_train(job);
    rows.fingerprint = fingerprint->is_kept ? &fingerprint->train : NULL;
    return rows;
}

struct ph__rows_origin ph__data_fingerprint_valid(
    struct ph__data_fingerprint *fingerprint, const struct ph__train_job *job)
{
    struct ph__rows_origin rows = ph__job_valid(job);
    rows.fingerprint = fingerprint->is_kept ? &fingerprint->valid : NULL;
    return rows;
}

/* ---- saving ---- */

/* Sets an array for files, an object for a dataset, and null for a pipe and for missing data. */
static void set_rows(struct ph__json *json, const char *key, struct ph__rows_origin rows,
    const struct ph__fingerprint *fingerprint, const struct ph__read_place *place)
{
    if (rows.dataset != NULL) {
        struct ph__json *dataset = ph__json_object();
        ph__json_set_integer(dataset, "rows", (int64_t)ph_dataset_num_rows(rows.dataset));
        ph__json_set(json, key, dataset);
    } else if (fingerprint->num_files > 0) {
        ph__json_set(json, key, ph__fingerprint_json(fingerprint, place));
    } else {
        ph__json_set_null(json, key);
    }
}

ph_status ph__data_fingerprint_text(
    struct ph__data_fingerprint *fingerprint, const struct ph__train_job *job, char **text_out)
{
    struct ph__read_place valid_place;
    struct ph__json *json = ph__json_object();
    ph__fingerprint_tell(&fingerprint->valid, &valid_place);
    set_rows(json, "train", ph__job_train(job), &fingerprint->train, &fingerprint->train_place);
    set_rows(json, "valid", ph__job_valid(job), &fingerprint->valid, &valid_place);
    const ph_status status = ph__json_text(json, 0, text_out);
    ph__json_destroy(json);
    return status;
}

/* ---- resuming ---- */

/* Context of a comparison that reads data again and may be stopped by a signal. */
struct reading {
    const struct ph__train_job *job;
    const struct ph__meanwhile *meanwhile;
};

static ph_status go_on(void *context)
{
    const struct reading *reading = context;
    const volatile int *stop_signal = reading->job->options.stop_signal;
    if (!ph__is_stopped(stop_signal))
        return ph__meanwhile(reading->meanwhile);
    return ph_fail(ph__stop_status(stop_signal), "stopped by a signal before the first step, while the data "
                                                 "were compared: the checkpoint is unchanged");
}

static ph_status compare_rows(const struct ph__json *saved, struct ph__rows_origin rows,
    struct ph__fingerprint *fingerprint, const struct ph__meanwhile *meanwhile)
{
    if (rows.dataset != NULL && ph__json_is_object(saved)) {
        const uint64_t before = (uint64_t)ph__json_as_integer(ph__json_get(saved, "rows"), 0);
        const uint64_t now = ph_dataset_num_rows(rows.dataset);
        return before == now || before == 0 || now == 0 /* unknown, of streams */
                   ? PH_OK
                   : ph_fail(PH_ERROR_DATA,
                         "the dataset had %" PRIu64 " rows when the training began, and has %" PRIu64 " now",
                         before, now);
    }
    if (fingerprint->num_files == 0 || !ph__json_is_array(saved))
        return PH_OK;
    PH_TRY(ph__fingerprint_compare(fingerprint, saved, rows.path));
    return ph__fingerprint_check(fingerprint, meanwhile);
}

static ph_status compare(struct ph__data_fingerprint *fingerprint, const struct ph__train_job *job,
    const struct ph__json *saved, const struct ph__meanwhile *meanwhile)
{
    const struct reading reading = {job, meanwhile};
    const struct ph__meanwhile going_on = {go_on, (void *)&reading};
    PH_TRY(compare_rows(ph__json_get(saved, "train"), ph__job_train(job), &fingerprint->train, &going_on));
    PH_TRY(compare_rows(ph__json_get(saved, "valid"), ph__job_valid(job), &fingerprint->valid, &going_on));
    ph__fingerprint_tell(&fingerprint->train, &fingerprint->train_place);
    return PH_OK;
}

ph_status ph__data_fingerprint_resume(struct ph__data_fingerprint *fingerprint,
    const struct ph__train_job *job, const char *text, const char *path,
    const struct ph__meanwhile *meanwhile)
{
    struct ph__json *saved;
    PH_TRY(ph__json_parse(text, strlen(text), path, PH_ERROR_CHECKPOINT, &saved));
    const ph_status status = compare(fingerprint, job, saved, meanwhile);
    ph__json_destroy(saved);
    if (status != PH_ERROR_DATA)
        return status;
    return ph_fail(PH_ERROR_DATA,
        "%s; a training resumes with the data that it began with: put them back, or begin a new training "
        "with another --out",
        ph_error_text());
}
