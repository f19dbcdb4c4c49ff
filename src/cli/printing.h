/* What several verbs print in the same way. */
#ifndef PH_CLI_PRINTING_H
#define PH_CLI_PRINTING_H

#include "base/file/stream.h"

typedef ph_status cli_write_function(const void *what, struct ph_writer *writer);

/* Calls `write` with a writer of standard output, behind what was printed there before. */
ph_status cli_print(cli_write_function *write, const void *what);

/* "phloem: note: TEXT" to standard error: as an observer's on_note, whose context it does not need. */
void cli_print_note(void *context, const char *text);

#endif
