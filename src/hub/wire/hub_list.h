/* The addresses of the hubs that share a job's keys, as ph_hub_options.address lists them; mostly there is one. */
#ifndef PH_HUB_LIST_H
#define PH_HUB_LIST_H

#include <stdint.h>

#include "hub/layout/spread.h"
#include "phloem/hub.h"

struct ph_hub_list {
    char *text; /* owned */
    uint16_t num_hubs;
    const char *addresses[PH_HUB_MAX_HUBS]; /* in the order of the list, in `text` */
};

/* "host:port,host:port". PH_ERROR_CONFIG for none or an empty one, PH_ERROR_USAGE for more than PH_HUB_MAX_HUBS;
 * PH_ERROR_MEMORY. */
ph_status ph__hub_list_read(const char *address, struct ph_hub_list *list_out);
void ph__hub_list_fini(struct ph_hub_list *list); /* one of zeros is fine */

static inline struct ph_hub_share ph__hub_list_share(const struct ph_hub_list *list, uint16_t hub)
{
    return (struct ph_hub_share){.hub = hub, .num_hubs = list->num_hubs};
}

/* The options to reach one of them. */
struct ph_hub_options ph__hub_list_options(
    const struct ph_hub_list *list, uint16_t hub, const struct ph_hub_options *options);

/* Asks each hub, also when one before has failed: what that has lost may be on the others. Returns the first error, which says which hub
 * it is of. */
typedef ph_status ph_hub_list_ask(const struct ph_hub_list *list, uint16_t hub, void *context);
ph_status ph__hub_list_ask_each(const struct ph_hub_list *list, ph_hub_list_ask *ask, void *context);

/* Returns the status. An error that one of several hubs has caused says which: in ph_error_text(). */
ph_status ph__hub_list_name(const struct ph_hub_list *list, uint16_t hub, ph_status status);

#endif
