/* Sections "tables" and "ids" of report.html: what embedding tables take, and how far the data reaches into them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/format/ticks.h"
#include "base/memory/memory.h"
#include "data/encode/encoder.h"
#include "store/store.h"
#include "tensor/row_format.h"
#include "train/folder/run_report.h"
#include "train/ranks/memory_check.h"

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

static void write_tables(struct ph__html *html, const struct table *tables, size_t count)
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

void ph__run_report_tables(struct ph__html *html, const struct ph__trainer *trainer)
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
    write_tables(html, tables, count);
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

void ph__run_report_ids(struct ph__html *html, const struct ph__trainer *trainer)
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
