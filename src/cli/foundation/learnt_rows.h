/* Rows that a large model has learnt from: what it says of them is no prediction. */
#ifndef PH_CLI_LEARNT_ROWS_H
#define PH_CLI_LEARNT_ROWS_H

#include "base/memory/key_map.h"
#include "cli/arguments.h"
#include "serve/teacher/keyed_lines.h"

/* Source of the list of such rows. */
struct cli_learnt_rows {
    struct cli_texts files; /* none: those of the model's config */
    bool is_unchecked;      /* none are sought */
};

/* Gives the keys of the rows, by these columns (num_keys). PH_ERROR_USAGE: which rows they are is not known;
 * PH_ERROR_DATA, PH_ERROR_INTERRUPTED. */
ph_status cli_learnt_find(const struct cli_learnt_rows *rows, const char *folder, const char *const *keys,
    size_t num_keys, struct ph__key_map *learnt);

/* PH_ERROR_DATA: the latest line is such a row. */
ph_status cli_learnt_check(
    const struct ph__key_map *learnt, const struct ph__keyed_lines *lines, const char *folder);

/* Tells whether a file is csv, by its name; else it is tsv. */
bool cli_is_csv(const char *path);

#endif
