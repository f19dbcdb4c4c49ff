#include "cli/hub/hub_reducer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/sum/random_bytes.h"
#include "base/thread/clock.h"
#include "cli/stop_signal.h"

/* Most time for a hub that was started with the ranks to come up; less than others wait for this rank. */
#define MOST_CONNECT_MS 10000u

#define EXPLAIN_NS 200000000u    /* to learn more of the rank whose end the hub has reported */
#define FAREWELL_MS 1000u        /* for an answer of a hub that may have failed */
#define FAREWELL_CONNECT_MS 200u /* for that hub to accept */

/* ---- failures ---- */

/* Reports a failure of the hub, unless the communicator has one to report: the end of a rank reaches its
 * peers by both, and the communicator knows more of it. */
static ph_status explain(struct cli_hub_reducer *reducer, ph_status status)
{
    char text[1024];
    const uint64_t since_ns = ph__clock_ns();
    uint64_t now_ns = since_ns;
    if (status == PH_OK)
        return PH_OK;
    snprintf(text, sizeof text, "the hub at %s: %s", reducer->options.address, ph_error_text());
    ph__patience_reset(&reducer->patience, since_ns);
    for (; now_ns - since_ns < EXPLAIN_NS; now_ns = ph__clock_ns()) {
        PH_TRY(ph__comm_progress(reducer->comm));
        ph__patience_pass(&reducer->patience, now_ns);
    }
    return ph_fail(status, "%s", text);
}

/* ---- open: ranks meet at the hub ---- */

static ph_status create_service(struct cli_hub_reducer *reducer)
{
    static const struct ph_hub_optimizer none = {.is_none = true};
    struct cli_hub_meeting *meeting = &reducer->meeting;
    uint64_t nonce = 0;
    while (nonce == 0)
        PH_TRY(ph__random_bytes(&nonce, sizeof nonce));
    if (meeting->name[0] == '\0')
        snprintf(meeting->name, sizeof meeting->name, "train-%016" PRIx64, nonce);
    const struct ph_hub_service service = {.size = sizeof service,
        .name = meeting->name,
        .nonce = nonce,
        .num_workers = (uint32_t)ph_comm_world_size(reducer->comm),
        .optimizers = &none,
        .num_optimizers = 1};
    PH_TRY(explain(reducer, ph_hub_create_service(&reducer->options, &service)));
    meeting->nonce = nonce;
    return PH_OK;
}

static ph_status create_and_invite(struct cli_hub_reducer *reducer)
{
    if (ph_comm_rank(reducer->comm) == 0)
        PH_TRY(create_service(reducer));
    return ph__comm_broadcast_once(
        reducer->comm, "name of the hub's service", 0, &reducer->meeting, sizeof reducer->meeting);
}

static ph_status init_keys(
    struct cli_hub_reducer *reducer, size_t num_buckets, const size_t *sizes, enum ph_dtype dtype)
{
    struct ph_hub_key *keys = calloc(num_buckets, sizeof *keys);
    if (keys == NULL)
        return ph__out_of_memory("%zu keys of a hub", num_buckets);
    for (size_t i = 0; i < num_buckets; i++)
        keys[i] = (struct ph_hub_key){.num_elements = sizes[i], .dtype = dtype};
    const ph_status status = ph_hub_init(reducer->client, keys, num_buckets, NULL);
    free(keys);
    return status;
}

/* Opens the service. ph_hub_init waits for all ranks, and would not notice the end of one: so it begins only
 * once all ranks are connected. */
static ph_status open_service(void *context, size_t num_buckets, const size_t *sizes, enum ph_dtype dtype)
{
    struct cli_hub_reducer *reducer = context;
    const uint32_t rank = (uint32_t)ph_comm_rank(reducer->comm);
    const struct cli_hub_meeting *meeting = &reducer->meeting;
    PH_TRY(create_and_invite(reducer));
    PH_TRY(explain(
        reducer, ph_hub_connect(&reducer->options, meeting->name, meeting->nonce, rank, &reducer->client)));
    PH_TRY(ph__comm_barrier(reducer->comm));
    return explain(reducer, init_keys(reducer, num_buckets, sizes, dtype));
}

/* ---- each step ---- */

static void *numbers(void *context, size_t bucket)
{
    const struct cli_hub_reducer *reducer = context;
    return ph_hub_gradient(reducer->client, bucket);
}

static ph_status start(void *context, size_t bucket)
{
    struct cli_hub_reducer *reducer = context;
    return explain(reducer, ph_hub_pushpull_start(reducer->client, bucket));
}

static ph_status wait_for_hub(struct cli_hub_reducer *reducer, size_t bucket)
{
    bool is_done;
    ph__patience_reset(&reducer->patience, ph__clock_ns());
    for (;;) {
        PH_TRY(explain(reducer, ph_hub_test(reducer->client, bucket, &is_done)));
        if (is_done)
            return explain(reducer, ph_hub_wait(reducer->client, bucket));
        PH_TRY(ph__comm_progress(reducer->comm));
        ph__patience_pass(&reducer->patience, ph__clock_ns());
    }
}

static ph_status wait(void *context, size_t bucket, const void **sums_out)
{
    struct cli_hub_reducer *reducer = context;
    PH_TRY(wait_for_hub(reducer, bucket));
    *sums_out = ph_hub_parameters(reducer->client, bucket);
    return PH_OK;
}

/* ---- begin and end ---- */

static struct ph_hub_options options_of(const struct ph_parallel_settings *settings)
{
    const uint32_t timeout_ms = (uint32_t)ceil(settings->timeout_seconds * 1000);
    return (struct ph_hub_options){.size = sizeof(struct ph_hub_options),
        .address = settings->hub,
        .secret_file = settings->hub_secret_file,
        .timeout_ms = timeout_ms,
        .stop_signal = cli_stop_signal_place(),
        .connect_timeout_ms = (uint32_t)ph__min((timeout_ms + 1) / 2, MOST_CONNECT_MS)};
}

ph_status cli_hub_reducer_init(
    struct cli_hub_reducer *reducer, const struct ph_parallel_settings *settings, struct ph_comm *comm)
{
    if (settings->hub[0] == '\0')
        return ph_fail(PH_ERROR_CONFIG, "parallel.sync: hub requires parallel.hub (host:port)");
    if (strlen(settings->hub_job) > PH_HUB_MAX_NAME)
        return ph_fail(PH_ERROR_CONFIG, "parallel.hub_job is longer than %d bytes", PH_HUB_MAX_NAME);
    *reducer = (struct cli_hub_reducer){.table = {reducer, open_service, numbers, start, wait},
        .comm = comm,
        .options = options_of(settings),
        .patience = {.is_crowded = true}}; /* a hub on this machine needs processors, too */
    snprintf(reducer->meeting.name, sizeof reducer->meeting.name, "%s", settings->hub_job);
    return PH_OK;
}

/* Leaves the service after success. Ignores failures of the hub: the training needs it no more. */
static void leave(struct cli_hub_reducer *reducer)
{
    const bool is_first = ph_comm_rank(reducer->comm) == 0;
    if (ph_hub_leave(reducer->client) == PH_OK && is_first)
        PH_IGNORE(ph_hub_destroy_service(&reducer->options, reducer->meeting.name, reducer->meeting.nonce));
}

/* Ends the service after a failure, and reports that failure again. */
static void end_for_all(struct cli_hub_reducer *reducer, ph_status status)
{
    char text[1024];
    struct ph_hub_options options = reducer->options;
    options.stop_signal = NULL;
    options.timeout_ms = FAREWELL_MS;
    options.connect_timeout_ms = FAREWELL_CONNECT_MS;
    snprintf(text, sizeof text, "%s", ph_error_text());
    ph_hub_client_destroy(reducer->client);
    reducer->client = NULL;
    PH_IGNORE(ph_hub_destroy_service(&options, reducer->meeting.name, reducer->meeting.nonce));
    ph_fail(status, "%s", text);
}

void cli_hub_reducer_fini(struct cli_hub_reducer *reducer, ph_status status)
{
    if (reducer->meeting.nonce != 0 && status != PH_OK)
        end_for_all(reducer, status);
    else if (reducer->client != NULL)
        leave(reducer);
    ph_hub_client_destroy(reducer->client);
    *reducer = (struct cli_hub_reducer){0};
}
