/* A server's figures, as Prometheus' text: Triton's names for its own, phloem_ for ours. */
#include "net/server/prometheus.h"
#include "serve/server/scoring_state.h"

#define NUM_LABELS 2

struct page {
    struct ph__prometheus text;
    struct ph_server *server;
    struct ph__prometheus_label
        labels[NUM_LABELS + 1]; /* of the version: model, version; and perhaps a reason */
    void (*add)(struct page *page, struct ph__served *served); /* a version's samples of the family */
    size_t member;                                             /* offset of the counter */
    uint64_t scale;
};

static void add_counter(struct page *page, struct ph__served *served)
{
    const struct ph__served_figures figures = ph__served_figures(served);
    const uint64_t count = *(const uint64_t *)(const void *)((const char *)&figures + page->member);
    ph__prometheus_count(&page->text, page->labels, NUM_LABELS, count / page->scale);
}

static void add_failures(struct page *page, struct ph__served *served)
{
    static const char *const reasons[] = {
#define X(name) #name,
        PH_SERVED_FAILURES(X)
#undef X
    };
    const struct ph__served_figures figures = ph__served_figures(served);
    for (size_t i = 0; i < PH_NUM_FAILURES; i++) {
        page->labels[NUM_LABELS] = (struct ph__prometheus_label){"reason", reasons[i]};
        ph__prometheus_count(&page->text, page->labels, NUM_LABELS + 1, figures.failures[i]);
    }
}

static void add_waiting(struct page *page, struct ph__served *served)
{
    struct ph__queue_figures figures;
    ph__queue_figures(served->queue, &figures);
    ph__prometheus_count(&page->text, page->labels, NUM_LABELS, figures.num_waiting);
}

static void add_load(struct page *page, struct ph__served *served)
{
    ph__prometheus_number(&page->text, page->labels, NUM_LABELS, (double)served->load_ns * 1e-9);
}

static void add_latencies(struct page *page, struct ph__served *served)
{
    double bounds[PH_LATENCY_BUCKETS - 1];
    const struct ph__served_figures figures = ph__served_figures(served);
    for (size_t i = 0; i < PH_LATENCY_BUCKETS - 1; i++)
        bounds[i] = (double)((uint64_t)PH_FIRST_LATENCY_NS << i) * 1e-9;
    ph__prometheus_histogram(&page->text, page->labels, NUM_LABELS,
        &(struct ph__prometheus_histogram){
            PH_LATENCY_BUCKETS - 1, bounds, figures.latencies, (double)figures.request_ns * 1e-9});
}

static void add_rungs(struct page *page, struct ph__served *served)
{
    struct ph__speculator_figures figures;
    if (served->speculator == NULL)
        return;
    ph__speculator_figures(served->speculator, &figures);
    for (size_t i = 0; i < PH_NUM_RUNGS; i++) {
        page->labels[NUM_LABELS] = (struct ph__prometheus_label){"rung", ph__rung_name((enum ph__rung)i)};
        ph__prometheus_count(&page->text, page->labels, NUM_LABELS + 1, figures.rungs[i]);
    }
}

static void add_speculation(struct page *page, struct ph__served *served)
{
    struct ph__speculator_figures figures;
    if (served->speculator == NULL)
        return;
    ph__speculator_figures(served->speculator, &figures);
    const uint64_t count = *(const uint64_t *)(const void *)((const char *)&figures + page->member);
    ph__prometheus_count(&page->text, page->labels, NUM_LABELS, count);
}

static void visit(void *context, struct ph__served *served)
{
    struct page *page = context;
    page->labels[0] = (struct ph__prometheus_label){"model", served->model};
    page->labels[1] = (struct ph__prometheus_label){"version", served->version_text};
    page->add(page, served);
}

static void add_family(struct page *page, enum ph__prometheus_kind kind, const char *name, const char *help,
    void (*add)(struct page *page, struct ph__served *served))
{
    ph__prometheus_begin(&page->text, kind, name, help);
    page->add = add;
    ph__repository_visit(page->server->repository, visit, page);
}

ph_status ph__server_write_metrics(void *server, struct ph__writer *writer)
{
    struct page page = {.server = server};
    ph__prometheus_init(&page.text, writer);
#define X(member_name, name, units, help)                           \
    page.member = offsetof(struct ph__served_figures, member_name); \
    page.scale = units;                                             \
    add_family(&page, PH_PROMETHEUS_COUNTER, name, help, add_counter);
    PH_SERVED_COUNTERS(X)
#undef X
    add_family(&page, PH_PROMETHEUS_COUNTER, "nv_inference_request_failure",
        "Requests that failed, by reason.", add_failures);
    add_family(&page, PH_PROMETHEUS_GAUGE, "nv_inference_pending_request_count",
        "Requests that wait in a queue.", add_waiting);
    add_family(&page, PH_PROMETHEUS_GAUGE, "nv_model_load_duration_secs",
        "Seconds in which the version was loaded.", add_load);
    add_family(&page, PH_PROMETHEUS_HISTOGRAM, "phloem_request_duration_seconds",
        "Time from a request's head to its answer.", add_latencies);
    add_family(&page, PH_PROMETHEUS_COUNTER, "phloem_speculation_lookups",
        "Rows that were looked up, by where they were found.", add_rungs);
#define X(member_name, kind, name, help)                                \
    page.member = offsetof(struct ph__speculator_figures, member_name); \
    add_family(&page, PH_PROMETHEUS_##kind, "phloem_speculation_" name, help, add_speculation);
    PH_SPECULATOR_FIGURES(X)
#undef X
    return ph__prometheus_finish(&page.text);
}
