/* A YAML file as a flat list of its nodes, each with its path of keys and its line.
 *
 *     train:                      train                mapping
 *       epochs: 3                 train.epochs         scalar "3"
 *     data:                       data                 mapping
 *       fields: [{name: a}]       data.fields          sequence of 1
 *                                 data.fields[0]       mapping
 *                                 data.fields[0].name  scalar "a"
 *
 * Supports only what a config needs: one document with a mapping at the top. Anchors, aliases and tags are
 * errors, as are a key given twice, a path longer than PH_YAML_PATH_MAX bytes and nesting deeper than
 * PH_YAML_DEPTH_MAX. */
#ifndef PH_BASE_YAML_H
#define PH_BASE_YAML_H

#include <stddef.h>

#include "base/memory/arena.h"
#include "phloem/status.h"

#define PH_YAML_PATH_MAX 1024
#define PH_YAML_DEPTH_MAX 16

enum ph__yaml_kind { PH_YAML_SCALAR, PH_YAML_SEQUENCE, PH_YAML_MAPPING };

/* A node; the arena owns its texts. */
struct ph__yaml_node {
    enum ph__yaml_kind kind;
    const char *key;  /* "train.epochs" */
    const char *text; /* SCALAR: its text, "" for nothing, null or ~; NULL otherwise */
    size_t num_items; /* SEQUENCE */
    size_t line;      /* from 1: line of the node's key, or of an item's beginning */
};

/* Reads the nodes in the order of the file; a mapping or sequence comes before its content. PH_ERROR_CONFIG:
 * "path:line: …". */
ph_status ph__yaml_read(
    struct ph__arena *arena, const char *path, struct ph__yaml_node **nodes_out, size_t *num_nodes_out);

/* Reads the nodes of a text, which the arena or its owner keeps; `name` stands for the path in errors. */
ph_status ph__yaml_parse(struct ph__arena *arena, const char *name, const char *text, size_t size,
    struct ph__yaml_node **nodes_out, size_t *num_nodes_out);

#endif
