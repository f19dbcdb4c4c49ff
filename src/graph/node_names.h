/* Names that the nodes of a graph under construction have, so that each gets one of its own in constant time. Numbers drawn in a
 * node follow from its name (graph.h): which name it gets depends on the names that were taken before, and on nothing else. */
#ifndef PH_GRAPH_NODE_NAMES_H
#define PH_GRAPH_NODE_NAMES_H

#include <stddef.h>

#include "base/memory/arena.h"
#include "base/text/name_index.h"

struct ph__node_names { /* zero-initialised: none is taken */
    struct ph__name_index index;
    size_t *next_numbers; /* (index.count) the first that was not tried behind each name */
    size_t capacity;
};

void ph__node_names_fini(struct ph__node_names *names);

/* Takes `name`, or the first of name.2, name.3 ... that no node has. It stays in the arena; `name` is borrowed for as long.
 * PH_ERROR_MEMORY. */
ph_status ph__node_names_take(
    struct ph__node_names *names, struct ph__arena *arena, const char *name, const char **taken_out);

#endif
