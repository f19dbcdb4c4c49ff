/* The progress of long work: one live line on a terminal, plain lines elsewhere. */
#ifndef PH_CLI_PROGRESS_H
#define PH_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

#include "phloem/data.h"
#include "phloem/train.h"

struct cli_progress {
    FILE *file;
    bool is_live;        /* true: the line is written over again */
    size_t line_length;  /* of the live line on the terminal */
    double wall_seconds; /* of the latest such line */
};

/* file is borrowed. */
struct cli_progress cli_progress_on(FILE *file);

/* Shows the progress of a training: on_progress of struct ph_train_observer, with a struct cli_progress as
 * context. Always returns PH_OK: a line that cannot be written is left out. */
ph_status cli_progress_show(void *context, const struct ph_train_progress *progress);

/* Shows the progress of a preparation: on_progress of struct ph_prepare_options; the second returns the
 * seconds between its calls. */
void cli_progress_show_preparation(void *context, const struct ph_prepare_progress *progress);
double cli_progress_seconds(const struct cli_progress *progress);

/* Progress of a simulation. */
struct cli_simulated {
    uint64_t step, total_steps;   /* total_steps: 0 while unknown */
    double seconds, wall_seconds; /* simulated; of this machine */
};

/* Shows the progress of a simulation on a terminal, at most every half second. */
void cli_progress_show_simulation(struct cli_progress *progress, const struct cli_simulated *simulated);

/* Shows a line about long work on a terminal, at most every half second. */
void cli_progress_show_text(struct cli_progress *progress, const char *line);

void cli_progress_end(struct cli_progress *progress); /* ends the live line */

/* Format the lines that these functions show, without the end of the line. */
void cli_progress_format(const struct ph_train_progress *progress, char *line, size_t size);
void cli_progress_format_preparation(const struct ph_prepare_progress *progress, char *line, size_t size);
void cli_progress_format_simulation(const struct cli_simulated *simulated, char *line, size_t size);

#endif
