/* Metrics of a hub for Prometheus, at http://METRICS_ADDRESS/metrics, from the control thread's event
 * loop. */
#include <stdio.h>
#include <sys/epoll.h>

#include "hub/server/server_figures.h"
#include "net/server/http_server.h"
#include "net/server/prometheus.h"

struct text { /* context of the functions below */
    struct ph__prometheus prometheus;
    const struct ph_hub_server *server;
    const struct ph__hub_figures *figures;
};

static void put_one(
    struct text *text, enum ph__prometheus_kind kind, const char *family, const char *help, uint64_t count)
{
    ph__prometheus_begin(&text->prometheus, kind, family, help);
    ph__prometheus_count(&text->prometheus, NULL, 0, count);
}

/* ---- the hub ---- */

static void put_hub(struct text *text)
{
    const struct ph__hub_figures *figures = text->figures;
    const struct ph_hub_server *server = text->server;
    put_one(text, PH_PROMETHEUS_GAUGE, "phloem_hub_jobs", "Services at the moment.", figures->num_tenants);
    put_one(text, PH_PROMETHEUS_GAUGE, "phloem_hub_jobs_limit", "Maximum number of services.",
        server->options.max_jobs);
    put_one(text, PH_PROMETHEUS_GAUGE, "phloem_hub_memory_bytes", "Bytes of memory that all jobs use.",
        figures->used_bytes);
    put_one(text, PH_PROMETHEUS_GAUGE, "phloem_hub_memory_limit_bytes",
        "Bytes of memory that all jobs may use.", server->max_bytes);
    put_one(text, PH_PROMETHEUS_GAUGE, "phloem_hub_connections", "Open control connections.",
        figures->num_connections);
    put_one(text, PH_PROMETHEUS_COUNTER, "phloem_hub_connections_total",
        "Control connections accepted since the start.", server->counts.connections);
    put_one(text, PH_PROMETHEUS_COUNTER, "phloem_hub_checkpoints_total", "Checkpoints written.",
        server->counts.checkpoints);
    put_one(text, PH_PROMETHEUS_GAUGE, "phloem_hub_crowded",
        "1 if core threads and workers of this host outnumber its processors, else 0.", server->is_crowded);
}

static void put_failures(struct text *text)
{
    const struct ph__server_counts *counts = &text->server->counts;
    const struct {
        const char *reason;
        uint64_t count;
    } failures[] = {
        {"connection_broken", counts->broken_connections},
        {"connection_silent", counts->silent_connections},
        {"connections_wait", counts->refusals_to_listen},
        {"request_refused", counts->refused_requests},
        {"worker_ended", counts->ended_workers},
        {"worker_failed", counts->failed_workers},
        {"checkpoint_failed", counts->failed_checkpoints},
    };
    ph__prometheus_begin(&text->prometheus, PH_PROMETHEUS_COUNTER, "phloem_hub_failures_total",
        "Failures by reason: connection_broken (broke the protocol), connection_silent (timed out), "
        "connections_wait (too many at once, or no descriptors left), request_refused, worker_ended (without "
        "leaving), worker_failed (broke the protocol, or its link failed), checkpoint_failed (not written, "
        "or not used).");
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        const struct ph__prometheus_label label = {"reason", failures[i].reason};
        ph__prometheus_count(&text->prometheus, &label, 1, failures[i].count);
    }
}

/* ---- core threads ---- */

static void put_core_family(struct text *text, const char *family, const char *help, size_t offset)
{
    ph__prometheus_begin(&text->prometheus, PH_PROMETHEUS_COUNTER, family, help);
    for (uint16_t i = 0; i < text->server->num_cores; i++) {
        char index[8];
        const struct ph__core_counters counters = ph__core_counters(text->server->cores[i]);
        const struct ph__prometheus_label label = {"core", index};
        snprintf(index, sizeof index, "%u", i);
        ph__prometheus_count(&text->prometheus, &label, 1,
            *(const uint64_t *)(const void *)((const char *)&counters + offset));
    }
}

static void put_cores(struct text *text)
{
    put_core_family(text, "phloem_hub_core_rounds_total", "Rounds of a core thread over its jobs.",
        offsetof(struct ph__core_counters, rounds));
    put_core_family(text, "phloem_hub_core_idle_rounds_total", "Rounds of a core thread without work.",
        offsetof(struct ph__core_counters, idle_rounds));
    put_core_family(text, "phloem_hub_core_sleeps_total", "Times that a core thread slept.",
        offsetof(struct ph__core_counters, sleeps));
}

/* ---- links ---- */

static void put_link_family(
    struct text *text, const char *family, const char *help, const char *direction, size_t offset)
{
    const struct ph__traffic *traffic = &text->figures->traffic;
    if (family != NULL)
        ph__prometheus_begin(&text->prometheus, PH_PROMETHEUS_COUNTER, family, help);
    for (size_t i = 0; i < traffic->num_transports; i++) {
        const struct ph__prometheus_label labels[] = {
            {"transport", traffic->transports[i]}, {"direction", direction}};
        ph__prometheus_count(&text->prometheus, labels, direction != NULL ? 2 : 1,
            *(const uint64_t *)(const void *)((const char *)&traffic->counters[i] + offset));
    }
}

#define LINK(member) offsetof(struct ph__link_counters, member)

static void put_links(struct text *text)
{
    put_link_family(text, "phloem_hub_link_messages_total",
        "Messages between hub and workers, of 16 bytes each.", "sent", LINK(messages_sent));
    put_link_family(text, NULL, NULL, "received", LINK(messages_received));
    put_link_family(text, "phloem_hub_link_payload_bytes_total",
        "Bytes of chunks sent through links; 0 over shared memory.", "sent", LINK(payload_bytes_sent));
    put_link_family(text, NULL, NULL, "received", LINK(payload_bytes_received));
    put_link_family(text, "phloem_hub_link_system_calls_total", "System calls that move bytes.", NULL,
        LINK(system_calls));
    put_link_family(
        text, "phloem_hub_link_doorbells_total", "Doorbells rung to wake workers.", NULL, LINK(doorbells));
}

/* ---- jobs ---- */

typedef uint64_t job_number(const struct ph__tenant_figures *figures);

static uint64_t is_running(const struct ph__tenant_figures *figures)
{
    return figures->tenant->state == PH_TENANT_RUNNING;
}

static uint64_t workers_wanted(const struct ph__tenant_figures *figures)
{
    return figures->tenant->settings.service.num_workers;
}

static uint64_t workers_there(const struct ph__tenant_figures *figures)
{
    return figures->tenant->num_joined;
}

static uint64_t memory_bytes(const struct ph__tenant_figures *figures)
{
    return ph__tenant_bytes(figures->tenant);
}

static uint64_t iteration(const struct ph__tenant_figures *figures)
{
    return figures->iteration;
}

static uint64_t checkpoint_iteration(const struct ph__tenant_figures *figures)
{
    return figures->tenant->saves.iteration;
}

static uint64_t updates(const struct ph__tenant_figures *figures)
{
    return figures->counters.updates;
}

static uint64_t gradient_bytes(const struct ph__tenant_figures *figures)
{
    return figures->counters.update_bytes;
}

static uint64_t pushes(const struct ph__tenant_figures *figures)
{
    return figures->counters.pushes;
}

static uint64_t pulls(const struct ph__tenant_figures *figures)
{
    return figures->counters.pulls;
}

static uint64_t reply_waits(const struct ph__tenant_figures *figures)
{
    return figures->counters.waits_for_replies;
}

static const struct {
    enum ph__prometheus_kind kind;
    const char *family, *help;
    job_number *number;
} job_families[] = {
    {PH_PROMETHEUS_GAUGE, "phloem_hub_job_running", "1 while core threads work on the job, else 0.",
        is_running},
    {PH_PROMETHEUS_GAUGE, "phloem_hub_job_workers", "Workers that have joined the job.", workers_there},
    {PH_PROMETHEUS_GAUGE, "phloem_hub_job_workers_wanted", "Workers that the job waits for before it begins.",
        workers_wanted},
    {PH_PROMETHEUS_GAUGE, "phloem_hub_job_memory_bytes", "Bytes of memory that the job uses.", memory_bytes},
    {PH_PROMETHEUS_GAUGE, "phloem_hub_job_iteration", "Updates of the job's least updated chunk.", iteration},
    {PH_PROMETHEUS_GAUGE, "phloem_hub_job_checkpoint_iteration", "Iteration of the job's last checkpoint.",
        checkpoint_iteration},
    {PH_PROMETHEUS_COUNTER, "phloem_hub_job_updates_total", "Updates of chunks.", updates},
    {PH_PROMETHEUS_COUNTER, "phloem_hub_job_gradient_bytes_total", "Bytes of gradients summed.",
        gradient_bytes},
    {PH_PROMETHEUS_COUNTER, "phloem_hub_job_pushes_total", "Chunks pushed by workers.", pushes},
    {PH_PROMETHEUS_COUNTER, "phloem_hub_job_pulls_total", "Chunks that workers pulled without a push.",
        pulls},
    {PH_PROMETHEUS_COUNTER, "phloem_hub_job_reply_waits_total",
        "Updates delayed because a reply was still being sent.", reply_waits},
};

static void put_jobs(struct text *text)
{
    for (size_t i = 0; i < sizeof job_families / sizeof *job_families; i++) {
        ph__prometheus_begin(
            &text->prometheus, job_families[i].kind, job_families[i].family, job_families[i].help);
        for (size_t j = 0; j < text->figures->num_tenants; j++) {
            const struct ph__tenant_figures *figures = &text->figures->tenants[j];
            const struct ph__prometheus_label label = {"job", figures->tenant->settings.name};
            ph__prometheus_count(&text->prometheus, &label, 1, job_families[i].number(figures));
        }
    }
}

/* ---- the page ---- */

static ph_status write_metrics(void *context, struct ph__writer *writer)
{
    struct ph_hub_server *server = context;
    struct ph__hub_figures figures;
    PH_TRY(ph__hub_figures_read(server, &figures));
    struct text text = {.server = server, .figures = &figures};
    ph__prometheus_init(&text.prometheus, writer);
    put_hub(&text);
    put_failures(&text);
    put_cores(&text);
    put_links(&text);
    put_jobs(&text);
    ph__hub_figures_fini(&figures);
    return ph__prometheus_finish(&text.prometheus);
}

/* ---- serving it ---- */

static void requested(void *context, uint32_t events)
{
    (void)events;
    (void)!ph__server_run_metrics(context); /* the next turn fails the same way */
}

ph_status ph__server_open_metrics(struct ph_hub_server *server)
{
    if (server->options.metrics_address == NULL)
        return PH_OK;
    server->metrics_page = (struct ph__http_page){.path = "/metrics",
        .content_type = PH_PROMETHEUS_CONTENT_TYPE,
        .write = write_metrics,
        .context = server};
    const struct ph__http_options options = {.address = server->options.metrics_address,
        .pages = &server->metrics_page,
        .num_pages = 1,
        .log = server->log};
    PH_TRY(ph__server_name_option("metrics_address", ph__http_server_create(&options, &server->http)));
    return ph__event_loop_add(server->loop, ph__http_server_descriptor(server->http), EPOLLIN, requested,
        server, &server->http_source);
}

ph_status ph__server_run_metrics(struct ph_hub_server *server)
{
    return server->http != NULL ? ph__http_server_run(server->http) : PH_OK;
}

int ph__server_metrics_timeout_ms(const struct ph_hub_server *server)
{
    return server->http != NULL ? ph__http_server_timeout_ms(server->http) : -1;
}

void ph__server_close_metrics(struct ph_hub_server *server)
{
    ph__event_source_remove(server->http_source);
    ph__http_server_destroy(server->http);
    server->http_source = NULL;
    server->http = NULL;
}

const char *ph_hub_server_metrics_address(const struct ph_hub_server *server)
{
    return server->http != NULL ? ph__http_server_address(server->http) : NULL;
}
