#include "cli/plan/plan_memory.h"

#include "base/format/text_table.h"
#include "base/text/number.h"
#include "plan/plan_units.h"

static uint64_t sum_of(const struct ph__memory_node *node)
{
    uint64_t sum = 0;
    for (size_t class = 0; class < PH_MEMORY_CLASS_COUNT; class ++)
        sum += node->bytes[class];
    return sum;
}

static void bytes_cell(struct ph__text_table *table, uint64_t bytes)
{
    char text[PH_NUMBER_TEXT_BYTES];
    ph__text_table_cell(table, "%s", ph__bytes_text(bytes, text));
}

static ph_status print_nodes(const struct ph__memory_report *report, struct ph__writer *writer)
{
    static const struct ph__text_column columns[] = {{"entry", false}, {"operator", false}, {"bytes", true},
        {"whole parameters", true}, {"gradients", true}, {"others", true}, {"scratch", true}};
    struct ph__text_table table;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < report->num_nodes; i++) {
        const struct ph__memory_node *node = &report->nodes[i];
        ph__text_table_cell(&table, "%s", node->entry);
        ph__text_table_cell(&table, "%s", node->name);
        bytes_cell(&table, sum_of(node));
        for (size_t class = 0; class < PH_MEMORY_CLASS_COUNT; class ++)
            bytes_cell(&table, node->bytes[class]);
    }
    const ph_status status = ph__text_table_write(&table, writer);
    ph__text_table_fini(&table);
    return status;
}

/* Prints the most bytes of a class, with the operator that needs them. */
static ph_status print_most(const struct ph__memory_report *report, const char *title,
    enum ph__memory_class class, struct ph__writer *writer)
{
    const struct ph__memory_node *most = &report->nodes[0];
    char bytes[PH_NUMBER_TEXT_BYTES];
    for (size_t i = 1; i < report->num_nodes; i++)
        if (report->nodes[i].bytes[class] > most->bytes[class])
            most = &report->nodes[i];
    return ph__writer_printf(writer, "most %s: %s, at %s of %s\n", title,
        ph__bytes_text(most->bytes[class], bytes), most->name, most->entry);
}

static ph_status print_peak(const struct ph__memory_report *report, struct ph__writer *writer)
{
    char bytes[PH_NUMBER_TEXT_BYTES], planned[PH_NUMBER_TEXT_BYTES];
    const struct ph__memory_node *most = &report->nodes[0];
    for (size_t i = 1; i < report->num_nodes; i++)
        if (sum_of(&report->nodes[i]) > sum_of(most))
            most = &report->nodes[i];
    return ph__writer_printf(writer, "most in all: %s, at %s of %s; the workspace is laid out in %s\n",
        ph__bytes_text(sum_of(most), bytes), most->name, most->entry,
        ph__bytes_text(report->planned_bytes, planned));
}

/* Says so where units save little because one has most parameters: two whole ones are there at a time. */
static ph_status print_advice(const struct ph__plan_units *units, struct ph__writer *writer)
{
    size_t sum = 0, largest = 0;
    for (size_t u = 0; u < units->num_units; u++) {
        sum += ph__unit_numbers(&units->units[u]);
        if (ph__unit_numbers(&units->units[u]) > ph__unit_numbers(&units->units[largest]))
            largest = u;
    }
    if (units->num_units == 0 || 2 * ph__unit_numbers(&units->units[largest]) < sum)
        return PH_OK;
    return ph__writer_printf(writer,
        "note: unit '%s' has %zu of %zu numbers, so whole parameters take as much memory as without units: "
        "name smaller units, or lower dense.unit_bytes\n",
        units->units[largest].name, ph__unit_numbers(&units->units[largest]), sum);
}

ph_status cli_plan_memory_print(
    const struct ph__memory_report *report, const struct ph__plan *plan, struct ph__writer *writer)
{
    char parameters[PH_NUMBER_TEXT_BYTES], slots[PH_NUMBER_TEXT_BYTES];
    PH_TRY(ph__writer_printf(writer, "rank 0 of %zu holds %s of parameters and %s of optimizer slots\n",
        plan->topology.world_size, ph__bytes_text(report->parameter_bytes, parameters),
        ph__bytes_text(report->slot_bytes, slots)));
    if (report->num_nodes == 0)
        return PH_OK;
    PH_TRY(print_most(report, "whole parameters", PH_MEMORY_PARAMETERS, writer));
    PH_TRY(print_most(report, "gradients", PH_MEMORY_GRADIENTS, writer));
    PH_TRY(print_peak(report, writer));
    PH_TRY(print_advice(&plan->units, writer));
    PH_TRY(ph__writer_printf(writer, "\n"));
    return print_nodes(report, writer);
}
