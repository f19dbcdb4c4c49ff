/* Sections "graph" and "operators" of report.html: the forward entry of the training program, as it ran, and
 * its profile. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "graph/executor.h"
#include "graph/graph.h"
#include "train/folder/run_report.h"

#define MAX_DRAWN 400 /* nodes; nobody reads more */
#define NOT_DRAWN SIZE_MAX

enum { COLOR_BATCH = 3, COLOR_TABLE = 2, COLOR_WEIGHTS = 1, COLOR_PLAIN = 0 };

/* A drawing in progress of the forward entry. */
struct picture {
    const struct ph__graph *graph;
    size_t num_graph_nodes;             /* nodes of the entry */
    size_t *drawn_node;                 /* (num_graph_nodes) number in the drawing, or NOT_DRAWN */
    size_t drawn_value[PH_INPUT_COUNT]; /* the same for the batch's inputs */
    size_t num_drawn;
    struct ph__json *nodes, *edges; /* owned */
};

/* Returns true when a node reads something of the batch; others only prepare weights, as packing does. */
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

static int color_of(const struct ph__graph *graph, const struct ph__node *node)
{
    int color = COLOR_PLAIN;
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

/* Appends a node and returns its number in the drawing. */
static size_t add_node(
    struct picture *picture, const char *label, const char *note, const char *title, int color)
{
    struct ph__json *node = ph__json_object();
    ph__json_set_text(node, "label", label);
    ph__json_set_text(node, "note", note);
    ph__json_set_text(node, "title", title);
    ph__json_set_integer(node, "color", color);
    ph__json_append(picture->nodes, node);
    return picture->num_drawn++;
}

static bool is_read(const struct picture *picture, ph_value value)
{
    for (size_t n = 0; n < picture->num_graph_nodes; n++)
        for (uint32_t k = 0; k < picture->graph->nodes[n].num_inputs; k++)
            if (picture->graph->nodes[n].inputs[k] == value)
                return true;
    return false;
}

static void add_inputs(struct picture *picture)
{
    char type[96];
    for (size_t i = 0; i < PH_INPUT_COUNT; i++) {
        const ph_value value = picture->graph->batch_inputs[i];
        const struct ph__value_info *info = &picture->graph->values[value];
        picture->drawn_value[i] =
            value != 0 && is_read(picture, value)
                ? add_node(picture, info->name, ph__type_text(&info->type, type), NULL, COLOR_BATCH)
                : NOT_DRAWN;
    }
}

/* Returns the drawn node that an operand comes from, or NOT_DRAWN. */
static size_t source_of(const struct picture *picture, ph_value value)
{
    const struct ph__value_info *info = &picture->graph->values[value];
    if (value == 0)
        return NOT_DRAWN;
    if (info->storage == PH_STORAGE_INPUT)
        return picture->drawn_value[info->source];
    return info->producer != PH_NO_NODE ? picture->drawn_node[info->producer] : NOT_DRAWN;
}

static void add_edges(struct picture *picture, const struct ph__node *node, size_t to)
{
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const size_t from = source_of(picture, node->inputs[k]);
        if (from == NOT_DRAWN)
            continue;
        struct ph__json *edge = ph__json_array();
        ph__json_append_integer(edge, (int64_t)from);
        ph__json_append_integer(edge, (int64_t)to);
        ph__json_append(picture->edges, edge);
    }
}

/* Writes the node's name and operator, and the values that it reads and makes, a line each, in the arena;
 * NULL: no memory. */
static const char *describe(
    const struct ph__graph *graph, const struct ph__node *node, struct ph__arena *arena)
{
    char type[96];
    char *text = ph__arena_printf(arena, "%s: %s", node->name, node->op->name);
    for (uint32_t k = 0; k < node->num_inputs && text != NULL; k++)
        if (node->inputs[k] != 0) {
            const struct ph__value_info *info = &graph->values[node->inputs[k]];
            text = ph__arena_printf(
                arena, "%s\nreads %s %s", text, info->name, ph__type_text(&info->type, type));
        }
    for (uint32_t k = 0; k < node->num_outputs && text != NULL; k++)
        text = ph__arena_printf(
            arena, "%s\nmakes %s", text, ph__type_text(&graph->values[node->outputs[k]].type, type));
    return text;
}

static void add_nodes(struct picture *picture)
{
    const struct ph__graph *graph = picture->graph;
    struct ph__arena arena = {0};
    char type[96];
    for (size_t i = 0; i < picture->num_graph_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        picture->drawn_node[i] = NOT_DRAWN;
        if (!reads_batch(picture, node))
            continue;
        const char *note =
            node->num_outputs > 0 ? ph__type_text(&graph->values[node->outputs[0]].type, type) : NULL;
        picture->drawn_node[i] =
            add_node(picture, node->name, note, describe(graph, node, &arena), color_of(graph, node));
        add_edges(picture, node, picture->drawn_node[i]);
    }
    ph__arena_fini(&arena);
}

/* Hands the picture over to the blocks, or reports that it is too large to draw. */
static void add_picture(struct ph__json *blocks, struct picture *picture)
{
    char text[160];
    if (picture->num_drawn > MAX_DRAWN) {
        snprintf(text, sizeof text,
            "The graph has %zu nodes, too many to draw: phloem inspect model DIR --dot writes them for "
            "Graphviz.",
            picture->num_drawn);
        ph__page_add_text(blocks, "text", text);
        ph__json_destroy(picture->nodes);
        ph__json_destroy(picture->edges);
        return;
    }
    struct ph__json *block = ph__page_add_block(blocks, "graph");
    ph__json_set_text(block, "id", "model-graph");
    ph__json_set(block, "nodes", picture->nodes);
    ph__json_set(block, "edges", picture->edges);
}

ph_status ph__run_report_graph(struct ph__page *page, const struct ph__trainer *trainer)
{
    const struct ph_program *program = trainer->learning.program;
    struct picture picture = {
        .graph = &program->graph, .num_graph_nodes = program->entry_begin[1] - program->entry_begin[0]};
    picture.drawn_node = calloc(picture.num_graph_nodes + 1, sizeof *picture.drawn_node);
    if (picture.drawn_node == NULL)
        return ph__out_of_memory("cannot draw a graph of %zu nodes", picture.num_graph_nodes);
    picture.nodes = ph__json_array();
    picture.edges = ph__json_array();
    add_inputs(&picture);
    add_nodes(&picture);
    add_picture(ph__page_add_section(page, "graph", "Graph",
                    "The forward pass as it ran, operators fused, down to the loss. Colours mark the batch's "
                    "inputs, operators that read tables, and operators that read weights; the preparation of "
                    "weights is left out. B is the batch, N its ids."),
        &picture);
    free(picture.drawn_node);
    return PH_OK;
}

/* ---- section "operators": time by operator, from the profile of the measured steps ---- */

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

/* Finds the row of that name among the first `count`, or appends one. */
static struct row *row_of(struct row *rows, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    rows[*count] = (struct row){.name = name};
    return &rows[(*count)++];
}

/* Lists rows by operator, or one a node; (num_nodes) at most, slowest first. */
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

static void add_row(struct ph__page_table *table, const struct row *row, double total, double steps)
{
    const double seconds = 1e-9 * (double)row->profile.time_ns, share = total > 0 ? seconds / total : 0;
    const double giga = seconds > 0 ? 1e-9 / seconds : (double)NAN;
    struct ph__json *values = ph__page_add_row(table, share);
    ph__json_append_text(values, row->name);
    if (row->entry != NULL)
        ph__json_append_text(values, row->entry);
    else
        ph__json_append_integer(values, (int64_t)row->num_nodes);
    ph__json_append_number(values, share);
    ph__json_append_number(values, 1e6 * seconds / steps);
    ph__json_append_number(values, row->profile.cost.flops * giga);
    ph__json_append_number(values, row->profile.cost.bytes * giga);
}

static void add_rows(
    struct ph__json *blocks, const char *id, const struct row *rows, size_t count, double steps)
{
    const bool is_by_operator = count > 0 && rows[0].entry == NULL;
    const struct ph__page_column columns[] = {
        {is_by_operator ? "operator" : "node", NULL, "the bar: its share of a step"},
        {is_by_operator ? "nodes" : "entry", is_by_operator ? "number" : NULL, NULL},
        {"share", "percent", NULL}, {"µs a step", ".1", "time of its nodes; some run side by side"},
        {"GFLOP/s", ".2", "by the operator's cost rule"},
        {"GB/s", ".2", "each operand read or written once"}};
    const double total = total_seconds(rows, count);
    struct ph__page_table table =
        ph__page_add_table(blocks, id, columns, sizeof columns / sizeof *columns, count);
    for (size_t i = 0; i < count && i < PH_PAGE_MAX_ROWS; i++)
        add_row(&table, &rows[i], total, steps);
}

static void add_tables(struct ph__json *blocks, const struct ph__trainer *trainer, struct row *rows)
{
    const double steps = (double)trainer->statistics.profiled_steps;
    size_t count = gather(trainer->executor, true, rows);
    add_rows(blocks, "operator-table", rows, count, steps);
    count = gather(trainer->executor, false, rows);
    add_rows(ph__page_add_details(blocks, "node by node"), "node-table", rows, count, steps);
}

static void tell_steps(const struct ph__run_statistics *statistics, char note[256])
{
    if (statistics->profiled_steps == 0)
        snprintf(note, 256,
            "No step was measured: the first one is left out, and this process took %" PRIu64 " in all.",
            statistics->taken_steps);
    else if (statistics->profiled_steps == statistics->taken_steps)
        snprintf(note, 256, "Measured on all %" PRIu64 " training steps that this process took.",
            statistics->taken_steps);
    else
        snprintf(note, 256,
            "Measured on %" PRIu64 " of the %" PRIu64 " training steps that this process took: some at the "
            "beginning, without the first one, then one in many.",
            statistics->profiled_steps, statistics->taken_steps);
}

ph_status ph__run_report_operators(struct ph__page *page, const struct ph__trainer *trainer)
{
    char note[256];
    struct row *rows = calloc(trainer->executor->program->graph.num_nodes + 1, sizeof *rows);
    if (rows == NULL)
        return ph__out_of_memory("cannot show a profile");
    tell_steps(&trainer->statistics, note);
    struct ph__json *blocks = ph__page_add_section(page, "operators", "Time by operator", note);
    if (trainer->statistics.profiled_steps > 0)
        add_tables(blocks, trainer, rows);
    free(rows);
    return PH_OK;
}
