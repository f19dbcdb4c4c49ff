/* The verbs of `phloem hub` that have a file each; the others are in verb_hub.c. argv[0] is the verb. */
#ifndef PH_CLI_HUB_VERBS_H
#define PH_CLI_HUB_VERBS_H

#include <stddef.h>

#include "phloem/hub.h"
#include "phloem/status.h"

ph_status cli_hub_status(int argc, char **argv);
ph_status cli_hub_bench(int argc, char **argv);

/* Short: a user at the prompt should not wait long for a hub that is not there. */
#define CLI_HUB_CONNECT_MS 1000

/* ---- measuring a hub (hub_bench_run.c): workers of this process push and pull one key in rounds ---- */

/* A temporary service, for one measurement. With a lasting one, a hub that keeps its jobs would hold the next
 * measurement to the first one's keys. */
struct cli_bench_service {
    struct ph_hub_options options;
    char name[64];
    uint64_t nonce;
    uint32_t num_workers;
};

/* Creates a service. Its measurement fails once *options->stop_signal (not NULL) is set. Errors: those of
 * ph_hub_create_service. */
ph_status cli_bench_service_create(
    const struct ph_hub_options *options, uint32_t num_workers, struct cli_bench_service *service_out);

/* Ends the service. Returns `measured` or, if that is PH_OK, the error of ending it. The text says when the
 * service may be left. */
ph_status cli_bench_service_end(const struct cli_bench_service *service, ph_status measured);

struct cli_bench_result {
    uint32_t num_chunks;
    char why[256];          /* reason for this transport */
    double median_s, p99_s; /* of a round, seen by the first worker */
    double bytes_per_s;     /* gradients and parameters of all workers, in the median round */
    double messages_per_s;  /* pushes and replies of chunks, the same */
    bool was_refused;       /* on failure: a worker could not connect by this transport */
};

/* Measures num_rounds rounds, after a few to warm up: a synchronous sum with momentum, fp32. */
ph_status cli_bench_measure(const struct cli_bench_service *service, enum ph_hub_transport transport,
    size_t num_elements, size_t num_rounds, struct cli_bench_result *result_out);

#endif
