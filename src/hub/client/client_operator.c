/* See client_operator.h. The hub is greeted where it listens, which tells its local socket, and asked over that. */
#include "hub/client/client_operator.h"

#include <stdio.h>

#include "hub/client/client_greet.h"
#include "hub/wire/hub_list.h"

static ph_status go_local(const struct ph_welcome *welcome, uint32_t timeout_ms, int *socket_out)
{
    char text[PH_HUB_MAX_TEXT + 1];
    enum ph_way way;
    const ph_status status = ph__client_reach_local(welcome, timeout_ms, socket_out, &way);
    if (status == PH_OK)
        return PH_OK;
    snprintf(text, sizeof text, "%s", ph_error_text());
    return ph_fail(status, "services are ended by the hub's own user, on its host: %s", text);
}

static ph_status reach(const struct ph_hub_options *options, const struct ph_secret *secret,
    struct ph_control_stream **stream_out)
{
    int socket;
    struct ph_welcome welcome;
    struct ph_control_stream *stream;
    PH_TRY(ph__client_reach(options, secret, &stream, &welcome));
    ph__control_stream_destroy(stream);
    PH_TRY(go_local(&welcome, ph__client_timeout(options).ms, &socket));
    return ph__client_greet(socket, secret, ph__client_timeout(options), stream_out, &welcome);
}

static ph_status ask(struct ph_control_stream *stream, const char *service, struct ph_timeout timeout)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_service_name(&writer, service);
    return ph__client_request(stream, PH_FRAME_END_SERVICE, &writer, PH_FRAME_ANSWER, timeout, &frame);
}

struct wish {
    const struct ph_hub_options *options;
    const struct ph_secret *secret; /* NULL: none */
    const char *service;
};

static ph_status end_service(const struct ph_hub_list *list, uint16_t hub, void *context)
{
    const struct wish *wish = context;
    const struct ph_hub_options one = ph__hub_list_options(list, hub, wish->options);
    struct ph_control_stream *stream;
    PH_TRY(reach(&one, wish->secret, &stream));
    const ph_status status = ask(stream, wish->service, ph__client_timeout(&one));
    ph__control_stream_destroy(stream);
    return status;
}

ph_status ph__hub_end_service(const struct ph_hub_options *options, const char *service)
{
    struct ph_secret secret;
    struct ph_hub_list list;
    const bool has_secret = options->secret_file != NULL;
    PH_TRY(ph__service_check_name(service));
    if (has_secret)
        PH_TRY(ph__secret_read(options->secret_file, &secret));
    struct wish wish = {.options = options, .secret = has_secret ? &secret : NULL, .service = service};
    ph_status status = ph__hub_list_read(options->address, &list);
    if (status == PH_OK) {
        status = ph__hub_list_ask_each(&list, end_service, &wish);
        ph__hub_list_fini(&list);
    }
    if (has_secret)
        ph__secret_fini(&secret);
    return status;
}
