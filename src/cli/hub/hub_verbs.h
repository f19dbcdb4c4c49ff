/* The verbs of `phloem hub` that have a file each; the others: verb_hub.c. argv[0] is the verb's name. */
#ifndef PH_CLI_HUB_VERBS_H
#define PH_CLI_HUB_VERBS_H

#include <stddef.h>

#include "phloem/hub.h"
#include "phloem/status.h"

ph_status cli_hub_status(int argc, char **argv);
ph_status cli_hub_bench(int argc, char **argv);

/* Somebody who asks at the prompt does not wait long for a hub that is not there. */
#define CLI_HUB_CONNECT_MS 1000

/* ---- measuring a hub (hub_bench_run.c): workers of this process push and pull one key, round after round
 * ---- */

/* A temporary service, for one measurement: a hub that keeps its jobs holds the next one to the first one's
 * keys. */
struct cli_bench_service {
    struct ph_hub_options options;
    char name[64];
    uint64_t nonce;
    uint32_t num_workers;
};

/* Creates a service. Its measurement fails once *options->stop_signal (not NULL) is set. Errors:
 * ph_hub_create_service's. */
ph_status cli_bench_service_create(
    const struct ph_hub_options *options, uint32_t num_workers, struct cli_bench_service *service_out);

/* Ends the service. Returns `measured` or, where that is PH_OK, the error of ending it. The text says where
 * the service may be left. */
ph_status cli_bench_service_end(const struct cli_bench_service *service, ph_status measured);

struct cli_bench_result {
    uint32_t num_chunks;
    char why[256];          /* this transport */
    double median_s, p99_s; /* of a round, as the first worker sees it */
    double bytes_per_s;     /* gradients and parameters of all workers, in the median round */
    double messages_per_s;  /* pushes and replies of chunks, the same */
    bool was_refused;       /* where it fails: a worker could not be connected by this transport */
};

/* Rounds are those that count; a few go before them. A synchronous sum with momentum, fp32. */
ph_status cli_bench_measure(const struct cli_bench_service *service, enum ph_hub_transport transport,
    size_t num_elements, size_t num_rounds, struct cli_bench_result *result_out);

#endif
