#include "plan/search/plan_explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format/text_table.h"
#include "base/sizes.h"
#include "plan/plan_cost.h"

enum { MS_PER_S = 1000 };
#define NOTABLE 1.25 /* multiple of the mean table's that is a reason */

void ph__prices_to_loads(const struct ph__rank_price *prices, size_t world_size, struct ph__plan_load *loads)
{
    for (size_t rank = 0; rank < world_size; rank++) {
        loads[rank].seconds = ph__rank_price_ms(&prices[rank]) / MS_PER_S;
        loads[rank].compute_seconds = prices[rank].compute_ms / MS_PER_S;
    }
}

/* ---- balance ---- */

typedef double load_figure(const struct ph__plan_load *load);

static double seconds_of(const struct ph__plan_load *load)
{
    return load->seconds;
}
static double compute_of(const struct ph__plan_load *load)
{
    return load->compute_seconds;
}
static double exchange_of(const struct ph__plan_load *load)
{
    return load->seconds - load->compute_seconds;
}
static double bytes_of(const struct ph__plan_load *load)
{
    return (double)load->bytes;
}

static double greatest(const struct ph__plan_load *loads, size_t count, load_figure *figure)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, figure(&loads[i]));
    return most;
}

static double imbalance(const struct ph__plan_load *loads, size_t count, load_figure *figure)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += figure(&loads[i]);
    return sum > 0 ? greatest(loads, count, figure) * (double)count / sum : NAN;
}

/* ---- tables ---- */

/* Prices a table's parts one by one, and adds up what they do. */
static ph_status weigh_table(
    const struct ph__pricing *pricing, const struct ph__plan *plan, size_t table, struct ph__dear_table *out)
{
    const struct ph__plan_table *planned = &plan->tables[table];
    const struct ph__table_facts *facts = &pricing->tables[table];
    const struct ph__cost_model *model = pricing->model;
    const bool is_copied = planned->kind == PH_SHARD_DATA_PARALLEL;
    const size_t world_size = plan->topology.world_size;
    *out = (struct ph__dear_table){
        .table = table, .ids = facts->ids_per_sample, .columns = (double)(facts->dim * facts->num_features)};
    for (size_t i = 0; i < (is_copied ? 1 : planned->num_shards); i++) {
        const struct ph__table_shard *shard = &plan->shards[planned->first_shard + i];
        const struct ph__cost_part part =
            is_copied
                ? ph__cost_part(pricing, table, (double)facts->num_rows, facts->dim, 1 / (double)world_size)
                : ph__cost_part(pricing, table, (double)shard->num_rows, shard->num_columns, 1);
        float description[PH_COST_MOST_WIDTH];
        double ms;
        PH_TRY(model->describe(model->context, &part, 1, description));
        PH_TRY(model->compute(model->context, description, 1, &ms));
        out->compute_ms += is_copied ? ms * (double)world_size : ms;
        out->bytes += part.touched_bytes;
    }
    return PH_OK;
}

static void keep_dear(struct ph__plan_explanation *explanation, const struct ph__dear_table *table)
{
    size_t place = explanation->num_dear;
    while (place > 0 && explanation->dear[place - 1].compute_ms < table->compute_ms)
        place--;
    if (place == PH_PLAN_DEAR)
        return;
    explanation->num_dear = ph__min(explanation->num_dear + 1, (size_t)PH_PLAN_DEAR);
    memmove(&explanation->dear[place + 1], &explanation->dear[place],
        (explanation->num_dear - place - 1) * sizeof *table);
    explanation->dear[place] = *table;
}

ph_status ph__plan_explain(const struct ph__pricing *pricing, const struct ph__plan *plan,
    const struct ph__plan_load *loads, struct ph__plan_explanation *explanation_out)
{
    const size_t world_size = plan->topology.world_size;
    struct ph__dear_table sum = {0};
    *explanation_out =
        (struct ph__plan_explanation){.slowest_ms = MS_PER_S * greatest(loads, world_size, seconds_of),
            .compute_imbalance = imbalance(loads, world_size, compute_of),
            .exchange_imbalance = imbalance(loads, world_size, exchange_of),
            .bytes_imbalance = imbalance(loads, world_size, bytes_of)};
    for (size_t i = 0; i < plan->num_tables; i++) {
        struct ph__dear_table table;
        PH_TRY(weigh_table(pricing, plan, i, &table));
        keep_dear(explanation_out, &table);
        sum.compute_ms += table.compute_ms;
        sum.ids += table.ids;
        sum.columns += table.columns;
        sum.bytes += table.bytes;
    }
    const double count = (double)plan->num_tables;
    for (size_t i = 0; i < explanation_out->num_dear; i++) {
        struct ph__dear_table *dear = &explanation_out->dear[i];
        dear->share = dear->compute_ms / sum.compute_ms;
        dear->ids *= count / sum.ids;
        dear->columns *= count / sum.columns;
        dear->bytes *= count / sum.bytes;
    }
    return PH_OK;
}

/* ---- printing ---- */

/* Says what a table has much of; the mean is that of all tables. */
static void why_cell(struct ph__text_table *text, const struct ph__dear_table *dear)
{
    const struct {
        const char *name;
        double multiple;
    } reasons[] = {{"ids", dear->ids}, {"columns", dear->columns}, {"bytes touched", dear->bytes}};
    char why[160] = "";
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        const size_t used = strlen(why);
        if (reasons[i].multiple >= NOTABLE)
            snprintf(why + used, sizeof why - used, "%s%.1f x the mean's %s", used > 0 ? ", " : "",
                reasons[i].multiple, reasons[i].name);
    }
    ph__text_table_cell(text, "%s", why[0] != '\0' ? why : "as the others");
}

ph_status ph__plan_explain_print(const struct ph__plan_explanation *explanation,
    const struct ph__table_facts *tables, struct ph__writer *writer)
{
    static const struct ph__text_column columns[] = {
        {"dearest tables", false}, {"ms computing", true}, {"share", true}, {"why", false}};
    struct ph__text_table text;
    PH_TRY(ph__writer_printf(writer,
        "\nThe busiest rank takes %.3f ms a step. It is busier than the mean rank by these factors: "
        "computing "
        "%.2f, communicating %.2f, bytes %.2f.\n\n",
        explanation->slowest_ms, explanation->compute_imbalance, explanation->exchange_imbalance,
        explanation->bytes_imbalance));
    ph__text_table_init(&text, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < explanation->num_dear; i++) {
        const struct ph__dear_table *dear = &explanation->dear[i];
        ph__text_table_cell(&text, "%s", tables[dear->table].name);
        ph__text_table_number(&text, "%.3f", dear->compute_ms);
        ph__text_table_number(&text, "%.1f %%", 100 * dear->share);
        why_cell(&text, dear);
    }
    const ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

/* ---- the smallest world ---- */

static bool is_enough(void *context, const struct ph__search_progress *progress)
{
    (void)context;
    return progress->short_bytes == 0 || progress->level > 0;
}

/* Ranks are added to a host where there is one, else host by host. */
static size_t ranks_added(const struct ph__topology *topology)
{
    return topology->ranks_per_host < topology->world_size ? topology->ranks_per_host : 1;
}

/* Tells whether the tables fit a world of so many ranks, without a search for the best plan. */
static ph_status try_world(const struct ph__search_options *options, size_t world_size, bool *fits_out)
{
    const size_t added = ranks_added(options->placing.pricing->topology);
    const struct ph__topology topology = {world_size, added > 1 ? added : world_size};
    struct ph__pricing pricing = *options->placing.pricing;
    struct ph__search_options trial = {
        .placing = {.pricing = &pricing, .limits = options->placing.limits}, .progress = is_enough};
    struct ph__plan plan = {0};
    double ms;
    pricing.topology = &topology;
    pricing.slowness = NULL;
    trial.placing.limits.rank_bytes = NULL;
    const ph_status status = ph__plan_search(&trial, &plan, &ms);
    ph__plan_fini(&plan);
    *fits_out = status == PH_OK;
    return status == PH_ERROR_MEMORY ? PH_OK : status;
}

/* Returns how many ranks at least cannot hold the tables, whatever their cuts. */
static size_t too_few(const struct ph__pricing *pricing)
{
    const size_t added = ranks_added(pricing->topology);
    const double limit = (double)pricing->machine->rank_bytes * (double)added;
    double bytes = 0;
    for (size_t i = 0; i < pricing->num_tables; i++)
        bytes += (double)ph__table_shard_bytes(
            &pricing->tables[i], pricing->tables[i].num_rows, pricing->tables[i].dim);
    return limit > 0 && bytes > 0 ? (size_t)(ceil(bytes / limit) - 1) * added : 0;
}

ph_status ph__plan_smallest_world(
    const struct ph__search_options *options, size_t most, size_t *world_size_out)
{
    const size_t added = ranks_added(options->placing.pricing->topology);
    size_t low = too_few(options->placing.pricing), high = low;
    bool fits = false;
    for (size_t ahead = added; !fits && high + ahead <= most; ahead *= 2) {
        low = high;
        high += ahead;
        PH_TRY(try_world(options, high, &fits));
    }
    while (fits && high - low > added) {
        const size_t middle = low + (high - low) / added / 2 * added;
        bool fits_there;
        PH_TRY(try_world(options, middle, &fits_there));
        *(fits_there ? &high : &low) = middle;
    }
    *world_size_out = fits ? high : 0;
    return PH_OK;
}
