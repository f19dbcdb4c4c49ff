/* See client_operator.h. The hub is greeted where it listens, which tells its local socket, and asked over that. */
#include "hub/client_operator.h"

#include <unistd.h>

#include "hub/client_greet.h"

static ph_status go_local(const struct ph_welcome *welcome, int *socket_out)
{
    if (ph__socket_connect_local(welcome->local_socket, socket_out) != PH_OK)
        return ph_fail(PH_ERROR_PEER,
            "the hub's local socket is not to be reached from here: services are ended on the hub's host");
    if (ph__socket_is_same_user(*socket_out))
        return PH_OK;
    close(*socket_out);
    return ph_fail(PH_ERROR_PEER, "the hub is another user's, who alone may end services");
}

static ph_status reach(const struct ph_hub_options *options, const struct ph_secret *secret,
    struct ph_control_stream **stream_out)
{
    int socket;
    struct ph_welcome welcome;
    struct ph_control_stream *stream;
    PH_TRY(ph__client_reach(options, secret, &stream, &welcome));
    ph__control_stream_destroy(stream);
    PH_TRY(go_local(&welcome, &socket));
    return ph__client_greet(socket, secret, ph__client_timeout_ms(options), stream_out, &welcome);
}

static ph_status ask(struct ph_control_stream *stream, const char *service, uint32_t timeout_ms)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_status(&writer, service); /* a name, as END_SERVICE has it */
    return ph__client_request(stream, PH_FRAME_END_SERVICE, &writer, PH_FRAME_ANSWER, timeout_ms, &frame);
}

ph_status ph__hub_end_service(const struct ph_hub_options *options, const char *service)
{
    struct ph_secret secret;
    struct ph_control_stream *stream;
    const bool has_secret = options->secret_file != NULL;
    PH_TRY(ph__service_check_name(service));
    if (has_secret)
        PH_TRY(ph__secret_read(options->secret_file, &secret));
    ph_status status = reach(options, has_secret ? &secret : NULL, &stream);
    if (has_secret)
        ph__secret_fini(&secret);
    PH_TRY(status);
    status = ask(stream, service, ph__client_timeout_ms(options));
    ph__control_stream_destroy(stream);
    return status;
}
