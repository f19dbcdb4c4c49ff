/* Tables for people of what ranks cost each other, as in summary.json (train/ranks/rank_figures.h). */
#ifndef PH_CLI_RANK_TABLE_H
#define PH_CLI_RANK_TABLE_H

#include "base/file/stream.h"
#include "base/format/json.h"

/* Writes a line, a table of ranks, and one of their exchanges. ranks: the member "ranks" of summary.json. Of
 * more than 64 ranks shows those that compute longest, of more than 12 exchanges the first ones, and says how
 * many more there are. */
ph_status cli_rank_table_write(const struct ph__json *ranks, struct ph__writer *writer);

/* Prints the tables of FOLDER/summary.json to standard output; nothing for a training of one process. */
ph_status cli_rank_table_print(const char *folder);

#endif
