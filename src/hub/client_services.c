/* What is asked of a hub without joining a job: see phloem/hub.h. */
#include <string.h>

#include "hub/client_greet.h"

/* ---- services ---- */

ph_status ph_hub_create_service(const struct ph_hub_options *options, const struct ph_hub_service *service)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    struct ph_control_stream *stream;
    PH_TRY(ph__service_check(service));
    PH_TRY(ph__client_reach_once(options, &stream));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_service(&writer, service);
    const ph_status status = ph__client_request(
        stream, PH_FRAME_CREATE, &writer, PH_FRAME_ANSWER, ph__client_timeout_ms(options), &frame);
    ph__control_stream_destroy(stream);
    return status;
}

ph_status ph_hub_destroy_service(const struct ph_hub_options *options, const char *name, uint64_t nonce)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    struct ph_control_stream *stream;
    struct ph_join which = {.nonce = nonce};
    PH_TRY(ph__service_check_name(name));
    strcpy(which.name, name);
    PH_TRY(ph__client_reach_once(options, &stream));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &which);
    const ph_status status = ph__client_request(
        stream, PH_FRAME_DESTROY, &writer, PH_FRAME_ANSWER, ph__client_timeout_ms(options), &frame);
    ph__control_stream_destroy(stream);
    return status;
}
