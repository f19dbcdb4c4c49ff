/* Several hubs in threads of a test, that share the keys of its jobs. */
#ifndef PH_TEST_SEVERAL_HUBS_H
#define PH_TEST_SEVERAL_HUBS_H

#include "hub/worker_thread.h"
#include "support/hub_thread.h"

enum { MAX_SEVERAL_HUBS = 3 };

struct several_hubs {
    uint32_t count;
    struct hub_thread hubs[MAX_SEVERAL_HUBS];
    struct hub_thread all; /* only its options are used: they reach all of them */
};

/* options: (count). With two core threads where they do not say. */
void several_hubs_begin(
    struct several_hubs *hubs, uint32_t count, const struct ph_hub_server_options *options);
void several_hubs_end(struct several_hubs *hubs); /* in good order */

#endif
