#include "train/folder/run_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file/file.h"
#include "base/format/ticks.h"
#include "base/memory/memory.h"
#include "data/encode/encoder.h"
#include "phloem/version.h"
#include "store/store.h"
#include "tensor/row_format.h"
#include "train/folder/checkpoints.h"
#include "train/folder/summary.h"
#include "train/job_rows.h"
#include "train/ranks/memory_check.h"
#include "train/ranks/rows_learnt.h"

#define MAX_CONFIG_BYTES (1 << 20)

void ph__run_report_cap(struct ph__html *html, const char *what, size_t count)
{
    if (count > PH_REPORT_MAX_ROWS)
        ph__html_element(html, "p", "note", "The first %d of %zu %s.", PH_REPORT_MAX_ROWS, count, what);
}

/* ---- header ----------------------------------------------------------------------------------------------- */

static void write_fact(struct ph__html *html, const char *name, const char *value)
{
    ph__html_markup(html, "<div>");
    ph__html_element(html, "dt", NULL, "%s", name);
    ph__html_element(html, "dd", NULL, "%s", value);
    ph__html_markup(html, "</div>\n");
}

static const char *place_of(struct ph__job_rows rows)
{
    if (!ph__job_rows_exist(rows))
        return "none";
    return rows.dataset != NULL ? "handed over by a program" : rows.path;
}

static void write_time(struct ph__html *html)
{
    char text[64] = "";
    struct tm utc;
    time_t now = time(NULL);
    if (gmtime_r(&now, &utc) != NULL)
        strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
    write_fact(html, "written", text);
}

static void write_facts(struct ph__html *html, const struct ph__trainer *trainer)
{
    const struct ph_train_job *job = trainer->job;
    char text[160];
    ph__html_markup(html, "<dl class=\"facts\">\n");
    write_fact(html, "folder", job->folder);
    write_fact(html, "training data", place_of(ph__job_train(job)));
    write_fact(html, "validation data", place_of(ph__job_valid(job)));
    write_fact(html, "test data", place_of(ph__job_test(job)));
    snprintf(text, sizeof text, "%" PRIu64, job->run.seed);
    write_fact(html, "seed", text);
    if (trainer->ranks.comm != NULL) {
        snprintf(text, sizeof text, "%zu; threads, times of operators and memory are those of the first",
            trainer->ranks.world_size);
        write_fact(html, "ranks", text);
    }
    write_fact(html, "machine", ph_backend_describe(trainer->backend));
    snprintf(text, sizeof text, "phloem %s", ph_version());
    write_fact(html, "program", text);
    write_time(html);
    ph__html_markup(html, "</dl>\n");
}

static void write_state(struct ph__html *html, const struct ph__trainer *trainer, const char *why)
{
    const struct ph_train_summary *summary = &trainer->summary;
    if (why == NULL)
        ph__html_textf(html, "Finished after %" PRIu64 " steps in %" PRIu64 " epoch%s, ended by train.%s",
            summary->steps, trainer->epoch, trainer->epoch == 1 ? "" : "s",
            ph__train_end_name(summary->ended_by));
    else
        ph__html_textf(html, "Not finished: stopped at step %" PRIu64 ", in epoch %" PRIu64, summary->steps,
            trainer->epoch);
    if (summary->resumed_step > 0)
        ph__html_textf(html, "; resumed at step %" PRIu64, summary->resumed_step);
    if (trainer->best_step > 0)
        ph__html_textf(html, ". The model kept is that of step %" PRIu64 ", epoch %" PRIu64,
            trainer->best_step, summary->best_epoch);
    if (summary->skipped_steps > 0)
        ph__html_textf(html, ". %" PRIu64 " steps were skipped: their loss or gradients were not finite",
            summary->skipped_steps);
    ph__html_text(html, ".");
    if (why != NULL)
        ph__html_textf(html, " Why: %s.", why);
}

static void write_header(struct ph__html *html, const struct ph__trainer *trainer, const char *why)
{
    int kind = trainer->job->model->kind;
    ph__html_markup(html, "<header>\n");
    ph__html_element(html, "h1", NULL, "%s", ph_model_name(kind));
    ph__html_element(html, "p", "note", "%s", ph_model_description(kind));
    ph__html_markup(html, "<p id=\"state\" class=\"state %s\">", why == NULL ? "done" : "stopped");
    write_state(html, trainer, why);
    ph__html_markup(html, "</p>\n");
    write_facts(html, trainer);
    ph__html_markup(html, "</header>\n");
}

/* ---- figures ---------------------------------------------------------------------------------------------- */

static void write_number(struct ph__html *html, const char *name, double number, const char *note)
{
    char text[32] = "–";
    if (isfinite(number))
        snprintf(text, sizeof text, "%.5f", number);
    ph__html_figure(html, name, text, note);
}

static void write_metrics(struct ph__html *html, const char *what, const struct ph_metrics *metrics)
{
    char text[PH_TICK_TEXT_BYTES], error[48] = "";
    ph__html_element(html, "h3", NULL, "%s", what);
    ph__html_begin_figures(html);
    if (metrics->auc_error > 0)
        snprintf(error, sizeof error, "within %.1g", metrics->auc_error);
    write_number(html, "AUC", metrics->auc, error);
    if (isfinite(metrics->grouped_auc))
        write_number(html, "grouped AUC", metrics->grouped_auc, "");
    write_number(html, "logloss", metrics->logloss, "");
    write_number(html, "NE", metrics->ne, "beside the base rate");
    write_number(html, "calibration", metrics->calibration, "predicted / observed");
    write_number(html, "base rate", metrics->base_rate, "");
    ph__html_figure(html, "samples", ph__quantity_text((double)metrics->num_samples, text), "");
    ph__html_end_figures(html);
}

static void write_quantity(
    struct ph__html *html, const char *name, double number, const char *unit, const char *note)
{
    char quantity[PH_TICK_TEXT_BYTES], text[PH_TICK_TEXT_BYTES + 16];
    snprintf(text, sizeof text, "%s%s", ph__quantity_text(number, quantity), unit);
    ph__html_figure(html, name, text, note);
}

static void write_speed(struct ph__html *html, const struct ph__trainer *trainer)
{
    const struct ph_train_summary *summary = &trainer->summary;
    double seconds = summary->train_seconds > 0 ? summary->train_seconds : (double)NAN;
    double flops = summary->flops_per_sample;
    char threads[48], bytes[32];
    snprintf(threads, sizeof threads, "%zu threads", summary->num_threads);
    ph__html_element(html, "h3", NULL, "Training");
    ph__html_begin_figures(html);
    write_quantity(html, "samples/s", (double)summary->samples / seconds, "", threads);
    write_quantity(html, "time", seconds, " s", "without evaluations");
    write_quantity(html, "parameters", (double)summary->parameters, "", "");
    write_quantity(html, "FLOPs/sample", flops > 0 ? flops : (double)NAN, "", "forward, backward, update");
    ph__html_figure(
        html, "peak memory", ph__bytes_text(summary->memory.peak_anonymous_bytes, bytes), "anonymous");
    ph__html_end_figures(html);
}

static void write_figures(struct ph__html *html, const struct ph__trainer *trainer, const char *why)
{
    const struct ph_train_summary *summary = &trainer->summary;
    const char *note = trainer->features.num_tasks > 1 ? "Metrics are those of the first label." : NULL;
    ph__html_begin_section(html, "figures", "Figures", note);
    if (why == NULL && summary->has_test)
        write_metrics(html, "Test, the model kept", &summary->test);
    if (ph__job_rows_exist(ph__job_valid(trainer->job)) && trainer->best_step > 0)
        write_metrics(html, "Validation, the model kept", &summary->valid);
    if (summary->has_progressive)
        write_metrics(html, "Progressive: each row before it was learnt from", &summary->progressive);
    write_speed(html, trainer);
    ph__html_end_section(html);
}

/* ---- tables ----------------------------------------------------------------------------------------------- */

struct table {
    const char *name;
    size_t rows, dim;
    enum ph_row_format format;
    uint64_t bytes, slot_bytes;
    const char *kind; /* how it is spread over ranks; NULL: there is one */
};

static int by_bytes_descending(const void *left, const void *right)
{
    const struct table *a = left, *b = right;
    uint64_t a_bytes = a->bytes + a->slot_bytes, b_bytes = b->bytes + b->slot_bytes;
    return a_bytes < b_bytes ? 1 : a_bytes > b_bytes ? -1 : 0;
}

static struct table slice_table(const struct ph_parameter *parameter, const struct ph_table_slice *slice)
{
    struct table table = {.name = slice->name,
        .rows = slice->num_rows,
        .dim = parameter->shape.dims[1],
        .format = parameter->row_format};
    table.bytes = ph__table_bytes(table.format, table.rows, table.dim);
    for (size_t s = 0; s < parameter->num_slots; s++)
        table.slot_bytes += table.rows * (parameter->slots[s].is_per_row ? 1 : table.dim) * sizeof(ph_real);
    return table;
}

/* One that ranks share. */
static struct table planned_table(const struct ph__plan_table *planned, enum ph_row_format format)
{
    const uint64_t bytes = planned->num_rows * ph__table_bytes(format, 1, planned->dim);
    return (struct table){.name = planned->name,
        .rows = (size_t)planned->num_rows,
        .dim = planned->dim,
        .format = format,
        .bytes = bytes,
        .slot_bytes = planned->bytes - bytes,
        .kind = ph__shard_kind_name(planned->kind)};
}

/* Of all ranks together, a table that each of them has once; tables: NULL to count them only. */
static size_t gather_tables(const struct ph__trainer *trainer, struct table *tables)
{
    const struct ph_store *store = trainer->store;
    const struct ph__plan *plan = &trainer->ranks.plan;
    size_t count = 0;
    for (size_t i = 0; i < plan->num_tables && tables != NULL; i++)
        tables[i] = planned_table(&plan->tables[i], trainer->job->train->row_format);
    if (trainer->ranks.comm != NULL)
        return plan->num_tables;
    for (size_t p = 0; p < ph__store_num_parameters(store); p++) {
        const struct ph_parameter *parameter = ph__store_parameter(store, p);
        for (size_t s = 0; s < parameter->num_slices; s++, count++)
            if (tables != NULL)
                tables[count] = slice_table(parameter, &parameter->slices[s]);
    }
    return count;
}

static void write_table_row(struct ph__html *html, const struct table *table, double most_bytes)
{
    char bytes[32], slots[32], rows[PH_TICK_TEXT_BYTES];
    double share = (double)(table->bytes + table->slot_bytes) / most_bytes;
    ph__html_begin_row(html);
    ph__html_bar_cell(html, share, "%s", table->name);
    ph__html_cell(html, "%s", ph__quantity_text((double)table->rows, rows));
    ph__html_cell(html, "%zu", table->dim);
    ph__html_cell(html, "%s", ph_row_format_name(table->format));
    ph__html_cell(html, "%s", ph__bytes_text(table->bytes, bytes));
    ph__html_cell(html, "%s", ph__bytes_text(table->slot_bytes, slots));
    if (table->kind != NULL)
        ph__html_cell(html, "%s", table->kind);
    ph__html_end_row(html);
}

static void write_table_rows(struct ph__html *html, const struct table *tables, size_t count)
{
    static const struct ph__html_column columns[] = {
        {"table", false, "the bar: its bytes with its slots, beside the largest"}, {"rows", true, NULL},
        {"dim", true, NULL}, {"format", false, "how rows are held"}, {"rows' bytes", true, NULL},
        {"slots' bytes", true, "memory of the optimizer"},
        {"spread over ranks", false, "data_parallel: each rank has all of it"}};
    const size_t num_columns = sizeof columns / sizeof *columns - (tables[0].kind == NULL ? 1 : 0);
    double most = (double)(tables[0].bytes + tables[0].slot_bytes);
    ph__html_begin_table(html, "table-table", columns, num_columns);
    for (size_t i = 0; i < count && i < PH_REPORT_MAX_ROWS; i++)
        write_table_row(html, &tables[i], fmax(most, 1));
    ph__html_end_table(html);
    ph__run_report_cap(html, "tables, by size", count);
}

static void write_tables(struct ph__html *html, const struct ph__trainer *trainer)
{
    size_t count = gather_tables(trainer, NULL);
    char note[192], total[32], slots[32];
    if (count == 0)
        return;
    struct table *tables = calloc(count, sizeof *tables);
    if (tables == NULL) {
        ph__html_fail(html, ph__out_of_memory("cannot show %zu tables", count));
        return;
    }
    gather_tables(trainer, tables);
    qsort(tables, count, sizeof *tables, by_bytes_descending);
    snprintf(note, sizeof note,
        "%zu tables. All parameters%s, dense ones included, take %s, and their optimizer slots %s.", count,
        trainer->ranks.comm != NULL ? " that the first rank holds" : "",
        ph__bytes_text(ph_store_parameter_bytes(trainer->store), total),
        ph__bytes_text(ph_store_slot_bytes(trainer->store), slots));
    ph__html_begin_section(html, "tables", "Tables", note);
    write_table_rows(html, tables, count);
    ph__html_end_section(html);
    free(tables);
}

/* ---- ids -------------------------------------------------------------------------------------------------- */

static double share_of(bool is_known, uint64_t part, uint64_t whole)
{
    return is_known && whole > 0 ? 100 * (double)part / (double)whole : (double)NAN;
}

static void write_counts(struct ph__html *html, const struct ph__trainer *trainer, size_t feature)
{
    const struct ph__run_statistics *statistics = &trainer->statistics;
    const struct ph__id_counts *valid = &statistics->valid_ids[feature],
                               *test = &statistics->test_ids[feature];
    bool has_unknown = trainer->job->encoder->sparse_columns[feature]->encoding == PH_ENCODING_VOCABULARY;
    ph__html_number_cell(html, "%.2f%%", share_of(has_unknown, valid->unknown, valid->ids));
    ph__html_number_cell(html, "%.2f%%", share_of(has_unknown, test->unknown, test->ids));
    ph__html_number_cell(html, "%.2f%%", share_of(valid->knows_unseen, valid->unseen, valid->ids));
    ph__html_number_cell(html, "%.2f%%", share_of(test->knows_unseen, test->unseen, test->ids));
}

static void write_feature(struct ph__html *html, const struct ph__trainer *trainer, size_t feature)
{
    const struct ph__id_coverage *coverage = &trainer->statistics.coverage;
    const struct ph_table_slice *slice = &trainer->features.sparse[feature];
    double share = ph__id_coverage_share(coverage, feature);
    char rows[PH_TICK_TEXT_BYTES];
    ph__html_begin_row(html);
    ph__html_cell(html, "%s", slice->name);
    ph__html_cell(html, "%s", ph__quantity_text((double)slice->num_rows, rows));
    if (isfinite(share))
        ph__html_bar_cell(html, share, "%.1f%%", 100 * share);
    else
        ph__html_cell(html, "–");
    write_counts(html, trainer, feature);
    ph__html_end_row(html);
}

static void write_ids(struct ph__html *html, const struct ph__trainer *trainer)
{
    static const struct ph__html_column columns[] = {{"feature", false, NULL}, {"rows", true, NULL},
        {"learnt from", false, "share of the table's rows"},
        {"unknown, validation", true, "ids of row 0: training had them too rarely or never"},
        {"unknown, test", true, NULL},
        {"unlearnt, validation", true, "ids whose row training has not learnt from"},
        {"unlearnt, test", true, NULL}};
    size_t count = trainer->statistics.coverage.num_features;
    if (count == 0)
        return;
    ph__html_begin_section(html, "ids", "Ids",
        "Rows of each table that training has learnt from, and how many ids of the validation and test data "
        "are not in "
        "the vocabulary, or name a row that training has not learnt from. –: not known, or not measured.");
    ph__html_begin_table(html, "id-table", columns, sizeof columns / sizeof *columns);
    for (size_t f = 0; f < count && f < PH_REPORT_MAX_ROWS; f++)
        write_feature(html, trainer, f);
    ph__html_end_table(html);
    ph__run_report_cap(html, "features", count);
    ph__html_end_section(html);
}

/* ---- memory and config ------------------------------------------------------------------------------------ */

static void write_memory(struct ph__html *html, const struct ph_train_memory *memory)
{
    static const struct ph__html_column columns[] = {{"", false, NULL}, {"bytes", true, NULL}};
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {{"before the graph was built", memory->baseline_bytes},
        {"parameters and state", memory->parameter_bytes}, {"optimizer slots", memory->slot_bytes},
        {"a batch in flight, buffers reused", memory->plan_bytes},
        {"the same without reuse", memory->no_reuse_bytes},
        {"most that was seen", memory->peak_anonymous_bytes},
        {"most that was promised", ph__memory_limit(memory)}};
    char text[32];
    ph__html_begin_section(html, "memory", "Memory", "Anonymous memory of the process.");
    ph__html_begin_table(html, "memory-table", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ph__html_begin_row(html);
        ph__html_cell(html, "%s", rows[i].name);
        ph__html_cell(html, "%s", ph__bytes_text(rows[i].bytes, text));
        ph__html_end_row(html);
    }
    ph__html_end_table(html);
    ph__html_end_section(html);
}

/* The config that the caller has left in the folder, if it has; one that cannot be read is left out as well. */
static void write_config(struct ph__html *html, const char *folder)
{
    struct ph__arena arena = {0};
    char path[PH_CHECKPOINT_PATH_BYTES], *text = NULL;
    size_t size;
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    if (ph__file_exists(path) && ph__file_read(&arena, path, MAX_CONFIG_BYTES, &text, &size) == PH_OK) {
        ph__html_begin_section(html, "config", "Config", "The effective one: defaults and --set included.");
        ph__html_begin_details(html, "config.yaml");
        ph__html_element(html, "pre", NULL, "%s", text);
        ph__html_end_details(html);
        ph__html_end_section(html);
    }
    ph__arena_fini(&arena);
}

/* ---- the page --------------------------------------------------------------------------------------------- */

static void write_page(struct ph__html *html, struct ph__trainer *trainer,
    const struct ph__metrics_file *metrics, const char *why)
{
    write_header(html, trainer, why);
    write_figures(html, trainer, why);
    ph__run_report_curves(html, trainer, metrics);
    ph__run_report_calibration(html, metrics);
    ph__run_report_operators(html, trainer);
    write_tables(html, trainer);
    write_ids(html, trainer);
    ph__run_report_graph(html, trainer);
    write_memory(html, &trainer->summary.memory);
    write_config(html, trainer->job->folder);
}

/* A training that has ended early: others cannot be asked any more what they have learnt from. */
static ph_status mark_rows(struct ph__trainer *trainer)
{
    struct ph__id_coverage *coverage = &trainer->statistics.coverage;
    if (trainer->ranks.comm == NULL)
        return ph__rows_learnt_mark(trainer->store, trainer->job->optimizer, coverage);
    ph__id_coverage_miss(coverage);
    return PH_OK;
}

ph_status ph__run_report_write(struct ph__trainer *trainer, const char *why)
{
    const char *folder = trainer->job->folder;
    char path[PH_CHECKPOINT_PATH_BYTES], title[256];
    struct ph__metrics_file metrics;
    struct ph__html *html;
    snprintf(title, sizeof title, "%s: %s", ph_model_name(trainer->job->model->kind), folder);
    snprintf(path, sizeof path, "%s/report.html", folder);
    PH_TRY(ph__metrics_file_read(trainer->metrics_log.path, &metrics));
    ph_status status = why == NULL ? PH_OK : mark_rows(trainer);
    if (status == PH_OK)
        status = ph__html_open(path, title, &html);
    if (status == PH_OK) {
        write_page(html, trainer, &metrics, why);
        status = ph__html_finish(html);
        ph__html_close(html);
    }
    ph__metrics_file_fini(&metrics);
    return status;
}
