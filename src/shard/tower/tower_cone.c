#include "shard/tower/tower_cone.h"

#include <string.h>

#include "op/table/op_table.h"

const char *ph__tower_name(const char *value_name)
{
    static const char prefix[] = "tower.";
    return strncmp(value_name, prefix, strlen(prefix)) == 0 ? value_name + strlen(prefix) : NULL;
}

static ph_status refuse(const struct ph__named_value *named, const struct ph__node *node, const char *what)
{
    return ph_fail(PH_ERROR_CONFIG, "%s: node '%s' %s: a tower has one lookup of pooled vectors and layers",
        named->name, node->name, what);
}

/* Marks the nodes that make a node's inputs. */
static ph_status need_inputs(const struct ph__graph *graph, const struct ph__named_value *named,
    const struct ph__node *node, bool *is_inside)
{
    for (uint32_t k = 0; k < node->num_inputs; k++) {
        const struct ph__value_info *input = &graph->values[node->inputs[k]];
        if (node->inputs[k] == 0 || input->storage == PH_STORAGE_PARAMETER)
            continue;
        if (input->producer == PH_NO_NODE)
            return refuse(named, node, "reads the batch");
        is_inside[input->producer] = true;
    }
    return PH_OK;
}

ph_status ph__tower_cone_find(const struct ph__graph *graph, const struct ph__named_value *named,
    struct ph__arena *arena, struct ph__tower_cone *cone_out)
{
    struct ph__tower_cone cone = {PH_NO_NODE, graph->values[named->value].producer, NULL};
    bool *is_inside = ph__arena_alloc_array(arena, graph->num_nodes + 1, sizeof *is_inside);
    if (is_inside == NULL)
        return PH_ERROR_MEMORY;
    is_inside[cone.last] = true;
    for (size_t i = cone.last + (size_t)1; i-- > 0;) {
        const struct ph__node *node = &graph->nodes[i];
        if (!is_inside[i])
            continue;
        if ((node->op->traits & PH_OP_MIXES_SAMPLES) != 0)
            return refuse(named, node, "mixes samples");
        if (node->op != &ph__op_embedding_bag) {
            PH_TRY(need_inputs(graph, named, node, is_inside));
            continue;
        }
        if (cone.lookup != PH_NO_NODE)
            return refuse(named, node, "is another lookup");
        cone.lookup = (uint32_t)i;
    }
    if (cone.lookup == PH_NO_NODE)
        return refuse(named, &graph->nodes[cone.last], "is without a lookup");
    cone.is_inside = is_inside;
    *cone_out = cone;
    return PH_OK;
}
