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

/* ---- FILE.part: {version, hosts, ways, latency_ns, ns_per_byte, trunks}, the last three matrices ---- */

static const char *const matrices[] = {"latency_ns", "ns_per_byte", "trunks"};
#define NUM_MATRICES (sizeof matrices / sizeof *matrices)

/* Returns a matrix of the result, by its place in the list. */
static double *matrix_of(const struct ph__netprobe_result *result, size_t index)
{
    return (double *[]){result->latency_ns, result->ns_per_byte, result->trunks}[index];
}

ph_status cli_topology_part_write(const struct cli_topology_files *file)
{
    const struct ph__netprobe_result *result = &file->result;
    struct ph__json *document = ph__json_object(), *hosts = ph__json_array();
    for (size_t i = 0; i < result->num_hosts; i++)
        ph__json_append_text(hosts, file->hosts[i].name);
    ph__json_set_integer(document, "version", VERSION);
    ph__json_set(document, "hosts", hosts);
    ph__json_set_text(document, "ways", result->ways);
    for (size_t m = 0; m < NUM_MATRICES; m++) {
        struct ph__json *numbers = ph__json_array();
        for (size_t i = 0; i < result->num_hosts * result->num_hosts; i++)
            ph__json_append_number(numbers, matrix_of(result, m)[i]);
        ph__json_set(document, matrices[m], numbers);
    }
    const ph_status status = ph__json_write(document, file->part_path);
    ph__json_destroy(document);
    return status;
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
    struct ph__netprobe_result *result = &file->result;
    const size_t num_pairs = result->num_hosts * result->num_hosts;
    const char *ways = ph__json_as_text(ph__json_get(document, "ways"), "");
    if (!has_hosts(document, file))
        return ph_fail(PH_ERROR_DATA,
            "%s is the part of a probe of other hosts: leave --resume out, or name those hosts in the same "
            "order",
            file->part_path);
    for (size_t m = 0; m < NUM_MATRICES; m++) {
        const struct ph__json *numbers = ph__json_get(document, matrices[m]);
        if (ph__json_size(numbers) != num_pairs || strlen(ways) != num_pairs)
            return ph_fail(PH_ERROR_DATA, "%s: '%s' is not of %zu pairs: leave --resume out", file->part_path,
                matrices[m], num_pairs);
        for (size_t i = 0; i < num_pairs; i++) {
            const double number = ph__json_as_number(ph__json_at(numbers, i), (double)NAN);
            matrix_of(result, m)[i] = number > 0 ? number : (double)NAN;
        }
    }
    memcpy(result->ways, ways, num_pairs);
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

static ph_status write_nodes(const struct cli_topology_files *file, struct ph__writer *writer)
{
    const struct ph__netprobe_result *result = &file->result;
    PH_TRY(ph__writer_printf(writer,
        "# phloem topology probe: %zu pairs were measured, %zu have the value of pairs like them\n"
        "version: 1\nkind: measured\nhosts: %zu\nranks_per_host: %zu\nnodes:\n",
        result->num_hosts * (result->num_hosts - 1) - ph__netprobe_result_count(result, PH_NETPROBE_ALIKE),
        ph__netprobe_result_count(result, PH_NETPROBE_ALIKE), result->num_hosts, file->ranks_per_host));
    for (size_t i = 0; i < result->num_hosts; i++) {
        PH_TRY(ph__writer_printf(writer, "  - {name: "));
        PH_TRY(ph__config_write_text(writer, file->hosts[i].name));
        PH_TRY(ph__writer_printf(writer, ", group: %u}\n", result->groups[i]));
    }
    return PH_OK;
}

/* Writes what is known between each two of `count` hosts or groups. latency_ns NULL: bandwidths alone. */
static ph_status write_ways(struct ph__writer *writer, const char *key, size_t count,
    const double *ns_per_byte, const double *latency_ns)
{
    char gbits[PH_NUMBER_TEXT_BYTES], latency[PH_NUMBER_TEXT_BYTES];
    if (count > 1)
        PH_TRY(ph__writer_printf(writer, "%s:\n", key));
    for (size_t i = 0; i < count * count; i++) {
        if (i / count == i % count)
            continue;
        ph__real_write(8 / ns_per_byte[i], DIGITS, gbits);
        PH_TRY(ph__writer_printf(
            writer, "  - {from: %zu, to: %zu, gbits_per_s: %s", i / count, i % count, gbits));
        if (latency_ns != NULL) {
            ph__real_write(latency_ns[i] / 1e3, DIGITS, latency);
            PH_TRY(ph__writer_printf(writer, ", latency_us: %s", latency));
        }
        PH_TRY(ph__writer_printf(writer, "}\n"));
    }
    return PH_OK;
}

ph_status cli_topology_file_write(const struct cli_topology_files *file)
{
    const struct ph__netprobe_result *result = &file->result;
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_atomic(file->path, &writer));
    ph_status status = write_nodes(file, writer);
    if (status == PH_OK)
        status = write_ways(writer, "pairs", result->num_hosts, result->ns_per_byte, result->latency_ns);
    if (status == PH_OK)
        status = write_ways(writer, "trunks", result->num_groups, result->trunks, NULL);
    status = ph__writer_end(writer, status);
    if (status == PH_OK)
        unlink(file->part_path);
    return status;
}
