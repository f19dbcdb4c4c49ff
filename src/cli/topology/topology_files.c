#include "cli/topology/topology_files.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/option/option.h"
#include "base/text/number.h"

#define VERSION 1
#define MOST_PART_BYTES ((uint64_t)1 << 32)
#define DIGITS 6

/* ---- FILE.part: {version, hosts, pairs: [[from, to, latency, bandwidth, alone]], trunks: [[from, to,
 * bandwidth]]} */

static struct ph__json *add_row(struct ph__json *rows, size_t from, size_t to)
{
    struct ph__json *row = ph__json_array();
    ph__json_append_integer(row, (int64_t)from);
    ph__json_append_integer(row, (int64_t)to);
    ph__json_append(rows, row);
    return row;
}

static struct ph__json *pairs_of(const struct ph__netprobe_result *result)
{
    struct ph__json *pairs = ph__json_array();
    for (size_t i = 0; i < result->num_hosts * result->num_hosts; i++) {
        const struct ph__netprobe_pair *pair = &result->pairs[i];
        if (isnan(pair->latency_ns) && isnan(pair->bytes_per_ns))
            continue;
        struct ph__json *row = add_row(pairs, i / result->num_hosts, i % result->num_hosts);
        ph__json_append_number(row, pair->latency_ns);
        ph__json_append_number(row, pair->bytes_per_ns);
        ph__json_append_integer(row, pair->is_alone);
    }
    return pairs;
}

static struct ph__json *trunks_of(const struct ph__netprobe_result *result)
{
    struct ph__json *trunks = ph__json_array();
    for (size_t i = 0; result->trunks != NULL && i < result->num_groups * result->num_groups; i++)
        if (!isnan(result->trunks[i]))
            ph__json_append_number(
                add_row(trunks, i / result->num_groups, i % result->num_groups), result->trunks[i]);
    return trunks;
}

ph_status cli_topology_part_write(const struct cli_topology_files *file)
{
    struct ph__json *document = ph__json_object(), *hosts = ph__json_array();
    for (size_t i = 0; i < file->result.num_hosts; i++)
        ph__json_append_text(hosts, file->hosts[i].name);
    ph__json_set_integer(document, "version", VERSION);
    ph__json_set(document, "hosts", hosts);
    ph__json_set(document, "pairs", pairs_of(&file->result));
    ph__json_set(document, "trunks", trunks_of(&file->result));
    const ph_status status = ph__json_write(document, file->part_path);
    ph__json_destroy(document);
    return status;
}

/* Reads a place in a matrix from the beginning of a row. */
static bool read_place(const struct ph__json *row, size_t count, size_t *index_out)
{
    const int64_t from = ph__json_as_integer(ph__json_at(row, 0), -1);
    const int64_t to = ph__json_as_integer(ph__json_at(row, 1), -1);
    const bool is_right = from >= 0 && to >= 0 && (size_t)from < count && (size_t)to < count && from != to;
    if (is_right)
        *index_out = (size_t)from * count + (size_t)to;
    return is_right;
}

/* Returns a positive number; NaN where there is none. */
static double number_at(const struct ph__json *row, size_t column)
{
    const double number = ph__json_as_number(ph__json_at(row, column), (double)NAN);
    return number > 0 ? number : (double)NAN;
}

static bool has_hosts(const struct ph__json *document, const struct cli_topology_files *file)
{
    const struct ph__json *hosts = ph__json_get(document, "hosts");
    bool is_right = ph__json_as_integer(ph__json_get(document, "version"), 0) == VERSION &&
                    ph__json_size(hosts) == file->result.num_hosts;
    for (size_t i = 0; is_right && i < file->result.num_hosts; i++)
        is_right = strcmp(ph__json_as_text(ph__json_at(hosts, i), ""), file->hosts[i].name) == 0;
    return is_right;
}

static ph_status take(const struct ph__json *document, struct cli_topology_files *file)
{
    const struct ph__json *pairs = ph__json_get(document, "pairs"),
                          *trunks = ph__json_get(document, "trunks");
    struct ph__netprobe_result *result = &file->result;
    size_t index;
    if (!has_hosts(document, file))
        return ph_fail(PH_ERROR_DATA,
            "%s is the part of a probe of other hosts: leave --resume out, or name "
            "those hosts in the same order",
            file->part_path);
    for (size_t i = 0; i < ph__json_size(pairs); i++) {
        const struct ph__json *row = ph__json_at(pairs, i);
        if (!read_place(row, result->num_hosts, &index))
            return ph_fail(PH_ERROR_DATA, "%s: pairs[%zu]: not two different hosts", file->part_path, i);
        result->pairs[index] = (struct ph__netprobe_pair){
            number_at(row, 2), number_at(row, 3), ph__json_as_integer(ph__json_at(row, 4), 0) == 1};
    }
    for (size_t i = 0; result->trunks != NULL && i < ph__json_size(trunks); i++)
        if (read_place(ph__json_at(trunks, i), result->num_groups, &index))
            result->trunks[index] = number_at(ph__json_at(trunks, i), 2);
    return PH_OK;
}

ph_status cli_topology_part_read(struct cli_topology_files *file)
{
    struct ph__json *document;
    if (access(file->part_path, F_OK) != 0)
        return PH_OK;
    PH_TRY(ph__json_read(file->part_path, PH_ERROR_DATA, MOST_PART_BYTES, &document));
    const ph_status status = take(document, file);
    ph__json_destroy(document);
    return status;
}

/* ---- FILE ---- */

/* Writes the first members of a mapping in a list: between which two, and how fast. */
static ph_status write_way(struct ph__writer *writer, size_t from, size_t to, double bytes_per_ns)
{
    char gbits[PH_NUMBER_TEXT_BYTES];
    ph__real_write(8 * bytes_per_ns, DIGITS, gbits);
    return ph__writer_printf(writer, "  - {from: %zu, to: %zu, gbits_per_s: %s", from, to, gbits);
}

static ph_status write_nodes(const struct cli_topology_files *file, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "version: 1\nkind: measured\nhosts: %zu\nranks_per_host: %zu\nnodes:\n",
        file->result.num_hosts, file->ranks_per_host));
    for (size_t i = 0; i < file->result.num_hosts; i++) {
        PH_TRY(ph__writer_printf(writer, "  - {name: "));
        PH_TRY(ph__config_write_text(writer, file->hosts[i].name));
        PH_TRY(ph__writer_printf(writer, ", group: %u}\n", file->result.groups[i]));
    }
    return PH_OK;
}

static ph_status write_pairs(const struct ph__netprobe_result *result, struct ph__writer *writer)
{
    char latency[PH_NUMBER_TEXT_BYTES];
    PH_TRY(ph__writer_printf(writer, "pairs:\n"));
    for (size_t i = 0; i < result->num_hosts * result->num_hosts; i++) {
        const size_t from = i / result->num_hosts, to = i % result->num_hosts;
        if (from == to)
            continue;
        ph__real_write(result->pairs[i].latency_ns / 1e3, DIGITS, latency);
        PH_TRY(write_way(writer, from, to, result->pairs[i].bytes_per_ns));
        PH_TRY(ph__writer_printf(writer, ", latency_us: %s}\n", latency));
    }
    return PH_OK;
}

static ph_status write_trunks(const struct ph__netprobe_result *result, struct ph__writer *writer)
{
    if (result->num_groups > 1)
        PH_TRY(ph__writer_printf(writer, "trunks:\n"));
    for (size_t i = 0; i < result->num_groups * result->num_groups; i++) {
        if (i / result->num_groups == i % result->num_groups)
            continue;
        PH_TRY(write_way(writer, i / result->num_groups, i % result->num_groups, result->trunks[i]));
        PH_TRY(ph__writer_printf(writer, "}\n"));
    }
    return PH_OK;
}

ph_status cli_topology_file_write(const struct cli_topology_files *file)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_atomic(file->path, &writer));
    ph_status status = write_nodes(file, writer);
    if (status == PH_OK)
        status = write_pairs(&file->result, writer);
    if (status == PH_OK)
        status = write_trunks(&file->result, writer);
    status = ph__writer_end(writer, status);
    if (status == PH_OK)
        unlink(file->part_path);
    return status;
}
