#include "cli/verb/rank_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file/file.h"
#include "base/format/text_table.h"
#include "base/memory/memory.h"
#include "base/text/number.h"
#include "cli/output.h"

/* Most lines of a table; summary.json has all. */
enum { MOST_RANKS = 64, MOST_OPERATIONS = 12 };

static double number_of(const struct ph__json *object, const char *key)
{
    return ph__json_as_number(ph__json_get(object, key), (double)NAN);
}

static void bytes_cell(struct ph__text_table *table, double bytes)
{
    char text[PH_NUMBER_TEXT_BYTES];
    ph__text_table_cell(table, "%s", isfinite(bytes) ? ph__bytes_text((uint64_t)bytes, text) : "–");
}

/* Writes and frees a table of the first `most` of `count` things, and says how many are left out. */
static ph_status end_table(
    struct ph__text_table *table, size_t count, size_t most, const char *what, struct ph__writer *writer)
{
    const ph_status status = ph__text_table_write(table, writer);
    ph__text_table_fini(table);
    if (status != PH_OK || count <= most)
        return status;
    return ph__writer_printf(writer, "and %zu more, see \"%s\" in summary.json\n", count - most, what);
}

/* ---- ranks ---- */

static void add_rank(struct ph__text_table *table, const struct ph__json *rank, double steps)
{
    const double step = number_of(rank, "step_seconds"), exposed = number_of(rank, "exposed_seconds");
    ph__text_table_number(table, "%.0f", number_of(rank, "rank"));
    ph__text_table_number(table, "%.0f", number_of(rank, "host"));
    ph__text_table_number(table, "%.0f", number_of(rank, "own_samples_per_s"));
    ph__text_table_number(table, "%.3f", 1e3 * step);
    ph__text_table_number(table, "%.3f", 1e3 * exposed);
    ph__text_table_number(table, "%.1f%%", 100 * exposed / step);
    ph__text_table_number(table, "%.0f", number_of(rank, "requested_ids"));
    bytes_cell(table, number_of(rank, "held_bytes"));
    bytes_cell(table, number_of(rank, "sent_bytes") / steps);
    bytes_cell(table, number_of(rank, "received_bytes") / steps);
}

struct rank_line {
    const struct ph__json *rank;
    size_t number;
    double computed; /* seconds of a step */
};

static int compare_lines(const void *left, const void *right)
{
    const struct rank_line *a = left, *b = right;
    if (a->computed != b->computed)
        return a->computed > b->computed ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Lists ranks. Of many, those that compute longest come first: the others wait for them. NULL: no memory. */
static struct rank_line *list_ranks(const struct ph__json *of_rank, size_t num_ranks)
{
    struct rank_line *lines = calloc(num_ranks + 1, sizeof *lines);
    if (lines == NULL) {
        ph__out_of_memory("a table of %zu ranks", num_ranks);
        return NULL;
    }
    for (size_t i = 0; i < num_ranks; i++) {
        const struct ph__json *rank = ph__json_at(of_rank, i);
        const double computed = number_of(rank, "step_seconds") - number_of(rank, "exposed_seconds");
        lines[i] = (struct rank_line){rank, i, isfinite(computed) ? computed : -1};
    }
    if (num_ranks > MOST_RANKS)
        qsort(lines, num_ranks, sizeof *lines, compare_lines);
    return lines;
}

static ph_status write_ranks(const struct ph__json *ranks, struct ph__writer *writer)
{
    static const struct ph__text_column columns[] = {{"rank", true}, {"host", true}, {"own samples/s", true},
        {"ms a step", true}, {"ms exposed", true}, {"share", true}, {"requested ids", true}, {"holds", true},
        {"sends", true}, {"receives", true}};
    const struct ph__json *of_rank = ph__json_get(ranks, "of_rank");
    const size_t num_ranks = ph__json_size(of_rank);
    struct ph__text_table table;
    if (num_ranks > MOST_RANKS)
        PH_TRY(ph__writer_printf(writer, "The %d ranks that compute longest:\n\n", MOST_RANKS));
    struct rank_line *lines = list_ranks(of_rank, num_ranks);
    if (lines == NULL)
        return PH_ERROR_MEMORY;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < num_ranks && i < MOST_RANKS; i++)
        add_rank(&table, lines[i].rank, number_of(ranks, "measured_steps"));
    free(lines);
    return end_table(&table, num_ranks, MOST_RANKS, "of_rank", writer);
}

/* ---- operations ---- */

static ph_status write_operations(const struct ph__json *ranks, struct ph__writer *writer)
{
    static const struct ph__text_column columns[] = {
        {"exchanged", false}, {"times", true}, {"sent", true}, {"ms exposed", true}};
    const struct ph__json *operations = ph__json_get(ranks, "operations");
    const double rank_steps =
        number_of(ranks, "measured_steps") * (double)ph__json_size(ph__json_get(ranks, "of_rank"));
    struct ph__text_table table;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    const size_t num_operations = ph__json_size(operations);
    for (size_t i = 0; i < num_operations && i < MOST_OPERATIONS; i++) {
        const struct ph__json *operation = ph__json_at(operations, i);
        ph__text_table_cell(&table, "%s", ph__json_as_text(ph__json_get(operation, "what"), ""));
        ph__text_table_number(&table, "%.3g", number_of(operation, "operations") / rank_steps);
        bytes_cell(&table, number_of(operation, "sent_bytes") / rank_steps);
        ph__text_table_number(&table, "%.3f", 1e3 * number_of(operation, "exposed_seconds") / rank_steps);
    }
    return end_table(&table, num_operations, MOST_OPERATIONS, "operations", writer);
}

/* ---- the whole ---- */

static ph_status write_imbalance(const struct ph__json *imbalance, struct ph__writer *writer)
{
    static const struct {
        const char *key, *name;
    } kinds[] = {
        {"compute", "computation"}, {"requested_ids", "requested ids"}, {"held_bytes", "bytes held"}};
    PH_TRY(ph__writer_printf(writer, "imbalance, maximum over mean:"));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const double number = number_of(imbalance, kinds[i].key);
        PH_TRY(ph__writer_printf(writer, "%s %s ", i > 0 ? "," : "", kinds[i].name));
        PH_TRY(isfinite(number) ? ph__writer_printf(writer, "%.2f", number) : ph__writer_printf(writer, "–"));
    }
    return ph__writer_printf(writer, "\n\n");
}

/* Writes the line about steps; a training that was resumed at its end has measured none. */
static ph_status write_step(const struct ph__json *ranks, struct ph__writer *writer)
{
    if (!(number_of(ranks, "measured_steps") > 0))
        return ph__writer_printf(writer, "no step was measured\n");
    return ph__writer_printf(writer, "a step of %.3f ms exposes %.3f ms of communication (%.1f%%)\n",
        1e3 * number_of(ranks, "step_seconds"), 1e3 * number_of(ranks, "exposed_seconds"),
        100 * number_of(ranks, "exposed_share"));
}

static ph_status write_head(const struct ph__json *ranks, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "%zu ranks of %s on %.0f host%s: ",
        ph__json_size(ph__json_get(ranks, "of_rank")), ph__json_as_text(ph__json_get(ranks, "transport"), ""),
        number_of(ranks, "hosts"), number_of(ranks, "hosts") > 1 ? "s" : ""));
    PH_TRY(write_step(ranks, writer));
    return write_imbalance(ph__json_get(ranks, "imbalance"), writer);
}

ph_status cli_rank_table_write(const struct ph__json *ranks, struct ph__writer *writer)
{
    PH_TRY(write_head(ranks, writer));
    PH_TRY(write_ranks(ranks, writer));
    PH_TRY(ph__writer_printf(writer, "\nA step of a rank, on average:\n\n"));
    PH_TRY(write_operations(ranks, writer));
    return ph__writer_printf(writer, "\n");
}

static ph_status write_table(const void *ranks, struct ph__writer *writer)
{
    return cli_rank_table_write(ranks, writer);
}

static ph_status read_summary(const char *folder, struct ph__arena *arena, struct ph__json **json_out)
{
    const char *path = ph__path_join(arena, folder, "summary.json");
    char *text;
    size_t size;
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__file_read(arena, path, 1 << 24, &text, &size));
    return ph__json_parse(text, size, path, PH_ERROR_CHECKPOINT, json_out);
}

ph_status cli_rank_table_print(const char *folder)
{
    struct ph__arena arena = {0};
    struct ph__json *json;
    ph_status status = read_summary(folder, &arena, &json);
    if (status == PH_OK) {
        const struct ph__json *ranks = ph__json_get(json, "ranks");
        status = ranks != NULL ? cli_print(write_table, ranks) : PH_OK;
        ph__json_destroy(json);
    }
    ph__arena_fini(&arena);
    return status;
}
