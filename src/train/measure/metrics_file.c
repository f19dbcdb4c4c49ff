#include "train/measure/metrics_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/memory/memory.h"

static ph_status append(struct ph__curve *curve, const struct ph_json *line, const char *loss_key)
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

static void take_calibration(struct ph__metrics_file *metrics, const struct ph_json *line)
{
    const char *of = ph__json_as_text(ph__json_get(line, "of"), "");
    if (!ph__calibration_from_json(ph__json_get(line, "bins"), &metrics->calibration))
        return;
    metrics->has_calibration = true;
    snprintf(metrics->calibrated_on, sizeof metrics->calibrated_on, "%s", of);
}

static ph_status take_line(struct ph__metrics_file *metrics, const struct ph_json *line)
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

static ph_status read_lines(struct ph_reader *reader, struct ph__metrics_file *metrics)
{
    for (;;) {
        char *text;
        size_t length;
        struct ph_json *line = NULL;
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
    struct ph_reader *reader;
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
