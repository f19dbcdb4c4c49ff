#include "data/synth/synth_csbm.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/memory/arena.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"

#define KEY(member) struct ph__csbm_settings, member

static const struct ph__option options[] = {
    PH_INTEGER_KEY("nodes", KEY(num_nodes), "8000", 2, 1e8, "Number of nodes."),
    PH_INTEGER_KEY("classes", KEY(num_classes), "20", 2, PH_LIST_MAX, "Number of classes, of nodes in turn."),
    PH_INTEGER_KEY("features", KEY(num_features), "64", 1, 4096, "Numbers that a node has."),
    PH_INTEGER_KEY("edges", KEY(edges), "245", 1, 1e5, "Edges that are drawn for each node."),
    PH_NUMBER_KEY("noise", KEY(noise), "3", 0, 1e3,
        "Standard deviation of a node's numbers around its class's, which are from N(0,1)."),
    PH_NUMBER_KEY("spread", KEY(spread), "1", 0, 5, "Standard deviation of the logarithm of nodes' weights."),
    PH_NUMBER_KEY("own", KEY(own), "0.7", 0, 1,
        "Chance that an edge's second end is drawn from the first one's class, and not from all nodes."),
    PH_INTEGER_KEY("seed", KEY(seed), "1", 0, 9e15, "Seed of all that is drawn at random."),
};

const struct ph__option_table ph__csbm_options = {
    .section = "csbm",
    .help = "A synthetic graph, whose nodes are mostly joined to their class (phloem synth --graph).",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph__csbm_settings),
};

struct drawing {
    const struct ph__csbm_settings *settings;
    struct ph__rng_sequence random;
    struct ph__arena arena;
    size_t num_classes;
    size_t *firsts; /* (C + 1) into sums; nodes of a class are c, C + c, 2 C + c ... */
    double *sums;   /* (nodes) sums of the weights up to each node, class by class */
    uint64_t *edges;
    size_t num_edges;
};

/* Draws a node by weight, as its place among the weights in [first, end) of the sums. */
static size_t find(struct drawing *drawing, size_t first, size_t end)
{
    const double before = first > 0 ? drawing->sums[first - 1] : 0;
    const double place = before + ph__rng_next_uniform(&drawing->random) * (drawing->sums[end - 1] - before);
    while (end - first > 1) {
        const size_t middle = first + (end - first) / 2;
        if (drawing->sums[middle - 1] <= place)
            first = middle;
        else
            end = middle;
    }
    return first;
}

/* Return the class at a place of the sums, and the number of the node there. */
static size_t class_at(const struct drawing *drawing, size_t place)
{
    size_t class = 0;
    while (place >= drawing->firsts[class + 1])
        class ++;
    return class;
}

static size_t node_at(const struct drawing *drawing, size_t place)
{
    const size_t class = class_at(drawing, place);
    return (place - drawing->firsts[class]) * drawing->num_classes + class;
}

static void draw_weights(struct drawing *drawing)
{
    const size_t num_nodes = (size_t)drawing->settings->num_nodes;
    double sum = 0;
    for (size_t class = 0, place = 0; class < drawing->num_classes; class ++) {
        for (size_t node = class; node < num_nodes; node += drawing->num_classes)
            drawing->sums[place++] = sum +=
                exp(drawing->settings->spread * ph__rng_next_normal(&drawing->random));
        drawing->firsts[class + 1] = place;
    }
}

static int compare_edges(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Draws the edges, and keeps those that are neither loops nor drawn before: smaller end first, ascending. */
static void draw_edges(struct drawing *drawing)
{
    const size_t num_nodes = (size_t)drawing->settings->num_nodes;
    const size_t num_drawn = num_nodes * (size_t)drawing->settings->edges;
    size_t count = 0;
    for (size_t i = 0; i < num_drawn; i++) {
        const size_t place = find(drawing, 0, num_nodes), class = class_at(drawing, place);
        const bool is_own = ph__rng_next_uniform(&drawing->random) < drawing->settings->own;
        const size_t other = is_own ? find(drawing, drawing->firsts[class], drawing->firsts[class + 1])
                                    : find(drawing, 0, num_nodes);
        const uint64_t one = node_at(drawing, place), two = node_at(drawing, other);
        if (one != two)
            drawing->edges[count++] = ph__min(one, two) << 32 | ph__max(one, two);
    }
    qsort(drawing->edges, count, sizeof *drawing->edges, compare_edges);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || drawing->edges[i] != drawing->edges[i - 1])
            drawing->edges[drawing->num_edges++] = drawing->edges[i];
}

/* ---- files ---- */

static ph_status write_nodes(struct drawing *drawing, struct ph__writer *writer)
{
    const struct ph__csbm_settings *settings = drawing->settings;
    const struct ph__rng_key centre = {(uint64_t)settings->seed, 0, ph__hash_name("csbm.centre")};
    const struct ph__rng_key noise = {(uint64_t)settings->seed, 0, ph__hash_name("csbm.noise")};
    PH_TRY(ph__writer_printf(writer, "node,label"));
    for (int64_t f = 0; f < settings->num_features; f++)
        PH_TRY(ph__writer_printf(writer, ",x%" PRId64, f));
    for (uint64_t node = 0; node < (uint64_t)settings->num_nodes; node++) {
        const uint64_t class = node % drawing->num_classes;
        PH_TRY(ph__writer_printf(writer, "\n%" PRIu64 ",%" PRIu64, node, class));
        for (uint32_t f = 0; f < (uint32_t)settings->num_features; f++)
            PH_TRY(ph__writer_printf(writer, ",%.6g",
                ph__rng_normal(&centre, class, f) + settings->noise * ph__rng_normal(&noise, node, f)));
    }
    return ph__writer_printf(writer, "\n");
}

static ph_status write_edges(struct drawing *drawing, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "id_1,id_2\n"));
    for (size_t i = 0; i < drawing->num_edges; i++)
        PH_TRY(ph__writer_printf(
            writer, "%" PRIu64 ",%" PRIu64 "\n", drawing->edges[i] >> 32, drawing->edges[i] & UINT32_MAX));
    return PH_OK;
}

static ph_status write_schema(struct drawing *drawing, const char *nodes, struct ph__writer *writer)
{
    static const char *const splits[] = {"train", "valid", "test"};
    PH_TRY(ph__writer_printf(writer, "data:\n  format: graph\n"));
    for (size_t i = 0; i < 3; i++) {
        const char *path = ph__arena_printf(&drawing->arena, "%s#%s", nodes, splits[i]);
        if (path == NULL)
            return PH_ERROR_MEMORY;
        PH_TRY(ph__writer_printf(writer, "  %s: ", splits[i]));
        PH_TRY(ph__config_write_path(writer, path));
        PH_TRY(ph__writer_printf(writer, "\n"));
    }
    PH_TRY(ph__writer_printf(writer,
        "  graph: {edges: edges.csv, self_loops: true, train_share: 0.6, valid_share: 0.2}\n  fields:\n"
        "    - {name: node, kind: ignore}\n    - {name: label, kind: label, classes: ["));
    for (size_t i = 0; i < drawing->num_classes; i++)
        PH_TRY(ph__writer_printf(writer, "%s\"%zu\"", i > 0 ? ", " : "", i));
    return ph__writer_printf(writer,
        "]}\n    - {name: \"x*\", kind: dense}\n"
        "    - {name: neighbours, kind: id, encoding: raw, rows: %" PRId64 "}\n"
        "    - {name: split, kind: split}\n",
        drawing->settings->num_nodes);
}

static ph_status write_files(struct drawing *drawing, const char *folder)
{
    const char *nodes = ph__path_join(&drawing->arena, folder, "nodes.csv");
    const char *edges = ph__path_join(&drawing->arena, folder, "edges.csv");
    const char *schema = ph__path_join(&drawing->arena, folder, "synth.yaml");
    struct ph__writer *writer;
    if (nodes == NULL || edges == NULL || schema == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__directory_create_empty(folder));
    PH_TRY(ph__writer_open(nodes, &writer));
    PH_TRY(ph__writer_end(writer, write_nodes(drawing, writer)));
    PH_TRY(ph__writer_open(edges, &writer));
    PH_TRY(ph__writer_end(writer, write_edges(drawing, writer)));
    PH_TRY(ph__writer_open(schema, &writer));
    return ph__writer_end(writer, write_schema(drawing, nodes, writer));
}

static ph_status draw(struct drawing *drawing)
{
    const struct ph__csbm_settings *settings = drawing->settings;
    const size_t num_nodes = (size_t)settings->num_nodes;
    if (settings->num_nodes < settings->num_classes)
        return ph_fail(PH_ERROR_CONFIG, "csbm.classes: must be at most csbm.nodes");
    drawing->firsts =
        ph__arena_alloc_array(&drawing->arena, drawing->num_classes + 1, sizeof *drawing->firsts);
    drawing->sums = ph__arena_alloc_array(&drawing->arena, num_nodes, sizeof *drawing->sums);
    drawing->edges =
        ph__arena_alloc_array(&drawing->arena, num_nodes * (size_t)settings->edges, sizeof *drawing->edges);
    if (drawing->firsts == NULL || drawing->sums == NULL || drawing->edges == NULL)
        return PH_ERROR_MEMORY;
    drawing->firsts[0] = 0;
    draw_weights(drawing);
    draw_edges(drawing);
    return PH_OK;
}

ph_status ph__csbm_write(
    const struct ph__csbm_settings *settings, const char *folder, uint64_t *num_edges_out)
{
    struct drawing drawing = {.settings = settings,
        .random.key = {(uint64_t)settings->seed, 0, ph__hash_name("csbm")},
        .num_classes = (size_t)settings->num_classes};
    ph_status status = draw(&drawing);
    if (status == PH_OK)
        status = write_files(&drawing, folder);
    *num_edges_out = drawing.num_edges;
    ph__arena_fini(&drawing.arena);
    return status;
}
