/* Output of verbs: checks before a file for the user is written, and printing that several verbs share. */
#ifndef PH_CLI_OUTPUT_H
#define PH_CLI_OUTPUT_H

#include "base/file/stream.h"
#include "base/format/json.h"
#include "base/format/text_table.h"

/* PH_ERROR_USAGE when writing `path`, or `path`.tmp before it, would overwrite a file that is read as
 * `input`: a file of a pattern, an array of a set, the source of standard input. "-" overwrites nothing.
 * PH_ERROR_DATA for a pattern without files. */
ph_status cli_output_spare_input(const char *path, const char *input);

/* Does the same for the files that make a folder a trained model. */
ph_status cli_output_spare_model(const char *path, const char *folder);

/* PH_ERROR_USAGE for the name of a folder, PH_ERROR_DISK when the file cannot be opened for writing. Creates
 * the file if it is missing, else leaves it as it is; does not open a pipe, since its reader would see it
 * end. */
ph_status cli_output_try(const char *path);

/* ---- printing ---- */

typedef ph_status cli_write_function(const void *what, struct ph__writer *writer);

/* Calls `write` with a writer of standard output, after what was printed before. */
ph_status cli_print(cli_write_function *write, const void *what);

ph_status cli_print_table(const struct ph__text_table *table);
ph_status cli_print_json(const struct ph__json *json); /* indented */

/* Prints "phloem: note: TEXT" to standard error. An observer's on_note; context may be NULL. */
void cli_print_note(void *context, const char *text);

#endif
