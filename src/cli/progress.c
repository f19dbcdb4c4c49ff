#include "cli/progress.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "base/thread/clock.h"

struct cli_progress cli_progress_on(FILE *file)
{
    return (struct cli_progress){.file = file, .is_live = isatty(fileno(file)) == 1};
}

static void format_time(double seconds, char *text, size_t size)
{
    if (!isfinite(seconds)) {
        snprintf(text, size, "-");
        return;
    }
    uint64_t whole = (uint64_t)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(
            text, size, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(text, size, "%" PRIu64 ":%02" PRIu64, whole / 60, whole % 60);
}

static void format_number(double number, char *text, size_t size)
{
    if (isnan(number))
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%.4f", number);
}

static void format_step(uint64_t step, uint64_t total_steps, char *text, size_t size)
{
    if (total_steps > 0)
        snprintf(text, size, "%" PRIu64 "/%" PRIu64, step, total_steps);
    else
        snprintf(text, size, "%" PRIu64, step);
}

static void format_evaluation(const struct ph_train_progress *progress, char *line, size_t size)
{
    const struct ph_metrics *valid = progress->valid;
    char auc[32], logloss[32];
    const bool is_classes = !isnan(valid->accuracy);
    format_number(is_classes ? valid->accuracy : valid->auc, auc, sizeof auc);
    format_number(valid->logloss, logloss, sizeof logloss);
    snprintf(line, size, "epoch %" PRIu64 "/%" PRIu64 "  step %" PRIu64 "  valid %s %s  logloss %s%s",
        progress->epoch, progress->epochs, progress->step, is_classes ? "accuracy" : "auc", auc, logloss,
        progress->is_best ? "  (best so far)" : "");
}

void cli_progress_format(const struct ph_train_progress *progress, char *line, size_t size)
{
    if (progress->valid != NULL) {
        format_evaluation(progress, line, size);
        return;
    }
    char step[64], loss[32], auc[32], left[32];
    format_step(progress->step, progress->total_steps, step, sizeof step);
    format_number(progress->loss, loss, sizeof loss);
    format_number(progress->auc, auc, sizeof auc);
    format_time(progress->seconds_left, left, sizeof left);
    snprintf(line, size, "epoch %" PRIu64 "/%" PRIu64 "  step %s  %.0f samples/s  loss %s  auc%s %s  left %s",
        progress->epoch, progress->epochs, step, progress->samples_per_s, loss,
        progress->num_ranks > 1 ? " of rank 0" : "", auc, left);
}

/* Shows bytes if the size of the text is known, else rows. */
void cli_progress_format_preparation(const struct ph_prepare_progress *progress, char *line, size_t size)
{
    const char *pass = progress->is_learning ? "learning" : "encoding";
    const double done = (double)progress->num_text_bytes, total = (double)progress->total_text_bytes;
    const double per_second = 1 / progress->seconds;
    char left[32];
    if (total > 0) {
        format_time(progress->seconds * (total - done) / done, left, sizeof left);
        snprintf(line, size, "%s  %.1f%% of %.1f MB  %.1f MB/s  %.0f rows/s  left %s", pass,
            100 * done / total, total * 1e-6, done * 1e-6 * per_second,
            (double)progress->num_rows * per_second, left);
    } else {
        snprintf(line, size, "%s  %.1f MB  %.1f MB/s  %" PRIu64 " rows  %.0f rows/s", pass, done * 1e-6,
            done * 1e-6 * per_second, progress->num_rows, (double)progress->num_rows * per_second);
    }
}

void cli_progress_format_simulation(const struct cli_simulated *simulated, char *line, size_t size)
{
    char step[64], wall[32];
    format_step(simulated->step, simulated->total_steps, step, sizeof step);
    format_time(simulated->wall_seconds, wall, sizeof wall);
    snprintf(line, size, "step %s  simulated %.6f s  wall time %s", step, simulated->seconds, wall);
}

/* Prints the line, and ignores failures: progress that nobody can read is no reason to stop, and main checks
 * standard output once the work is done. */
static void show_line(struct cli_progress *shown, const char *line)
{
    if (!shown->is_live) {
        fprintf(shown->file, "%s\n", line);
    } else {
        int length = fprintf(shown->file, "\r%-*s", (int)shown->line_length, line);
        shown->line_length = length > 0 ? (size_t)length - 1 : 0;
    }
    fflush(shown->file);
}

ph_status cli_progress_show(void *context, const struct ph_train_progress *progress)
{
    struct cli_progress *shown = context;
    char line[256];
    cli_progress_format(progress, line, sizeof line);
    show_line(shown, line);
    if (progress->valid != NULL)
        cli_progress_end(shown);
    return PH_OK;
}

void cli_progress_show_preparation(void *context, const struct ph_prepare_progress *progress)
{
    char line[256];
    cli_progress_format_preparation(progress, line, sizeof line);
    show_line(context, line);
}

/* Shows a line where the latest one is old enough. */
static void show_at_times(struct cli_progress *progress, double wall_seconds, const char *line)
{
    if (!progress->is_live ||
        (progress->line_length > 0 && wall_seconds - progress->wall_seconds < cli_progress_seconds(progress)))
        return;
    progress->wall_seconds = wall_seconds;
    show_line(progress, line);
}

void cli_progress_show_simulation(struct cli_progress *progress, const struct cli_simulated *simulated)
{
    char line[256];
    cli_progress_format_simulation(simulated, line, sizeof line);
    show_at_times(progress, simulated->wall_seconds, line);
}

void cli_progress_show_text(struct cli_progress *progress, const char *line)
{
    show_at_times(progress, ph__clock_seconds(), line);
}

double cli_progress_seconds(const struct cli_progress *progress)
{
    return progress->is_live ? 0.5 : 10;
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->is_live && progress->line_length > 0)
        fprintf(progress->file, "\n");
    progress->line_length = 0;
}
