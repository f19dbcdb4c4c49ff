/* Parts of `phloem serve` that have a file each; the server is run by verb_serve.c. */
#ifndef PH_CLI_SERVE_VERBS_H
#define PH_CLI_SERVE_VERBS_H

#include "phloem/status.h"

/* Runs phloem serve status ADDRESS; argv[0] is "status". */
ph_status cli_serve_status(int argc, char **argv);

/* Prints a request for a model of the repository, as a command of curl and as a program of Triton's client,
 * with values that the model knows. PH_ERROR_USAGE: the repository has no such model. */
ph_status cli_serve_example(const char *repository, const char *model, const char *http_address);

#endif
