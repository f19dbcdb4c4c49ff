/* The verbs of the phloem program: one file a verb, one line in verbs.def. */
#ifndef PH_CLI_VERB_H
#define PH_CLI_VERB_H

#include "phloem/status.h"

/* argv[0] is the verb. */
typedef ph_status cli_verb_function(int argc, char **argv);

/* ONE_PROCESS: processes that a launcher has started together would all do the same work. */
enum cli_verb_processes { ONE_PROCESS, MANY_PROCESSES };

#define VERB(name, processes, summary) cli_verb_function verb_##name;
#include "cli/verbs.def"
#undef VERB

#endif
