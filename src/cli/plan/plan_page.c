#include "cli/plan/plan_page.h"

#include <math.h>
#include <stdio.h>

#include "report/page.h"

enum { COMPUTING = 1, COMMUNICATING = 2 }; /* colors */
#define BAR_WIDTH .8

struct shown {
    const char *id, *title;
    const struct ph__plan_load *loads;
    double most_ms; /* of both plots */
};

/* Draws communication behind computing: what is left of the whole bar is above it. */
static ph_status add_ranks(const struct cli_planning *planning, const struct shown *shown,
    struct ph__arena *arena, struct ph__json *plots)
{
    const size_t count = planning->topology.world_size;
    double *begin = ph__arena_alloc_array(arena, 4 * count, sizeof *begin);
    if (begin == NULL)
        return PH_ERROR_MEMORY;
    double *end = begin + count, *all_ms = end + count, *compute_ms = all_ms + count;
    for (size_t rank = 0; rank < count; rank++) {
        begin[rank] = (double)rank - BAR_WIDTH / 2;
        end[rank] = (double)rank + BAR_WIDTH / 2;
        all_ms[rank] = 1e3 * shown->loads[rank].seconds;
        compute_ms[rank] = 1e3 * shown->loads[rank].compute_seconds;
    }
    const struct ph__page_series series[] = {{.name = "communicating",
                                                 .id = "communicating",
                                                 .style = PH_PAGE_BARS,
                                                 .color = COMMUNICATING,
                                                 .count = count,
                                                 .x = begin,
                                                 .x_end = end,
                                                 .y = all_ms},
        {.name = "computing",
            .id = "computing",
            .style = PH_PAGE_BARS,
            .color = COMPUTING,
            .count = count,
            .x = begin,
            .x_end = end,
            .y = compute_ms}};
    const struct ph__page_plot plot = {.id = shown->id,
        .title = shown->title,
        .x = {.label = "rank", .is_fixed = true, .low = -1, .high = (double)count},
        .y = {.label = "ms a step", .is_fixed = true, .low = 0, .high = 1.05 * shown->most_ms},
        .series = series,
        .num_series = 2};
    ph__page_add_plot(plots, &plot);
    return PH_OK;
}

static void add_dear(const struct cli_planning *planning, const struct ph__plan_explanation *explanation,
    const char *id, struct ph__json *blocks)
{
    static const struct ph__page_column columns[] = {{"table", NULL, NULL},
        {"ms computing", ".3", "of its parts, each alone on a rank"}, {"share", "percent", NULL},
        {"ids", ".1", "multiple of the mean table's"}, {"columns", ".1", "multiple of the mean table's"},
        {"bytes touched", ".1", "multiple of the mean table's"}};
    struct ph__page_table table =
        ph__page_add_table(blocks, id, columns, sizeof columns / sizeof *columns, explanation->num_dear);
    for (size_t i = 0; i < explanation->num_dear; i++) {
        const struct ph__dear_table *dear = &explanation->dear[i];
        struct ph__json *row = ph__page_add_row(&table, dear->share);
        ph__json_append_text(row, planning->list.tables[dear->table].name);
        ph__json_append_number(row, dear->compute_ms);
        ph__json_append_number(row, dear->share);
        ph__json_append_number(row, dear->ids);
        ph__json_append_number(row, dear->columns);
        ph__json_append_number(row, dear->bytes);
    }
}

static void add_facts(const struct cli_planning *planning, struct ph__page *page)
{
    char text[512];
    const struct ph__cost_facts *facts = &planning->basis.facts;
    snprintf(text, sizeof text, "%zu, %zu on each host", planning->topology.world_size,
        planning->topology.ranks_per_host);
    ph__page_add_fact(page, "ranks", text);
    snprintf(text, sizeof text, "%zu samples", planning->step.batch_size);
    ph__page_add_fact(page, "a step", text);
    if (planning->basis.nets == NULL)
        snprintf(text, sizeof text, "the planner's model of a machine");
    else
        snprintf(text, sizeof text, "learnt on '%s' (%s, %s)", facts->processor, facts->isa, facts->date);
    ph__page_add_fact(page, "costs", text);
}

static ph_status fill(const struct cli_planning *planning, struct ph__arena *arena, struct ph__page *page)
{
    const bool are_two = planning->other_loads != NULL;
    const double most_ms =
        fmax(planning->explanation.slowest_ms, are_two ? planning->other_explanation.slowest_ms : 0);
    const struct shown one = {"plan", are_two ? planning->request->plan : NULL, planning->loads, most_ms},
                       other = {"other", planning->request->other_plan, planning->other_loads, most_ms};
    add_facts(planning, page);
    struct ph__json *blocks =
        ph__page_add_section(page, "ranks", "Ranks", "Predicted milliseconds of a step, for each rank.");
    struct ph__json *plots = ph__page_add_plots(blocks);
    PH_TRY(add_ranks(planning, &one, arena, plots));
    if (are_two)
        PH_TRY(add_ranks(planning, &other, arena, plots));
    blocks = ph__page_add_section(page, "tables", "Dearest tables", NULL);
    add_dear(planning, &planning->explanation, "dear", blocks);
    if (are_two)
        add_dear(planning, &planning->other_explanation, "other_dear", blocks);
    return PH_OK;
}

ph_status cli_plan_page_write(const struct cli_planning *planning, const char *path)
{
    struct ph__arena arena = {0};
    struct ph__page page;
    ph__page_init(&page, "Plan", "Plan", planning->request->path);
    ph_status status = fill(planning, &arena, &page);
    if (status == PH_OK)
        status = ph__page_write(&page, path);
    ph__page_fini(&page);
    ph__arena_fini(&arena);
    return status;
}
