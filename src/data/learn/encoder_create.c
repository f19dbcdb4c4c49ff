/* Makes encoders: columns from the settings and the training file's first line, vocabularies and statistics
 * from one pass over the training data. */
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "data/encode/cell_text.h"
#include "data/encode/schema.h"
#include "data/learn/learn.h"
#include "data/source/array_set.h"
#include "data/source/dataset.h"
#include "data/source/input_file.h"
#include "data/source/source_delimited.h"

#define MAX_FIELDS 4096 /* larger numbers are not fields of libffm */

/* Reads the column names in the training file's header. */
static ph_status read_header(
    const struct ph_data_settings *settings, const char *path, struct ph__header *header)
{
    struct ph__reader *reader;
    char separator = ph__default_separator(settings->format);
    if (settings->separator != NULL && settings->separator[0] != '\0')
        separator = settings->separator[0];
    PH_TRY(ph__reader_open(path, &reader));
    ph_status status = ph__header_read(reader, separator, ph__has_quotes(settings->format), header);
    ph__reader_close(reader);
    if (settings->format == PH_DATA_AVAZU && (status == PH_ERROR_DATA || settings->fields.count == 0))
        status = ph__header_blame_avazu(header, path, status);
    return status;
}

/* Columns whose names do not come from a header. */
struct named_columns {
    char **names;
    bool *is_list;
    size_t count;
};

static ph_status named_columns_init(struct named_columns *columns, size_t capacity)
{
    columns->names = calloc(capacity + 1, sizeof *columns->names);
    columns->is_list = calloc(capacity + 1, sizeof *columns->is_list);
    if (columns->names != NULL && columns->is_list != NULL)
        return PH_OK;
    free(columns->names);
    free(columns->is_list);
    return ph__out_of_memory("encoder: %zu columns", capacity);
}

static void named_columns_add(struct named_columns *columns, char *name, bool is_list)
{
    columns->names[columns->count] = name;
    columns->is_list[columns->count++] = is_list;
}

/* Builds the schema and frees the columns. */
static ph_status build_named_columns(
    const struct ph_data_settings *settings, struct named_columns *columns, struct ph_encoder *encoder)
{
    const struct ph__file_shape shape = {
        .names = columns->names, .is_list = columns->is_list, .num_names = columns->count};
    ph_status status = ph__schema_build(settings, &shape, encoder);
    free(columns->names);
    free(columns->is_list);
    return status;
}

/* Builds the columns of the arrays at `path`. */
static ph_status build_array_columns(
    const struct ph_data_settings *settings, const char *path, struct ph_encoder *encoder)
{
    struct ph__array_set set;
    struct named_columns columns = {0};
    ph_status status = ph__array_set_open(&set, path, false);
    if (status == PH_OK)
        status = named_columns_init(&columns, set.num_columns);
    for (size_t i = 0; status == PH_OK && i < set.num_columns; i++)
        named_columns_add(&columns, set.columns[i].name, set.columns[i].is_list);
    if (status == PH_OK)
        status = build_named_columns(settings, &columns, encoder);
    ph__array_set_close(&set);
    return status;
}

/* Builds the columns of the nodes' file, and those that are made beside it. */
static ph_status build_graph_columns(
    const struct ph_data_settings *settings, const struct ph__header *header, struct ph_encoder *encoder)
{
    char *const made[] = {PH_GRAPH_NEIGHBOURS, PH_GRAPH_WORDS, PH_GRAPH_SPLIT};
    struct named_columns columns = {0};
    PH_TRY(named_columns_init(&columns, header->num_names + 3));
    for (size_t i = 0; i < header->num_names; i++)
        if (!ph__column_is_made(&settings->graph, header->names[i]))
            named_columns_add(&columns, header->names[i], false);
    for (size_t i = 0; i < 3; i++)
        if (ph__column_is_made(&settings->graph, made[i]))
            named_columns_add(&columns, made[i], i < 2);
    return build_named_columns(settings, &columns, encoder);
}

/* Builds the columns of the dataset's first batch. */
static ph_status build_dataset_columns(
    const struct ph_data_settings *settings, const struct ph_dataset *dataset, struct ph_encoder *encoder)
{
    const struct ph__dataset_batch *batch;
    struct ph__dataset_reader reader;
    struct named_columns columns = {0};
    ph_status status = ph__dataset_reader_first(&reader, dataset, &batch);
    if (status == PH_OK)
        status = named_columns_init(&columns, batch->num_columns);
    for (size_t i = 0; status == PH_OK && i < batch->num_columns; i++)
        named_columns_add(&columns, batch->columns[i].name, batch->columns[i].kind == PH_ARROW_LIST);
    if (status == PH_OK)
        status = build_named_columns(settings, &columns, encoder);
    ph__dataset_reader_close(&reader);
    return status;
}

static bool is_read_once(const char *path)
{
    return path != NULL && ph__file_is_pipe(path);
}

/* Refuses data.has_header: false for format avazu. */
static ph_status check_header(const struct ph_data_settings *settings)
{
    if (settings->format != PH_DATA_AVAZU || settings->has_header)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG, "data.has_header: must be true for format avazu, which finds its columns "
                                    "by name: put the line 'id,click,hour,C1,...' in front of a file that "
                                    "lacks it, or read it as format csv with all columns in data.fields");
}

/* Checks paths that can be read only once: the training data may, but cannot be looked at beforehand. */
static ph_status check_pipes(const struct ph_data_settings *settings)
{
    PH_TRY(ph__data_settings_check_measured(settings));
    if (!is_read_once(settings->paths.train))
        return PH_OK;
    const char *pipe = ph__pipe_name(settings->paths.train);
    if (settings->format == PH_DATA_LIBFFM && settings->num_fields == 0)
        return ph_fail(PH_ERROR_CONFIG,
            "data.num_fields is missing: set it, since %s is read only once and its fields are not counted",
            pipe);
    if (settings->format == PH_DATA_AVAZU && settings->fields.count == 0)
        return ph_fail(PH_ERROR_CONFIG,
            "data.fields is missing: set it, since %s is read only once and its header is not read "
            "beforehand",
            pipe);
    return PH_OK;
}

static void count_line(const char *line, size_t *num_fields)
{
    for (const char *word = line + strspn(line, " \t"); *word != '\0' && *word != '#';) {
        size_t length = strcspn(word, " \t#");
        const char *colon = memchr(word, ':', length);
        uint64_t field;
        if (colon != NULL && ph__decimal_parse_id(word, (size_t)(colon - word), &field) &&
            field < MAX_FIELDS && field >= *num_fields)
            *num_fields = (size_t)field + 1;
        word += length;
        word += strspn(word, " \t");
    }
}

static ph_status count_file(struct ph__reader *reader, size_t *num_fields)
{
    for (;;) {
        char *line;
        size_t length;
        PH_TRY(ph__reader_line(reader, &line, &length));
        if (line == NULL)
            return PH_OK;
        count_line(line, num_fields);
    }
}

/* Counts the fields of libffm files, one more than the largest field number, in one pass over the files.
 * Skips words that are no triples: encoding the rows will report them. PH_ERROR_DATA: no row has a field. */
static ph_status count_fields(const char *const *paths, size_t num_paths, size_t *num_fields_out)
{
    size_t num_fields = 0;
    for (size_t i = 0; i < num_paths; i++) {
        struct ph__reader *reader;
        PH_TRY(ph__reader_open(paths[i], &reader));
        ph_status status = count_file(reader, &num_fields);
        ph__reader_close(reader);
        PH_TRY(status);
    }
    if (num_fields == 0)
        return ph_fail(PH_ERROR_DATA, "%s: no row has a field, written field:id:value",
            num_paths > 0 ? paths[0] : "data.train");
    *num_fields_out = num_fields;
    return PH_OK;
}

static ph_status build_columns(const struct ph_data_settings *settings, struct ph_encoder *encoder)
{
    struct ph__header header = {0};
    struct ph__file_shape shape = {.num_fields = (size_t)settings->num_fields};
    struct ph__arena arena = {0};
    const char **paths = NULL;
    size_t num_paths = 0;
    ph_status status = PH_OK;
    if (settings->paths.train != NULL)
        status = ph__input_list(&arena, settings->paths.train, &paths, &num_paths);
    if (status == PH_OK && num_paths > 0 && ph__has_header(settings) && !is_read_once(paths[0]))
        status = read_header(settings, paths[0], &header);
    if (status == PH_OK && settings->format == PH_DATA_LIBFFM && shape.num_fields == 0)
        status = count_fields(paths, num_paths, &shape.num_fields);
    shape.names = header.names;
    shape.num_names = header.num_names;
    shape.header_line = header.line_number;
    if (status == PH_OK && settings->format == PH_DATA_NPY && num_paths > 0)
        status = build_array_columns(settings, paths[0], encoder);
    else if (status == PH_OK && settings->format == PH_DATA_GRAPH)
        status = build_graph_columns(settings, &header, encoder);
    else if (status == PH_OK)
        status = ph__schema_build(settings, &shape, encoder);
    ph__header_fini(&header);
    ph__arena_fini(&arena);
    return status;
}

static ph_status read_all(struct ph__source *source, struct ph__rows *rows)
{
    bool is_end = false;
    while (!is_end)
        PH_TRY(ph__source_next_run(source, rows, SIZE_MAX, &is_end));
    return PH_OK;
}

/* Learns vocabularies, statistics and quantiles in a pass over the training file or the dataset. */
static ph_status learn(
    const struct ph_data_settings *settings, const struct ph_dataset *dataset, struct ph_encoder *encoder)
{
    const char *path = dataset != NULL ? dataset->name : settings->paths.train;
    struct ph__fit fit;
    struct ph__source source = {0};
    struct ph__rows rows = {0};
    struct ph__source_options options = {
        .dataset = dataset, .max_bad_rows = settings->reading.max_bad_rows, .fit = &fit};
    PH_TRY(ph__fit_init(&fit, encoder));
    ph_status status = ph__source_open(&source, encoder, path, &options);
    if (status == PH_OK)
        status = read_all(&source, &rows);
    if (status == PH_OK && fit.num_rows == 0)
        status = ph_fail(PH_ERROR_DATA, "%s: has no rows", path);
    ph__source_close(&source);
    ph__rows_fini(&rows);
    if (status == PH_OK)
        status = ph__fit_finish(&fit, encoder);
    else
        ph__fit_fini(&fit);
    return status;
}

/* Refuses training data that is missing, or cannot be read once before the batches read it. */
static ph_status check_can_learn(const struct ph_data_settings *settings, const struct ph__column *wanted)
{
    if (settings->paths.train == NULL)
        return ph_fail(
            PH_ERROR_CONFIG, "data.train is missing, but '%s' learns its encoding from it", wanted->name);
    if (is_read_once(settings->paths.train))
        return ph_fail(PH_ERROR_CONFIG,
            "data.train: %s is read only once, but '%s' learns its encoding from a first pass: give a file",
            ph__pipe_name(settings->paths.train), wanted->name);
    return PH_OK;
}

static ph_status outline(const struct ph_data_settings *settings, struct ph_encoder *encoder)
{
    PH_TRY(check_header(settings));
    PH_TRY(check_pipes(settings));
    PH_TRY(build_columns(settings, encoder));
    PH_TRY(ph__encoder_seal(encoder, "data.fields", PH_ERROR_CONFIG));
    const struct ph__column *wanted = ph__fit_first_wanted(encoder);
    return wanted != NULL ? check_can_learn(settings, wanted) : PH_OK;
}

ph_status ph__encoder_outline(const struct ph_data_settings *settings, struct ph_encoder **encoder_out)
{
    struct ph_encoder *encoder;
    PH_TRY(ph__encoder_new(&encoder));
    ph_status status = outline(settings, encoder);
    if (status != PH_OK) {
        ph_encoder_destroy(encoder);
        return status;
    }
    *encoder_out = encoder;
    return PH_OK;
}

/* Loads the encoder of a prepared data set. */
static ph_status load_prepared(const char *folder, struct ph_encoder **encoder_out)
{
    struct ph__arena arena = {0};
    const char *path = ph__path_join(&arena, folder, "encoder.json");
    ph_status status = path != NULL ? ph_encoder_load(path, encoder_out) : PH_ERROR_MEMORY;
    ph__arena_fini(&arena);
    return status == PH_ERROR_CHECKPOINT ? ph_fail(PH_ERROR_DATA, "%s", ph_error_text()) : status;
}

/* Learns what the outlined encoder needs and gives the encoder out; destroys it on failure. */
static ph_status finish(const struct ph_data_settings *settings, const struct ph_dataset *dataset,
    struct ph_encoder *encoder, struct ph_encoder **encoder_out)
{
    ph_status status = PH_OK;
    if (ph__fit_first_wanted(encoder) != NULL)
        status = learn(settings, dataset, encoder);
    if (status == PH_OK)
        status = ph__encoder_seal(encoder, "data.fields", PH_ERROR_CONFIG);
    if (status != PH_OK) {
        ph_encoder_destroy(encoder);
        return status;
    }
    *encoder_out = encoder;
    return PH_OK;
}

ph_status ph_encoder_create(const struct ph_data_settings *settings, struct ph_encoder **encoder_out)
{
    if (settings->prepared != NULL)
        return load_prepared(settings->prepared, encoder_out);
    struct ph_encoder *encoder;
    PH_TRY(ph__encoder_outline(settings, &encoder));
    return finish(settings, NULL, encoder, encoder_out);
}

ph_status ph_encoder_create_from_dataset(const struct ph_data_settings *settings,
    const struct ph_dataset *dataset, struct ph_encoder **encoder_out)
{
    struct ph_encoder *encoder;
    PH_TRY(ph__encoder_new(&encoder));
    ph_status status = build_dataset_columns(settings, dataset, encoder);
    if (status == PH_OK)
        status = ph__encoder_seal(encoder, "data.fields", PH_ERROR_CONFIG);
    if (status == PH_OK)
        return finish(settings, dataset, encoder, encoder_out);
    ph_encoder_destroy(encoder);
    return status;
}
