#include "train/folder/resume_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json_fields.h"
#include "base/text/text_line.h"
#include "phloem/version.h"
#include "serve/model_identity.h"
#include "store/checkpoint_folder.h"
#include "train/job_rows.h"
#include "train/ranks/rank_checkpoint.h"

#define FORMAT "phloem.resume"
#define VERSION "3"
/* Keys of the metadata. VALUES_KEY: the ph__job_values that may not change; files of 0.1.0 lack it. */
#define VALUES_KEY "values"
#define DATA_KEY "data" /* files of older libraries lack it */
#define BAD_ROW_BYTES sizeof((struct ph__bad_rows *)0)->first
#define AT(member) offsetof(struct ph__trainer, member)
#define METRIC(member) offsetof(struct ph__trainer, summary.valid.member)
#define JOB(member) offsetof(struct job, member)

/* The numbers that a training carries from step to step; tensors are in list_tensors. */
static const struct ph__json_field carried_fields[] = {
    /* position */
    {"step", PH_JSON_COUNT, AT(summary.steps), 0},
    {"samples", PH_JSON_COUNT, AT(summary.samples), 0},
    {"skipped_steps", PH_JSON_COUNT, AT(summary.skipped_steps), 0},
    {"updates", PH_JSON_COUNT, AT(num_updates), 0},
    {"epoch", PH_JSON_COUNT, AT(epoch), 0},
    {"is_in_epoch", PH_JSON_BOOL, AT(is_in_epoch), 0},
    {"position", PH_JSON_COUNT, AT(position.words), PH_POSITION_WORDS},
    {"epoch_first_step", PH_JSON_COUNT, AT(epoch_first_step), 0},
    {"steps_per_epoch", PH_JSON_COUNT, AT(steps_per_epoch), 0},
    {"learning_rate", PH_JSON_NUMBER, AT(learning_rate), 0},
    /* the protocol */
    {"evaluated_step", PH_JSON_COUNT, AT(evaluated_step), 0},
    {"has_best", PH_JSON_BOOL, AT(protocol.has_best), 0},
    {"best", PH_JSON_NUMBER, AT(protocol.best), 0},
    {"bad_in_row", PH_JSON_SIGNED, AT(protocol.bad_in_row), 0},
    {"cuts", PH_JSON_NUMBER, AT(protocol.cuts), 0},
    /* the best model */
    {"best_step", PH_JSON_COUNT, AT(best_step), 0},
    {"best_seal", PH_JSON_TEXT, AT(best_seal), sizeof((struct ph__trainer *)0)->best_seal},
    {"best_epoch", PH_JSON_COUNT, AT(summary.best_epoch), 0},
    {"best_samples", PH_JSON_COUNT, METRIC(num_samples), 0},
    {"best_auc", PH_JSON_NUMBER, METRIC(auc), 0},
    {"best_auc_error", PH_JSON_NUMBER, METRIC(auc_error), 0},
    {"best_logloss", PH_JSON_NUMBER, METRIC(logloss), 0},
    {"best_ne", PH_JSON_NUMBER, METRIC(ne), 0},
    {"best_calibration", PH_JSON_NUMBER, METRIC(calibration), 0},
    {"best_grouped_auc", PH_JSON_NUMBER, METRIC(grouped_auc), 0},
    {"best_base_rate", PH_JSON_NUMBER, METRIC(base_rate), 0},
    {"best_accuracy", PH_JSON_LATER, METRIC(accuracy), 0},
    /* progressive validation */
    {"stream_first_row", PH_JSON_COUNT, AT(progressive.first_row), 0},
    {"stream_rows", PH_JSON_SIZE, AT(progressive.num_rows), 0},
    {"stream_count", PH_JSON_SIZE, AT(progressive.count), 0},
    {"stream_samples", PH_JSON_COUNT, AT(progressive.sums.count), 0},
    {"stream_loss", PH_JSON_NUMBER, AT(progressive.sums.loss), 0},
    {"stream_predicted", PH_JSON_NUMBER, AT(progressive.sums.predicted), 0},
    {"stream_positive", PH_JSON_NUMBER, AT(progressive.sums.positive), 0},
    {"stream_auc", PH_JSON_NUMBER, AT(progressive.auc_sum), 0},
    {"stream_auc_samples", PH_JSON_COUNT, AT(progressive.auc_samples), 0},
    /* rows left out */
    {"train_bad_rows", PH_JSON_COUNT, AT(bad_rows.train.count), 0},
    {"first_train_bad_row", PH_JSON_TEXT, AT(bad_rows.train.first), BAD_ROW_BYTES},
    {"valid_bad_rows", PH_JSON_COUNT, AT(bad_rows.valid.count), 0},
    {"first_valid_bad_row", PH_JSON_TEXT, AT(bad_rows.valid.first), BAD_ROW_BYTES},
    /* reports */
    {"tally_loss_sum", PH_JSON_NUMBER, AT(tally.loss_sum), 0},
    {"tally_steps", PH_JSON_COUNT, AT(tally.steps), 0},
    {"tally_samples", PH_JSON_COUNT, AT(tally.samples), 0},
    {"tally_seconds", PH_JSON_NUMBER, AT(tally.seconds), 0},
    {"reported_step", PH_JSON_COUNT, AT(reported_step), 0},
    {"recent_count", PH_JSON_SIZE, AT(recent.count), 0},
    {"recent_next", PH_JSON_SIZE, AT(recent.next), 0},
    {"report_bytes", PH_JSON_COUNT, AT(report_bytes), 0},
    /* measurements */
    {"train_seconds", PH_JSON_NUMBER, AT(summary.train_seconds), 0},
    {"flops_per_sample", PH_JSON_NUMBER, AT(summary.flops_per_sample), 0},
    {"peak_anonymous_bytes", PH_JSON_COUNT, AT(summary.memory.peak_anonymous_bytes), 0},
    {"peak_rss_bytes", PH_JSON_COUNT, AT(summary.peak_rss_bytes), 0},
};

/* The job that the checkpoint belongs to. */
struct job {
    char settings[PH_IDENTITY_BYTES], encoder_sha256[65];
    struct ph__resumed facts;
};

static const struct ph__json_field job_fields[] = {
    {"library", PH_JSON_TEXT, JOB(facts.library), sizeof((struct job *)0)->facts.library},
    {"settings", PH_JSON_TEXT, JOB(settings), sizeof((struct job *)0)->settings},
    {"encoder_sha256", PH_JSON_TEXT, JOB(encoder_sha256), sizeof((struct job *)0)->encoder_sha256},
    {"is_prepared", PH_JSON_BOOL, JOB(facts.is_prepared), 0},
    {"has_valid", PH_JSON_BOOL, JOB(facts.has_valid), 0},
    {"max_steps", PH_JSON_COUNT, JOB(facts.max_steps), 0},
    {"patience", PH_JSON_COUNT, JOB(facts.patience), 0},
    {"max_bad_rows", PH_JSON_COUNT, JOB(facts.max_bad_rows), 0},
};

static struct job describe_job(const struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    struct job described = {.facts = {.max_steps = (uint64_t)job->train->max_steps,
                                .patience = (uint64_t)job->train->patience,
                                .max_bad_rows = job->reading.max_bad_rows,
                                .is_prepared = ph__job_rows_are_prepared(ph__job_train(job)),
                                .has_valid = ph__job_rows_exist(ph__job_valid(job))}};
    snprintf(described.facts.library, sizeof described.facts.library, "%s", ph_version());
    snprintf(described.settings, sizeof described.settings, "%s", trainer->identity);
    snprintf(described.encoder_sha256, sizeof described.encoder_sha256, "%s", trainer->encoder_sha256);
    return described;
}

/* Adds the current progressive window, if it has begun. */
static ph_status list_stream(struct ph__tensor_list *list, const struct ph__progressive *progressive)
{
    const struct ph_shape shape = {.num_dims = 1, .dims = {progressive->count}};
    const struct ph_tensor scores = {
        .name = "stream:scores", .dtype = PH_REAL, .shape = shape, .data = progressive->scores};
    const struct ph_tensor labels = {
        .name = "stream:labels", .dtype = PH_REAL, .shape = shape, .data = progressive->labels};
    if (progressive->count == 0)
        return PH_OK;
    PH_TRY(ph__tensor_list_add(list, &scores));
    return ph__tensor_list_add(list, &labels);
}

static ph_status list_tensors(struct ph__tensor_list *list, const struct ph__trainer *trainer)
{
    const struct ph__recent *recent = &trainer->recent;
    const struct ph_shape shape = {.num_dims = 1, .dims = {recent->count}};
    const struct ph_tensor scores = {
        .name = "recent:scores", .dtype = PH_REAL, .shape = shape, .data = recent->scores};
    const struct ph_tensor labels = {
        .name = "recent:labels", .dtype = PH_REAL, .shape = shape, .data = recent->labels};
    PH_TRY(ph__tensor_list_add_store(list, trainer->store));
    PH_TRY(ph__tensor_list_add_slots(list, trainer->store));
    PH_TRY(ph__tensor_list_add_state(list, trainer->state));
    PH_TRY(ph__tensor_list_add(list, &scores));
    PH_TRY(ph__tensor_list_add(list, &labels));
    return list_stream(list, &trainer->progressive);
}

/* ---- writing ---- */

static ph_status fields_text(
    const struct ph__json_field *fields, size_t num_fields, const void *from, char **text_out)
{
    struct ph__json *object = ph__json_object();
    ph__json_set_fields(object, fields, num_fields, from);
    ph_status status = ph__json_text(object, 0, text_out);
    ph__json_destroy(object);
    return status;
}

static ph_status write_list(const char *path, struct ph__trainer *trainer, struct ph__tensor_list *list)
{
    struct job job = describe_job(trainer);
    char *job_text = NULL, *carried_text = NULL, *data_text = NULL;
    ph_status status = fields_text(job_fields, sizeof job_fields / sizeof *job_fields, &job, &job_text);
    if (status == PH_OK)
        status = fields_text(
            carried_fields, sizeof carried_fields / sizeof *carried_fields, trainer, &carried_text);
    if (status == PH_OK && trainer->data.is_kept)
        status = ph__data_fingerprint_text(&trainer->data, trainer->job, &data_text);
    if (status == PH_OK) {
        const char *const metadata[] = {"format", FORMAT, "version", VERSION, VALUES_KEY, trainer->values,
            "job", job_text, "carried", carried_text, data_text != NULL ? DATA_KEY : NULL, data_text, NULL};
        status = ph__rank_checkpoint_write(&trainer->ranks, path, list, metadata);
    }
    free(job_text);
    free(carried_text);
    free(data_text);
    return status;
}

ph_status ph__resume_file_write(const char *path, struct ph__trainer *trainer)
{
    struct ph__tensor_list list = {0};
    ph_status status = list_tensors(&list, trainer);
    if (status == PH_OK)
        status = write_list(path, trainer, &list);
    ph__tensor_list_fini(&list);
    return status;
}

/* ---- reading ---- */

/* Reads the JSON object of a metadata key into a struct. */
static ph_status read_fields(const char *path, const struct ph__folder *file, const char *key,
    const struct ph__json_field *fields, size_t num_fields, void *to)
{
    const char *text = ph__folder_metadata(file, key);
    struct ph__json *json;
    if (text == NULL)
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: not a checkpoint to resume from: metadata '%s' is missing", path, key);
    PH_TRY(ph__json_parse(text, strlen(text), path, PH_ERROR_CHECKPOINT, &json));
    const char *missing = ph__json_get_fields(json, fields, num_fields, to);
    ph_status status = PH_OK;
    if (missing != NULL)
        status = ph_fail(PH_ERROR_CHECKPOINT, "%s: '%s' of '%s' is missing or invalid", path, missing, key);
    ph__json_destroy(json);
    return status;
}

static ph_status check_format(const char *path, const struct ph__folder *file)
{
    const char *format = ph__folder_metadata(file, "format");
    const char *version = ph__folder_metadata(file, "version");
    if (format == NULL || strcmp(format, FORMAT) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: not a checkpoint to resume from", path);
    if (version == NULL || strcmp(version, VERSION) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: version '%.16s', but this library reads version " VERSION,
            path, version != NULL ? version : "");
    return PH_OK;
}

/* Compares the keys that both texts have; a key in one text alone came or went with a version, a model or
 * ranks. */
static ph_status check_values(const char *path, const char *was, const char *is)
{
    struct ph__text_line before, now;
    while (ph__text_line_next(&was, &before))
        if (ph__text_line_find(is, &before, &now) && !ph__text_line_has_value_of(&now, &before))
            return ph_fail(PH_ERROR_CHECKPOINT,
                "%s: the checkpoint is of a training with %.*s '%.*s', not '%.*s'", path, before.name_length,
                before.name, before.value_length, before.value, now.value_length, now.value);
    return PH_OK;
}

static ph_status check_job(
    const char *path, const struct ph__folder *file, const struct job *was, const struct ph__trainer *is)
{
    const char *values = ph__folder_metadata(file, VALUES_KEY);
    PH_TRY(ph__model_identity_check(path, was->settings, is->identity));
    if (values != NULL)
        PH_TRY(check_values(path, values, is->values));
    if (strcmp(was->encoder_sha256, is->encoder_sha256) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the checkpoint is of a training with another encoder", path);
    return PH_OK;
}

static ph_status read_header(const char *path, const struct ph__folder *file, struct ph__trainer *read)
{
    struct job was;
    PH_TRY(check_format(path, file));
    PH_TRY(read_fields(path, file, "job", job_fields, sizeof job_fields / sizeof *job_fields, &was));
    PH_TRY(check_job(path, file, &was, read));
    PH_TRY(read_fields(
        path, file, "carried", carried_fields, sizeof carried_fields / sizeof *carried_fields, read));
    if (read->recent.count > PH_RECENT_SAMPLES || read->recent.next >= PH_RECENT_SAMPLES)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the checkpoint has more recent samples than fit", path);
    if (read->progressive.num_rows > read->progressive.window_rows ||
        read->progressive.count > read->progressive.num_rows)
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: the checkpoint has more rows than a window of train.progressive", path);
    read->resumed = was.facts;
    return PH_OK;
}

static ph_status read_tensors(const char *path, struct ph__trainer *read)
{
    struct ph__tensor_list list = {0};
    ph_status status = list_tensors(&list, read);
    if (status == PH_OK)
        status = read->ranks.comm != NULL ? ph__rank_checkpoint_read(&read->ranks, path, &list)
                                          : ph__tensor_list_load(&list, path);
    ph__tensor_list_fini(&list);
    return status;
}

static ph_status open_and_read_header(const char *path, struct ph__trainer *read)
{
    struct ph__folder *file;
    PH_TRY(ph__folder_open_metadata(path, &file));
    const ph_status status = read_header(path, file, read);
    ph__folder_close(file);
    return status;
}

ph_status ph__resume_file_read(const char *path, struct ph__trainer *trainer)
{
    struct ph__trainer read = *trainer;
    PH_TRY(ph__ranks_share(&trainer->ranks, open_and_read_header(path, &read)));
    PH_TRY(read_tensors(path, &read)); /* checks the seal, which covers the header, too */
    ph_store_touch(trainer->store);
    ph_state_touch(trainer->state);
    *trainer = read;
    return PH_OK;
}

ph_status ph__resume_file_best_step(const char *path, uint64_t *step_out)
{
    static const struct ph__json_field field = {"best_step", PH_JSON_COUNT, 0, 0};
    struct ph__folder *file;
    PH_TRY(ph__folder_open_metadata(path, &file));
    ph_status status = read_fields(path, file, "carried", &field, 1, step_out);
    ph__folder_close(file);
    return status;
}

ph_status ph__resume_file_data(const char *path, struct ph__arena *arena, const char **text_out)
{
    struct ph__folder *file;
    PH_TRY(ph__folder_open_metadata(path, &file));
    const char *text = ph__folder_metadata(file, DATA_KEY);
    *text_out = text != NULL ? ph__arena_strdup(arena, text) : NULL;
    const ph_status status = text == NULL || *text_out != NULL ? PH_OK : (ph_status)PH_ERROR_MEMORY;
    ph__folder_close(file);
    return status;
}
