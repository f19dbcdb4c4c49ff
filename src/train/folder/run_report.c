#include "train/folder/run_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file/file.h"
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

/* ---- header ---- */

static const char *place_of(struct ph__rows_origin rows)
{
    if (!ph__job_rows_exist(rows))
        return "none";
    return rows.dataset != NULL ? "a dataset of the calling program" : rows.path;
}

static void add_time(struct ph__page *page)
{
    char text[64] = "";
    struct tm utc;
    time_t now = time(NULL);
    if (gmtime_r(&now, &utc) != NULL)
        strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
    ph__page_add_fact(page, "written", text);
}

static void add_facts(struct ph__page *page, const struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    char text[160];
    ph__page_add_fact(page, "folder", job->options.folder);
    ph__page_add_fact(page, "training data", place_of(ph__job_train(job)));
    ph__page_add_fact(page, "validation data", place_of(ph__job_valid(job)));
    ph__page_add_fact(page, "test data", place_of(ph__job_test(job)));
    snprintf(text, sizeof text, "%" PRIu64, job->run.seed);
    ph__page_add_fact(page, "seed", text);
    if (trainer->ranks.comm != NULL) {
        snprintf(text, sizeof text, "%zu; threads, times of operators and memory are those of rank 0",
            trainer->ranks.world_size);
        ph__page_add_fact(page, "ranks", text);
    }
    ph__page_add_fact(page, "machine", ph_backend_describe(trainer->backend));
    snprintf(text, sizeof text, "phloem %s", ph_version());
    ph__page_add_fact(page, "program", text);
    add_time(page);
}

/* Writes how far the training got and why it ended. */
static void set_state(struct ph__page *page, const struct ph__trainer *trainer, const char *why)
{
    const struct ph_train_summary *summary = &trainer->summary;
    struct ph__arena arena = {0};
    const char *resumed = "", *kept = "", *skipped = "";
    if (summary->resumed_step > 0)
        resumed = ph__arena_printf(&arena, "; resumed at step %" PRIu64, summary->resumed_step);
    if (trainer->best_step > 0)
        kept = ph__arena_printf(&arena, ". The model kept is that of step %" PRIu64 ", epoch %" PRIu64,
            trainer->best_step, summary->best_epoch);
    if (summary->skipped_steps > 0)
        skipped = ph__arena_printf(&arena,
            ". %" PRIu64 " steps were skipped: their loss or gradients were not finite",
            summary->skipped_steps);
    const char *text =
        why == NULL
            ? ph__arena_printf(&arena,
                  "Finished after %" PRIu64 " steps in %" PRIu64 " epoch%s, ended by train.%s%s%s%s.",
                  summary->steps, trainer->epoch, trainer->epoch == 1 ? "" : "s",
                  ph__train_end_name(summary->ended_by), resumed, kept, skipped)
            : ph__arena_printf(&arena,
                  "Not finished: stopped at step %" PRIu64 ", in epoch %" PRIu64 "%s%s%s. Reason: %s.",
                  summary->steps, trainer->epoch, resumed, kept, skipped, why);
    ph__page_set_state(page, why == NULL, text);
    ph__arena_fini(&arena);
}

/* ---- figures ---- */

static void add_metrics(struct ph__json *blocks, const char *heading, const struct ph_metrics *metrics)
{
    char error[48] = "";
    ph__page_add_text(blocks, "heading", heading);
    struct ph__json *items = ph__page_add_figures(blocks);
    if (metrics->auc_error > 0)
        snprintf(error, sizeof error, "within %.1g", metrics->auc_error);
    if (isfinite(metrics->accuracy)) {
        ph__page_add_figure(items, "accuracy", metrics->accuracy, ".5", NULL);
        ph__page_add_figure(items, "logloss", metrics->logloss, ".5", NULL);
        ph__page_add_figure(items, "samples", (double)metrics->num_samples, "quantity", NULL);
        return;
    }
    ph__page_add_figure(items, "AUC", metrics->auc, ".5", error);
    if (isfinite(metrics->grouped_auc))
        ph__page_add_figure(items, "grouped AUC", metrics->grouped_auc, ".5", NULL);
    ph__page_add_figure(items, "logloss", metrics->logloss, ".5", NULL);
    ph__page_add_figure(items, "NE", metrics->ne, ".5", "relative to the base rate");
    ph__page_add_figure(items, "calibration", metrics->calibration, ".5", "predicted / observed");
    ph__page_add_figure(items, "base rate", metrics->base_rate, ".5", NULL);
    ph__page_add_figure(items, "samples", (double)metrics->num_samples, "quantity", NULL);
}

static void add_speed(struct ph__json *blocks, const struct ph__trainer *trainer)
{
    const struct ph_train_summary *summary = &trainer->summary;
    const double seconds = summary->train_seconds > 0 ? summary->train_seconds : (double)NAN;
    const double flops = summary->flops_per_sample > 0 ? summary->flops_per_sample : (double)NAN;
    char threads[48];
    snprintf(threads, sizeof threads, "%zu threads", summary->num_threads);
    ph__page_add_text(blocks, "heading", "Training");
    struct ph__json *items = ph__page_add_figures(blocks);
    ph__page_add_figure(items, "samples/s", (double)summary->samples / seconds, "quantity", threads);
    ph__page_add_figure(items, "seconds", seconds, "quantity", "without evaluations");
    ph__page_add_figure(items, "parameters", (double)summary->parameters, "quantity", NULL);
    ph__page_add_figure(items, "FLOPs/sample", flops, "quantity", "forward, backward, update");
    ph__page_add_figure(
        items, "peak memory", (double)summary->memory.peak_anonymous_bytes, "bytes", "anonymous");
}

static void add_figures(struct ph__page *page, const struct ph__trainer *trainer, const char *why)
{
    const struct ph_train_summary *summary = &trainer->summary;
    const char *note = trainer->features.num_tasks > 1 && ph_encoder_num_classes(trainer->job->encoder) == 0
                           ? "Metrics are those of the first label."
                           : NULL;
    struct ph__json *blocks = ph__page_add_section(page, "figures", "Figures", note);
    if (why == NULL && summary->has_test)
        add_metrics(blocks, "Test, the model kept", &summary->test);
    if (ph__job_rows_exist(ph__job_valid(trainer->job)) && trainer->best_step > 0)
        add_metrics(blocks, "Validation, the model kept", &summary->valid);
    if (summary->has_progressive)
        add_metrics(blocks, "Progressive: each row before the model learnt from it", &summary->progressive);
    add_speed(blocks, trainer);
}

/* ---- tables ---- */

struct table {
    const char *name;
    size_t rows, dim;
    enum ph_row_format format;
    uint64_t bytes, slot_bytes;
    const char *kind; /* spread over ranks; NULL: there is one rank */
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

/* Describes a table that ranks share. */
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

/* Counts the tables of all ranks together, each once, and describes them unless `tables` is NULL. */
static size_t gather_tables(const struct ph__trainer *trainer, struct table *tables)
{
    const struct ph_store *store = trainer->store;
    const struct ph__plan *plan = trainer->ranks.plan;
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

static void add_table_rows(struct ph__json *blocks, const struct table *tables, size_t count)
{
    static const struct ph__page_column columns[] = {
        {"table", NULL, "the bar: its bytes with its slots, relative to the largest"},
        {"rows", "quantity", NULL}, {"dim", "number", NULL}, {"format", NULL, "number format of rows"},
        {"rows' bytes", "bytes", NULL}, {"slots' bytes", "bytes", "memory of the optimizer"},
        {"spread over ranks", NULL, "data_parallel: each rank has the whole table"}};
    const bool is_spread = tables[0].kind != NULL;
    const double most = fmax((double)(tables[0].bytes + tables[0].slot_bytes), 1);
    struct ph__page_table shown = ph__page_add_table(
        blocks, "table-table", columns, sizeof columns / sizeof *columns - (is_spread ? 0 : 1), count);
    for (size_t i = 0; i < count && i < PH_PAGE_MAX_ROWS; i++) {
        const struct table *table = &tables[i];
        struct ph__json *row = ph__page_add_row(&shown, (double)(table->bytes + table->slot_bytes) / most);
        ph__json_append_text(row, table->name);
        ph__json_append_integer(row, (int64_t)table->rows);
        ph__json_append_integer(row, (int64_t)table->dim);
        ph__json_append_text(row, ph_row_format_name(table->format));
        ph__json_append_integer(row, (int64_t)table->bytes);
        ph__json_append_integer(row, (int64_t)table->slot_bytes);
        if (is_spread)
            ph__json_append_text(row, table->kind);
    }
}

/* PH_ERROR_MEMORY. */
static ph_status add_tables(struct ph__page *page, const struct ph__trainer *trainer)
{
    const size_t count = gather_tables(trainer, NULL);
    char note[192], total[32], slots[32];
    if (count == 0)
        return PH_OK;
    struct table *tables = calloc(count, sizeof *tables);
    if (tables == NULL)
        return ph__out_of_memory("cannot show %zu tables", count);
    gather_tables(trainer, tables);
    qsort(tables, count, sizeof *tables, by_bytes_descending);
    snprintf(note, sizeof note,
        "%zu tables. All parameters%s, dense ones included, take %s, and their optimizer slots %s.", count,
        trainer->ranks.comm != NULL ? " that rank 0 holds" : "",
        ph__bytes_text(ph_store_parameter_bytes(trainer->store), total),
        ph__bytes_text(ph_store_slot_bytes(trainer->store), slots));
    add_table_rows(ph__page_add_section(page, "tables", "Tables", note), tables, count);
    free(tables);
    return PH_OK;
}

/* ---- ids ---- */

static double share_of(bool is_known, uint64_t counted, uint64_t whole)
{
    return is_known && whole > 0 ? (double)counted / (double)whole : (double)NAN;
}

static void add_feature(struct ph__page_table *table, const struct ph__trainer *trainer, size_t feature)
{
    const struct ph__run_statistics *statistics = &trainer->statistics;
    const struct ph_table_slice *slice = &trainer->features.sparse[feature];
    const struct ph__id_counts *valid = &statistics->valid_ids[feature],
                               *test = &statistics->test_ids[feature];
    const bool has_unknown =
        trainer->job->encoder->sparse_columns[feature]->encoding == PH_ENCODING_VOCABULARY;
    const double learnt = ph__id_coverage_share(&statistics->coverage, feature);
    struct ph__json *row = ph__page_add_row(table, learnt);
    ph__json_append_text(row, slice->name);
    ph__json_append_integer(row, (int64_t)slice->num_rows);
    ph__json_append_number(row, learnt);
    ph__json_append_number(row, share_of(has_unknown, valid->unknown, valid->ids));
    ph__json_append_number(row, share_of(has_unknown, test->unknown, test->ids));
    ph__json_append_number(row, share_of(valid->knows_unseen, valid->unseen, valid->ids));
    ph__json_append_number(row, share_of(test->knows_unseen, test->unseen, test->ids));
}

static void add_ids(struct ph__page *page, const struct ph__trainer *trainer)
{
    static const struct ph__page_column columns[] = {
        {"feature", NULL, "the bar: the share of its rows that training has learnt from"},
        {"rows", "quantity", NULL}, {"learnt from", "percent", "share of the table's rows"},
        {"unknown, validation", "percent", "ids of row 0: too rare in the training data, or not there"},
        {"unknown, test", "percent", NULL},
        {"unlearnt, validation", "percent", "ids whose row training has not learnt from"},
        {"unlearnt, test", "percent", NULL}};
    const size_t count = trainer->statistics.coverage.num_features;
    if (count == 0)
        return;
    struct ph__json *blocks = ph__page_add_section(page, "ids", "Ids",
        "Rows of each table that training has learnt from, and the share of ids in the validation and test "
        "data that are not in the vocabulary, or whose row training has not learnt from. –: not known, or "
        "not "
        "measured.");
    struct ph__page_table table =
        ph__page_add_table(blocks, "id-table", columns, sizeof columns / sizeof *columns, count);
    for (size_t f = 0; f < count && f < PH_PAGE_MAX_ROWS; f++)
        add_feature(&table, trainer, f);
}

/* ---- memory and config ---- */

static void add_memory(struct ph__page *page, const struct ph_train_memory *memory)
{
    static const struct ph__page_column columns[] = {{"memory", NULL, NULL}, {"bytes", "bytes", NULL}};
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {{"before the graph was built", memory->baseline_bytes},
        {"parameters and state", memory->parameter_bytes}, {"optimizer slots", memory->slot_bytes},
        {"a batch in flight, buffers reused", memory->plan_bytes},
        {"the same without reuse", memory->no_reuse_bytes},
        {"distributions of the probe", memory->probe_bytes}, {"measured peak", memory->peak_anonymous_bytes},
        {"computed limit", ph__memory_limit(memory)}};
    struct ph__page_table table =
        ph__page_add_table(ph__page_add_section(page, "memory", "Memory", "Anonymous memory of the process."),
            "memory-table", columns, sizeof columns / sizeof *columns, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ph__json *row = ph__page_add_row(&table, (double)NAN);
        ph__json_append_text(row, rows[i].name);
        ph__json_append_integer(row, (int64_t)rows[i].bytes);
    }
}

/* Shows the config that the caller has left in the folder, if it can be read. */
static void add_config(struct ph__page *page, const char *folder)
{
    struct ph__arena arena = {0};
    char path[PH_CHECKPOINT_PATH_BYTES], *text = NULL;
    size_t size;
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    if (ph__file_exists(path) && ph__file_read(&arena, path, MAX_CONFIG_BYTES, &text, &size) == PH_OK) {
        struct ph__json *blocks = ph__page_add_section(
            page, "config", "Config", "The effective config: defaults and --set included.");
        ph__page_add_text(ph__page_add_details(blocks, "config.yaml"), "preformatted", text);
    }
    ph__arena_fini(&arena);
}

/* ---- the page ---- */

static ph_status fill_page(struct ph__page *page, struct ph__trainer *trainer,
    const struct ph__metrics_file *metrics, const char *why)
{
    add_facts(page, trainer);
    set_state(page, trainer, why);
    add_figures(page, trainer, why);
    ph__run_report_curves(page, trainer, metrics);
    ph__run_report_calibration(page, metrics);
    PH_TRY(ph__run_report_operators(page, trainer));
    PH_TRY(add_tables(page, trainer));
    add_ids(page, trainer);
    PH_TRY(ph__run_report_graph(page, trainer));
    add_memory(page, &trainer->summary.memory);
    add_config(page, trainer->job->options.folder);
    return PH_OK;
}

/* Marks the rows that an early-ended training has learnt from. On several ranks that stays unknown: the
 * others can no longer be asked. */
static ph_status mark_rows(struct ph__trainer *trainer)
{
    struct ph__id_coverage *coverage = &trainer->statistics.coverage;
    if (trainer->ranks.comm == NULL)
        return ph__rows_learnt_mark(trainer->store, trainer->job->optimizer, coverage);
    ph__id_coverage_miss(coverage);
    return PH_OK;
}

static ph_status write_page(
    struct ph__trainer *trainer, const struct ph__metrics_file *metrics, const char *why)
{
    const int kind = trainer->job->model->kind;
    char path[PH_CHECKPOINT_PATH_BYTES], title[256];
    struct ph__page page;
    snprintf(title, sizeof title, "%s: %s", ph_model_name(kind), trainer->job->options.folder);
    snprintf(path, sizeof path, "%s/report.html", trainer->job->options.folder);
    ph__page_init(&page, title, ph_model_name(kind), ph_model_description(kind));
    ph_status status = fill_page(&page, trainer, metrics, why);
    if (status == PH_OK)
        status = ph__page_write(&page, path);
    ph__page_fini(&page);
    return status;
}

ph_status ph__run_report_write(struct ph__trainer *trainer, const char *why)
{
    struct ph__metrics_file metrics;
    PH_TRY(ph__metrics_file_read(trainer->metrics_log.path, &metrics));
    ph_status status = why == NULL ? PH_OK : mark_rows(trainer);
    if (status == PH_OK)
        status = write_page(trainer, &metrics, why);
    ph__metrics_file_fini(&metrics);
    return status;
}
