/* A program as a picture: Graphviz text, one cluster an entry. */
#include <errno.h>
#include <string.h>

#include "graph/graph.h"

size_t ph_program_num_nodes(const struct ph_program *program, const char *operator_name)
{
    size_t count = 0;
    for (size_t i = 0; i < program->graph.num_nodes; i++)
        count += operator_name == NULL || strcmp(program->graph.nodes[i].op->name, operator_name) == 0;
    return count;
}

static void write_leaf(const struct ph__value_info *info, ph_value value, FILE *file)
{
    static const char *const looks[] = {[PH_STORAGE_INPUT] = "shape=ellipse, fillcolor=\"#dbeafe\"",
        [PH_STORAGE_PARAMETER] = "shape=cylinder, fillcolor=\"#fef3c7\"",
        [PH_STORAGE_STATE] = "shape=cylinder, fillcolor=\"#e7e5e4\"",
        [PH_STORAGE_SCALAR] = "shape=plaintext, fillcolor=white",
        [PH_STORAGE_WORKSPACE] = ""};
    char text[96];
    fprintf(file, "  v%u [label=\"%s\\n%s\", style=filled, %s];\n", value, info->name,
        ph__type_text(&info->type, text), looks[info->storage]);
}

static void write_edges(const struct ph__graph *graph, size_t index, FILE *file)
{
    const struct ph__node *node = &graph->nodes[index];
    char text[96];
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const struct ph__value_info *input = &graph->values[node->inputs[k]];
        if (node->inputs[k] == 0)
            continue;
        if (input->producer == PH_NO_NODE)
            fprintf(file, "  v%u -> n%zu;\n", node->inputs[k], index);
        else
            fprintf(file, "  n%u -> n%zu [label=\"%s\", fontsize=9];\n", input->producer, index,
                ph__type_text(&input->type, text));
    }
}

static bool is_read(const struct ph__graph *graph, ph_value value)
{
    for (size_t i = 0; i < graph->num_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].num_inputs; k++)
            if (graph->nodes[i].inputs[k] == value)
                return true;
    return false;
}

ph_status ph_program_write_dot(const struct ph_program *program, FILE *file)
{
    const struct ph__graph *graph = &program->graph;
    fprintf(
        file, "digraph phloem {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n");
    for (ph_value value = 1; value < graph->num_values; value++)
        if (graph->values[value].producer == PH_NO_NODE && is_read(graph, value))
            write_leaf(&graph->values[value], value, file);
    for (size_t entry = 0; entry < graph->num_entries; entry++) {
        fprintf(file, "  subgraph cluster_%zu {\n    label=\"%s\";\n", entry, graph->entries[entry]);
        for (size_t i = program->entry_begin[entry]; i < program->entry_begin[entry + 1]; i++)
            fprintf(
                file, "    n%zu [label=\"%s\\n%s\"];\n", i, graph->nodes[i].name, graph->nodes[i].op->name);
        fprintf(file, "  }\n");
    }
    for (size_t i = 0; i < graph->num_nodes; i++)
        write_edges(graph, i, file);
    fprintf(file, "}\n");
    return ferror(file) != 0 ? ph_fail(PH_ERROR_DISK, "cannot write the graph: %s", strerror(errno)) : PH_OK;
}
