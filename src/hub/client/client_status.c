/* See client_status.h. */
#include "hub/client/client_status.h"

#include "hub/client/client_greet.h"

#define DEFAULT_TIMEOUT_MS 10000

static ph_status ask(struct ph_control_stream *stream, const char *service, struct ph_timeout timeout,
    struct ph_json **status_out)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_service_name(&writer, service);
    PH_TRY(ph__client_request(stream, PH_FRAME_STATUS, &writer, PH_FRAME_STATUS_TEXT, timeout, &frame));
    return ph__json_parse(frame.body, frame.size, "the hub's status", PH_ERROR_PEER, status_out);
}

ph_status ph__hub_status(
    const struct ph_hub_options *options, const char *service, struct ph_json **status_out)
{
    struct ph_hub_options waiting = *options;
    struct ph_control_stream *stream;
    waiting.timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    PH_TRY(ph__client_reach_once(&waiting, &stream));
    const ph_status status =
        ask(stream, service != NULL ? service : "", ph__client_timeout(&waiting), status_out);
    ph__control_stream_destroy(stream);
    return status;
}
