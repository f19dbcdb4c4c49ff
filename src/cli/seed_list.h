/* Seeds on the command line. */
#ifndef PH_CLI_SEED_LIST_H
#define PH_CLI_SEED_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_CLI_MAX_SEEDS 1024

struct cli_seeds {
    size_t count;
    int64_t items[PH_CLI_MAX_SEEDS];
};

/* "3": the seeds 1, 2, 3. "1,2,5": these. "4-6": 4, 5, 6. PH_ERROR_USAGE for anything else, and for a seed that comes twice. */
ph_status cli_seeds_parse(const char *text, struct cli_seeds *seeds_out);

#endif
