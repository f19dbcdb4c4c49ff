/* Sections "graph" and "operators" of report.html: the forward entry of the program that learnt, as it ran, and its profile. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/svg.h"
#include "base/memory/memory.h"
#include "graph/executor.h"
#include "graph/graph.h"
#include "train/folder/run_report.h"

#define MAX_DRAWN 400 /* nodes: more than anybody reads */
#define NOT_DRAWN SIZE_MAX

enum { COLOR_BATCH = 3, COLOR_TABLE = 2, COLOR_WEIGHTS = 1, COLOR_PLAIN = 0 };

struct picture {
    const struct ph__graph *graph;
    size_t num_graph_nodes; /* of the forward entry */
    struct ph__arena arena;
    size_t *drawn_node,
        *drawn_value; /* by node and by input of the batch: its number in the drawing, or NOT_DRAWN */
    struct ph__graph_node *nodes;
    struct ph__graph_edge *edges;
    size_t num_nodes, num_edges;
};

/* Whether a node reads something that comes from the batch: one that does not only prepares weights, as packing does. */
static bool reads_batch(const struct picture *picture, const struct ph__node *node)
{
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const struct ph__value_info *info = &picture->graph->values[node->inputs[k]];
        if (node->inputs[k] == 0)
            continue;
        if (info->storage == PH_STORAGE_INPUT)
            return true;
        if (info->producer != PH_NO_NODE && picture->drawn_node[info->producer] != NOT_DRAWN)
            return true;
    }
    return false;
}

static size_t color_of(const struct ph__graph *graph, const struct ph__node *node)
{
    size_t color = COLOR_PLAIN;
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const struct ph__value_info *info = &graph->values[node->inputs[k]];
        if (node->inputs[k] == 0)
            continue;
        if (info->storage == PH_STORAGE_PARAMETER && graph->declarations[info->source].is_table)
            return COLOR_TABLE;
        if (info->storage == PH_STORAGE_PARAMETER ||
            (info->producer != PH_NO_NODE && info->type.kind == PH_DENSE &&
                (graph->nodes[info->producer].op->traits & PH_OP_ONCE_PER_VERSION) != 0))
            color = COLOR_WEIGHTS;
    }
    return color;
}

/* Name, operator, and what it reads and makes. */
static const char *describe(struct picture *picture, const struct ph__node *node)
{
    const struct ph__graph *graph = picture->graph;
    char type[96];
    char *text = ph__arena_printf(&picture->arena, "%s: %s", node->name, node->op->name);
    for (uint32_t k = 0; k < node->num_inputs && text != NULL; k++)
        if (node->inputs[k] != 0) {
            const struct ph__value_info *info = &graph->values[node->inputs[k]];
            text = ph__arena_printf(
                &picture->arena, "%s\nreads %s %s", text, info->name, ph__type_text(&info->type, type));
        }
    for (uint32_t k = 0; k < node->num_outputs && text != NULL; k++) {
        const struct ph__value_info *info = &graph->values[node->outputs[k]];
        text = ph__arena_printf(&picture->arena, "%s\nmakes %s", text, ph__type_text(&info->type, type));
    }
    return text;
}

static size_t add_node(struct picture *picture, struct ph__graph_node node)
{
    picture->nodes[picture->num_nodes] = node;
    return picture->num_nodes++;
}

static const char *type_note(struct picture *picture, ph_value value)
{
    char text[96];
    const char *note =
        ph__arena_strdup(&picture->arena, ph__type_text(&picture->graph->values[value].type, text));
    return note != NULL ? note : "";
}

static void add_inputs(struct picture *picture)
{
    for (size_t i = 0; i < PH_INPUT_COUNT; i++) {
        ph_value value = picture->graph->batch_inputs[i];
        bool is_read = false;
        for (size_t n = 0; value != 0 && n < picture->num_graph_nodes; n++)
            for (uint32_t k = 0; k < picture->graph->nodes[n].num_inputs; k++)
                is_read = is_read || picture->graph->nodes[n].inputs[k] == value;
        if (is_read)
            picture->drawn_value[i] =
                add_node(picture, (struct ph__graph_node){.label = picture->graph->values[value].name,
                                      .note = type_note(picture, value),
                                      .color = COLOR_BATCH});
    }
}

static void add_edges(struct picture *picture, const struct ph__node *node, size_t to)
{
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const struct ph__value_info *info = &picture->graph->values[node->inputs[k]];
        size_t from = NOT_DRAWN;
        if (node->inputs[k] != 0 && info->storage == PH_STORAGE_INPUT)
            from = picture->drawn_value[info->source];
        else if (node->inputs[k] != 0 && info->producer != PH_NO_NODE)
            from = picture->drawn_node[info->producer];
        if (from != NOT_DRAWN)
            picture->edges[picture->num_edges++] = (struct ph__graph_edge){from, to};
    }
}

static void add_nodes(struct picture *picture)
{
    const struct ph__graph *graph = picture->graph;
    for (size_t i = 0; i < picture->num_graph_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        if (!reads_batch(picture, node))
            continue;
        const char *note = node->num_outputs > 0 ? type_note(picture, node->outputs[0]) : "";
        size_t drawn = add_node(picture, (struct ph__graph_node){.label = node->name,
                                             .note = note,
                                             .title = describe(picture, node),
                                             .color = color_of(graph, node)});
        picture->drawn_node[i] = drawn;
        add_edges(picture, node, drawn);
    }
}

static ph_status picture_init(const struct ph_program *program, struct picture *picture)
{
    size_t num_edges = 0, count = program->entry_begin[1] - program->entry_begin[0];
    *picture = (struct picture){.graph = &program->graph, .num_graph_nodes = count};
    for (size_t i = 0; i < count; i++)
        num_edges += program->graph.nodes[i].num_inputs;
    picture->drawn_node = ph__arena_alloc_array(&picture->arena, count, sizeof *picture->drawn_node);
    picture->drawn_value =
        ph__arena_alloc_array(&picture->arena, PH_INPUT_COUNT, sizeof *picture->drawn_value);
    picture->nodes = ph__arena_alloc_array(&picture->arena, count + PH_INPUT_COUNT, sizeof *picture->nodes);
    picture->edges = ph__arena_alloc_array(&picture->arena, num_edges, sizeof *picture->edges);
    if (picture->drawn_node == NULL || picture->drawn_value == NULL || picture->nodes == NULL ||
        picture->edges == NULL)
        return PH_ERROR_MEMORY;
    memset(picture->drawn_node, 0xff, count * sizeof *picture->drawn_node); /* NOT_DRAWN */
    memset(picture->drawn_value, 0xff, PH_INPUT_COUNT * sizeof *picture->drawn_value);
    return PH_OK;
}

static void draw(struct ph__html *html, struct picture *picture)
{
    add_inputs(picture);
    add_nodes(picture);
    if (picture->num_nodes > MAX_DRAWN) {
        ph__html_element(html, "p", NULL,
            "It has %zu nodes, too many to draw: phloem inspect model DIR --dot writes them for Graphviz.",
            picture->num_nodes);
        return;
    }
    ph__html_graph(html, &(struct ph__graph_drawing){.id = "model-graph",
                             .nodes = picture->nodes,
                             .num_nodes = picture->num_nodes,
                             .edges = picture->edges,
                             .num_edges = picture->num_edges});
}

void ph__run_report_graph(struct ph__html *html, const struct ph__trainer *trainer)
{
    struct picture picture;
    ph_status status = picture_init(trainer->learning.program, &picture);
    ph__html_begin_section(html, "graph", "Graph",
        "The forward pass as it ran, operators fused, down to the loss. Coloured are what the batch brings, "
        "operators that read "
        "tables, and operators that read weights; the preparation of weights is left out. B is the batch, N "
        "its ids.");
    if (status == PH_OK)
        draw(html, &picture);
    else
        ph__html_fail(html, status);
    ph__html_end_section(html);
    ph__arena_fini(&picture.arena);
}

/* ---- section "operators": where a step's time goes, by the profile of the steps that were measured ------------------- */

struct row {
    const char *name, *entry;
    size_t num_nodes;
    struct ph__node_profile profile;
};

static int by_time_descending(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return a->profile.time_ns < b->profile.time_ns ? 1 : a->profile.time_ns > b->profile.time_ns ? -1 : 0;
}

static void add_profile(struct row *row, const struct ph__node_profile *profile)
{
    row->num_nodes++;
    row->profile.num_calls += profile->num_calls;
    row->profile.time_ns += profile->time_ns;
    row->profile.cost.flops += profile->cost.flops;
    row->profile.cost.bytes += profile->cost.bytes;
}

/* Finds the row of that name among the first `count`, or adds one behind them. */
static struct row *row_of(struct row *rows, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    rows[*count] = (struct row){.name = name};
    return &rows[(*count)++];
}

/* Lists rows by operator, or one a node; (num_nodes) at most, dearest first. */
static size_t gather(const struct ph_executor *executor, bool is_by_operator, struct row *rows)
{
    const struct ph__graph *graph = &executor->program->graph;
    size_t count = 0;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
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

static void write_row(struct ph__html *html, const struct row *row, double total, double steps)
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
    struct ph__html *html, const char *id, const struct row *rows, size_t count, double steps)
{
    bool is_by_operator = count > 0 && rows[0].entry == NULL;
    const struct ph__html_column columns[] = {
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

static void write_tables(struct ph__html *html, const struct ph__trainer *trainer, struct row *rows)
{
    double steps = (double)trainer->statistics.profiled_steps;
    size_t count = gather(trainer->executor, true, rows);
    write_rows(html, "operator-table", rows, count, steps);
    count = gather(trainer->executor, false, rows);
    ph__html_begin_details(html, "node by node");
    write_rows(html, "node-table", rows, count, steps);
    ph__html_end_details(html);
}

void ph__run_report_operators(struct ph__html *html, const struct ph__trainer *trainer)
{
    const struct ph__run_statistics *statistics = &trainer->statistics;
    char note[256];
    if (statistics->profiled_steps == 0)
        snprintf(note, sizeof note,
            "No step was measured: this process took %" PRIu64 " of them, and the first one is left out.",
            statistics->taken_steps);
    else if (statistics->profiled_steps == statistics->taken_steps)
        snprintf(note, sizeof note,
            "Of a training step, measured on all %" PRIu64 " steps that this process took.",
            statistics->taken_steps);
    else
        snprintf(note, sizeof note,
            "Of a training step, measured on %" PRIu64 " of the %" PRIu64
            " steps that this process took: some at the beginning but not the very first, then one in many.",
            statistics->profiled_steps, statistics->taken_steps);
    ph__html_begin_section(html, "operators", "Time by operator", note);
    struct row *rows = calloc(trainer->executor->program->graph.num_nodes + 1, sizeof *rows);
    if (rows == NULL)
        ph__html_fail(html, ph__out_of_memory("cannot show a profile"));
    else if (statistics->profiled_steps > 0)
        write_tables(html, trainer, rows);
    free(rows);
    ph__html_end_section(html);
}
