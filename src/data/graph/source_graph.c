/* Nodes of a graph: rows of a CSV whose first column numbers them from 0, with columns that are made of the
 * files beside it (struct ph__graph_settings): neighbours of the edges, words of a JSON object, splits drawn
 * at random. Edges are kept as ascending lists of both ends, and read again with each pass. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "data/encode/cell_text.h"
#include "data/source/source_delimited.h"

#define MAX_NODES ((uint64_t)UINT32_MAX)

/* The largest node number of a file, and its place. */
struct largest {
    uint64_t node, line;
    bool is_any;
};

struct graph {
    struct ph__delimited_file rows; /* must stay the first member */
    struct ph__arena arena;
    const char *edges_path, *words_path; /* NULL: none */
    struct largest edge, word;
    uint32_t *ends; /* (num_ends) ends of edges, two by two */
    size_t num_ends, ends_capacity;
    uint64_t *starts;     /* (edge.node + 2) into neighbours */
    uint32_t *neighbours; /* without loops and duplicates, ascending or in the order drawn */
    struct ph__json *words;
    const struct ph__json **lists; /* (word.node + 1) words of a node; NULL: none */
};

static void note_node(struct largest *largest, uint64_t node, uint64_t line)
{
    if (!largest->is_any || node > largest->node)
        *largest = (struct largest){node, line, true};
}

/* ---- edges ---- */

static ph_status add_edge(
    struct graph *graph, const struct ph__reader *reader, const char *line, size_t length)
{
    const char *comma = memchr(line, ',', length);
    const uint64_t number = ph__reader_line_number(reader);
    uint64_t ends[2];
    if (comma == NULL || !ph__decimal_parse_id(line, (size_t)(comma - line), &ends[0]) ||
        !ph__decimal_parse_id(comma + 1, length - (size_t)(comma + 1 - line), &ends[1]) ||
        ends[0] >= MAX_NODES || ends[1] >= MAX_NODES)
        return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": '%.40s' is not an edge, two node numbers such as 3,17",
            graph->edges_path, number, line);
    note_node(&graph->edge, ends[0] > ends[1] ? ends[0] : ends[1], number);
    if (ends[0] == ends[1])
        return PH_OK;
    PH_TRY(ph__array_reserve(
        (void **)&graph->ends, &graph->ends_capacity, graph->num_ends + 2, sizeof *graph->ends));
    graph->ends[graph->num_ends++] = (uint32_t)ends[0];
    graph->ends[graph->num_ends++] = (uint32_t)ends[1];
    return PH_OK;
}

/* Reads the lines, of which the first may be a header: it begins with no digit. */
static ph_status read_edges(struct graph *graph, struct ph__reader *reader)
{
    for (;;) {
        char *line;
        size_t length;
        PH_TRY(ph__reader_line(reader, &line, &length));
        if (line == NULL)
            return PH_OK;
        const bool is_header = ph__reader_line_number(reader) == 1 && (line[0] < '0' || line[0] > '9');
        if (length > 0 && !is_header)
            PH_TRY(add_edge(graph, reader, line, length));
    }
}

static int compare_nodes(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* Sorts the list of each node, and closes the gaps that duplicates leave. */
static void sort_lists(struct graph *graph, size_t num_nodes)
{
    uint64_t kept = 0;
    for (size_t node = 0; node < num_nodes; node++) {
        const uint64_t first = graph->starts[node], end = graph->starts[node + 1];
        qsort(graph->neighbours + first, (size_t)(end - first), sizeof *graph->neighbours, compare_nodes);
        graph->starts[node] = kept;
        for (uint64_t i = first; i < end; i++)
            if (i == first || graph->neighbours[i] != graph->neighbours[i - 1])
                graph->neighbours[kept++] = graph->neighbours[i];
    }
    graph->starts[num_nodes] = kept;
}

/* Draws an order of each node's list, by the node's number. */
static void shuffle_lists(struct graph *graph, size_t num_nodes, int64_t seed)
{
    for (size_t node = 0; node < num_nodes; node++) {
        struct ph__rng_sequence random = {
            .key = {(uint64_t)seed, node, ph__hash_name("data.graph.neighbour_order")}};
        uint32_t *list = graph->neighbours + graph->starts[node];
        for (uint64_t left = graph->starts[node + 1] - graph->starts[node]; left > 1; left--) {
            const uint64_t place = ph__rng_below(&random, left);
            const uint32_t neighbour = list[place];
            list[place] = list[left - 1];
            list[left - 1] = neighbour;
        }
    }
}

/* Makes lists of the other ends of each node's edges. */
static ph_status list_neighbours(struct graph *graph, const struct ph__graph_settings *settings)
{
    const size_t num_nodes = graph->edge.is_any ? (size_t)graph->edge.node + 1 : 0;
    graph->starts = calloc(num_nodes + 2, sizeof *graph->starts);
    graph->neighbours = malloc((graph->num_ends + 1) * sizeof *graph->neighbours);
    if (graph->starts == NULL || graph->neighbours == NULL)
        return ph__out_of_memory("%s: %zu edges", graph->edges_path, graph->num_ends / 2);
    uint64_t *next = graph->starts + 1; /* grows from each node's start to the next node's */
    for (size_t i = 0; i < graph->num_ends; i++)
        next[graph->ends[i] + (size_t)1]++;
    for (size_t node = 1; node < num_nodes; node++)
        next[node] += next[node - 1];
    for (size_t i = 0; i < graph->num_ends; i++)
        graph->neighbours[next[graph->ends[i]]++] = graph->ends[i ^ 1];
    sort_lists(graph, num_nodes);
    if (settings->is_shuffled)
        shuffle_lists(graph, num_nodes, settings->split_seed);
    return PH_OK;
}

static ph_status load_edges(struct graph *graph, const struct ph__graph_settings *settings)
{
    struct ph__reader *reader;
    PH_TRY(ph__reader_open(graph->edges_path, &reader));
    ph_status status = read_edges(graph, reader);
    ph__reader_close(reader);
    return status == PH_OK ? list_neighbours(graph, settings) : status;
}

/* ---- words ---- */

static ph_status read_text(struct ph__reader *reader, char **text, size_t *size)
{
    size_t capacity = 0;
    for (;;) {
        char *line;
        size_t length;
        PH_TRY(ph__reader_line(reader, &line, &length));
        if (line == NULL)
            return PH_OK;
        PH_TRY(ph__array_reserve((void **)text, &capacity, *size + length + 1, 1));
        memcpy(*text + *size, line, length);
        (*text)[*size + length] = '\n';
        *size += length + 1;
    }
}

/* Finds each node's list in the document. */
static ph_status list_words(struct graph *graph)
{
    struct ph__json_member member = {0};
    size_t capacity = 0, count = 0;
    while (ph__json_next_member(graph->words, &member)) {
        uint64_t node;
        if (!ph__decimal_parse_id(member.key, strlen(member.key), &node) || node >= MAX_NODES ||
            !ph__json_is_array(member.value))
            return ph_fail(PH_ERROR_DATA, "%s: '%.40s' must be a node number with a list of numbers",
                graph->words_path, member.key);
        PH_TRY(ph__array_reserve(
            (void **)&graph->lists, &capacity, (size_t)node + 1, sizeof(const struct ph__json *)));
        for (; count <= node; count++)
            graph->lists[count] = NULL;
        graph->lists[node] = member.value;
        note_node(&graph->word, node, 0);
    }
    return PH_OK;
}

static ph_status load_words(struct graph *graph)
{
    struct ph__reader *reader;
    char *text = NULL;
    size_t size = 0;
    PH_TRY(ph__reader_open(graph->words_path, &reader));
    ph_status status = read_text(reader, &text, &size);
    ph__reader_close(reader);
    if (status == PH_OK)
        status =
            ph__json_parse(text != NULL ? text : "", size, graph->words_path, PH_ERROR_DATA, &graph->words);
    free(text);
    return status == PH_OK ? list_words(graph) : status;
}

/* ---- files ---- */

static ph_status open_graph(struct ph__source *source, const struct ph__source_position *position)
{
    const struct ph__graph_settings *settings = &source->encoder->graph;
    const char *nodes = source->paths[source->file];
    struct graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL)
        return ph__out_of_memory("cannot read %s", nodes);
    source->state = graph;
    if (source->num_paths > 1)
        return ph_fail(
            PH_ERROR_DATA, "%s: %zu files match, but a graph's nodes are one file", nodes, source->num_paths);
    PH_TRY(ph__delimited_file_open(source, &graph->rows, position));
    PH_TRY(ph__input_beside_path(&graph->arena, nodes, settings->edges, &graph->edges_path));
    PH_TRY(load_edges(graph, settings));
    if (settings->words[0] == '\0')
        return PH_OK;
    PH_TRY(ph__input_beside_path(&graph->arena, nodes, settings->words, &graph->words_path));
    return load_words(graph);
}

static void close_graph(struct ph__source *source)
{
    struct graph *graph = source->state;
    if (graph == NULL)
        return;
    ph__delimited_file_close(&graph->rows);
    ph__json_destroy(graph->words);
    free(graph->lists);
    free(graph->ends);
    free(graph->starts);
    free(graph->neighbours);
    ph__arena_fini(&graph->arena);
    free(graph);
}

/* ---- rows ---- */

static ph_status check_nodes(const struct ph__source *source)
{
    const struct graph *graph = source->state;
    const char *nodes = source->paths[source->file];
    if (graph->edge.is_any && graph->edge.node >= source->num_rows)
        return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": node %" PRIu64 " is not one of the %" PRIu64 " of %s",
            graph->edges_path, graph->edge.line, graph->edge.node, source->num_rows, nodes);
    if (graph->word.is_any && graph->word.node >= source->num_rows)
        return ph_fail(PH_ERROR_DATA, "%s: node %" PRIu64 " is not one of the %" PRIu64 " of %s",
            graph->words_path, graph->word.node, source->num_rows, nodes);
    return PH_OK;
}

static ph_status fetch_node(struct ph__source *source, bool *is_end_out)
{
    PH_TRY(ph__line_file_fetch(source, is_end_out));
    return *is_end_out ? check_nodes(source) : PH_OK;
}

/* Returns the place of a node among its own neighbours: in ascending order, or drawn. */
static uint64_t place_of_loop(const struct ph__graph_settings *settings, uint64_t node,
    const uint32_t *neighbours, uint64_t num_neighbours)
{
    struct ph__rng_sequence random = {
        .key = {(uint64_t)settings->split_seed, node, ph__hash_name("data.graph.loop")}};
    uint64_t place = 0;
    if (settings->is_shuffled)
        return ph__rng_below(&random, num_neighbours + 1);
    while (place < num_neighbours && neighbours[place] < node)
        place++;
    return place;
}

static ph_status add_neighbours(struct ph__source *source, const struct ph__column *column, uint64_t node)
{
    const struct graph *graph = source->state;
    const struct ph__graph_settings *settings = &source->encoder->graph;
    const bool has_edges = graph->edge.is_any && node <= graph->edge.node;
    const uint32_t *neighbours = graph->neighbours + (has_edges ? graph->starts[node] : 0);
    const uint64_t count = has_edges ? graph->starts[node + 1] - graph->starts[node] : 0;
    const uint64_t loop =
        settings->has_self_loops ? place_of_loop(settings, node, neighbours, count) : UINT64_MAX;
    for (uint64_t i = 0; i <= count; i++) {
        if (i == loop)
            PH_TRY(ph__row_integer(&source->row, column, (int64_t)node));
        if (i < count)
            PH_TRY(ph__row_integer(&source->row, column, neighbours[i]));
    }
    return PH_OK;
}

static ph_status add_words(struct ph__source *source, const struct ph__column *column, uint64_t node)
{
    const struct graph *graph = source->state;
    const struct ph__json *list = graph->word.is_any && node <= graph->word.node ? graph->lists[node] : NULL;
    for (size_t i = 0; i < ph__json_size(list); i++) {
        const struct ph__json *word = ph__json_at(list, i);
        if (!ph__json_is_integer(word))
            return ph_fail(PH_ERROR_DATA, "word %zu of %s is not a whole number", i, graph->words_path);
        PH_TRY(ph__row_integer(&source->row, column, ph__json_as_integer(word, 0)));
    }
    return PH_OK;
}

/* Draws the split of a node by its number. */
static ph_status add_split(struct ph__source *source, const struct ph__column *column, uint64_t node)
{
    const struct ph__graph_settings *settings = &source->encoder->graph;
    const struct ph__rng_key key = {(uint64_t)settings->split_seed, 0, ph__hash_name("data.graph.split")};
    const double place = ph__rng_uniform(&key, node, 0) - settings->train_share;
    const char *split = place < 0 ? "train" : place < settings->valid_share ? "valid" : "test";
    return ph__row_text(&source->row, column, split, strlen(split));
}

typedef ph_status (*add_cell)(struct ph__source *source, const struct ph__column *column, uint64_t node);

/* Adds a cell to each column that is made of the name. */
static ph_status add_made(struct ph__source *source, const char *name, add_cell add, uint64_t node)
{
    size_t count;
    const struct ph__column *const *columns = ph__encoder_made_from(source->encoder, name, &count);
    for (size_t i = 0; i < count && ph__column_is_made(&source->encoder->graph, name); i++)
        if (columns[i]->kind != PH_FIELD_IGNORE)
            PH_TRY(add(source, columns[i], node));
    return PH_OK;
}

static ph_status encode_node(struct ph__source *source)
{
    struct graph *graph = source->state;
    const uint64_t node = source->num_rows;
    const char *line = graph->rows.file.line;
    const char separator[] = {source->encoder->separator, '\0'};
    uint64_t number;
    if (!ph__decimal_parse_id(line, strcspn(line, separator), &number) || number != node)
        return ph_fail(PH_ERROR_DATA, "the first cell is '%.*s', but the node's number is %" PRIu64,
            (int)ph__min(strcspn(line, separator), 40), line, node);
    PH_TRY(ph__delimited_file_encode(source, &graph->rows));
    PH_TRY(add_made(source, PH_GRAPH_NEIGHBOURS, add_neighbours, node));
    PH_TRY(add_made(source, PH_GRAPH_WORDS, add_words, node));
    return add_made(source, PH_GRAPH_SPLIT, add_split, node);
}

const struct ph__format ph__format_graph = {
    .open = open_graph,
    .close = close_graph,
    .fetch = fetch_node,
    .encode = encode_node,
    .locate = ph__line_file_locate,
    .tell = ph__line_file_tell,
};
