#include "train/folder/metrics_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/memory/memory.h"
#include "train/folder/summary.h"

/* ---- writing ---- */

static ph_status cannot_write(const struct ph__metrics_log *metrics_log)
{
    return ph_fail(PH_ERROR_DISK, "%s: cannot write: %s", metrics_log->path, strerror(errno));
}

static ph_status cut(const struct ph__metrics_log *metrics_log, uint64_t kept_bytes)
{
    struct stat status;
    if (fstat(fileno(metrics_log->file), &status) != 0)
        return cannot_write(metrics_log);
    if ((uint64_t)status.st_size > kept_bytes && ftruncate(fileno(metrics_log->file), (off_t)kept_bytes) != 0)
        return cannot_write(metrics_log);
    return PH_OK;
}

ph_status ph__metrics_log_open(const char *folder, struct ph__event_place place, bool has_events,
    struct ph__metrics_log *metrics_log_out)
{
    struct ph__metrics_log metrics_log = {0};
    snprintf(metrics_log.path, sizeof metrics_log.path, "%s/metrics.jsonl", folder);
    metrics_log.file = fopen(metrics_log.path, "ab");
    if (metrics_log.file == NULL)
        return cannot_write(&metrics_log);
    ph_status status = cut(&metrics_log, place.metrics_bytes);
    if (status == PH_OK)
        status = ph__event_files_cut(folder, place.metrics_bytes);
    if (status == PH_OK && has_events)
        status = ph__event_file_open(folder, place, &metrics_log.events);
    if (status == PH_OK)
        *metrics_log_out = metrics_log;
    else
        ph__metrics_log_close(&metrics_log);
    return status;
}

ph_status ph__metrics_log_sync(struct ph__metrics_log *metrics_log, uint64_t *bytes_out)
{
    struct stat status;
    if (fflush(metrics_log->file) != 0 || fsync(fileno(metrics_log->file)) != 0 ||
        fstat(fileno(metrics_log->file), &status) != 0)
        return cannot_write(metrics_log);
    *bytes_out = (uint64_t)status.st_size;
    return PH_OK;
}

void ph__metrics_log_close(struct ph__metrics_log *metrics_log)
{
    if (metrics_log->file != NULL)
        fclose(metrics_log->file);
    metrics_log->file = NULL;
    ph__event_file_close(&metrics_log->events);
}

/* Writes the object as one line and hands the line to the kernel at once. Takes ownership of the object. */
static ph_status write_line(struct ph__metrics_log *metrics_log, struct ph__json *object)
{
    char *text = NULL;
    if (metrics_log->file == NULL) {
        ph__json_destroy(object);
        return PH_OK;
    }
    ph_status status = ph__json_text(object, 0, &text);
    ph__json_destroy(object);
    if (status == PH_OK && (fprintf(metrics_log->file, "%s\n", text) < 0 || fflush(metrics_log->file) != 0))
        status = cannot_write(metrics_log);
    free(text);
    return status;
}

/* Returns the event place of the line that was written last. */
static struct ph__event_place place_of(const struct ph__metrics_log *metrics_log, uint64_t step)
{
    return (struct ph__event_place){
        step, metrics_log->file != NULL ? (uint64_t)ftello(metrics_log->file) : 0};
}

static struct ph__json *line_object(const char *event, uint64_t epoch, uint64_t step)
{
    struct ph__json *object = ph__json_object();
    ph__json_set_text(object, "event", event);
    ph__json_set_integer(object, "epoch", (int64_t)epoch);
    ph__json_set_integer(object, "step", (int64_t)step);
    return object;
}

ph_status ph__metrics_log_progress(
    struct ph__metrics_log *metrics_log, const struct ph_train_progress *progress)
{
    struct ph__json *object = line_object("train", progress->epoch, progress->step);
    ph__json_set_number(object, "loss", progress->loss);
    ph__json_set_number(object, "auc", progress->auc);
    ph__json_set_number(object, "learning_rate", progress->learning_rate);
    ph__json_set_number(object, "samples_per_s", progress->samples_per_s);
    PH_TRY(write_line(metrics_log, object));
    const struct ph__scalar scalars[] = {{"train/loss", progress->loss}, {"train/auc", progress->auc},
        {"train/learning_rate", progress->learning_rate}, {"train/samples_per_s", progress->samples_per_s}};
    return ph__event_file_write(&metrics_log->events, place_of(metrics_log, progress->step), scalars,
        sizeof scalars / sizeof *scalars);
}

static ph_status write_metric_events(
    struct ph__metrics_log *metrics_log, const char *what, uint64_t step, const struct ph_metrics *metrics)
{
    const struct {
        const char *name;
        double number;
    } numbers[] = {{"auc", metrics->auc}, {"logloss", metrics->logloss}, {"ne", metrics->ne},
        {"calibration", metrics->calibration}, {"accuracy", metrics->accuracy}};
    char tags[sizeof numbers / sizeof *numbers][64];
    struct ph__scalar scalars[sizeof numbers / sizeof *numbers];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(tags[i], sizeof tags[i], "%s/%s", what, numbers[i].name);
        scalars[i] = (struct ph__scalar){tags[i], numbers[i].number};
    }
    return ph__event_file_write(
        &metrics_log->events, place_of(metrics_log, step), scalars, sizeof scalars / sizeof *scalars);
}

ph_status ph__metrics_log_evaluation(struct ph__metrics_log *metrics_log, const char *what, uint64_t epoch,
    uint64_t step, const struct ph_metrics *metrics)
{
    struct ph__json *object = line_object(what, epoch, step);
    ph__metrics_set(object, metrics);
    PH_TRY(write_line(metrics_log, object));
    return write_metric_events(metrics_log, what, step, metrics);
}

ph_status ph__metrics_log_calibration(struct ph__metrics_log *metrics_log, const char *what, uint64_t epoch,
    uint64_t step, const struct ph__calibration *calibration)
{
    struct ph__json *object = line_object("calibration", epoch, step);
    ph__json_set_text(object, "of", what);
    ph__json_set(object, "bins", ph__calibration_json(calibration));
    return write_line(metrics_log, object);
}

ph_status ph__metrics_log_window(struct ph__metrics_log *metrics_log, uint64_t epoch, uint64_t step,
    const struct ph__progressive_window *window)
{
    struct ph__json *object = line_object("progressive", epoch, step);
    ph__json_set_integer(object, "first_row", (int64_t)window->first_row);
    ph__json_set_integer(object, "rows", (int64_t)window->num_rows);
    ph__metrics_set(object, &window->metrics);
    PH_TRY(write_line(metrics_log, object));
    return write_metric_events(metrics_log, "progressive", step, &window->metrics);
}

/* ---- reading ---- */

static ph_status append(struct ph__curve *curve, const struct ph__json *line, const char *loss_key)
{
    const char *const keys[PH_CURVE_COLUMNS] = {[PH_CURVE_STEP] = "step",
        [PH_CURVE_EPOCH] = "epoch",
        [PH_CURVE_LOSS] = loss_key,
        [PH_CURVE_AUC] = "auc",
        [PH_CURVE_NE] = "ne",
        [PH_CURVE_CALIBRATION] = "calibration",
        [PH_CURVE_LEARNING_RATE] = "learning_rate",
        [PH_CURVE_SAMPLES_PER_S] = "samples_per_s"};
    for (size_t k = 0; k < PH_CURVE_COLUMNS; k++) {
        PH_TRY(ph__array_reserve(
            (void **)&curve->columns[k], &curve->capacities[k], curve->count + 1, sizeof *curve->columns[k]));
        curve->columns[k][curve->count] = ph__json_as_number(ph__json_get(line, keys[k]), (double)NAN);
    }
    curve->count++;
    return PH_OK;
}

static void take_calibration(struct ph__metrics_file *metrics, const struct ph__json *line)
{
    const char *of = ph__json_as_text(ph__json_get(line, "of"), "");
    if (!ph__calibration_from_json(ph__json_get(line, "bins"), &metrics->calibration))
        return;
    metrics->has_calibration = true;
    snprintf(metrics->calibrated_on, sizeof metrics->calibrated_on, "%s", of);
}

static ph_status take_line(struct ph__metrics_file *metrics, const struct ph__json *line)
{
    const char *event = ph__json_as_text(ph__json_get(line, "event"), "");
    if (strcmp(event, "train") == 0)
        return append(&metrics->train, line, "loss");
    if (strcmp(event, "valid") == 0)
        return append(&metrics->valid, line, "logloss");
    if (strcmp(event, "test") == 0)
        return append(&metrics->test, line, "logloss");
    if (strcmp(event, "progressive") == 0)
        return append(&metrics->progressive, line, "logloss");
    if (strcmp(event, "calibration") == 0)
        take_calibration(metrics, line);
    return PH_OK;
}

static ph_status read_lines(struct ph__reader *reader, struct ph__metrics_file *metrics)
{
    for (;;) {
        char *text;
        size_t length;
        struct ph__json *line = NULL;
        PH_TRY(ph__reader_line(reader, &text, &length));
        if (text == NULL)
            return PH_OK;
        ph_status status = ph__json_parse(text, length, "metrics.jsonl", PH_ERROR_DATA, &line);
        if (status == PH_OK) {
            status = take_line(metrics, line);
            ph__json_destroy(line);
        }
        if (status != PH_OK && status != PH_ERROR_DATA)
            return status;
    }
}

ph_status ph__metrics_file_read(const char *path, struct ph__metrics_file *metrics_out)
{
    struct ph__metrics_file metrics = {0};
    struct ph__reader *reader;
    if (!ph__file_exists(path)) {
        *metrics_out = metrics;
        return PH_OK;
    }
    PH_TRY(ph__reader_open(path, &reader));
    ph_status status = read_lines(reader, &metrics);
    ph__reader_close(reader);
    if (status == PH_OK)
        *metrics_out = metrics;
    else
        ph__metrics_file_fini(&metrics);
    return status;
}

static void curve_fini(struct ph__curve *curve)
{
    for (size_t k = 0; k < PH_CURVE_COLUMNS; k++)
        free(curve->columns[k]);
}

void ph__metrics_file_fini(struct ph__metrics_file *metrics)
{
    curve_fini(&metrics->train);
    curve_fini(&metrics->valid);
    curve_fini(&metrics->test);
    curve_fini(&metrics->progressive);
    *metrics = (struct ph__metrics_file){0};
}
