/* The page at "/": models, versions, rates and latencies, drawn anew every second by the template of reports.
 */
#include <math.h>
#include <stdio.h>

#include "base/text/number.h"
#include "base/thread/clock.h"
#include "phloem/version.h"
#include "report/page.h"
#include "serve/server/scoring_state.h"

#define SAMPLE_NS 1000000000u
#define RECENT 5 /* samples over which a rate is taken */
#define MAX_SERIES 6

enum plotted { PLOT_REQUESTS, PLOT_ROWS, PLOT_MEDIAN, PLOT_TAIL, NUM_PLOTS };

static const struct {
    const char *id, *title, *unit;
} plots[NUM_PLOTS] = {
    {"requests", "Requests a second", "requests/s"},
    {"rows", "Rows a second", "rows/s"},
    {"median", "Median time of a request", "ms"},
    {"tail", "99th percentile", "ms"},
};

struct drawing {
    struct ph__page_table table;
    size_t num_versions;
    struct ph__page_series series[NUM_PLOTS][MAX_SERIES];
    char names[MAX_SERIES][100], ids[NUM_PLOTS][MAX_SERIES][24];
    double x[MAX_SERIES][PH_HISTORY], y[NUM_PLOTS][MAX_SERIES][PH_HISTORY];
};

static double value_of(
    enum plotted plot, const struct ph__served_sample *from, const struct ph__served_sample *to)
{
    const double seconds = (double)(to->ns - from->ns) * 1e-9;
    switch (plot) {
    case PLOT_REQUESTS:
        return (double)(to->successes - from->successes) / seconds;
    case PLOT_ROWS:
        return (double)(to->rows - from->rows) / seconds;
    case PLOT_MEDIAN:
        return ph__served_quantile_ms(from, to, .5);
    default:
        return ph__served_quantile_ms(from, to, .99);
    }
}

static void add_row(struct drawing *drawing, struct ph__served *served)
{
    const struct ph__served_history *history = &served->history;
    const struct ph__served_sample *to = &history->samples[history->count - 1];
    const struct ph__served_sample *from =
        &history->samples[history->count > RECENT ? history->count - 1 - RECENT : 0];
    struct ph__queue_figures queue;
    ph__queue_figures(served->queue, &queue);
    struct ph__json *row = ph__page_add_row(&drawing->table, (double)NAN);
    ph__json_append_text(row, served->model);
    ph__json_append_integer(row, (int64_t)served->version);
    for (size_t plot = 0; plot < NUM_PLOTS; plot++)
        ph__json_append_number(row, from != to ? value_of((enum plotted)plot, from, to) : (double)NAN);
    ph__json_append_integer(row, (int64_t)queue.num_waiting);
    ph__json_append_integer(row, (int64_t)to->successes);
    ph__json_append_integer(row, (int64_t)to->failures);
    ph__json_append_number(row, (double)ph_session_weight_bytes(served->session));
    ph__json_append_number(row, (double)served->load_ns * 1e-9);
}

static void add_series(struct drawing *drawing, const struct ph__served *served)
{
    const struct ph__served_history *history = &served->history;
    const size_t at = drawing->num_versions;
    if (at >= MAX_SERIES)
        return;
    const uint64_t last_ns = history->samples[history->count - 1].ns;
    snprintf(drawing->names[at], sizeof drawing->names[at], "%.60s %s", served->model, served->version_text);
    for (size_t i = 1; i < history->count; i++) {
        drawing->x[at][i - 1] = -(double)(last_ns - history->samples[i].ns) * 1e-9;
        for (size_t plot = 0; plot < NUM_PLOTS; plot++)
            drawing->y[plot][at][i - 1] =
                value_of((enum plotted)plot, &history->samples[i - 1], &history->samples[i]);
    }
    for (size_t plot = 0; plot < NUM_PLOTS; plot++) {
        snprintf(drawing->ids[plot][at], sizeof drawing->ids[plot][at], "%s-%zu", plots[plot].id, at);
        drawing->series[plot][at] = (struct ph__page_series){.name = drawing->names[at],
            .id = drawing->ids[plot][at],
            .style = PH_PAGE_LINE,
            .color = (int)at + 1,
            .count = history->count - 1,
            .x = drawing->x[at],
            .y = drawing->y[plot][at]};
    }
}

static void draw_version(void *context, struct ph__served *served)
{
    struct drawing *drawing = context;
    if (served->history.count == 0)
        ph__served_sample(served);
    add_row(drawing, served);
    add_series(drawing, served);
    drawing->num_versions++;
}

static void count(void *context, struct ph__served *served)
{
    (void)served;
    ++*(size_t *)context;
}

static void draw_models(struct ph_server *server, struct ph__page *page, struct drawing *drawing)
{
    static const struct ph__page_column columns[] = {{"model", NULL, NULL}, {"version", NULL, NULL},
        {"requests/s", "quantity", "over the last five seconds"}, {"rows/s", "quantity", NULL},
        {"median, ms", ".3", NULL}, {"p99, ms", ".3", NULL}, {"waiting", "quantity", "requests in the queue"},
        {"answered", "quantity", "requests since the version was loaded"}, {"failed", "quantity", NULL},
        {"weights", "bytes", NULL}, {"loaded in, s", ".2", NULL}};
    const size_t num_columns = sizeof columns / sizeof *columns;
    struct ph__json *blocks =
        ph__page_add_section(page, "models", "Models", "Versions that serve, by model and version.");
    size_t num_versions = 0;
    ph__repository_visit(server->repository, count, &num_versions);
    drawing->table = ph__page_add_table(blocks, "versions", columns, num_columns, num_versions);
    ph__repository_visit(server->repository, draw_version, drawing);
    blocks = ph__page_add_section(page, "history", "The last two minutes", NULL);
    struct ph__json *list = ph__page_add_plots(blocks);
    const size_t num_series = drawing->num_versions < MAX_SERIES ? drawing->num_versions : MAX_SERIES;
    for (size_t plot = 0; plot < NUM_PLOTS; plot++)
        ph__page_add_plot(list, &(struct ph__page_plot){.id = plots[plot].id,
                                    .title = plots[plot].title,
                                    .x = {.label = "seconds", .is_fixed = true, .low = -PH_HISTORY + 1},
                                    .y = {.label = plots[plot].unit, .has_zero = true},
                                    .series = drawing->series[plot],
                                    .num_series = num_series});
}

/* Lists what does not serve, and why. */
static ph_status draw_others(struct ph_server *server, struct ph__page *page, struct ph__arena *arena)
{
    static const struct ph__page_column columns[] = {
        {"model", NULL, NULL}, {"version", NULL, NULL}, {"state", NULL, NULL}, {"reason", NULL, NULL}};
    struct ph__list list = {NULL, 0};
    PH_TRY(ph__repository_index(server->repository, false, arena, &list));
    const struct ph__oip_index_entry *entries = list.items;
    struct ph__json *blocks = ph__page_add_section(page, "repository", "Repository", NULL);
    struct ph__page_table table = ph__page_add_table(blocks, "index", columns, 4, list.count);
    for (size_t i = 0; i < list.count && i < PH_PAGE_MAX_ROWS; i++) {
        const struct ph__bytes cells[] = {
            entries[i].name, entries[i].version, entries[i].state, entries[i].reason};
        struct ph__json *row = ph__page_add_row(&table, (double)NAN);
        for (size_t c = 0; c < 4; c++)
            ph__json_append_text(row,
                ph__arena_printf(arena, "%.*s", (int)cells[c].size, cells[c].size > 0 ? cells[c].bytes : ""));
    }
    return PH_OK;
}

static void draw_facts(const struct ph_server *server, struct ph__page *page)
{
    char seconds[40];
    snprintf(seconds, sizeof seconds, "%.0f s", (double)(ph__clock_ns() - server->started_ns) * 1e-9);
    ph__page_set_state(page, false, server->is_draining ? "shutting down" : "serving");
    ph__page_add_fact(page, "version", ph_version());
    ph__page_add_fact(page, "repository", server->options.repository);
    ph__page_add_fact(page, "runs since", seconds);
}

static ph_status write_page(struct ph_server *server, struct ph__writer *writer,
    ph_status (*how)(const struct ph__page *page, struct ph__writer *writer))
{
    struct ph__page page;
    struct ph__arena arena = {0};
    struct drawing *drawing = ph__arena_alloc(&arena, sizeof *drawing);
    if (drawing == NULL)
        return PH_ERROR_MEMORY;
    ph__page_init(&page, "Phloem server", "Scoring server", NULL);
    ph__page_set_live(&page, PH_LIVE_PATH, 1000);
    draw_facts(server, &page);
    draw_models(server, &page, drawing);
    ph_status status = draw_others(server, &page, &arena);
    if (status == PH_OK)
        status = how(&page, writer);
    ph__page_fini(&page);
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__server_write_page(void *server, struct ph__writer *writer)
{
    return write_page(server, writer, ph__page_write_html);
}

ph_status ph__server_write_live(void *server, struct ph__writer *writer)
{
    return write_page(server, writer, ph__page_write_document);
}

static void sample(void *context, struct ph__served *served)
{
    (void)context;
    ph__served_sample(served);
}

void ph__server_sample(struct ph_server *server)
{
    const uint64_t now_ns = ph__clock_ns();
    if (now_ns < server->next_sample_ns)
        return;
    server->next_sample_ns = now_ns + SAMPLE_NS;
    ph__repository_visit(server->repository, sample, NULL);
}
