#include <math.h>
#include <string.h>

#include "base/format/text_table.h"
#include "base/text/number.h"
#include "cli/plan/planning.h"
#include "plan/plan_cost.h"
#include "plan/plan_units.h"

static void rate_cell(struct ph__text_table *text, double bytes_per_s)
{
    ph__text_table_number(text, "%.2f GB/s", bytes_per_s / 1e9);
}

static ph_status print_rates(const struct cli_planning *planning, struct ph__writer *writer)
{
    const bool is_given = planning->given_title != NULL;
    const struct ph__text_column columns[] = {{"figure", false}, {"nominal", true},
        {is_given ? planning->given_title : "nominal is", is_given}, {"nominal is", false}};
    struct ph__text_table text;
    ph__text_table_init(&text, columns, is_given ? 4 : 3);
    for (size_t i = 0; i < PH_PLAN_NUM_RATES; i++) {
        const struct ph__plan_rate *rate = &ph__plan_rates[i];
        ph__text_table_cell(&text, "%s", rate->name);
        rate_cell(&text, rate->nominal);
        if (is_given)
            rate_cell(&text, ph__plan_machine_rate(&planning->given, rate));
        ph__text_table_cell(&text, "%s", rate->source);
    }
    const ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

static ph_status print_dense_modes(const struct cli_planning *planning, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "\nBytes of dense parameters on the fullest rank:\n\n"));
    return ph__dense_modes_print(&planning->plan, planning->list.dense, planning->list.num_dense_parameters,
        planning->num_micro_batches, writer);
}

static ph_status print_explanation(const struct cli_planning *planning, struct ph__writer *writer)
{
    const double ms = planning->explanation.slowest_ms;
    PH_TRY(ph__plan_explain_print(&planning->explanation, planning->list.tables, writer));
    if (planning->basis.from.num_tables > 0) {
        char bytes[PH_NUMBER_TEXT_BYTES];
        PH_TRY(ph__writer_printf(writer, "\nFrom %s, %s of tables and slots move between ranks.\n",
            planning->request->from,
            ph__bytes_text(
                ph__plan_moved_bytes(&planning->basis.from, &planning->plan, planning->list.tables), bytes)));
    }
    if (planning->gb_ms > 0)
        return ph__writer_printf(writer, "\nAnother GB a rank would save %.3f ms a step (%.1f %%).\n",
            planning->gb_ms, 100 * planning->gb_ms / ms);
    return isnan(planning->gb_ms)
               ? PH_OK
               : ph__writer_printf(writer, "\nAnother GB a rank would make no step shorter.\n");
}

static ph_status print_tiers(const struct cli_planning *planning, struct ph__writer *writer)
{
    static const struct ph__text_column columns[] = {{"rank", true}, {"table", false}, {"fast rows", true},
        {"fast bytes", true}, {"reads from fast memory", true}};
    const struct ph__tier_cut *cut = &planning->tiers.cut, *whole = &planning->tiers.whole;
    char bytes[PH_NUMBER_TEXT_BYTES];
    struct ph__text_table text;
    if (planning->tiers.ranks == NULL)
        return PH_OK;
    PH_TRY(ph__writer_printf(writer, "\n"));
    ph__text_table_init(&text, columns, sizeof columns / sizeof *columns);
    for (size_t rank = 0; rank < planning->topology.world_size; rank++)
        for (size_t i = 0; i < planning->tiers.ranks[rank].num_tables; i++) {
            const struct ph__tier_cut *own = &planning->tiers.ranks[rank].cuts[i];
            ph__text_table_cell(&text, "%zu", rank);
            ph__text_table_cell(&text, "%s", planning->tiers.ranks[rank].tables[i].name);
            ph__text_table_cell(&text, "%llu", (unsigned long long)own->fast_rows);
            ph__text_table_cell(&text, "%s", ph__bytes_text(own->fast_bytes, bytes));
            ph__text_table_number(
                &text, "%.1f %%", 100 * own->fast_reads / (own->fast_reads + own->slow_reads));
        }
    const ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    PH_TRY(status);
    return ph__writer_printf(writer,
        "\nWith %s of fast memory a rank, a step reads %.0f rows from slow memory when each table's "
        "most-read "
        "rows are in fast memory, and %.0f when whole tables are. Expected by the rows that the first batch "
        "reads.\n",
        ph__bytes_text((uint64_t)planning->request->fast_bytes, bytes), cut->slow_reads, whole->slow_reads);
}

static ph_status print_scale(const struct cli_planning *planning, struct ph__writer *writer)
{
    const struct ph__learnt_costs *learnt = &planning->basis.learnt;
    if (planning->request->run == NULL)
        return PH_OK;
    return ph__writer_printf(writer,
        " They are scaled to %llu steps of %s: computing %.2f times, gradients %.2f times, vectors %.2f "
        "times.",
        (unsigned long long)learnt->costs.num_steps, planning->request->run, learnt->scaled.scale.compute,
        learnt->scaled.scale.backward, learnt->scaled.scale.forward);
}

static ph_status print_basis(const struct cli_planning *planning, struct ph__writer *writer)
{
    const struct ph__cost_facts *facts = &planning->basis.facts;
    PH_TRY(ph__writer_printf(writer, "\nA step of %zu samples, by ", planning->step.batch_size));
    PH_TRY(planning->basis.nets == NULL
               ? ph__writer_printf(writer, "the planner's model of a machine.")
               : ph__writer_printf(writer, "costs learnt on '%s' (%s, %s): their mean error is %.1f %%.",
                     facts->processor, facts->isa, facts->date, 100 * facts->mape));
    return print_scale(planning, writer);
}

ph_status cli_plan_print(const void *what, struct ph__writer *writer)
{
    static const char by_measured[] =
        "The plan uses measured figures where there are any. A training with parallel.plan: auto uses "
        "nominal ones;\nto train by this plan, write it with --out FILE and set parallel.plan: FILE.";
    static const char by_topology[] =
        "\nThe plan uses the figures of %s, as a training\nwith parallel.topology does. Between hosts counts "
        "what a host sends while all hosts send to all.\n";
    const struct cli_planning *planning = what;
    char rank_bytes[PH_NUMBER_TEXT_BYTES];
    PH_TRY(ph__plan_print(&planning->plan, planning->loads, writer));
    if (planning->topology.world_size > 1)
        PH_TRY(print_dense_modes(planning, writer));
    if (planning->links.count > 0) {
        PH_TRY(ph__writer_printf(writer, "\n"));
        PH_TRY(ph__plan_links_print(&planning->links, writer));
        PH_TRY(ph__writer_printf(writer,
            "\nTable bytes are ids, vectors and their gradients; all bytes are these and the dense gradients "
            "that ranks sum (%s).\n",
            planning->collectives.text));
    }
    PH_TRY(print_explanation(planning, writer));
    PH_TRY(print_tiers(planning, writer));
    PH_TRY(print_basis(planning, writer));
    if (planning->machine.rank_bytes > 0)
        PH_TRY(ph__writer_printf(writer, " A rank may spend %s on tables and optimizer slots.",
            ph__bytes_text(planning->machine.rank_bytes, rank_bytes)));
    PH_TRY(ph__writer_printf(writer, "\n\n"));
    PH_TRY(print_rates(planning, writer));
    if (planning->topology_path != NULL)
        return ph__writer_printf(writer, by_topology, planning->topology_path);
    const bool is_by_measured = planning->request->is_measured && planning->request->plan == NULL;
    return is_by_measured ? ph__writer_printf(writer, "\n%s\n", by_measured) : PH_OK;
}

/* ---- two plans ---- */

static void compare_cells(
    struct ph__text_table *text, const char *figure, const char *format, double one, double other)
{
    ph__text_table_cell(text, "%s", figure);
    ph__text_table_number(text, format, one);
    ph__text_table_number(text, format, other);
    ph__text_table_number(text, "%+.1f %%", 100 * (other / one - 1));
}

static double most_of(const struct cli_planning *planning, const struct ph__plan_load *loads, bool is_bytes)
{
    double most = 0;
    for (size_t rank = 0; rank < planning->topology.world_size; rank++)
        most = fmax(most, is_bytes ? (double)loads[rank].bytes : loads[rank].compute_seconds);
    return most;
}

static ph_status print_figures(const struct cli_planning *planning, struct ph__writer *writer)
{
    const struct ph__plan_explanation *one = &planning->explanation, *other = &planning->other_explanation;
    const struct ph__text_column columns[] = {{"of the busiest rank", false}, {planning->request->plan, true},
        {planning->request->other_plan, true}, {"change", true}};
    struct ph__text_table text;
    ph__text_table_init(&text, columns, 4);
    compare_cells(&text, "ms a step", "%.3f", one->slowest_ms, other->slowest_ms);
    compare_cells(&text, "ms computing", "%.3f", 1e3 * most_of(planning, planning->loads, false),
        1e3 * most_of(planning, planning->other_loads, false));
    compare_cells(&text, "MB of tables and slots", "%.1f", most_of(planning, planning->loads, true) / 1e6,
        most_of(planning, planning->other_loads, true) / 1e6);
    compare_cells(&text, "computing, to the mean", "%.3f", one->compute_imbalance, other->compute_imbalance);
    compare_cells(
        &text, "communicating, to the mean", "%.3f", one->exchange_imbalance, other->exchange_imbalance);
    compare_cells(&text, "bytes, to the mean", "%.3f", one->bytes_imbalance, other->bytes_imbalance);
    const ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

static ph_status print_ranks(const struct cli_planning *planning, struct ph__writer *writer)
{
    static const struct ph__text_column columns[] = {
        {"rank", true}, {"ms a step", true}, {"computing", true}, {"then", true}, {"computing then", true}};
    struct ph__text_table text;
    PH_TRY(ph__writer_printf(writer, "\n"));
    ph__text_table_init(&text, columns, 5);
    for (size_t rank = 0; rank < planning->topology.world_size; rank++) {
        ph__text_table_cell(&text, "%zu", rank);
        ph__text_table_number(&text, "%.3f", 1e3 * planning->loads[rank].seconds);
        ph__text_table_number(&text, "%.3f", 1e3 * planning->loads[rank].compute_seconds);
        ph__text_table_number(&text, "%.3f", 1e3 * planning->other_loads[rank].seconds);
        ph__text_table_number(&text, "%.3f", 1e3 * planning->other_loads[rank].compute_seconds);
    }
    const ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

/* Returns true when both plans give a table the same kind and places. */
static bool lies_alike(const struct ph__plan_table *one, const struct ph__plan_table *other)
{
    return one->kind == other->kind && one->num_places == other->num_places &&
           memcmp(one->places, other->places, one->num_places * sizeof *one->places) == 0;
}

ph_status cli_plan_print_comparison(const void *what, struct ph__writer *writer)
{
    const struct cli_planning *planning = what;
    char bytes[PH_NUMBER_TEXT_BYTES];
    size_t num_moved = 0;
    for (size_t i = 0; i < planning->plan.num_tables; i++)
        num_moved += !lies_alike(&planning->plan.tables[i], &planning->other.tables[i]);
    PH_TRY(print_figures(planning, writer));
    PH_TRY(print_ranks(planning, writer));
    PH_TRY(ph__writer_printf(writer,
        "\n%zu of %zu tables lie otherwise; from the first plan to the second, %s of tables and slots move "
        "between ranks.\n",
        num_moved, planning->plan.num_tables,
        ph__bytes_text(
            ph__plan_moved_bytes(&planning->plan, &planning->other, planning->list.tables), bytes)));
    PH_TRY(print_basis(planning, writer));
    return ph__writer_printf(writer, "\n");
}
