/* Writes the outcome of a sweep of phloem sim: a table for people, sweep.csv and report.html. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "base/text/number.h"
#include "cli/sim/sim_sweep.h"
#include "report/page.h"

/* ---- columns ---- */

#define FIGURE(member) offsetof(struct cli_sim_figures, member)

/* head, format: of the table for people, NULL for bytes; key: of sweep.csv; plot: its label, NULL: there is
 * none. */
static const struct {
    const char *head, *format, *key;
    size_t offset;
    double factor;
    const char *plot;
} figures[] = {
    {"ranks", "%.0f", "ranks", FIGURE(num_ranks), 1, NULL},
    {"samples/s", "%.0f", "samples_per_s", FIGURE(samples_per_s), 1, "samples/s (simulated)"},
    {"ms a step", "%.3f", "step_seconds", FIGURE(step_seconds), 1e3, NULL},
    {"computes", "%.1f%%", "compute_share", FIGURE(computed_share), 100, "share of a step computing"},
    {"waits", "%.1f%%", "exposed_share", FIGURE(exposed_share), 100, "share of a step waiting"},
    {"sent a step", NULL, "sent_bytes_per_step", FIGURE(sent_bytes), 1, "bytes sent a step, by all ranks"},
    {"memory a rank", NULL, "rank_bytes", FIGURE(rank_bytes), 1, NULL},
    {"wall s", "%.1f", "wall_seconds", FIGURE(wall_seconds), 1, NULL},
    {"speed-up", "%.2f", "speed_up", FIGURE(speed_up), 1, NULL},
    {"efficiency", "%.1f%%", "efficiency", FIGURE(efficiency), 100, NULL},
};
enum { NUM_FIGURES = sizeof figures / sizeof *figures };

/* Returns a figure; NaN: the row has none. */
static double figure(const struct cli_sim_row *row, size_t index)
{
    double number = (double)NAN;
    if (row->is_done)
        memcpy(&number, (const char *)&row->figures + figures[index].offset, sizeof number);
    return number;
}

static const char *value_of(const struct cli_sim_sweep *sweep, const struct cli_sim_row *row, size_t axis)
{
    return sweep->axes[axis].values[row->values[axis]];
}

/* ---- the table ---- */

static bool has_failed(const struct cli_sim_sweep *sweep)
{
    for (size_t i = 0; i < sweep->num_rows; i++)
        if (sweep->rows[i].failure != NULL)
            return true;
    return false;
}

static void add_figure(struct ph__text_table *table, const struct cli_sim_row *row, size_t index)
{
    const double number = figure(row, index);
    char text[PH_NUMBER_TEXT_BYTES];
    if (figures[index].format != NULL)
        ph__text_table_number(table, figures[index].format, figures[index].factor * number);
    else
        ph__text_table_cell(table, "%s", isfinite(number) ? ph__bytes_text((uint64_t)number, text) : "–");
}

ph_status cli_sim_sweep_table(struct cli_sim_sweep *sweep, struct ph__text_table *table_out)
{
    const bool has_failures = has_failed(sweep);
    const size_t num_columns = sweep->num_axes + NUM_FIGURES + has_failures;
    struct ph__text_column *columns = ph__arena_alloc_array(&sweep->arena, num_columns, sizeof *columns);
    if (columns == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < sweep->num_axes; i++)
        columns[i].name = sweep->axes[i].key;
    for (size_t i = 0; i < NUM_FIGURES; i++)
        columns[sweep->num_axes + i] = (struct ph__text_column){figures[i].head, true};
    if (has_failures)
        columns[num_columns - 1].name = "failure";
    ph__text_table_init(table_out, columns, num_columns);
    for (const struct cli_sim_row *row = sweep->rows; row < sweep->rows + sweep->num_rows; row++) {
        for (size_t i = 0; i < sweep->num_axes; i++)
            ph__text_table_cell(table_out, "%s", value_of(sweep, row, i));
        for (size_t i = 0; i < NUM_FIGURES; i++)
            add_figure(table_out, row, i);
        if (has_failures)
            ph__text_table_cell(table_out, "%s", row->failure != NULL ? row->failure : "");
    }
    return PH_OK;
}

/* ---- sweep.csv ---- */

static ph_status write_heads(const struct cli_sim_sweep *sweep, struct ph__writer *writer)
{
    for (size_t i = 0; i < sweep->num_axes; i++) {
        PH_TRY(ph__csv_write_text(writer, sweep->axes[i].key));
        PH_TRY(ph__writer_write(writer, ",", 1));
    }
    for (size_t i = 0; i < NUM_FIGURES; i++)
        PH_TRY(ph__writer_printf(writer, "%s,", figures[i].key));
    return ph__writer_printf(writer, "folder,failure\n");
}

static ph_status write_row(
    const struct cli_sim_sweep *sweep, const struct cli_sim_row *row, struct ph__writer *writer)
{
    for (size_t i = 0; i < sweep->num_axes; i++) {
        PH_TRY(ph__csv_write_text(writer, value_of(sweep, row, i)));
        PH_TRY(ph__writer_write(writer, ",", 1));
    }
    for (size_t i = 0; i < NUM_FIGURES; i++) {
        PH_TRY(ph__csv_write_number(writer, figure(row, i)));
        PH_TRY(ph__writer_write(writer, ",", 1));
    }
    PH_TRY(ph__csv_write_text(writer, row->simulated.folder));
    PH_TRY(ph__writer_write(writer, ",", 1));
    PH_TRY(ph__csv_write_text(writer, row->failure != NULL ? row->failure : ""));
    return ph__writer_write(writer, "\n", 1);
}

static ph_status write_csv(const struct cli_sim_sweep *sweep, struct ph__writer *writer)
{
    PH_TRY(write_heads(sweep, writer));
    for (size_t i = 0; i < sweep->num_rows; i++)
        PH_TRY(write_row(sweep, &sweep->rows[i], writer));
    return PH_OK;
}

/* ---- report.html ---- */

enum { NUM_COLORS = 6 };

/* Returns a row's place on the axis of the plots: its value or, of values that are no numbers, its number. */
static double place_of(const struct cli_sim_sweep *sweep, const struct cli_sim_row *row)
{
    double number;
    const bool is_number = ph__number_parse(value_of(sweep, row, sweep->drawn), &number);
    return is_number ? number : (double)row->values[sweep->drawn] + 1;
}

/* Names a curve by the values that its rows share. NULL: no memory. */
static const char *name_curve(struct cli_sim_sweep *sweep, const struct cli_sim_row *row)
{
    const char *name = "";
    for (size_t i = 0; i < sweep->num_axes && name != NULL; i++)
        if (i != sweep->drawn)
            name = ph__arena_printf(&sweep->arena, "%s%s%s=%s", name, name[0] != '\0' ? " " : "",
                sweep->axes[i].key, value_of(sweep, row, i));
    return name;
}

/* Fills a curve with one figure of the rows that are like the first but for the value along the axis. */
static ph_status fill_curve(struct cli_sim_sweep *sweep, const struct cli_sim_row *first, size_t index,
    struct ph__page_series *series)
{
    size_t stride = 1;
    const size_t count = sweep->axes[sweep->drawn].num_values;
    double *x = ph__arena_alloc_array(&sweep->arena, count, sizeof *x);
    double *y = ph__arena_alloc_array(&sweep->arena, count, sizeof *y);
    const char *name = name_curve(sweep, first);
    if (x == NULL || y == NULL || name == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = sweep->drawn + 1; i < sweep->num_axes; i++)
        stride *= sweep->axes[i].num_values;
    for (size_t i = 0; i < count; i++) {
        x[i] = place_of(sweep, &first[i * stride]);
        y[i] = figure(&first[i * stride], index);
    }
    *series = (struct ph__page_series){.name = name[0] != '\0' ? name : NULL,
        .style = PH_PAGE_LINE_AND_DOTS,
        .count = count,
        .x = x,
        .y = y};
    return PH_OK;
}

/* Returns true when the values are numbers that an axis of powers shows better: the last is many times the
 * first. */
static bool is_wide(const struct cli_sim_axis *axis)
{
    double first, last;
    return ph__number_parse(axis->values[0], &first) &&
           ph__number_parse(axis->values[axis->num_values - 1], &last) && first > 0 && last / first >= 8;
}

/* Adds a plot of one figure: a curve for each combination of the other values. */
static ph_status add_plot(struct cli_sim_sweep *sweep, struct ph__json *plots, size_t index)
{
    const struct cli_sim_axis *drawn = &sweep->axes[sweep->drawn];
    const size_t num_curves = sweep->num_rows / drawn->num_values;
    struct ph__page_series *series = ph__arena_alloc_array(&sweep->arena, num_curves, sizeof *series);
    size_t count = 0;
    if (series == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < sweep->num_rows; i++) {
        if (sweep->rows[i].values[sweep->drawn] != 0)
            continue;
        PH_TRY(fill_curve(sweep, &sweep->rows[i], index, &series[count]));
        series[count].id = ph__arena_printf(&sweep->arena, "%s-%zu", figures[index].key, count);
        series[count].color = 1 + (int)(count % NUM_COLORS);
        count++;
    }
    ph__page_add_plot(plots, &(struct ph__page_plot){.id = figures[index].key,
                                 .x = {.label = drawn->key, .is_log = is_wide(drawn)},
                                 .y = {.label = figures[index].plot, .has_zero = true},
                                 .series = series,
                                 .num_series = count});
    return PH_OK;
}

static ph_status add_plots(struct cli_sim_sweep *sweep, struct ph__page *page)
{
    struct ph__json *plots = ph__page_add_plots(ph__page_add_section(page, "plots", "Over the swept values",
        "A curve joins simulations that differ in the value below the plot alone."));
    for (size_t i = 0; i < NUM_FIGURES; i++)
        if (figures[i].plot != NULL)
            PH_TRY(add_plot(sweep, plots, i));
    return PH_OK;
}

static ph_status fill_page(struct cli_sim_sweep *sweep, struct ph__page *page)
{
    struct ph__text_table table;
    ph__page_add_fact(page, "config", sweep->base->config);
    if (sweep->base->topology != NULL)
        ph__page_add_fact(page, "topology", sweep->base->topology);
    ph__page_add_fact(page, "profile", sweep->profile);
    PH_TRY(add_plots(sweep, page));
    PH_TRY(cli_sim_sweep_table(sweep, &table));
    const char *note = ph__arena_printf(&sweep->arena,
        "Speed-up, and efficiency, which is speed-up a rank, are over the first row that differs in %s "
        "alone.",
        sweep->axes[sweep->compared].key);
    ph__page_add_text_table(
        ph__page_add_section(page, "combinations", "All combinations", note), "combinations-table", &table);
    const ph_status status = table.status;
    ph__text_table_fini(&table);
    return status;
}

static ph_status write_page(struct cli_sim_sweep *sweep, const char *path)
{
    struct ph__page page;
    ph__page_init(&page, "Sweep of simulations", "Sweep of simulations",
        "Simulated: computation takes the times of the profile, communication those of the topology's "
        "links.");
    ph_status status = fill_page(sweep, &page);
    if (status == PH_OK)
        status = ph__page_write(&page, path);
    ph__page_fini(&page);
    return status;
}

ph_status cli_sim_sweep_write(struct cli_sim_sweep *sweep)
{
    const char *csv = ph__path_join(&sweep->arena, sweep->base->folder, "sweep.csv");
    const char *page = ph__path_join(&sweep->arena, sweep->base->folder, "report.html");
    struct ph__writer *writer;
    if (csv == NULL || page == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__writer_open_atomic(csv, &writer));
    PH_TRY(ph__writer_end(writer, write_csv(sweep, writer)));
    return write_page(sweep, page);
}
