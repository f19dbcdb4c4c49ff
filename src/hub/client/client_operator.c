/* Requests to hubs without joining a job: services (phloem/hub.h), status, and an operator's requests. */
#include <stdio.h>
#include <string.h>

#include "base/memory/caller.h"
#include "hub/client/client_greet.h"
#include "hub/client/client_operator.h"

static ph_status ask_once(
    const struct ph_hub_options *options, enum ph__hub_frame type, const struct ph__wire_writer *body)
{
    struct ph__control_frame frame;
    struct ph__control_stream *stream;
    PH_TRY(ph__client_reach_once(options, &stream));
    const ph_status status =
        ph__client_request(stream, type, body, PH_FRAME_ANSWER, ph__client_timeout(options), &frame);
    ph__control_stream_destroy(stream);
    return status;
}

static ph_status ask_hub(const struct ph_hub_options *options, const struct ph__hub_list *list, uint16_t hub,
    enum ph__hub_frame type, const struct ph__wire_writer *body)
{
    const struct ph_hub_options one = ph__hub_list_options(list, hub, options);
    return ask_once(&one, type, body);
}

typedef ph_status ask_hub_function(const struct ph__hub_list *list, uint16_t hub, void *context);

/* Asks each hub, even after one has failed: what that hub has lost may be on the others. Returns the first
 * error, which names its hub. */
static ph_status ask_each(const struct ph__hub_list *list, ask_hub_function *ask, void *context)
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

/* Creates the service on each hub in turn, up to the first error. */
static ph_status create(const struct ph_hub_options *options, const struct ph__hub_list *list,
    const struct ph_hub_service *service)
{
    for (uint16_t hub = 0; hub < list->num_hubs; hub++) {
        unsigned char bytes[PH_HUB_MAX_BODY];
        struct ph__wire_writer writer;
        const struct ph__hub_share share = ph__hub_list_share(list, hub);
        PH_TRY(ph__service_check_share(service, &share));
        ph__wire_writer_init(&writer, bytes, sizeof bytes);
        ph__put_service(&writer, service, &share);
        PH_TRY(ph__hub_list_name(list, hub, ask_hub(options, list, hub, PH_FRAME_CREATE, &writer)));
    }
    return PH_OK;
}

ph_status ph_hub_create_service(const struct ph_hub_options *options, const struct ph_hub_service *service)
{
    struct ph_hub_options own;
    struct ph_hub_service own_service;
    struct ph__hub_list list;
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_hub_options"));
    PH_TRY(ph__options_copy(&own_service, sizeof own_service, service, "ph_hub_service"));
    PH_TRY(ph__service_check(&own_service));
    PH_TRY(ph__hub_list_read(own.address, &list));
    const ph_status status = create(&own, &list, &own_service);
    ph__hub_list_fini(&list);
    return status;
}

struct destruction {
    const struct ph_hub_options *options;
    struct ph__join which;
};

static ph_status destroy(const struct ph__hub_list *list, uint16_t hub, void *context)
{
    struct destruction *wish = context;
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    wish->which.share = ph__hub_list_share(list, hub);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &wish->which);
    return ask_hub(wish->options, list, hub, PH_FRAME_DESTROY, &writer);
}

ph_status ph_hub_destroy_service(const struct ph_hub_options *options, const char *name, uint64_t nonce)
{
    struct ph_hub_options own;
    struct destruction wish = {.options = &own, .which.nonce = nonce};
    struct ph__hub_list list;
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_hub_options"));
    PH_TRY(ph__service_check_name(name));
    strcpy(wish.which.name, name);
    PH_TRY(ph__hub_list_read(own.address, &list));
    const ph_status status = ask_each(&list, destroy, &wish);
    ph__hub_list_fini(&list);
    return status;
}

/* ---- a hub's status ---- */

#define DEFAULT_TIMEOUT_MS 10000

static ph_status ask_for_status(struct ph__control_stream *stream, const char *service,
    struct ph__timeout timeout, struct ph__json **status_out)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__control_frame frame;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_service_name(&writer, service);
    PH_TRY(ph__client_request(stream, PH_FRAME_STATUS, &writer, PH_FRAME_STATUS_TEXT, timeout, &frame));
    return ph__json_parse(frame.body, frame.size, "the hub's status", PH_ERROR_PEER, status_out);
}

ph_status ph__hub_status(
    const struct ph_hub_options *options, const char *service, struct ph__json **status_out)
{
    struct ph_hub_options waiting = *options;
    struct ph__control_stream *stream;
    waiting.timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    PH_TRY(ph__client_reach_once(&waiting, &stream));
    const ph_status status =
        ask_for_status(stream, service != NULL ? service : "", ph__client_timeout(&waiting), status_out);
    ph__control_stream_destroy(stream);
    return status;
}

/* ---- ending a service: the greeting tells the hub's local socket, which takes the request ---- */

static ph_status go_local(const struct ph__welcome *welcome, uint32_t timeout_ms, int *socket_out)
{
    char text[PH_HUB_MAX_TEXT + 1];
    enum ph__way way;
    const ph_status status = ph__client_reach_local(welcome, timeout_ms, socket_out, &way);
    if (status == PH_OK)
        return PH_OK;
    snprintf(text, sizeof text, "%s", ph_error_text());
    return ph_fail(status, "only the hub's own user can end services, on the hub's host: %s", text);
}

static ph_status reach(const struct ph_hub_options *options, const struct ph__secret *secret,
    struct ph__control_stream **stream_out)
{
    int socket;
    struct ph__welcome welcome;
    struct ph__control_stream *stream;
    PH_TRY(ph__client_reach(options, secret, &stream, &welcome));
    ph__control_stream_destroy(stream);
    PH_TRY(go_local(&welcome, ph__client_timeout(options).ms, &socket));
    return ph__client_greet(socket, secret, ph__client_timeout(options), stream_out, &welcome);
}

static ph_status ask_to_end(
    struct ph__control_stream *stream, const char *service, struct ph__timeout timeout)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__control_frame frame;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_service_name(&writer, service);
    return ph__client_request(stream, PH_FRAME_END_SERVICE, &writer, PH_FRAME_ANSWER, timeout, &frame);
}

struct wish {
    const struct ph_hub_options *options;
    const struct ph__secret *secret; /* NULL: none */
    const char *service;
};

static ph_status end_service(const struct ph__hub_list *list, uint16_t hub, void *context)
{
    const struct wish *wish = context;
    const struct ph_hub_options one = ph__hub_list_options(list, hub, wish->options);
    struct ph__control_stream *stream;
    PH_TRY(reach(&one, wish->secret, &stream));
    const ph_status status = ask_to_end(stream, wish->service, ph__client_timeout(&one));
    ph__control_stream_destroy(stream);
    return status;
}

ph_status ph__hub_end_service(const struct ph_hub_options *options, const char *service)
{
    struct ph__secret secret;
    struct ph__hub_list list;
    const bool has_secret = options->secret_file != NULL;
    PH_TRY(ph__service_check_name(service));
    if (has_secret)
        PH_TRY(ph__secret_read(options->secret_file, &secret));
    struct wish wish = {.options = options, .secret = has_secret ? &secret : NULL, .service = service};
    ph_status status = ph__hub_list_read(options->address, &list);
    if (status == PH_OK) {
        status = ask_each(&list, end_service, &wish);
        ph__hub_list_fini(&list);
    }
    if (has_secret)
        ph__secret_fini(&secret);
    return status;
}
