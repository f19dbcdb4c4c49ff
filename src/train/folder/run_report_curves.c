/* Sections "curves" and "calibration" of report.html. */
#include <math.h>

#include "train/folder/run_report.h"

#define MAX_CUTS 64
#define MAX_GROUPS 20
#define LOW_BASE_RATE 0.05 /* below it, plots show probabilities by powers of ten */

enum { COLOR_TRAIN = 1, COLOR_VALID = 2, COLOR_PROGRESSIVE = 3 };

/* ---- marks ---- */

struct marks {
    size_t count;
    struct ph__page_mark marks[MAX_CUTS + 1];
    char texts[MAX_CUTS + 1][64];
};

static void add_mark(struct marks *marks, double step, const char *what, double number)
{
    struct ph__page_mark *mark = &marks->marks[marks->count];
    char *text = marks->texts[marks->count++];
    snprintf(text, sizeof marks->texts[0], "%s %g", what, number);
    *mark = (struct ph__page_mark){step, text};
}

/* Marks the kept model, and each step at which the learning rate was cut. Gradual schedules show in the
 * curve. */
static void find_marks(const struct ph__trainer *trainer, const struct ph__curve *curve, struct marks *marks)
{
    const double *rates = curve->columns[PH_CURVE_LEARNING_RATE], *steps = curve->columns[PH_CURVE_STEP];
    const enum ph_schedule_kind schedule = trainer->job->train->schedule;
    marks->count = 0;
    if (trainer->best_step > 0)
        add_mark(marks, (double)trainer->best_step, "model kept: step", (double)trainer->best_step);
    if (schedule != PH_SCHEDULE_PLATEAU && schedule != PH_SCHEDULE_STEP)
        return;
    for (size_t i = 1; i < curve->count && marks->count < MAX_CUTS; i++)
        if (rates[i] < rates[i - 1])
            add_mark(marks, steps[i - 1], "learning rate cut to", rates[i]);
}

/* ---- curves ---- */

static struct ph__page_series series_of(
    const struct ph__curve *curve, enum ph__curve_column column, const char *name, const char *id, int color)
{
    return (struct ph__page_series){.name = name,
        .id = id,
        .style = color == COLOR_VALID ? PH_PAGE_LINE_AND_DOTS : PH_PAGE_LINE,
        .color = color,
        .count = curve->count,
        .x = curve->columns[PH_CURVE_STEP],
        .y = curve->columns[column]};
}

/* Returns true when numbers of the series lie so far apart that only powers of ten show them all. */
static bool spans_powers(const struct ph__page_series *series)
{
    double least = (double)INFINITY, most = 0;
    for (size_t i = 0; i < series->count; i++)
        if (series->y[i] > 0) {
            least = fmin(least, series->y[i]);
            most = fmax(most, series->y[i]);
        }
    return most > 20 * least;
}

static void add(struct ph__json *plots, const char *id, struct ph__page_axis y,
    const struct ph__page_series *series, size_t num_series, const struct marks *marks)
{
    ph__page_add_plot(plots, &(struct ph__page_plot){.id = id,
                                 .title = y.label,
                                 .x = {.label = "step"},
                                 .y = y,
                                 .series = series,
                                 .num_series = num_series,
                                 .marks = marks->marks,
                                 .num_marks = marks->count});
}

/* Drops series without points, which would only fill the legend; keeps the first one always. */
static size_t keep_present(struct ph__page_series *series, size_t count)
{
    size_t kept = 1;
    for (size_t i = 1; i < count; i++)
        if (series[i].count > 0)
            series[kept++] = series[i];
    return kept;
}

static void add_metric(struct ph__json *plots, const struct ph__metrics_file *metrics,
    enum ph__curve_column column, const char *name, const struct marks *marks)
{
    bool is_loss = column == PH_CURVE_LOSS;
    struct ph__page_series series[] = {
        series_of(&metrics->train, column, "training", is_loss ? "loss-curve" : "auc-curve", COLOR_TRAIN),
        series_of(&metrics->valid, column, "validation", is_loss ? "valid-loss-curve" : "valid-auc-curve",
            COLOR_VALID),
        series_of(&metrics->progressive, column, "progressive",
            is_loss ? "progressive-loss-curve" : "progressive-auc-curve", COLOR_PROGRESSIVE)};
    size_t count = keep_present(series, sizeof series / sizeof *series);
    add(plots, is_loss ? "loss" : "auc", (struct ph__page_axis){.label = name}, series, count, marks);
}

void ph__run_report_curves(
    struct ph__page *page, const struct ph__trainer *trainer, const struct ph__metrics_file *metrics)
{
    struct marks marks;
    find_marks(trainer, &metrics->train, &marks);
    struct ph__json *plots = ph__page_add_plots(ph__page_add_section(page, "curves", "Curves",
        "Training: the mean loss since the previous report, and the AUC of the latest samples, each scored "
        "before the model learnt from it. Dots are evaluations on validation data. Drag over a plot to see a "
        "part of it."));
    add_metric(plots, metrics, PH_CURVE_LOSS, "logloss", &marks);
    add_metric(plots, metrics, PH_CURVE_AUC, "AUC", &marks);
    const struct ph__page_series rate =
        series_of(&metrics->train, PH_CURVE_LEARNING_RATE, NULL, "learning-rate-curve", COLOR_TRAIN);
    add(plots, "learning-rate",
        (struct ph__page_axis){.label = "learning rate", .is_log = spans_powers(&rate)}, &rate, 1, &marks);
    const struct ph__page_series speed =
        series_of(&metrics->train, PH_CURVE_SAMPLES_PER_S, NULL, "speed-curve", COLOR_TRAIN);
    add(plots, "speed", (struct ph__page_axis){.label = "samples/s", .has_zero = true}, &speed, 1,
        &(struct marks){0});
}

/* ---- calibration ---- */

/* Returns true when only powers of ten tell the groups' rates apart. */
static bool is_of_low_rates(const struct ph__calibration_bin *groups, size_t num_groups)
{
    double positives = 0, count = 0;
    for (size_t i = 0; i < num_groups; i++) {
        positives += groups[i].observed;
        count += (double)groups[i].count;
    }
    return positives > 0 && positives < LOW_BASE_RATE * count && groups[0].predicted > 0;
}

static void add_reliability(struct ph__json *plots, const struct ph__calibration *calibration)
{
    struct ph__calibration_bin groups[MAX_GROUPS];
    double predicted[MAX_GROUPS], observed[MAX_GROUPS], low[MAX_GROUPS], high[MAX_GROUPS], most = 0;
    size_t num_groups = ph__calibration_group(calibration, MAX_GROUPS, groups);
    const bool is_log = is_of_low_rates(groups, num_groups);
    if (is_log)
        num_groups = ph__calibration_join(groups, num_groups);
    for (size_t i = 0; i < num_groups; i++) {
        double samples = (double)groups[i].count;
        predicted[i] = groups[i].predicted / samples;
        observed[i] = groups[i].observed / samples;
        ph__rate_interval(groups[i].observed, samples, &low[i], &high[i]);
        most = fmax(most, fmax(predicted[i], high[i]));
    }
    const struct ph__page_series series = {.name = "observed, with its 95% interval",
        .id = "calibration-points",
        .style = PH_PAGE_DOTS,
        .color = COLOR_TRAIN,
        .count = num_groups,
        .x = predicted,
        .y = observed,
        .low = low,
        .high = high};
    const struct ph__page_axis axis = {.is_log = is_log,
        .is_fixed = true,
        .low = is_log ? predicted[0] / 2 : 0,
        .high = is_log ? most * 1.2 : fmin(most * 1.05, 1)};
    struct ph__page_plot plot = {.id = "reliability",
        .x = axis,
        .y = axis,
        .series = &series,
        .num_series = 1,
        .diagonal = "predicted = observed"};
    plot.x.label = "predicted probability";
    plot.y.label = "observed rate";
    ph__page_add_plot(plots, &plot);
}

static void add_scores(struct ph__json *plots, const struct ph__calibration *calibration)
{
    double from[PH_CALIBRATION_BINS], to[PH_CALIBRATION_BINS], count[PH_CALIBRATION_BINS];
    size_t first = PH_CALIBRATION_BINS, last = 0;
    for (size_t i = 0; i < PH_CALIBRATION_BINS; i++) {
        from[i] = ph__calibration_edge(i);
        to[i] = ph__calibration_edge(i + 1);
        count[i] = (double)calibration->bins[i].count;
        if (count[i] > 0) {
            first = first < i ? first : i;
            last = i;
        }
    }
    const struct ph__page_series series = {.name = "samples",
        .id = "score-histogram",
        .style = PH_PAGE_BARS,
        .color = COLOR_TRAIN,
        .count = last - first + 1,
        .x = from + first,
        .x_end = to + first,
        .y = count + first};
    struct ph__page_plot plot = {.id = "scores",
        .x = {.label = "score (log-odds)"},
        .y = {.label = "samples", .has_zero = true},
        .series = &series,
        .num_series = 1};
    ph__page_add_plot(plots, &plot);
}

void ph__run_report_calibration(struct ph__page *page, const struct ph__metrics_file *metrics)
{
    char note[256];
    uint64_t count = ph__calibration_count(&metrics->calibration);
    if (!metrics->has_calibration || count == 0)
        return;
    snprintf(note, sizeof note,
        "%llu samples of the %s data, scored by the model kept: calibration in groups of about the same "
        "size, and the distribution of scores.",
        (unsigned long long)count, metrics->calibrated_on[0] == 't' ? "test" : "validation");
    struct ph__json *plots =
        ph__page_add_plots(ph__page_add_section(page, "calibration", "Calibration", note));
    add_reliability(plots, &metrics->calibration);
    add_scores(plots, &metrics->calibration);
}
