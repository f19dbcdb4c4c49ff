/* A deadline for what the program must call and cannot stop. */
#ifndef PH_CLI_DEADLINE_H
#define PH_CLI_DEADLINE_H

#include "phloem/status.h"

/* Unless cli_deadline_end comes within so many seconds, the process ends by SIGALRM with the exit code of `status`, without
 * tidying up, and `line`, borrowed until then, on stderr. One at a time. */
void cli_deadline_begin(double seconds, ph_status status, const char *line);
void cli_deadline_end(void);

#endif
