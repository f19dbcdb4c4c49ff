/* Writes predictions to a file: CSV with a header, or NumPy's npy (float32, shape (rows, tasks)), by the
 * name's ending. The file appears under its name when it is complete. "-" is standard output, as CSV: an npy
 * begins with the number of its rows, which is known only at the end. */
#ifndef PH_CLI_PREDICTION_FILE_H
#define PH_CLI_PREDICTION_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "phloem/status.h"

struct cli_prediction_file {
    char path[1024], temporary_path[1040];
    FILE *file; /* NULL: not open */
    bool is_npy, is_standard_output;
    size_t num_tasks;
    uint64_t num_rows;
};

/* PH_ERROR_USAGE for another ending, and for the name of a folder. */
ph_status cli_prediction_file_open(const char *path, size_t num_tasks, struct cli_prediction_file *file_out);
ph_status cli_prediction_file_row(struct cli_prediction_file *file, const float *probabilities);
ph_status cli_prediction_file_finish(struct cli_prediction_file *file);
void cli_prediction_file_abandon(struct cli_prediction_file *file); /* does nothing after finish */

const char *cli_prediction_file_name(const char *path); /* for messages */

#endif
