#include "study/comparison_files.h"

#include <inttypes.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/csv.h"
#include "train/folder/summary.h"

/* ---- CSV: one line a config---------------------------------------------------------------------------------- */

static ph_status write_csv_figure(
    struct ph_writer *writer, const struct ph_json_field *field, const struct ph__figures *figures)
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
    struct ph_writer *writer, const struct ph__compared *row, const struct ph__figures *figures)
{
    const char *word = ph__bar_word(figures);
    PH_TRY(ph__csv_write_text(writer, row->name));
    PH_TRY(ph__writer_write(writer, ",", 1));
    PH_TRY(ph__csv_write_text(writer, row->path));
    for (size_t i = 0; i < ph__num_figure_fields; i++)
        PH_TRY(write_csv_figure(writer, &ph__figure_fields[i], figures));
    PH_TRY(ph__writer_printf(writer, ",%s,", word != NULL ? word : ""));
    PH_TRY(ph__csv_write_text(writer, row->config->published.source));
    return ph__writer_write(writer, "\n", 1);
}

static ph_status write_csv(const struct ph__comparison_tables *tables, struct ph_writer *writer)
{
    const struct ph__comparison *comparison = tables->comparison;
    PH_TRY(ph__writer_printf(writer, "config,path"));
    for (size_t i = 0; i < ph__num_figure_fields; i++)
        PH_TRY(ph__writer_printf(writer, ",%s", ph__figure_fields[i].key));
    PH_TRY(ph__writer_printf(writer, ",bar,published_source\n"));
    for (size_t i = 0; i < comparison->num_rows; i++)
        PH_TRY(write_csv_row(writer, &comparison->rows[i], &tables->figures[i]));
    return PH_OK;
}

static ph_status write_markdown(const struct ph__comparison_tables *tables, struct ph_writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "# Comparison\n\n"));
    return ph__comparison_tables_write(tables, writer);
}

typedef ph_status write_function(const struct ph__comparison_tables *tables, struct ph_writer *writer);

static ph_status write_text(
    const struct ph__comparison_tables *tables, write_function *write, const char *path)
{
    struct ph_writer *writer;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    ph_status status = write(tables, writer);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    ph__writer_close(writer);
    return status;
}

/* ---- JSON: the figures and the runs behind them ----------------------------------------------------------- */

static struct ph_json *run_json(const struct ph__compared_run *run, int64_t seed)
{
    static const char *const states[] = {"waiting", "finished", "failed"};
    struct ph_json *object = ph__json_object();
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

static struct ph_json *row_json(
    const struct ph__comparison *comparison, size_t row, const struct ph__figures *figures)
{
    const struct ph__compared *compared = &comparison->rows[row];
    struct ph_json *object = ph__json_object(), *runs = ph__json_array();
    ph__json_set_text(object, "name", compared->name);
    ph__json_set_text(object, "config", compared->path);
    ph__json_set_text(object, "key", compared->key);
    ph__json_set_text(object, "base", comparison->rows[compared->base].name);
    ph__json_set_bool(object, "is_paired", figures->pairing == PH_PAIRED);
    ph__json_set_fields(object, ph__figure_fields, ph__num_figure_fields, figures);
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
    struct ph_json *object = ph__json_object(), *seeds = ph__json_array(), *rows = ph__json_array();
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

/* ---- all -------------------------------------------------------------------------------------------------- */

static ph_status write_files(
    struct ph_arena *arena, const struct ph__comparison_tables *tables, const char *folder)
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
    return ph__comparison_page_write(tables, page);
}

ph_status ph__comparison_files_write(const struct ph__comparison_tables *tables, const char *folder)
{
    struct ph_arena arena = {0};
    ph_status status = write_files(&arena, tables, folder);
    ph__arena_fini(&arena);
    return status;
}
