/* Section "operators" of report.html: where a step's time goes, by the profile of the steps that were measured. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/executor.h"
#include "train/folder/run_report_parts.h"

struct row {
    const char *name, *entry;
    size_t num_nodes;
    struct ph_node_profile profile;
};

static int by_time_descending(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return a->profile.time_ns < b->profile.time_ns ? 1 : a->profile.time_ns > b->profile.time_ns ? -1 : 0;
}

static void add_profile(struct row *row, const struct ph_node_profile *profile)
{
    row->num_nodes++;
    row->profile.num_calls += profile->num_calls;
    row->profile.time_ns += profile->time_ns;
    row->profile.cost.flops += profile->cost.flops;
    row->profile.cost.bytes += profile->cost.bytes;
}

/* The row of that name among the first `count`, or a new one behind them. */
static struct row *row_of(struct row *rows, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    rows[*count] = (struct row){.name = name};
    return &rows[(*count)++];
}

/* By operator, or a row a node; (num_nodes) rows at most, dearest first. */
static size_t gather(const struct ph_executor *executor, bool is_by_operator, struct row *rows)
{
    const struct ph_graph *graph = &executor->program->graph;
    size_t count = 0;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph_node *node = &graph->nodes[i];
        if (executor->profile[i].num_calls == 0)
            continue;
        if (is_by_operator) {
            add_profile(row_of(rows, &count, node->op->name), &executor->profile[i]);
        } else {
            rows[count] = (struct row){.name = node->name, .entry = graph->entries[node->entry]};
            add_profile(&rows[count++], &executor->profile[i]);
        }
    }
    qsort(rows, count, sizeof *rows, by_time_descending);
    return count;
}

static double total_seconds(const struct row *rows, size_t count)
{
    double seconds = 0;
    for (size_t i = 0; i < count; i++)
        seconds += 1e-9 * (double)rows[i].profile.time_ns;
    return seconds;
}

static void write_row(struct ph_html *html, const struct row *row, double total, double steps)
{
    double seconds = 1e-9 * (double)row->profile.time_ns, share = total > 0 ? seconds / total : 0;
    double giga = seconds > 0 ? 1e-9 / seconds : (double)NAN;
    ph__html_begin_row(html);
    ph__html_bar_cell(html, share, "%s", row->name);
    if (row->entry != NULL)
        ph__html_cell(html, "%s", row->entry);
    else
        ph__html_cell(html, "%zu", row->num_nodes);
    ph__html_cell(html, "%.1f%%", 100 * share);
    ph__html_number_cell(html, "%.1f", 1e6 * seconds / steps);
    ph__html_number_cell(html, "%.2f", row->profile.cost.flops * giga);
    ph__html_number_cell(html, "%.2f", row->profile.cost.bytes * giga);
    ph__html_end_row(html);
}

static void write_rows(
    struct ph_html *html, const char *id, const struct row *rows, size_t count, double steps)
{
    bool is_by_operator = count > 0 && rows[0].entry == NULL;
    const struct ph_html_column columns[] = {
        {is_by_operator ? "operator" : "node", false, "the bar: its share of a step"},
        {is_by_operator ? "nodes" : "entry", is_by_operator, NULL}, {"share", true, NULL},
        {"µs a step", true, "time of its nodes; some run side by side"},
        {"GFLOP/s", true, "by the operator's cost rule"},
        {"GB/s", true, "each operand read or written once"}};
    double total = total_seconds(rows, count);
    ph__html_begin_table(html, id, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < count && i < PH_REPORT_MAX_ROWS; i++)
        write_row(html, &rows[i], total, steps);
    ph__html_end_table(html);
    ph__run_report_cap(html, "nodes", count);
}

static void write_tables(struct ph_html *html, const struct ph__trainer *trainer, struct row *rows)
{
    double steps = (double)trainer->record.profiled_steps;
    size_t count = gather(trainer->executor, true, rows);
    write_rows(html, "operator-table", rows, count, steps);
    count = gather(trainer->executor, false, rows);
    ph__html_begin_details(html, "node by node");
    write_rows(html, "node-table", rows, count, steps);
    ph__html_end_details(html);
}

void ph__run_report_operators(struct ph_html *html, const struct ph__trainer *trainer)
{
    const struct ph__run_record *record = &trainer->record;
    char note[256];
    if (record->profiled_steps == 0)
        snprintf(note, sizeof note,
            "No step was measured: this process took %" PRIu64 " of them, and the first one is left out.",
            record->taken_steps);
    else if (record->profiled_steps == record->taken_steps)
        snprintf(note, sizeof note,
            "Of a training step, measured on all %" PRIu64 " steps that this process took.",
            record->taken_steps);
    else
        snprintf(note, sizeof note,
            "Of a training step, measured on %" PRIu64 " of the %" PRIu64
            " steps that this process took: some at the beginning but not the very first, then one in many.",
            record->profiled_steps, record->taken_steps);
    ph__html_begin_section(html, "operators", "Time by operator", note);
    struct row *rows = calloc(trainer->executor->program->graph.num_nodes + 1, sizeof *rows);
    if (rows == NULL)
        ph__html_fail(html, ph_fail(PH_ERROR_MEMORY, "no memory to show a profile"));
    else if (record->profiled_steps > 0)
        write_tables(html, trainer, rows);
    free(rows);
    ph__html_end_section(html);
}
