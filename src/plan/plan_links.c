#include "plan/plan_links.h"

#include "base/format/text_table.h"
#include "base/sizes.h"
#include "base/text/number.h"
#include "plan/plan_cost.h"

struct adding {
    const struct ph_plan_links *links;
    size_t ranks_per_end; /* an end of a link is so many ranks */
};

static void add_bytes(void *context, enum ph_traffic what, size_t from, size_t to, double bytes)
{
    const struct adding *adding = context;
    const size_t sender = from / adding->ranks_per_end, receiver = to / adding->ranks_per_end;
    (void)what;
    if (sender != receiver)
        adding->links->bytes[sender * adding->links->count + receiver] += bytes;
}

ph_status ph__plan_links_find(const struct ph_plan *plan, const struct ph_plan_step *step,
    const struct ph_plan_dense *dense, const struct ph_table_facts *tables, size_t most,
    struct ph_arena *arena, struct ph_plan_links *links_out)
{
    const struct ph_topology *topology = &plan->topology;
    const bool are_hosts = topology->world_size > most;
    struct adding adding = {links_out, are_hosts ? topology->ranks_per_host : 1};
    const size_t count = topology->world_size / adding.ranks_per_end;
    if (count > most) {
        *links_out = (struct ph_plan_links){0};
        return PH_OK;
    }
    *links_out = (struct ph_plan_links){
        are_hosts, count, ph__arena_alloc_array(arena, count * count, sizeof *links_out->bytes)};
    if (links_out->bytes == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__expected_traffic(plan, tables, step, add_bytes, &adding));
    for (size_t first = 0; first < dense->num_numbers; first += dense->bucket_numbers)
        ph__dense_traffic(topology->world_size, &dense->wire,
            ph__min(dense->bucket_numbers, dense->num_numbers - first), add_bytes, &adding);
    return PH_OK;
}

/* ---- as a table --------------------------------------------------------------------------------------------- */

static const char *end_name(const struct ph_plan_links *links)
{
    return links->are_hosts ? "host" : "rank";
}

static void add_row(const struct ph_plan_links *links, size_t from, struct ph_text_table *text)
{
    ph__text_table_cell(text, "%s %zu", end_name(links), from);
    for (size_t to = 0; to < links->count; to++) {
        char bytes[PH_NUMBER_TEXT_BYTES];
        const double sent = links->bytes[from * links->count + to];
        ph__text_table_cell(text, "%s", from == to ? "–" : ph__bytes_text((uint64_t)sent, bytes));
    }
}

static ph_status print(const struct ph_plan_links *links, struct ph_arena *arena, struct ph_writer *writer)
{
    struct ph_text_column *columns = ph__arena_alloc_array(arena, links->count + 1, sizeof *columns);
    struct ph_text_table text;
    if (columns == NULL)
        return PH_ERROR_MEMORY;
    columns[0] = (struct ph_text_column){"all bytes sent a step by", false};
    for (size_t to = 0; to < links->count; to++) {
        columns[to + 1] =
            (struct ph_text_column){ph__arena_printf(arena, "to %s %zu", end_name(links), to), true};
        if (columns[to + 1].name == NULL)
            return PH_ERROR_MEMORY;
    }
    ph__text_table_init(&text, columns, links->count + 1);
    for (size_t from = 0; from < links->count; from++)
        add_row(links, from, &text);
    const ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

ph_status ph__plan_links_print(const struct ph_plan_links *links, struct ph_writer *writer)
{
    struct ph_arena arena = {0};
    const ph_status status = print(links, &arena, writer);
    ph__arena_fini(&arena);
    return status;
}
