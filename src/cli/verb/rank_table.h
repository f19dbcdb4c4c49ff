/* What ranks cost each other, as summary.json has it (train/ranks/rank_figures.h), for people. */
#ifndef PH_CLI_RANK_TABLE_H
#define PH_CLI_RANK_TABLE_H

#include "base/file/stream.h"
#include "base/format/json.h"

/* ranks: the member "ranks". A line, a table of ranks, and one of what they exchanged. Of more than 64 ranks
 * those that compute longest, and of more than 12 exchanges the first ones, with how many more there are. */
ph_status cli_rank_table_write(const struct ph__json *ranks, struct ph__writer *writer);

/* Of FOLDER/summary.json to standard output; nothing where the training was of one process. */
ph_status cli_rank_table_print(const char *folder);

#endif
