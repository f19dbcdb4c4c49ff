/* Draws a program as Graphviz text, one cluster an entry. */
#include <string.h>

#include "base/file/stream.h"
#include "graph/graph.h"

size_t ph_program_num_nodes(const struct ph_program *program, const char *operator_name)
{
    size_t count = 0;
    for (size_t i = 0; i < program->graph.num_nodes; i++)
        count += operator_name == NULL || strcmp(program->graph.nodes[i].op->name, operator_name) == 0;
    return count;
}

static ph_status write_leaf(struct ph__writer *writer, const struct ph__value_info *info, ph_value value)
{
    static const char *const looks[] = {[PH_STORAGE_INPUT] = "shape=ellipse, fillcolor=\"#dbeafe\"",
        [PH_STORAGE_PARAMETER] = "shape=cylinder, fillcolor=\"#fef3c7\"",
        [PH_STORAGE_STATE] = "shape=cylinder, fillcolor=\"#e7e5e4\"",
        [PH_STORAGE_SCALAR] = "shape=plaintext, fillcolor=white",
        [PH_STORAGE_WORKSPACE] = ""};
    char text[96];
    return ph__writer_printf(writer, "  v%u [label=\"%s\\n%s\", style=filled, %s];\n", value, info->name,
        ph__type_text(&info->type, text), looks[info->storage]);
}

static ph_status write_edge(
    struct ph__writer *writer, const struct ph__graph *graph, size_t index, ph_value from)
{
    const struct ph__value_info *input = &graph->values[from];
    char text[96];
    if (input->producer == PH_NO_NODE)
        return ph__writer_printf(writer, "  v%u -> n%zu;\n", from, index);
    return ph__writer_printf(writer, "  n%u -> n%zu [label=\"%s\", fontsize=9];\n", input->producer, index,
        ph__type_text(&input->type, text));
}

static bool is_read(const struct ph__graph *graph, ph_value value)
{
    for (size_t i = 0; i < graph->num_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].num_inputs; k++)
            if (graph->nodes[i].inputs[k] == value)
                return true;
    return false;
}

static ph_status write_entry(struct ph__writer *writer, const struct ph_program *program, size_t entry)
{
    const struct ph__graph *graph = &program->graph;
    PH_TRY(ph__writer_printf(
        writer, "  subgraph cluster_%zu {\n    label=\"%s\";\n", entry, graph->entries[entry]));
    for (size_t i = program->entry_begin[entry]; i < program->entry_begin[entry + 1]; i++)
        PH_TRY(ph__writer_printf(
            writer, "    n%zu [label=\"%s\\n%s\"];\n", i, graph->nodes[i].name, graph->nodes[i].op->name));
    return ph__writer_printf(writer, "  }\n");
}

static ph_status write_program(struct ph__writer *writer, const struct ph_program *program)
{
    const struct ph__graph *graph = &program->graph;
    PH_TRY(ph__writer_printf(writer,
        "digraph phloem {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n"));
    for (ph_value value = 1; value < graph->num_values; value++)
        if (graph->values[value].producer == PH_NO_NODE && is_read(graph, value))
            PH_TRY(write_leaf(writer, &graph->values[value], value));
    for (size_t entry = 0; entry < graph->num_entries; entry++)
        PH_TRY(write_entry(writer, program, entry));
    for (size_t i = 0; i < graph->num_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].num_inputs; k++)
            if (graph->nodes[i].inputs[k] != 0)
                PH_TRY(write_edge(writer, graph, i, graph->nodes[i].inputs[k]));
    return ph__writer_printf(writer, "}\n");
}

ph_status ph_program_write_dot(const struct ph_program *program, const char *path)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    return ph__writer_end(writer, write_program(writer, program));
}
