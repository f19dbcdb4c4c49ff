/* The progress of long work on a terminal: one live line, or plain lines when the output is no terminal. */
#ifndef PH_CLI_PROGRESS_H
#define PH_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

#include "phloem/data.h"
#include "phloem/train.h"

struct cli_progress {
    FILE *file;
    bool is_live;       /* the line is written over again */
    size_t line_length; /* of the live line that stands there now */
};

/* file is borrowed. */
struct cli_progress cli_progress_on(FILE *file);

/* struct ph_train_observer's function; context is a struct cli_progress. Always PH_OK: a line that cannot be
 * written is left out. */
ph_status cli_progress_show(void *context, const struct ph_train_progress *progress);

/* struct ph_prepare_options' function, and how often it wants to be called. */
void cli_progress_show_preparation(void *context, const struct ph_prepare_progress *progress);
double cli_progress_seconds(const struct cli_progress *progress);

void cli_progress_end(struct cli_progress *progress); /* leaves the live line */

/* One line of a report, without its end: what these functions write. */
void cli_progress_format(const struct ph_train_progress *progress, char *line, size_t size);
void cli_progress_format_preparation(const struct ph_prepare_progress *progress, char *line, size_t size);

#endif
