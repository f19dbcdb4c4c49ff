/* See hub_list.h. */
#include "hub/wire/hub_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/wire/protocol.h"

static ph_status cut(const char *address, struct ph_hub_list *list)
{
    for (char *rest = list->text, *one; (one = strsep(&rest, ",")) != NULL;) {
        if (*one == '\0')
            return ph_fail(PH_ERROR_CONFIG, "the hub's address is missing in '%s'", address);
        if (list->num_hubs == PH_HUB_MAX_HUBS)
            return ph_fail(PH_ERROR_USAGE, "there are at most %d hubs", PH_HUB_MAX_HUBS);
        list->addresses[list->num_hubs++] = one;
    }
    return PH_OK;
}

ph_status ph__hub_list_read(const char *address, struct ph_hub_list *list_out)
{
    struct ph_hub_list list = {0};
    if (address == NULL)
        return ph_fail(PH_ERROR_CONFIG, "the hub's address is missing");
    list.text = strdup(address);
    if (list.text == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for the addresses of hubs");
    const ph_status status = cut(address, &list);
    if (status != PH_OK) {
        ph__hub_list_fini(&list);
        return status;
    }
    *list_out = list;
    return PH_OK;
}

void ph__hub_list_fini(struct ph_hub_list *list)
{
    free(list->text);
    *list = (struct ph_hub_list){0};
}

struct ph_hub_options ph__hub_list_options(
    const struct ph_hub_list *list, uint16_t hub, const struct ph_hub_options *options)
{
    struct ph_hub_options one = *options;
    one.address = list->addresses[hub];
    return one;
}

ph_status ph__hub_list_name(const struct ph_hub_list *list, uint16_t hub, ph_status status)
{
    char text[PH_HUB_MAX_TEXT + 1];
    if (status == PH_OK || list->num_hubs == 1)
        return status;
    snprintf(text, sizeof text, "%s", ph_error_text());
    return ph_fail(status, "hub %s: %s", list->addresses[hub], text);
}

ph_status ph__hub_list_ask_each(const struct ph_hub_list *list, ph_hub_list_ask *ask, void *context)
{
    char text[PH_HUB_MAX_TEXT + 1];
    ph_status first = PH_OK;
    for (uint16_t hub = 0; hub < list->num_hubs; hub++) {
        const ph_status status = ph__hub_list_name(list, hub, ask(list, hub, context));
        if (status == PH_OK || first != PH_OK)
            continue;
        first = status;
        snprintf(text, sizeof text, "%s", ph_error_text());
    }
    return first == PH_OK ? PH_OK : ph_fail(first, "%s", text);
}
