/* What `phloem hub` is made of: one file a part. argv[0] is the part's name. */
#ifndef PH_CLI_HUB_PARTS_H
#define PH_CLI_HUB_PARTS_H

#include "phloem/status.h"

ph_status cli_hub_serve(int argc, char **argv);
ph_status cli_hub_status(int argc, char **argv);
ph_status cli_hub_bench(int argc, char **argv);
ph_status cli_hub_destroy(int argc, char **argv);

#define CLI_HUB_CONNECT_MS \
    1000 /* somebody who asks at the prompt does not wait long for a hub that is not there */

#endif
