/* See several_hubs.h. */
#include "hub/several_hubs.h"

#include <stdio.h>
#include <string.h>

static void join_addresses(struct several_hubs *hubs)
{
    char *text = hubs->all.address;
    text[0] = '\0';
    for (uint32_t i = 0; i < hubs->count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof hubs->all.address - used, "%s%s", i > 0 ? "," : "",
            hubs->hubs[i].options.address);
    }
    hubs->all.options.address = text;
}

void several_hubs_begin(
    struct several_hubs *hubs, uint32_t count, const struct ph_hub_server_options *options)
{
    *hubs = (struct several_hubs){
        .count = count, .all.options = {.size = sizeof(struct ph_hub_options), .timeout_ms = 20000}};
    for (uint32_t i = 0; i < count; i++)
        hub_thread_begin(&hubs->hubs[i], options[i]);
    join_addresses(hubs);
}

void several_hubs_end(struct several_hubs *hubs)
{
    for (uint32_t i = 0; i < hubs->count; i++)
        hub_thread_end(&hubs->hubs[i]);
}
