#include "graph_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/stream.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "figures.h"

/* Directed edges as source << 32 | target. */
struct edges {
    uint64_t *keys;
    size_t count, capacity;
};

static void *allocate(size_t bytes)
{
    void *memory = malloc(ph__max(1, bytes));
    if (memory == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu bytes of a graph", bytes));
    return memory;
}

static void add_both_ways(struct edges *edges, uint64_t a, uint64_t b)
{
    if (edges->count + 2 > edges->capacity) {
        edges->capacity = 2 * edges->capacity + 1024;
        edges->keys = realloc(edges->keys, edges->capacity * sizeof *edges->keys);
        if (edges->keys == NULL)
            bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu edges", edges->capacity));
    }
    if (a == b)
        return;
    edges->keys[edges->count++] = a << 32 | b;
    edges->keys[edges->count++] = b << 32 | a;
}

static int compare_keys(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Memory as a workspace has it: in huge pages. */
static void *allocate_value(size_t bytes)
{
    void *memory = NULL;
    bench_check(ph__memory_alloc(bytes, "a graph", &memory));
    return memory;
}

static size_t count_distinct(const struct edges *edges)
{
    size_t count = edges->count > 0;
    for (size_t i = 1; i < edges->count; i++)
        count += edges->keys[i] != edges->keys[i - 1];
    return count;
}

/* Makes the lists of the edges, which it frees; drops duplicates. */
static void take_edges(struct graph_case *graph, struct edges *edges)
{
    qsort(edges->keys, edges->count, sizeof *edges->keys, compare_keys);
    graph->offsets = allocate_value((graph->num_nodes + 1) * sizeof *graph->offsets);
    graph->ids = allocate_value(count_distinct(edges) * sizeof *graph->ids);
    size_t node = 0;
    graph->num_items = 0;
    graph->offsets[0] = 0;
    for (size_t i = 0; i < edges->count; i++) {
        if (i > 0 && edges->keys[i] == edges->keys[i - 1])
            continue;
        while (node < edges->keys[i] >> 32)
            graph->offsets[++node] = (uint32_t)graph->num_items;
        graph->ids[graph->num_items++] = (int64_t)(edges->keys[i] & UINT32_MAX);
    }
    while (node < graph->num_nodes)
        graph->offsets[++node] = (uint32_t)graph->num_items;
    free(edges->keys);
}

bool graph_case_facebook(struct graph_case *graph)
{
    const char *folder = getenv("PHLOEM_DATA");
    char path[4096], *line;
    size_t length;
    struct ph__reader *reader;
    struct edges edges = {0};
    snprintf(
        path, sizeof path, "%s/facebook_pages/edges.csv.zst", folder != NULL ? folder : "../shared/data");
    if (access(path, R_OK) != 0) {
        printf("facebook: skipped: '%s' is missing (docs/DATA.md)\n", path);
        return false;
    }
    *graph = (struct graph_case){.name = "facebook"};
    bench_check(ph__reader_open(path, &reader));
    bench_check(ph__reader_line(reader, &line, &length)); /* names of the columns */
    for (bench_check(ph__reader_line(reader, &line, &length)); line != NULL;
         bench_check(ph__reader_line(reader, &line, &length))) {
        char *comma;
        const uint64_t a = strtoull(line, &comma, 10), b = strtoull(comma + (*comma == ','), NULL, 10);
        add_both_ways(&edges, a, b);
        graph->num_nodes = ph__max(graph->num_nodes, (size_t)ph__max(a, b) + 1);
    }
    ph__reader_close(reader);
    take_edges(graph, &edges);
    return true;
}

/* ---- the random graph ---- */

enum { NUM_CLASSES = 20, EDGES_PER_NODE = 245 };

/* Nodes in the order of their classes, with running sums of their weights. */
struct urn {
    size_t *nodes; /* (n) */
    double *sums;  /* (n + 1) */
    size_t starts[NUM_CLASSES + 1];
    size_t *class_of; /* (n) by node */
};

static void fill_urn(struct urn *urn, size_t num_nodes, struct ph__rng_sequence *random)
{
    size_t at = 0;
    urn->nodes = allocate(num_nodes * sizeof *urn->nodes);
    urn->class_of = allocate(num_nodes * sizeof *urn->class_of);
    urn->sums = allocate((num_nodes + 1) * sizeof *urn->sums);
    urn->sums[0] = 0;
    for (size_t node = 0; node < num_nodes; node++)
        urn->class_of[node] = ph__rng_below(random, NUM_CLASSES);
    for (size_t c = 0; c < NUM_CLASSES; c++) {
        urn->starts[c] = at;
        for (size_t node = 0; node < num_nodes; node++) {
            if (urn->class_of[node] != c)
                continue;
            urn->nodes[at] = node;
            urn->sums[at + 1] = urn->sums[at] + exp(ph__rng_next_normal(random));
            at++;
        }
    }
    urn->starts[NUM_CLASSES] = at;
}

/* Draws one of the nodes at [first, last), by weight. */
static size_t draw_node(const struct urn *urn, size_t first, size_t last, struct ph__rng_sequence *random)
{
    const double at = urn->sums[first] + ph__rng_next_uniform(random) * (urn->sums[last] - urn->sums[first]);
    while (last - first > 1) {
        const size_t middle = first + (last - first) / 2;
        if (urn->sums[middle] <= at)
            first = middle;
        else
            last = middle;
    }
    return urn->nodes[first];
}

void graph_case_csbm(struct graph_case *graph, size_t num_nodes)
{
    struct ph__rng_sequence random = {.key = {.seed = 1}};
    struct urn urn;
    struct edges edges = {0};
    *graph = (struct graph_case){.name = "csbm", .num_nodes = num_nodes};
    fill_urn(&urn, num_nodes, &random);
    for (size_t i = 0; i < num_nodes * EDGES_PER_NODE; i++) {
        const size_t a = draw_node(&urn, 0, num_nodes, &random), c = urn.class_of[a];
        const bool is_own = ph__rng_next_uniform(&random) < .7;
        const size_t first = is_own ? urn.starts[c] : 0, last = is_own ? urn.starts[c + 1] : num_nodes;
        add_both_ways(&edges, a, draw_node(&urn, first, last, &random));
    }
    free(urn.nodes);
    free(urn.class_of);
    free(urn.sums);
    take_edges(graph, &edges);
}

void graph_case_shuffle(struct graph_case *graph, const char *name)
{
    struct ph__rng_sequence random = {.key = {.seed = 5}};
    graph->name = name;
    for (size_t node = 0; node < graph->num_nodes; node++) {
        int64_t *ids = graph->ids + graph->offsets[node];
        for (size_t i = graph->offsets[node + 1] - graph->offsets[node]; i > 1; i--) {
            const size_t other = ph__rng_below(&random, i);
            const int64_t id = ids[i - 1];
            ids[i - 1] = ids[other];
            ids[other] = id;
        }
    }
}

void graph_case_fini(struct graph_case *graph)
{
    ph__memory_free(graph->offsets, (graph->num_nodes + 1) * sizeof *graph->offsets);
    ph__memory_free(graph->ids, graph->num_items * sizeof *graph->ids);
}

double graph_case_ceiling(const struct graph_case *graph, size_t width)
{
    size_t read = 0;
    for (size_t node = 0; node < graph->num_nodes; node++) {
        const size_t d = graph->offsets[node + 1] - graph->offsets[node];
        read += width > 0 ? ph__min(d, width) : d;
    }
    return (double)graph->num_items / (double)ph__max(1, read);
}

/* ---- for peers ---- */

static void write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[4096];
    struct ph__writer *writer;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bench_check(ph__writer_open(path, &writer));
    bench_check(ph__writer_end(writer, ph__writer_write(writer, bytes, size)));
}

void graph_case_write(const struct graph_case *graph, size_t dim, const float *x, const char *folder)
{
    char description[128];
    int64_t *offsets = allocate((graph->num_nodes + 1) * sizeof *offsets);
    for (size_t i = 0; i <= graph->num_nodes; i++)
        offsets[i] = graph->offsets[i];
    const int length = snprintf(description, sizeof description,
        "{\"nodes\": %zu, \"edges\": %zu, \"dim\": %zu}\n", graph->num_nodes, graph->num_items, dim);
    bench_check(ph__directory_create(folder));
    write_file(folder, "case.json", description, (size_t)length);
    write_file(folder, "offsets.i64", offsets, (graph->num_nodes + 1) * sizeof *offsets);
    write_file(folder, "ids.i64", graph->ids, graph->num_items * sizeof *graph->ids);
    write_file(folder, "x.f32", x, graph->num_nodes * dim * sizeof *x);
    free(offsets);
}
