#include "train/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train/summary.h"

static ph_status cannot_write(const struct ph__report *report)
{
    return ph_fail(PH_ERROR_DISK, "%s: cannot be written: %s", report->path, strerror(errno));
}

static ph_status cut(const struct ph__report *report, uint64_t kept_bytes)
{
    struct stat status;
    if (fstat(fileno(report->file), &status) != 0)
        return cannot_write(report);
    if ((uint64_t)status.st_size > kept_bytes && ftruncate(fileno(report->file), (off_t)kept_bytes) != 0)
        return cannot_write(report);
    return PH_OK;
}

ph_status ph__report_open(const char *folder, uint64_t kept_bytes, struct ph__report *report_out)
{
    struct ph__report report = {0};
    snprintf(report.path, sizeof report.path, "%s/metrics.jsonl", folder);
    report.file = fopen(report.path, "ab");
    if (report.file == NULL)
        return cannot_write(&report);
    ph_status status = cut(&report, kept_bytes);
    if (status == PH_OK)
        *report_out = report;
    else
        ph__report_close(&report);
    return status;
}

ph_status ph__report_sync(struct ph__report *report, uint64_t *bytes_out)
{
    struct stat status;
    if (fflush(report->file) != 0 || fsync(fileno(report->file)) != 0 ||
        fstat(fileno(report->file), &status) != 0)
        return cannot_write(report);
    *bytes_out = (uint64_t)status.st_size;
    return PH_OK;
}

void ph__report_close(struct ph__report *report)
{
    if (report->file != NULL)
        fclose(report->file);
    report->file = NULL;
}

/* Takes the object; one line, at once on its way to the disk. */
static ph_status write_line(struct ph__report *report, struct ph_json *object)
{
    char *text = NULL;
    ph_status status = ph__json_text(object, 0, &text);
    ph__json_destroy(object);
    if (status == PH_OK && (fprintf(report->file, "%s\n", text) < 0 || fflush(report->file) != 0))
        status = cannot_write(report);
    free(text);
    return status;
}

static struct ph_json *line_object(const char *event, uint64_t epoch, uint64_t step)
{
    struct ph_json *object = ph__json_object();
    ph__json_set_text(object, "event", event);
    ph__json_set_integer(object, "epoch", (int64_t)epoch);
    ph__json_set_integer(object, "step", (int64_t)step);
    return object;
}

ph_status ph__report_progress(struct ph__report *report, const struct ph_train_progress *progress)
{
    struct ph_json *object = line_object("train", progress->epoch, progress->step);
    ph__json_set_number(object, "loss", progress->loss);
    ph__json_set_number(object, "auc", progress->auc);
    ph__json_set_number(object, "learning_rate", progress->learning_rate);
    ph__json_set_number(object, "samples_per_s", progress->samples_per_s);
    return write_line(report, object);
}

ph_status ph__report_metrics(struct ph__report *report, const char *what, uint64_t epoch, uint64_t step,
    const struct ph_metrics *metrics)
{
    struct ph_json *object = line_object(what, epoch, step);
    ph__metrics_set(object, metrics);
    return write_line(report, object);
}

ph_status ph__report_window(
    struct ph__report *report, uint64_t epoch, uint64_t step, const struct ph__progressive_window *window)
{
    struct ph_json *object = line_object("progressive", epoch, step);
    ph__json_set_integer(object, "first_row", (int64_t)window->first_row);
    ph__json_set_integer(object, "rows", (int64_t)window->num_rows);
    ph__metrics_set(object, &window->metrics);
    return write_line(report, object);
}
