/* What `phloem hub` is made of: one file a part. argv[0] is the part's name. */
#ifndef PH_CLI_HUB_H
#define PH_CLI_HUB_H

#include "phloem/status.h"

ph_status cli_hub_serve(int argc, char **argv);
ph_status cli_hub_status(int argc, char **argv);
ph_status cli_hub_bench(int argc, char **argv);

#endif
