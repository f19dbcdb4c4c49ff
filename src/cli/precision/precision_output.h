/* Output of phloem precision: the table of recipes, a page, and a table on the terminal. */
#ifndef PH_CLI_PRECISION_OUTPUT_H
#define PH_CLI_PRECISION_OUTPUT_H

#include "train/probe/sites.h"

struct cli_precision_outcome {
    const struct ph__sites *sites;
    const struct ph__site_wish *wish;
    const char *folder, *data;
    const char *metric;      /* "ne", or "logloss" of classes */
    double exact_loss, loss; /* that metric in fp32, by the recipes */
};

ph_status cli_precision_print(const struct cli_precision_outcome *outcome);
ph_status cli_precision_write_table(const struct cli_precision_outcome *outcome, const char *path);
ph_status cli_precision_write_page(const struct cli_precision_outcome *outcome, const char *path);

#endif
