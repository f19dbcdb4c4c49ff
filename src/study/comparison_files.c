/* Writes the files of a comparison: compare.md, compare.csv, compare.json and compare.html. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/text_table.h"
#include "base/memory/memory.h"
#include "report/page.h"
#include "study/comparison_tables.h"
#include "train/folder/summary.h"

/* ---- compare.html: a plot of the test AUC with its spread over the tables ---- */

static struct ph__json *plot_row(const struct ph__comparison *comparison, const struct ph__compared *compared,
    const struct ph__comparison_figures *figures)
{
    const struct ph__spread auc = figures->test_auc;
    struct ph__json *row = ph__json_object(), *singles = ph__json_array();
    ph__json_set_text(row, "name", compared->name);
    ph__json_set_number(row, "value", auc.mean);
    ph__json_set_number(row, "low", auc.mean - auc.deviation);
    ph__json_set_number(row, "high", auc.mean + auc.deviation);
    ph__json_set_number(row, "reference", figures->published_auc);
    for (size_t seed = 0; seed < comparison->num_seeds; seed++) {
        const struct ph__compared_run *run = &compared->runs[seed];
        if (run->state == PH_RUN_FINISHED && run->summary.has_test)
            ph__json_append_number(singles, run->summary.test.auc);
    }
    ph__json_set(row, "singles", singles);
    return row;
}

static void add_plot(struct ph__page *page, const struct ph__comparison_tables *tables)
{
    const struct ph__comparison *comparison = tables->comparison;
    bool has_auc = false;
    for (size_t i = 0; i < comparison->num_rows; i++)
        has_auc |= isfinite(tables->figures[i].test_auc.mean);
    if (!has_auc)
        return;
    const bool has_published = ph__text_table_num_rows(&tables->tables[PH_TABLE_PUBLISHED]) > 0;
    struct ph__json *rows = ph__json_array();
    struct ph__json *plot = ph__page_add_block(ph__page_add_section(page, "auc", "Test AUC",
                                                   "A small dot is a run, the large one their mean, the line "
                                                   "one standard deviation to either side."),
        "rows");
    ph__json_set_text(plot, "id", "auc-plot");
    ph__json_set_text(plot, "label", "test AUC");
    ph__json_set_text(plot, "format", ".4");
    ph__json_set_text(plot, "reference_name", has_published ? "published" : NULL);
    for (size_t i = 0; i < comparison->num_rows; i++)
        ph__json_append(rows, plot_row(comparison, &comparison->rows[i], &tables->figures[i]));
    ph__json_set(plot, "rows", rows);
}

static void add_table(
    struct ph__page *page, const char *id, const char *title, const struct ph__text_table *table)
{
    char table_id[32];
    snprintf(table_id, sizeof table_id, "%s-table", id);
    ph__page_add_text_table(ph__page_add_section(page, id, title, NULL), table_id, table);
}

static void fill_page(struct ph__page *page, const struct ph__comparison_tables *tables)
{
    static const char *const ids[] = {"accuracy", "published", "cost"};
    add_plot(page, tables);
    for (size_t i = 0; i < PH_NUM_COMPARISON_TABLES; i++)
        if (ph__text_table_num_rows(&tables->tables[i]) > 0)
            add_table(page, ids[i], tables->titles[i], &tables->tables[i]);
    if (tables->notes[0] != '\0')
        ph__page_add_text(
            ph__page_add_section(page, "missing", "What is missing", NULL), "preformatted", tables->notes);
}

static ph_status write_page(const struct ph__comparison_tables *tables, const char *path)
{
    char heading[64];
    struct ph__page page;
    snprintf(heading, sizeof heading, "Comparison of %zu configs", tables->comparison->num_rows);
    ph__page_init(&page, "Comparison", heading, tables->about);
    fill_page(&page, tables);
    const ph_status status = ph__page_write(&page, path);
    ph__page_fini(&page);
    return status;
}

/* ---- compare.csv: one line a config ---- */

static ph_status write_csv_figure(struct ph__writer *writer, const struct ph__json_field *field,
    const struct ph__comparison_figures *figures)
{
    const char *at = (const char *)figures + field->offset;
    if (field->kind == PH_JSON_COUNT) {
        uint64_t count;
        memcpy(&count, at, sizeof count);
        return ph__writer_printf(writer, ",%" PRIu64, count);
    }
    double number;
    memcpy(&number, at, sizeof number);
    PH_TRY(ph__writer_write(writer, ",", 1));
    return ph__csv_write_number(writer, number);
}

static ph_status write_csv_row(
    struct ph__writer *writer, const struct ph__compared *row, const struct ph__comparison_figures *figures)
{
    const char *word = ph__bar_word(figures);
    PH_TRY(ph__csv_write_text(writer, row->name));
    PH_TRY(ph__writer_write(writer, ",", 1));
    PH_TRY(ph__csv_write_text(writer, row->path));
    for (size_t i = 0; i < ph__num_comparison_fields; i++)
        PH_TRY(write_csv_figure(writer, &ph__comparison_fields[i], figures));
    PH_TRY(ph__writer_printf(writer, ",%s,", word != NULL ? word : ""));
    PH_TRY(ph__csv_write_text(writer, row->config->published.source));
    return ph__writer_write(writer, "\n", 1);
}

static ph_status write_csv(const struct ph__comparison_tables *tables, struct ph__writer *writer)
{
    const struct ph__comparison *comparison = tables->comparison;
    PH_TRY(ph__writer_printf(writer, "config,path"));
    for (size_t i = 0; i < ph__num_comparison_fields; i++)
        PH_TRY(ph__writer_printf(writer, ",%s", ph__comparison_fields[i].key));
    PH_TRY(ph__writer_printf(writer, ",bar,published_source\n"));
    for (size_t i = 0; i < comparison->num_rows; i++)
        PH_TRY(write_csv_row(writer, &comparison->rows[i], &tables->figures[i]));
    return PH_OK;
}

/* ---- compare.md ---- */

static ph_status write_markdown(const struct ph__comparison_tables *tables, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "# Comparison\n\n"));
    return ph__comparison_tables_write(tables, writer);
}

/* ---- compare.json: the figures and the runs behind them ---- */

static struct ph__json *run_json(const struct ph__compared_run *run, int64_t seed)
{
    static const char *const states[] = {"waiting", "finished", "failed"};
    struct ph__json *object = ph__json_object();
    ph__json_set_integer(object, "seed", seed);
    ph__json_set_text(object, "folder", run->folder);
    ph__json_set_text(object, "state", states[run->state]);
    if (run->state == PH_RUN_FAILED) {
        ph__json_set_integer(object, "exit_code", ph_status_exit_code(run->status));
        ph__json_set_text(object, "failure", run->failure);
    }
    if (run->state != PH_RUN_FINISHED)
        return object;
    const struct ph_train_summary *summary = &run->summary;
    ph__json_set_integer(object, "epochs", (int64_t)summary->epochs);
    ph__json_set_number(object, "train_seconds", summary->train_seconds);
    ph__json_set_number(object, "samples_per_s", summary->samples_per_s);
    if (summary->has_valid)
        ph__json_set(object, "valid", ph__metrics_json(&summary->valid));
    if (summary->has_test)
        ph__json_set(object, "test", ph__metrics_json(&summary->test));
    return object;
}

static struct ph__json *row_json(
    const struct ph__comparison *comparison, size_t row, const struct ph__comparison_figures *figures)
{
    const struct ph__compared *compared = &comparison->rows[row];
    struct ph__json *object = ph__json_object(), *runs = ph__json_array();
    ph__json_set_text(object, "name", compared->name);
    ph__json_set_text(object, "config", compared->path);
    ph__json_set_text(object, "key", compared->key);
    ph__json_set_text(object, "base", comparison->rows[compared->base].name);
    ph__json_set_bool(object, "is_paired", figures->pairing == PH_PAIRED);
    ph__json_set_fields(object, ph__comparison_fields, ph__num_comparison_fields, figures);
    ph__json_set_text(object, "bar", ph__bar_word(figures));
    ph__json_set_text(object, "published_source", compared->config->published.source);
    for (size_t seed = 0; seed < comparison->num_seeds; seed++)
        ph__json_append(runs, run_json(&compared->runs[seed], comparison->seeds[seed]));
    ph__json_set(object, "runs", runs);
    return object;
}

static ph_status write_json(const struct ph__comparison_tables *tables, const char *path)
{
    const struct ph__comparison *comparison = tables->comparison;
    struct ph__json *object = ph__json_object(), *seeds = ph__json_array(), *rows = ph__json_array();
    for (size_t seed = 0; seed < comparison->num_seeds; seed++)
        ph__json_append_integer(seeds, comparison->seeds[seed]);
    for (size_t i = 0; i < comparison->num_rows; i++)
        ph__json_append(rows, row_json(comparison, i, &tables->figures[i]));
    ph__json_set(object, "seeds", seeds);
    ph__json_set_number(object, "confidence", PH_COMPARISON_CONFIDENCE);
    ph__json_set(object, "configs", rows);
    ph_status status = ph__json_write(object, path);
    ph__json_destroy(object);
    return status;
}

/* ---- all files ---- */

typedef ph_status write_function(const struct ph__comparison_tables *tables, struct ph__writer *writer);

static ph_status write_text(
    const struct ph__comparison_tables *tables, write_function *write, const char *path)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    return ph__writer_end(writer, write(tables, writer));
}

static ph_status write_files(
    struct ph__arena *arena, const struct ph__comparison_tables *tables, const char *folder)
{
    const char *markdown = ph__path_join(arena, folder, "compare.md");
    const char *csv = ph__path_join(arena, folder, "compare.csv");
    const char *json = ph__path_join(arena, folder, "compare.json");
    const char *page = ph__path_join(arena, folder, "compare.html");
    if (markdown == NULL || csv == NULL || json == NULL || page == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(write_text(tables, write_markdown, markdown));
    PH_TRY(write_text(tables, write_csv, csv));
    PH_TRY(write_json(tables, json));
    return write_page(tables, page);
}

ph_status ph__comparison_files_write(const struct ph__comparison_tables *tables, const char *folder)
{
    struct ph__arena arena = {0};
    ph_status status = write_files(&arena, tables, folder);
    ph__arena_fini(&arena);
    return status;
}
