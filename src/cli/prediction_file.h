/* Predictions on their way to a file: CSV with a header, or NumPy's npy (float32, shape (rows, tasks)), by the name's
 * ending. The file appears under its name when it is complete. */
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
    bool is_npy;
    size_t num_tasks;
    uint64_t num_rows;
};

/* PH_ERROR_USAGE for another ending. */
ph_status cli_prediction_file_open(const char *path, size_t num_tasks, struct cli_prediction_file *file_out);
ph_status cli_prediction_file_row(struct cli_prediction_file *file, const float *probabilities);
ph_status cli_prediction_file_finish(struct cli_prediction_file *file);
void cli_prediction_file_abandon(struct cli_prediction_file *file); /* nothing after finish */

#endif
