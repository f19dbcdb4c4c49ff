/* Keys under "hub" in the config that `phloem hub` reads. */
#ifndef PH_HUB_HUB_OPTIONS_H
#define PH_HUB_HUB_OPTIONS_H

#include "base/option/option.h"
#include "phloem/hub_server.h"

extern const struct ph__option_table ph__hub_options; /* struct ph_hub_server_options */

#endif
