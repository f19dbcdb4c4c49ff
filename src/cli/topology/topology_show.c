/* phloem topology show FILE: prints the ways between a cluster's hosts, and draws them as a page. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/statistics.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/topology/topology_verbs.h"
#include "plan/fabric/fabric.h"
#include "report/page.h"

#define MOST_DRAWN 128 /* hosts of a page's matrices */

struct shown {
    struct ph__fabric fabric;
    double *gbits, *latency_us; /* (num_hosts, num_hosts) of a way; NaN from a host to itself */
    double *room;               /* (2, num_hosts^2) for numbers to sort */
    size_t *order;              /* (num_hosts) by group */
    size_t *num_ways;           /* (num_links) ways between two groups that lead over a link */
};

/* ---- ways ---- */

static void find_ways(struct shown *shown)
{
    const struct ph__fabric *fabric = &shown->fabric;
    uint32_t links[PH_FABRIC_MAX_HOPS];
    for (size_t i = 0; i < fabric->num_hosts * fabric->num_hosts; i++) {
        const size_t num_links =
            ph__fabric_route_of_hosts(fabric, i / fabric->num_hosts, i % fabric->num_hosts, links);
        double bytes_per_ns = num_links > 0 ? HUGE_VAL : (double)NAN, latency_ns = 0;
        for (size_t k = 0; k < num_links; k++) {
            bytes_per_ns = fmin(bytes_per_ns, fabric->links[links[k]].bytes_per_ns);
            latency_ns += fabric->links[links[k]].latency_ns;
        }
        shown->gbits[i] = 8 * bytes_per_ns;
        shown->latency_us[i] = num_links > 0 ? latency_ns / 1e3 : (double)NAN;
    }
}

static void sort_by_group(struct shown *shown)
{
    size_t count = 0;
    for (size_t group = 0; group < shown->fabric.num_groups; group++)
        for (size_t host = 0; host < shown->fabric.num_hosts; host++)
            if (shown->fabric.groups[host] == group)
                shown->order[count++] = host;
}

/* ---- text ---- */

static void print_hosts(const struct shown *shown)
{
    const struct ph__fabric *fabric = &shown->fabric;
    printf("%zu hosts in %zu group%s\n", fabric->num_hosts, fabric->num_groups,
        fabric->num_groups == 1 ? "" : "s");
    for (size_t i = 0; i < fabric->num_hosts; i++) {
        const size_t host = shown->order[i];
        if (i == 0 || fabric->groups[host] != fabric->groups[shown->order[i - 1]])
            printf("%sgroup %u:", i == 0 ? "" : "\n", fabric->groups[host]);
        printf(" %s", fabric->names[host]);
    }
    printf("\n\n");
}

static double median(double *numbers, size_t count)
{
    ph__sort_numbers(numbers, count);
    return count > 0 ? ph__sorted_median(numbers, count) : (double)NAN;
}

/* Adds a row about all ways from one group to another: medians, and what they share, which is the slowest
 * link that is on each of them. */
static void add_row(const struct shown *shown, size_t from, size_t to, struct ph__text_table *table)
{
    const struct ph__fabric *fabric = &shown->fabric;
    const size_t n = fabric->num_hosts;
    double *gbits = shown->room, *latencies = shown->room + n * n, shared_gbits = (double)NAN;
    uint32_t links[PH_FABRIC_MAX_HOPS];
    size_t count = 0;
    memset(shown->num_ways, 0, fabric->num_links * sizeof *shown->num_ways);
    for (size_t i = 0; i < n * n; i++) {
        if (i / n == i % n || fabric->groups[i / n] != from || fabric->groups[i % n] != to)
            continue;
        gbits[count] = shown->gbits[i];
        latencies[count++] = shown->latency_us[i];
        for (size_t k = ph__fabric_route_of_hosts(fabric, i / n, i % n, links); k > 0; k--)
            shown->num_ways[links[k - 1]]++;
    }
    for (size_t i = 0; i < fabric->num_links && from != to && count > 0; i++)
        if (shown->num_ways[i] == count)
            shared_gbits = fmin(shared_gbits, 8 * fabric->links[i].bytes_per_ns); /* ignores NaN */
    ph__text_table_cell(table, "%zu", from);
    ph__text_table_cell(table, "%zu", to);
    ph__text_table_number(table, "%.3g", median(gbits, count));
    ph__text_table_number(table, "%.3g", median(latencies, count));
    ph__text_table_number(table, "%.3g", shared_gbits);
}

/* ---- the page ---- */

static void add_matrix(const struct shown *shown, const char *id, const char *heading, const char *note,
    const double *numbers, struct ph__page *page)
{
    const struct ph__fabric *fabric = &shown->fabric;
    struct ph__json *blocks = ph__page_add_section(page, id, heading, note);
    if (fabric->num_hosts > MOST_DRAWN) {
        ph__page_add_text(blocks, "text", "There are too many hosts to draw.");
        return;
    }
    struct ph__json *block = ph__page_add_block(blocks, "matrix"), *names = ph__json_array(),
                    *groups = ph__json_array(), *rows = ph__json_array();
    for (size_t i = 0; i < fabric->num_hosts; i++) {
        struct ph__json *row = ph__json_array();
        ph__json_append_text(names, fabric->names[shown->order[i]]);
        ph__json_append_integer(groups, fabric->groups[shown->order[i]]);
        for (size_t k = 0; k < fabric->num_hosts; k++)
            ph__json_append_number(row, numbers[shown->order[i] * fabric->num_hosts + shown->order[k]]);
        ph__json_append(rows, row);
    }
    ph__json_set_text(block, "id", id);
    ph__json_set_text(block, "format", ".3");
    ph__json_set(block, "names", names);
    ph__json_set(block, "groups", groups);
    ph__json_set(block, "values", rows);
}

static ph_status write_page(
    const struct shown *shown, const struct ph__text_table *table, const char *path, const char *page_path)
{
    struct ph__page page;
    char text[64];
    ph__page_init(&page, "Topology", "Topology", path);
    snprintf(text, sizeof text, "%zu in %zu groups", shown->fabric.num_hosts, shown->fabric.num_groups);
    ph__page_add_fact(&page, "hosts", text);
    add_matrix(shown, "bandwidth", "Bandwidth",
        "Gigabits a second from the host of a row to the host of a column, of a flow alone.", shown->gbits,
        &page);
    add_matrix(shown, "latency", "Latency", "Microseconds of one way, likewise.", shown->latency_us, &page);
    ph__page_add_text_table(ph__page_add_section(&page, "groups", "Groups", NULL), "ways", table);
    const ph_status status = ph__page_write(&page, page_path);
    ph__page_fini(&page);
    return status;
}

/* ---- both ---- */

static ph_status show(struct shown *shown, const char *path, const char *page)
{
    static const struct ph__text_column columns[] = {{"from group", true}, {"to group", true},
        {"Gbit/s", true}, {"latency us", true}, {"shared Gbit/s", true}};
    const size_t num_groups = shown->fabric.num_groups;
    struct ph__text_table table;
    find_ways(shown);
    sort_by_group(shown);
    print_hosts(shown);
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < num_groups * num_groups; i++)
        add_row(shown, i / num_groups, i % num_groups, &table);
    ph_status status = cli_print_table(&table);
    if (status == PH_OK && page != NULL)
        status = write_page(shown, &table, path, page);
    ph__text_table_fini(&table);
    return status;
}

ph_status cli_topology_print(const char *path, const char *page)
{
    struct shown shown = {0};
    struct ph__arena *arena = &shown.fabric.arena;
    PH_TRY(ph__fabric_read(path, &shown.fabric));
    const size_t n = shown.fabric.num_hosts;
    shown.gbits = ph__arena_alloc_array(arena, n * n, sizeof *shown.gbits);
    shown.latency_us = ph__arena_alloc_array(arena, n * n, sizeof *shown.latency_us);
    shown.room = ph__arena_alloc_array(arena, 2 * n * n, sizeof *shown.room);
    shown.order = ph__arena_alloc_array(arena, n, sizeof *shown.order);
    shown.num_ways = ph__arena_alloc_array(arena, shown.fabric.num_links, sizeof *shown.num_ways);
    const bool has_room = shown.gbits != NULL && shown.latency_us != NULL && shown.room != NULL &&
                          shown.order != NULL && shown.num_ways != NULL;
    const ph_status status = has_room ? show(&shown, path, page) : PH_ERROR_MEMORY;
    ph__fabric_fini(&shown.fabric);
    return status;
}

ph_status cli_topology_show(int argc, char **argv)
{
    const char *page = NULL;
    const struct cli_flag flags[] = {
        {"--page", CLI_TEXT, &page, "FILE", "writes a page that draws the ways between all hosts"},
    };
    const struct cli_command command = {"topology show", "topology show cluster.yaml --page topology.html",
        "Prints the hosts and groups of a topology file, medians of the bandwidth and latency from group\n"
        "to group, and what the ways from one group to another share.",
        "FILE", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    if (page != NULL)
        PH_TRY(cli_output_spare_input(page, arguments.positional[0]));
    return cli_topology_print(arguments.positional[0], page);
}
