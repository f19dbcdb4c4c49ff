/* Queries and changes of a graph, for builder, passes and executor, and the names of its nodes. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

size_t ph_program_num_sites(const struct ph_program *program)
{
    return program->graph.num_sites;
}

struct ph_site ph_program_site(const struct ph_program *program, size_t index)
{
    return program->graph.sites[index];
}

void ph__graph_fini(struct ph__graph *graph)
{
    free(graph->sites);
    free(graph->nodes);
    free(graph->values);
    free(graph->declarations);
    free(graph->declaration_values);
    free(graph->states);
    free(graph->outputs);
    free(graph->named);
    free(graph->scalar_inputs);
    free(graph->losses);
    ph__arena_fini(&graph->arena);
    *graph = (struct ph__graph){0};
}

void ph_program_destroy(struct ph_program *program)
{
    if (program == NULL)
        return;
    ph__graph_fini(&program->graph);
    free(program);
}

ph_value ph__graph_root(const struct ph__graph *graph, ph_value value)
{
    ph_value source = graph->values[value].alias_of;
    return source != 0 ? source : value;
}

ph_value ph__find_named(const struct ph__named_value *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].value;
    return 0;
}

uint32_t *ph__graph_count_readers(const struct ph__graph *graph)
{
    uint32_t *readers = calloc(graph->num_values, sizeof *readers);
    if (readers == NULL) {
        ph__out_of_memory("a pass over the graph");
        return NULL;
    }
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        for (uint32_t k = 0; !node->is_dead && k < node->num_inputs; k++) {
            ph_value input = node->inputs[k];
            readers[input]++;
            if (graph->values[input].alias_of != 0)
                readers[graph->values[input].alias_of]++;
        }
    }
    return readers;
}

bool ph__graph_keeps_result(const struct ph__graph *graph, const struct ph__node *node)
{
    bool is_kept = (node->op->traits & PH_OP_ONCE_PER_VERSION) != 0;
    for (uint32_t k = 0; is_kept && k < node->num_inputs; k++) {
        const enum ph__storage storage = graph->values[node->inputs[k]].storage;
        is_kept = node->inputs[k] == 0 || storage == PH_STORAGE_PARAMETER || storage == PH_STORAGE_STATE;
    }
    return is_kept;
}

void ph__graph_set_producers(struct ph__graph *graph, size_t begin)
{
    for (size_t i = begin; i < graph->num_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].num_outputs; k++)
            graph->values[graph->nodes[i].outputs[k]].producer = (uint32_t)i;
}

ph_status ph__graph_move_before(struct ph__graph *graph, size_t index, size_t begin)
{
    const size_t count = graph->num_nodes - begin;
    if (count == 0)
        return PH_OK;
    struct ph__node *moved = malloc(count * sizeof *moved);
    if (moved == NULL)
        return ph__out_of_memory("a pass over the graph");
    memcpy(moved, graph->nodes + begin, count * sizeof *moved);
    memmove(graph->nodes + index + count, graph->nodes + index, (begin - index) * sizeof *moved);
    memcpy(graph->nodes + index, moved, count * sizeof *moved);
    free(moved);
    ph__graph_set_producers(graph, index);
    return PH_OK;
}

/* ---- names of nodes ---- */

void ph__node_names_fini(struct ph__node_names *names)
{
    ph__name_index_fini(&names->index);
    free(names->next_numbers);
    *names = (struct ph__node_names){0};
}

ph_status ph__node_names_take(
    struct ph__node_names *names, struct ph__arena *arena, const char *name, const char **taken_out)
{
    const size_t count = names->index.count, known = ph__name_index_find(&names->index, name);
    const char *text = name;
    PH_TRY(ph__array_reserve(
        (void **)&names->next_numbers, &names->capacity, count + 1, sizeof *names->next_numbers));
    while (ph__name_index_find(&names->index, text) != PH_NO_NAME) {
        text = ph__arena_printf(arena, "%s.%zu", name, names->next_numbers[known]++);
        if (text == NULL)
            return PH_ERROR_MEMORY;
    }
    PH_TRY(ph__name_index_add(&names->index, text));
    names->next_numbers[count] = 2;
    *taken_out = text;
    return PH_OK;
}
