/* compare.html */
#include <math.h>

#include "base/format/html.h"
#include "base/format/svg_plot.h"
#include "base/format/svg_rows.h"
#include "study/comparison_files.h"

#define PLOT_WIDTH 980

/* ---- the plot --------------------------------------------------------------------------------------------- */

/* The test AUC of each finished run, in the arena; PH_ERROR_MEMORY. */
static ph_status list_singles(const struct ph__comparison *comparison, const struct ph__compared *row,
    struct ph_arena *arena, struct ph_plot_row *plot_row)
{
    double *singles = ph__arena_alloc_array(arena, comparison->num_seeds, sizeof *singles);
    if (singles == NULL)
        return PH_ERROR_MEMORY;
    for (size_t seed = 0; seed < comparison->num_seeds; seed++)
        if (row->runs[seed].state == PH_RUN_FINISHED && row->runs[seed].summary.has_test)
            singles[plot_row->num_singles++] = row->runs[seed].summary.test.auc;
    plot_row->singles = singles;
    return PH_OK;
}

static ph_status list_rows(const struct ph__comparison *comparison, const struct ph__figures *figures,
    struct ph_arena *arena, struct ph_plot_row **rows_out)
{
    struct ph_plot_row *rows = ph__arena_alloc_array(arena, comparison->num_rows, sizeof *rows);
    if (rows == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < comparison->num_rows; i++) {
        const struct ph__spread auc = figures[i].test_auc;
        rows[i] = (struct ph_plot_row){
            .name = comparison->rows[i].name,
            .value = auc.mean,
            .low = auc.mean - auc.deviation,
            .high = auc.mean + auc.deviation,
            .reference = figures[i].published_auc,
            .color = 1,
        };
        PH_TRY(list_singles(comparison, &comparison->rows[i], arena, &rows[i]));
    }
    *rows_out = rows;
    return PH_OK;
}

static void write_plot(
    struct ph_html *html, const struct ph__comparison_tables *tables, struct ph_arena *arena)
{
    const struct ph__comparison *comparison = tables->comparison;
    struct ph_plot_row *rows;
    ph_status status = list_rows(comparison, tables->figures, arena, &rows);
    if (status != PH_OK) {
        ph__html_fail(html, status);
        return;
    }
    const bool has_published = ph__text_table_num_rows(&tables->tables[PH_TABLE_PUBLISHED]) > 0;
    const struct ph_row_plot plot = {.id = "auc-plot",
        .label = "test AUC",
        .width = PLOT_WIDTH,
        .format = "%.4f",
        .reference_name = has_published ? "published" : NULL,
        .rows = rows,
        .num_rows = comparison->num_rows};
    ph__html_begin_section(html, "auc", "Test AUC",
        "A small dot is a run, the large one their mean, the line one standard deviation to either side.");
    ph__html_row_plot(html, &plot);
    ph__html_end_section(html);
}

/* ---- the tables ------------------------------------------------------------------------------------------- */

static void write_table(struct ph_html *html, const char *id, const char *title,
    const struct ph_text_table *table, struct ph_arena *arena)
{
    const char *table_id = ph__arena_printf(arena, "%s-table", id);
    struct ph_html_column *columns = ph__arena_alloc_array(arena, table->num_columns, sizeof *columns);
    if (columns == NULL || table_id == NULL) {
        ph__html_fail(html, PH_ERROR_MEMORY);
        return;
    }
    for (size_t i = 0; i < table->num_columns; i++)
        columns[i] = (struct ph_html_column){table->columns[i].name, table->columns[i].is_number, NULL};
    ph__html_begin_section(html, id, title, NULL);
    ph__html_begin_table(html, table_id, columns, table->num_columns);
    for (size_t row = 0; row < ph__text_table_num_rows(table); row++) {
        ph__html_begin_row(html);
        for (size_t column = 0; column < table->num_columns; column++)
            ph__html_cell(html, "%s", ph__text_table_at(table, row, column));
        ph__html_end_row(html);
    }
    ph__html_end_table(html);
    ph__html_end_section(html);
}

static void write_page(
    struct ph_html *html, const struct ph__comparison_tables *tables, struct ph_arena *arena)
{
    static const char *const ids[] = {"accuracy", "published", "cost"};
    ph__html_element(html, "h1", NULL, "Comparison of %zu configs", tables->comparison->num_rows);
    ph__html_element(html, "p", "note", "%s", tables->about);
    write_plot(html, tables, arena);
    for (size_t i = 0; i < PH_NUM_COMPARISON_TABLES; i++)
        if (ph__text_table_num_rows(&tables->tables[i]) > 0)
            write_table(html, ids[i], tables->titles[i], &tables->tables[i], arena);
    if (tables->notes[0] == '\0')
        return;
    ph__html_begin_section(html, "missing", "What is missing", NULL);
    ph__html_element(html, "pre", NULL, "%s", tables->notes);
    ph__html_end_section(html);
}

ph_status ph__comparison_page_write(const struct ph__comparison_tables *tables, const char *path)
{
    struct ph_arena arena = {0};
    struct ph_html *html;
    PH_TRY(ph__html_open(path, "Comparison", &html));
    write_page(html, tables, &arena);
    ph_status status = ph__html_finish(html);
    ph__html_close(html);
    ph__arena_fini(&arena);
    return status;
}
