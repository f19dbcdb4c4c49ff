#include "serve/server/server_options.h"

#include <stddef.h>

#include "base/memory/caller.h"
#include "serve/repository/served_settings.h"
#include "serve/speculation/speculation.h"

#define SERVE(member) struct ph_server_options, member
#define MAX_BYTES 9e15
#define MAX_MS 3.6e6

static const struct ph__option options[] = {
    PH_TEXT_KEY("http_address", SERVE(http_address), "127.0.0.1:8000",
        "Address of the REST wire, host:port. Port 0: a free one. Empty: no REST. An address that other "
        "hosts "
        "can reach requires serve.token_file."),
    PH_TEXT_KEY("grpc_address", SERVE(grpc_address), "127.0.0.1:8001",
        "Address of the gRPC wire, likewise. Empty: no gRPC."),
    PH_TEXT_KEY("metrics_address", SERVE(metrics_address), "127.0.0.1:8002",
        "Address of Prometheus metrics, likewise, without a token. Empty: no metrics."),
    PH_INTEGER_KEY("threads", SERVE(num_threads), "0", 0, 1024,
        "Number of workers, which score. 0: one for each processor."),
    PH_CHOICE_KEY("control", SERVE(control), "none", "none|explicit|poll",
        "How models come and go. none: all are loaded at the start. explicit: clients load and unload. poll: "
        "the repository is looked at every poll_ms."),
    PH_INTEGER_KEY("poll_ms", SERVE(poll_ms), "15000", 10, MAX_MS,
        "Milliseconds between two looks at the repository, with control poll."),
    PH_TEXT_KEY("load", SERVE(load), "",
        "Models that are loaded at the start with control explicit, as a,b; *: all."),
    PH_BOOL_KEY("load_in_background", SERVE(load_in_background), "true",
        "true: models are loaded and freed beside requests, by a thread of the lowest priority. false: by "
        "the "
        "thread that answers requests, which wait; to measure what that costs."),
    PH_INTEGER_KEY("max_request_bytes", SERVE(max_request_bytes), "67108864", 1024, MAX_BYTES,
        "Bytes of a request, before and after decompression. Larger ones are refused."),
    PH_INTEGER_KEY(
        "max_connections", SERVE(max_connections), "1024", 1, 1e6, "Connections of each wire at a time."),
    PH_INTEGER_KEY("client_timeout_ms", SERVE(client_timeout_ms), "10000", 10, MAX_MS,
        "Milliseconds for a client to send a request, or to take an answer. Slower ones are cut off."),
    PH_INTEGER_KEY("idle_timeout_ms", SERVE(idle_timeout_ms), "120000", 10, MAX_MS,
        "Milliseconds between two requests of a connection."),
    PH_INTEGER_KEY("drain_timeout_ms", SERVE(drain_timeout_ms), "30000", 0, MAX_MS,
        "Milliseconds that requests in flight get when the server is stopped."),
    PH_PATH_KEY("token_file", SERVE(token_file), "",
        "File with the bearer token that clients must show, 16 characters or more. Empty: none."),
    PH_PATH_KEY("admin_token_file", SERVE(admin_token_file), "",
        "File with the bearer token of clients that load and unload models. Empty: serve.token_file."),
    PH_PATH_KEY("trace_file", SERVE(trace_file), "",
        "File of the times of one in trace_rate requests, as Triton writes them. Empty: none."),
    PH_INTEGER_KEY("trace_rate", SERVE(trace_rate), "1000", 1, 1e9, "One of so many requests is traced."),
    PH_PATH_KEY("chrome_trace", SERVE(chrome_trace), "",
        "File that the server writes when it stops: a Chrome trace of one in trace_rate requests. Empty: "
        "none."),
    PH_CHOICE_KEY("log", SERVE(log), "text", "text|json|none",
        "Format of the log on standard error, one line for each event. text: key=value. json: an object. "
        "none: no log."),
};

const struct ph__option_table ph__server_options = {
    .section = "serve",
    .help = "Keys of phloem serve, in a config of its own.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph_server_options),
};

void ph__server_sections(
    struct ph_server_options *settings, struct ph__section sections[PH_NUM_SERVER_SECTIONS])
{
    sections[0] = (struct ph__section){&ph__server_options, settings};
    sections[1] = (struct ph__section){&ph__served_options, &settings->model};
    sections[2] = (struct ph__section){&ph__speculation_options, &settings->model.speculation};
}

/* Points texts to the table's own, in place of copies. */
static void keep_texts(const struct ph__section *section)
{
    for (size_t i = 0; i < section->table->num_options; i++) {
        const struct ph__option *option = &section->table->options[i];
        if (option->type == PH_OPTION_TEXT || option->type == PH_OPTION_PATH)
            *(const char **)(void *)((char *)section->settings + option->offset) = option->default_text;
    }
}

void ph_server_options_init(struct ph_server_options *settings)
{
    struct ph__arena arena = {0};
    struct ph__section sections[PH_NUM_SERVER_SECTIONS];
    *settings = (struct ph_server_options){.size = 0};
    ph__server_sections(settings, sections);
    (void)ph__config_read(NULL, NULL, 0, sections, PH_NUM_SERVER_SECTIONS, &arena);
    settings->size = sizeof *settings; /* reading clears the struct */
    for (size_t i = 0; i < PH_NUM_SERVER_SECTIONS; i++)
        keep_texts(&sections[i]);
    ph__arena_fini(&arena);
}
