/* Writes synthetic data: rows as text, the quality of the true model on them, and the schema that reads
 * them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/format/json.h"
#include "base/memory/arena.h"
#include "base/memory/memory.h"
#include "data/data_options.h"
#include "data/synth/synth_domain.h"
#include "data/synth/synth_options.h"
#include "data/synth/synth_teacher.h"
#include "data/synth/synth_truth.h"
#include "phloem/data.h"

#define MAX_CELL_BYTES 21 /* a 64-bit number and its separator */

struct writing {
    const struct ph_synth_settings *settings;
    const char *folder;
    struct ph__arena arena;
    struct ph__synth_teacher teacher;
    struct ph__synth_row row;
    char *line;
    struct ph__mass *masses; /* masses of the file being written */
    size_t masses_capacity;
    double *components; /* (rows, steps) components of the staircase, likewise */
    size_t components_capacity;
    const char *paths[PH_SYNTH_FILE_COUNT]; /* NULL: not written */
    struct ph_synth_truth truth[PH_SYNTH_FILE_COUNT];
};

/* ---- text ---- */

static char *put_decimal(char *at, uint64_t number)
{
    char digits[MAX_CELL_BYTES];
    size_t num_digits = 0;
    do {
        digits[num_digits++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (num_digits > 0)
        *at++ = digits[--num_digits];
    return at;
}

/* Writes a category in Criteo's form: 32 bits without meaning, different for different ids of a field. */
static char *put_category(char *at, size_t field, uint64_t id)
{
    uint32_t bits = (uint32_t)id * 0x9e3779b1u + (uint32_t)field * 0x85ebca6bu;
    bits = (bits ^ (bits >> 15)) * 0x2c1b3c6du;
    bits ^= bits >> 13;
    for (int shift = 28; shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[(bits >> shift) & 15];
    return at;
}

static char *put_ids(const struct writing *writing, char *at, size_t field, const uint64_t *ids)
{
    for (size_t i = 0; i < writing->teacher.bag_sizes[field]; i++) {
        if (i > 0)
            *at++ = '|';
        at = writing->settings->format == PH_SYNTH_CRITEO ? put_category(at, field, ids[i])
                                                          : put_decimal(at, ids[i]);
    }
    return at;
}

/* Writes the row as a line; returns its size. */
static size_t put_row(const struct writing *writing, char *line)
{
    const struct ph__synth_row *row = &writing->row;
    char *at = line;
    *at++ = row->label ? '1' : '0';
    if (writing->settings->has_truth)
        at += sprintf(at, "\t%" PRIu64 "\t%.9g", row->index, row->probability);
    if (writing->settings->domains.count > 0)
        at += sprintf(at, "\t%zu", row->domain);
    for (size_t j = 0; j < (size_t)writing->settings->num_dense; j++) {
        *at++ = '\t';
        at = put_decimal(at, row->counts[j]);
    }
    const uint64_t *ids = row->ids;
    for (size_t f = 0; f < writing->teacher.num_fields; f++) {
        *at++ = '\t';
        at = put_ids(writing, at, f, ids);
        ids += writing->teacher.bag_sizes[f];
    }
    *at++ = '\n';
    return (size_t)(at - line);
}

static ph_status write_header(const struct writing *writing, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "label"));
    if (writing->settings->has_truth)
        PH_TRY(ph__writer_printf(writer, "\trow\ttruth"));
    if (writing->settings->domains.count > 0)
        PH_TRY(ph__writer_printf(writer, "\tdomain"));
    for (int64_t j = 1; j <= writing->settings->num_dense; j++)
        PH_TRY(ph__writer_printf(writer, "\tI%" PRId64, j));
    for (int64_t f = 1; f <= writing->settings->num_sparse; f++)
        PH_TRY(ph__writer_printf(writer, "\tC%" PRId64, f));
    return ph__writer_write(writer, "\n", 1);
}

/* ---- files ---- */

static uint64_t rows_of(const struct ph_synth_settings *settings, size_t file)
{
    const int64_t rows[PH_SYNTH_FILE_COUNT] = {
        settings->train_rows, settings->valid_rows, settings->test_rows};
    return (uint64_t)rows[file];
}

/* Returns the time of a row: the model drifts along the training file, the other files come after it. */
static double time_of(const struct ph_synth_settings *settings, size_t file, uint64_t row)
{
    return file == PH_SYNTH_TRAIN ? (double)row / (double)settings->train_rows : 1;
}

static ph_status write_rows(struct writing *writing, size_t file, struct ph__writer *writer)
{
    char stream_name[32];
    snprintf(stream_name, sizeof stream_name, "synth.%s", ph__split_names[file]);
    uint64_t stream = ph__hash_name(stream_name);
    if (writing->settings->format == PH_SYNTH_TSV)
        PH_TRY(write_header(writing, writer));
    size_t num_steps = writing->teacher.staircase.num_steps;
    for (uint64_t i = 0; i < rows_of(writing->settings, file); i++) {
        double time = time_of(writing->settings, file, i);
        ph__synth_row_draw(&writing->teacher, stream, i, time, &writing->row);
        writing->masses[i] = (struct ph__mass){writing->row.probability, writing->row.label};
        for (size_t step = 0; step < num_steps; step++)
            writing->components[i * num_steps + step] = writing->row.components[step];
        PH_TRY(ph__writer_write(writer, writing->line, put_row(writing, writing->line)));
    }
    return PH_OK;
}

/* Measures the orders first: ph__synth_truth overwrites the rows. */
static void find_truth(struct writing *writing, size_t num_rows, struct ph_synth_truth *truth_out)
{
    const struct ph__staircase *staircase = &writing->teacher.staircase;
    struct ph_synth_order_truth orders[PH_SYNTH_MAX_STEPS] = {{0}};
    size_t num_orders = 0;
    for (size_t step = 0; step < staircase->num_steps; step++) {
        if (staircase->weights[step] == 0)
            continue;
        struct ph_synth_order_truth *order = &orders[num_orders++];
        order->order = (int64_t)1 << step;
        ph__synth_order_truth(
            writing->masses, writing->components, staircase->num_steps, num_rows, step + 1, order);
    }
    ph__synth_truth(writing->masses, num_rows, truth_out);
    truth_out->num_orders = num_orders;
    memcpy(truth_out->orders, orders, sizeof orders);
}

static ph_status write_file(struct writing *writing, size_t file)
{
    static const char *const endings[] = {"", ".gz", ".zst"};
    uint64_t num_rows = rows_of(writing->settings, file);
    if (num_rows == 0)
        return PH_OK;
    const char *name = ph__arena_printf(
        &writing->arena, "%s.tsv%s", ph__split_names[file], endings[writing->settings->compression]);
    if (name == NULL)
        return PH_ERROR_MEMORY;
    writing->paths[file] = ph__path_join(&writing->arena, writing->folder, name);
    if (writing->paths[file] == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__array_reserve(
        (void **)&writing->masses, &writing->masses_capacity, num_rows, sizeof *writing->masses));
    size_t num_steps = writing->teacher.staircase.num_steps;
    if (num_steps > 0)
        PH_TRY(ph__array_reserve((void **)&writing->components, &writing->components_capacity, num_rows,
            num_steps * sizeof *writing->components));
    struct ph__writer *writer;
    PH_TRY(ph__writer_open(writing->paths[file], &writer));
    PH_TRY(ph__writer_end(writer, write_rows(writing, file, writer)));
    find_truth(writing, num_rows, &writing->truth[file]);
    return PH_OK;
}

/* ---- description ---- */

static void set_list(struct ph__json *json, const char *key, const struct ph__integer_list *list)
{
    struct ph__json *array = ph__json_array();
    for (size_t i = 0; i < list->count; i++)
        ph__json_append_integer(array, list->items[i]);
    ph__json_set(json, key, array);
}

static struct ph__json *describe_staircase(const struct ph_synth_settings *settings)
{
    const struct ph__synth_step *steps = settings->staircase.items;
    struct ph__json *array = ph__json_array();
    for (size_t i = 0; i < settings->staircase.count; i++) {
        struct ph__json *step = ph__json_object();
        ph__json_set_integer(step, "order", steps[i].order);
        ph__json_set_number(step, "weight", steps[i].weight);
        ph__json_append(array, step);
    }
    return array;
}

static struct ph__json *describe_domains(const struct ph_synth_settings *settings)
{
    const struct ph__synth_domain *domains = settings->domains.items;
    struct ph__json *array = ph__json_array();
    for (size_t i = 0; i < settings->domains.count; i++) {
        struct ph__json *domain = ph__json_object();
        ph__json_set_number(domain, "traffic", domains[i].traffic);
        ph__json_set_number(domain, "odds", domains[i].odds);
        ph__json_set_number(domain, "own", domains[i].own);
        ph__json_append(array, domain);
    }
    return array;
}

static struct ph__json *describe_settings(const struct ph_synth_settings *settings)
{
    struct ph__json *json = ph__json_object();
    ph__json_set_integer(json, "dense", settings->num_dense);
    ph__json_set_integer(json, "sparse", settings->num_sparse);
    set_list(json, "table_rows", &settings->table_rows);
    set_list(json, "bag_sizes", &settings->bag_sizes);
    ph__json_set_number(json, "exponent", settings->exponent);
    ph__json_set_integer(json, "planted", settings->num_planted);
    ph__json_set_integer(json, "planted_dense", settings->num_planted_dense);
    if (settings->num_groups > 1)
        ph__json_set_integer(json, "groups", settings->num_groups);
    ph__json_set_integer(json, "order", settings->order);
    if (settings->has_no_linear_part)
        ph__json_set_bool(json, "interactions_only", true);
    ph__json_set_integer(json, "latent_dim", settings->latent_dim);
    ph__json_set_number(json, "scale", settings->scale);
    ph__json_set_number(json, "base_rate", settings->base_rate);
    ph__json_set_number(json, "drift", settings->drift);
    if (settings->turnover > 0)
        ph__json_set_number(json, "turnover", settings->turnover);
    if (settings->domains.count > 0)
        ph__json_set(json, "domains", describe_domains(settings));
    ph__json_set_integer(json, "seed", settings->seed);
    if (settings->staircase.count > 0) {
        ph__json_set(json, "staircase", describe_staircase(settings));
        ph__json_set_integer(json, "staircase_rounds", settings->num_rounds);
    }
    return json;
}

/* Describes the best models, by their highest order. */
static struct ph__json *describe_orders(const struct ph_synth_truth *truth)
{
    struct ph__json *array = ph__json_array();
    for (size_t i = 0; i < truth->num_orders; i++) {
        const struct ph_synth_order_truth *order = &truth->orders[i];
        struct ph__json *json = ph__json_object();
        ph__json_set_integer(json, "order", order->order);
        ph__json_set_number(json, "logloss", order->logloss);
        ph__json_set_number(json, "ne", order->ne);
        ph__json_set_number(json, "expected_logloss", order->expected_logloss);
        ph__json_set_number(json, "expected_ne", order->expected_ne);
        ph__json_append(array, json);
    }
    return array;
}

static struct ph__json *describe_truth(const char *path, const struct ph_synth_truth *truth)
{
    struct ph__json *json = ph__json_object();
    ph__json_set_text(json, "path", path);
    ph__json_set_integer(json, "rows", (int64_t)truth->num_rows);
    ph__json_set_number(json, "base_rate", truth->base_rate);
    ph__json_set_number(json, "auc", truth->auc);
    ph__json_set_number(json, "logloss", truth->logloss);
    ph__json_set_number(json, "ne", truth->ne);
    ph__json_set_number(json, "expected_base_rate", truth->expected_base_rate);
    ph__json_set_number(json, "expected_auc", truth->expected_auc);
    ph__json_set_number(json, "expected_logloss", truth->expected_logloss);
    ph__json_set_number(json, "expected_ne", truth->expected_ne);
    if (truth->num_orders > 0)
        ph__json_set(json, "orders", describe_orders(truth));
    return json;
}

static ph_status write_truth(struct writing *writing)
{
    const char *path = ph__path_join(&writing->arena, writing->folder, "truth.json");
    if (path == NULL)
        return PH_ERROR_MEMORY;
    struct ph__json *json = ph__json_object();
    ph__json_set(json, "settings", describe_settings(writing->settings));
    for (size_t file = 0; file < PH_SYNTH_FILE_COUNT; file++)
        if (writing->paths[file] != NULL)
            ph__json_set(
                json, ph__split_names[file], describe_truth(writing->paths[file], &writing->truth[file]));
    ph_status status = ph__json_write(json, path);
    ph__json_destroy(json);
    return status;
}

/* Writes a key with a path in YAML's double quotes. */
static ph_status write_path(struct ph__writer *writer, const char *key, const char *path)
{
    PH_TRY(ph__writer_printf(writer, "  %s: ", key));
    PH_TRY(ph__config_write_path(writer, path));
    return ph__writer_printf(writer, "\n");
}

static ph_status write_fields(const struct writing *writing, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "  fields:\n    - {name: label, kind: label}\n"));
    if (writing->settings->has_truth)
        PH_TRY(ph__writer_printf(
            writer, "    - {name: row, kind: ignore}\n    - {name: truth, kind: ignore}\n"));
    if (writing->settings->domains.count > 0)
        PH_TRY(ph__writer_printf(writer, "    - {name: domain, kind: id, encoding: raw, rows: %zu}\n",
            writing->settings->domains.count));
    if (writing->settings->num_dense > 0)
        PH_TRY(ph__writer_printf(writer, "    - {name: \"I*\", kind: dense, transform: log1p}\n"));
    for (size_t f = 0; f < writing->teacher.num_fields; f++)
        PH_TRY(ph__writer_printf(writer, "    - {name: C%zu, kind: id, encoding: raw, rows: %" PRIu64 "%s}\n",
            f + 1, ph__turnover_rows(writing->settings, writing->teacher.table_rows[f]),
            writing->teacher.bag_sizes[f] > 1 ? ", list: true" : ""));
    return PH_OK;
}

static ph_status write_data_section(const struct writing *writing, struct ph__writer *writer)
{
    bool is_criteo = writing->settings->format == PH_SYNTH_CRITEO;
    PH_TRY(ph__writer_printf(writer, "data:\n  format: %s\n", is_criteo ? "criteo" : "tsv"));
    for (size_t file = 0; file < PH_SYNTH_FILE_COUNT; file++)
        if (writing->paths[file] != NULL)
            PH_TRY(write_path(writer, ph__split_names[file], writing->paths[file]));
    return is_criteo ? ph__writer_printf(writer, "  encoding: vocabulary\n") : write_fields(writing, writer);
}

static ph_status write_schema(struct writing *writing)
{
    const char *path = ph__path_join(&writing->arena, writing->folder, "synth.yaml");
    if (path == NULL)
        return PH_ERROR_MEMORY;
    struct ph__writer *writer;
    PH_TRY(ph__writer_open(path, &writer));
    return ph__writer_end(writer, write_data_section(writing, writer));
}

/* ---- the whole ---- */

static ph_status write_all(struct writing *writing)
{
    const struct ph_synth_settings *settings = writing->settings;
    PH_TRY(ph__synth_teacher_init(&writing->teacher, settings));
    PH_TRY(ph__synth_row_init(&writing->row, &writing->teacher));
    PH_TRY(ph__directory_create_empty(writing->folder));
    size_t num_cells = 5 + (size_t)settings->num_dense + writing->teacher.num_ids;
    writing->line = ph__arena_alloc_array(&writing->arena, num_cells, MAX_CELL_BYTES);
    if (writing->line == NULL)
        return PH_ERROR_MEMORY;
    for (size_t file = 0; file < PH_SYNTH_FILE_COUNT; file++)
        PH_TRY(write_file(writing, file));
    PH_TRY(write_truth(writing));
    return write_schema(writing);
}

ph_status ph_synth_write(
    const struct ph_synth_settings *settings, const char *folder, struct ph_synth_truth *truth_out)
{
    struct writing *writing = calloc(1, sizeof *writing);
    if (writing == NULL)
        return ph__out_of_memory("synth");
    writing->settings = settings;
    writing->folder = folder;
    ph_status status = write_all(writing);
    if (status == PH_OK && truth_out != NULL)
        memcpy(truth_out, writing->truth, sizeof writing->truth);
    ph__synth_row_fini(&writing->row);
    ph__synth_teacher_fini(&writing->teacher);
    ph__arena_fini(&writing->arena);
    free(writing->masses);
    free(writing->components);
    free(writing);
    return status;
}
