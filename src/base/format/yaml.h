/* A YAML file as a flat list of its nodes, each with its path of keys and its line.
 *
 *     train:                      train            mapping
 *       epochs: 3                 train.epochs     scalar "3"
 *     data:                       data             mapping
 *       fields: [{name: a}]       data.fields      sequence of 1
 *                                 data.fields[0]   mapping
 *                                 data.fields[0].name  scalar "a"
 *
 * Only what a config needs: one document, a mapping at the top; anchors, aliases and tags are refused, and so
 * is a key given twice, a path longer than PH_YAML_PATH_MAX bytes and nesting deeper than PH_YAML_DEPTH_MAX.
 */
#ifndef PH_BASE_YAML_H
#define PH_BASE_YAML_H

#include <stddef.h>

#include "base/memory/arena.h"
#include "phloem/status.h"

#define PH_YAML_PATH_MAX 1024
#define PH_YAML_DEPTH_MAX 16

enum ph__yaml_kind { PH_YAML_SCALAR, PH_YAML_SEQUENCE, PH_YAML_MAPPING };

/* Texts are owned by the arena. */
struct ph__yaml_node {
    enum ph__yaml_kind kind;
    const char *key;  /* "train.epochs" */
    const char *text; /* SCALAR: its text, "" for nothing, null or ~; NULL otherwise */
    size_t num_items; /* SEQUENCE */
    size_t line;      /* from 1: of its key, or where an item begins */
};

/* Nodes in the order of the file; a mapping or sequence comes before what it holds. PH_ERROR_CONFIG:
 * "path:line: …". */
ph_status ph__yaml_read(
    struct ph__arena *arena, const char *path, struct ph__yaml_node **nodes_out, size_t *num_nodes_out);

#endif
