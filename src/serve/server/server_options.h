/* Keys of phloem serve, in a config of its own or after --set. */
#ifndef PH_SERVE_SERVER_OPTIONS_H
#define PH_SERVE_SERVER_OPTIONS_H

#include "base/option/option.h"
#include "phloem/server.h"

#define PH_NUM_SERVER_SECTIONS 3

extern const struct ph__option_table ph__server_options; /* section "serve" */

/* Fills the sections of a server's settings, for ph__config_read. */
void ph__server_sections(
    struct ph_server_options *options, struct ph__section sections[PH_NUM_SERVER_SECTIONS]);

#endif
