/* The keys under "hub" of a config that `phloem hub` reads. */
#ifndef PH_HUB_HUB_OPTIONS_H
#define PH_HUB_HUB_OPTIONS_H

#include "base/option/option.h"
#include "phloem/hub_server.h"

enum ph__hub_log { PH_HUB_LOG_TEXT, PH_HUB_LOG_JSON, PH_HUB_LOG_NONE };

struct ph__hub_settings {
    const char *address, *secret_file;
    int64_t threads;
    int wait;        /* enum ph_hub_wait_policy */
    int aggregation; /* 0: tall, 1: wide */
    int results;     /* enum ph_hub_results */
    int64_t max_bytes, max_job_bytes, max_jobs, chunk_bytes;
    const char *checkpoint_folder, *metrics_address, *trace;
    int log; /* enum ph__hub_log */
};

extern const struct ph__option_table ph__hub_options;

/* What they mean to a server; texts are borrowed from the settings. Its log goes to that descriptor. */
struct ph_hub_server_options ph__hub_server_options(
    const struct ph__hub_settings *settings, int log_descriptor);

#endif
