/* What is asked of hubs without joining a job: see phloem/hub.h. */
#include <string.h>

#include "hub/client/client_greet.h"
#include "hub/wire/hub_list.h"

static ph_status ask_one(
    const struct ph_hub_options *options, enum ph_hub_frame type, const struct ph_wire_writer *body)
{
    struct ph_control_frame frame;
    struct ph_control_stream *stream;
    PH_TRY(ph__client_reach_once(options, &stream));
    const ph_status status =
        ph__client_request(stream, type, body, PH_FRAME_ANSWER, ph__client_timeout(options), &frame);
    ph__control_stream_destroy(stream);
    return status;
}

static ph_status ask(const struct ph_hub_options *options, const struct ph_hub_list *list, uint16_t hub,
    enum ph_hub_frame type, const struct ph_wire_writer *body)
{
    const struct ph_hub_options one = ph__hub_list_options(list, hub, options);
    return ask_one(&one, type, body);
}

/* One after the other, up to the first that fails. */
static ph_status create(const struct ph_hub_options *options, const struct ph_hub_list *list,
    const struct ph_hub_service *service)
{
    for (uint16_t hub = 0; hub < list->num_hubs; hub++) {
        unsigned char bytes[PH_HUB_MAX_BODY];
        struct ph_wire_writer writer;
        const struct ph_hub_share share = ph__hub_list_share(list, hub);
        PH_TRY(ph__service_check_share(service, &share));
        ph__wire_writer_init(&writer, bytes, sizeof bytes);
        ph__put_service(&writer, service, &share);
        PH_TRY(ph__hub_list_name(list, hub, ask(options, list, hub, PH_FRAME_CREATE, &writer)));
    }
    return PH_OK;
}

ph_status ph_hub_create_service(const struct ph_hub_options *options, const struct ph_hub_service *service)
{
    struct ph_hub_list list;
    PH_TRY(ph__service_check(service));
    PH_TRY(ph__hub_list_read(options->address, &list));
    const ph_status status = create(options, &list, service);
    ph__hub_list_fini(&list);
    return status;
}

struct destruction {
    const struct ph_hub_options *options;
    struct ph_join which;
};

static ph_status destroy(const struct ph_hub_list *list, uint16_t hub, void *context)
{
    struct destruction *wish = context;
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    wish->which.share = ph__hub_list_share(list, hub);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &wish->which);
    return ask(wish->options, list, hub, PH_FRAME_DESTROY, &writer);
}

ph_status ph_hub_destroy_service(const struct ph_hub_options *options, const char *name, uint64_t nonce)
{
    struct destruction wish = {.options = options, .which.nonce = nonce};
    struct ph_hub_list list;
    PH_TRY(ph__service_check_name(name));
    strcpy(wish.which.name, name);
    PH_TRY(ph__hub_list_read(options->address, &list));
    const ph_status status = ph__hub_list_ask_each(&list, destroy, &wish);
    ph__hub_list_fini(&list);
    return status;
}
