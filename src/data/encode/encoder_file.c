/* The encoder as a sealed JSON file (base/format/seal.h): saved with a model, loaded by programs that feed
 * the model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/seal.h"
#include "base/memory/memory.h"
#include "data/encode/encoder.h"

#define FILE_FORMAT "phloem-encoder"
#define FILE_VERSION 4    /* version 1 had no seal, buckets, statistics or derived features */
#define SHARING_VERSION 3 /* without classes and splits; still written, so that seals stay */
#define PLAIN_VERSION 2   /* cannot share rows, either */
#define MAX_FILE_BYTES ((uint64_t)1 << 32)
#define MAX_IDS_BYTES (MAX_FILE_BYTES / 2) /* bytes of ids: leaves room for JSON's escapes */

/* ---- saving ---- */

/* Saves the words separated by line feeds, which no id contains (ph__encoder_check_word): one string instead
 * of a million nodes. */
static ph_status set_words(struct ph__json *json, const struct ph__vocabulary *vocabulary)
{
    char *text = malloc(vocabulary->text_size + vocabulary->num_words + 1);
    if (text == NULL)
        return ph__out_of_memory("encoder: cannot save %zu ids", vocabulary->num_words);
    char *end = text;
    for (size_t i = 0; i < vocabulary->num_words; i++) {
        size_t length;
        const char *word = ph__vocabulary_word(vocabulary, i, &length);
        if (i > 0)
            *end++ = '\n';
        memcpy(end, word, length);
        end += length;
    }
    *end = '\0';
    ph__json_set_text(json, "words", text);
    free(text);
    return PH_OK;
}

static void set_boundaries(struct ph__json *json, const struct ph__column *column)
{
    struct ph__json *boundaries = ph__json_array();
    for (size_t i = 0; i < column->num_boundaries; i++)
        ph__json_append_number(boundaries, column->boundaries[i]);
    ph__json_set(json, "boundaries", boundaries);
}

static void set_list(struct ph__json *json, const struct ph__column *column)
{
    char word[PH_DATA_WORD_BYTES];
    ph__json_set_bool(json, "list", column->is_list);
    ph__json_set_bool(json, "weighted", column->is_weighted);
    ph__json_set_integer(
        json, "max_length", column->max_length == SIZE_MAX ? 0 : (int64_t)column->max_length);
    ph__json_set_bool(json, "group", column->is_group);
    ph__json_set_text(json, "part", ph__data_word(PH_TIME_COMPONENT_WORDS, (int)column->component, word));
}

static ph_status set_id(struct ph__json *json, const struct ph__column *column)
{
    char word[PH_DATA_WORD_BYTES];
    if (column->shares != NULL) {
        ph__json_set_text(json, "shares", column->shares);
        set_list(json, column);
        return PH_OK;
    }
    ph__json_set_text(json, "encoding", ph__data_word(PH_ENCODING_WORDS, (int)column->encoding, word));
    set_list(json, column);
    switch (column->encoding) {
    case PH_ENCODING_VOCABULARY:
        ph__json_set_integer(json, "min_count", (int64_t)column->min_count);
        return set_words(json, &column->vocabulary);
    case PH_ENCODING_BUCKET:
        set_boundaries(json, column);
        return PH_OK;
    case PH_ENCODING_HASH:
        ph__json_set_integer(json, "hash_seed", (int64_t)column->hash_seed);
        break;
    case PH_ENCODING_RAW:
    case PH_ENCODING_LOG_BUCKET:
    case PH_ENCODING_INHERIT:
        break;
    }
    ph__json_set_integer(json, "rows", (int64_t)column->num_rows);
    return PH_OK;
}

static void set_dense(struct ph__json *json, const struct ph__column *column)
{
    char word[PH_DATA_WORD_BYTES];
    const struct ph__statistics *statistics = &column->statistics;
    ph__json_set_text(json, "transform", ph__data_word(PH_TRANSFORM_WORDS, (int)column->transform, word));
    ph__json_set_number(json, "missing", (double)column->missing);
    ph__json_set_bool(json, "missing_indicator", column->has_indicator);
    if (statistics->num_values + statistics->num_blanks == 0)
        return;
    struct ph__json *child = ph__json_object();
    ph__json_set_integer(child, "values", (int64_t)statistics->num_values);
    ph__json_set_integer(child, "blanks", (int64_t)statistics->num_blanks);
    ph__json_set_number(child, "min", statistics->min);
    ph__json_set_number(child, "max", statistics->max);
    ph__json_set_number(child, "mean", statistics->mean);
    ph__json_set_number(child, "deviation", statistics->deviation);
    ph__json_set(json, "statistics", child);
}

static ph_status set_column(struct ph__json *json, const struct ph__column *column)
{
    char word[PH_DATA_WORD_BYTES];
    ph__json_set_text(json, "name", column->name);
    if (strcmp(column->from, column->name) != 0)
        ph__json_set_text(json, "from", column->from);
    ph__json_set_text(json, "kind", ph__data_word(PH_FIELD_KIND_WORDS, (int)column->kind, word));
    if (column->class_start > 0)
        ph__json_set_text(json, "class", ph__column_class(column));
    if (column->kind == PH_FIELD_DENSE)
        set_dense(json, column);
    return column->kind == PH_FIELD_ID ? set_id(json, column) : PH_OK;
}

static void set_graph(struct ph__json *json, const struct ph__graph_settings *graph)
{
    struct ph__json *child = ph__json_object();
    ph__json_set_text(child, "edges", graph->edges);
    ph__json_set_text(child, "words", graph->words);
    ph__json_set_bool(child, "self_loops", graph->has_self_loops);
    ph__json_set_bool(child, "shuffled", graph->is_shuffled);
    ph__json_set_number(child, "train_share", graph->train_share);
    ph__json_set_number(child, "valid_share", graph->valid_share);
    ph__json_set_integer(child, "split_seed", graph->split_seed);
    ph__json_set(json, "graph", child);
}

static int version_of(const struct ph_encoder *encoder)
{
    if (encoder->num_classes > 0 || encoder->has_split || encoder->format == PH_DATA_GRAPH)
        return FILE_VERSION;
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (encoder->columns[i].shares != NULL)
            return SHARING_VERSION;
    return PLAIN_VERSION;
}

static ph_status set_encoder(struct ph__json *json, const struct ph_encoder *encoder)
{
    char word[PH_DATA_WORD_BYTES];
    const char separators[][2] = {{encoder->separator, '\0'}, {encoder->list_separator, '\0'}};
    ph__json_set_text(json, "format", FILE_FORMAT);
    ph__json_set_integer(json, "version", version_of(encoder));
    ph__json_set_text(json, "data_format", ph__data_word(PH_DATA_FORMAT_WORDS, (int)encoder->format, word));
    ph__json_set_text(json, "separator", separators[0]);
    ph__json_set_text(json, "list_separator", separators[1]);
    ph__json_set_bool(json, "has_header", encoder->has_header);
    if (encoder->format == PH_DATA_GRAPH)
        set_graph(json, &encoder->graph);
    ph__json_set_integer(json, "training_rows", (int64_t)encoder->num_training_rows);
    struct ph__json *columns = ph__json_array();
    ph_status status = PH_OK;
    for (size_t i = 0; i < encoder->num_columns && status == PH_OK; i++) {
        struct ph__json *column = ph__json_object();
        status = set_column(column, &encoder->columns[i]);
        ph__json_append(columns, column);
    }
    ph__json_set(json, "columns", columns);
    return status;
}

/* Refuses vocabularies that would be saved but could not be loaded. */
static ph_status check_size(const struct ph_encoder *encoder)
{
    uint64_t num_bytes = 0;
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__vocabulary *vocabulary = &encoder->columns[i].vocabulary;
        num_bytes += vocabulary->text_size + vocabulary->num_words;
    }
    if (num_bytes <= MAX_IDS_BYTES)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "data: the vocabularies hold %.1f GiB of ids, more than the %.1f GiB that an encoder file can hold; "
        "raise min_count, or hash the fields with the most ids",
        (double)num_bytes / 1073741824, (double)MAX_IDS_BYTES / 1073741824);
}

ph_status ph_encoder_save(const struct ph_encoder *encoder, const char *path)
{
    PH_TRY(check_size(encoder));
    struct ph__json *json = ph__sealed_json_object();
    ph_status status = set_encoder(json, encoder);
    if (status == PH_OK)
        status = ph__sealed_json_write(json, path);
    ph__json_destroy(json);
    return status;
}

ph_status ph__encoder_digest(const struct ph_encoder *encoder, char hex_out[65])
{
    if (encoder->digest[0] != '\0') {
        memcpy(hex_out, encoder->digest, sizeof encoder->digest);
        return PH_OK;
    }
    struct ph__json *json = ph__sealed_json_object();
    ph_status status = set_encoder(json, encoder);
    if (status == PH_OK)
        status = ph__sealed_json_digest(json, hex_out);
    ph__json_destroy(json);
    return status;
}

/* ---- loading ---- */

static ph_status fail_key(const char *path, const char *key)
{
    return ph_fail(PH_ERROR_CHECKPOINT, "%s: the encoder has no valid '%s'", path, key);
}

static ph_status get_word(
    const struct ph__json *json, const char *path, const char *key, const char *words, int *index_out)
{
    int index = ph__data_word_index(words, ph__json_as_text(ph__json_get(json, key), ""));
    if (index < 0)
        return fail_key(path, key);
    *index_out = index;
    return PH_OK;
}

static ph_status get_integer(const struct ph__json *json, const char *path, const char *key, int64_t min,
    int64_t max, uint64_t *number_out)
{
    const struct ph__json *node = ph__json_get(json, key);
    int64_t number = ph__json_as_integer(node, 0);
    if (!ph__json_is_integer(node) || number < min || number > max)
        return fail_key(path, key);
    *number_out = (uint64_t)number;
    return PH_OK;
}

static ph_status get_separator(
    const struct ph__json *json, const char *path, const char *key, char *separator_out)
{
    const char *text = ph__json_as_text(ph__json_get(json, key), "");
    if (strlen(text) != 1 || strchr("\r\n\"", text[0]) != NULL)
        return fail_key(path, key);
    *separator_out = text[0];
    return PH_OK;
}

static ph_status get_words(const struct ph__json *json, const char *path, struct ph__vocabulary *vocabulary)
{
    const char *at = ph__json_as_text(ph__json_get(json, "words"), NULL);
    if (at == NULL)
        return fail_key(path, "words");
    while (*at != '\0') {
        size_t length = strcspn(at, "\n");
        bool is_new = false;
        if (length > 0)
            PH_TRY(ph__vocabulary_count(vocabulary, at, length, 1, ph__vocabulary_hash(at, length), &is_new));
        if (!is_new)
            return fail_key(path, "words");
        at += length + (at[length] == '\n');
    }
    return ph__vocabulary_finish(vocabulary, 1);
}

static ph_status get_boundaries(const struct ph__json *json, const char *path, struct ph__column *column)
{
    const struct ph__json *boundaries = ph__json_get(json, "boundaries");
    size_t count = ph__json_size(boundaries);
    if (!ph__json_is_array(boundaries))
        return fail_key(path, "boundaries");
    column->boundaries = calloc(count + 1, sizeof *column->boundaries);
    if (column->boundaries == NULL)
        return ph__out_of_memory("%s: %zu boundaries", path, count);
    column->num_boundaries = count;
    for (size_t i = 0; i < count; i++) {
        column->boundaries[i] = ph__json_as_number(ph__json_at(boundaries, i), (double)NAN);
        if (!isfinite(column->boundaries[i]) || (i > 0 && column->boundaries[i] <= column->boundaries[i - 1]))
            return fail_key(path, "boundaries");
    }
    return PH_OK;
}

static ph_status get_list(const struct ph__json *json, const char *path, struct ph__column *column)
{
    uint64_t max_length = 0;
    int component = 0;
    PH_TRY(get_integer(json, path, "max_length", 0, INT32_MAX, &max_length));
    PH_TRY(get_word(json, path, "part", PH_TIME_COMPONENT_WORDS, &component));
    column->max_length = max_length == 0 ? SIZE_MAX : (size_t)max_length;
    column->is_list = ph__json_as_bool(ph__json_get(json, "list"), false);
    column->is_weighted = ph__json_as_bool(ph__json_get(json, "weighted"), false);
    column->is_group = ph__json_as_bool(ph__json_get(json, "group"), false);
    column->component = (enum ph__time_component)component;
    bool is_single_only = column->component != PH_TIME_WHOLE || ph__column_is_bucket(column);
    if ((column->is_weighted && !column->is_list) || (column->is_list && is_single_only))
        return fail_key(path, "list");
    return PH_OK;
}

static ph_status get_id(const struct ph__json *json, const char *path, struct ph__column *column)
{
    const char *shares = ph__json_as_text(ph__json_get(json, "shares"), NULL);
    int encoding = 0;
    if (shares != NULL) {
        PH_TRY(ph__column_share(column, shares));
        return get_list(json, path, column);
    }
    PH_TRY(get_word(json, path, "encoding", PH_ENCODING_WORDS, &encoding));
    column->encoding = (enum ph__field_encoding)encoding;
    PH_TRY(get_list(json, path, column));
    switch (column->encoding) {
    case PH_ENCODING_VOCABULARY:
        PH_TRY(get_integer(json, path, "min_count", 1, INT64_MAX, &column->min_count));
        return get_words(json, path, &column->vocabulary);
    case PH_ENCODING_BUCKET:
        return get_boundaries(json, path, column);
    case PH_ENCODING_HASH:
        PH_TRY(get_integer(json, path, "hash_seed", 0, INT64_MAX, &column->hash_seed));
        return get_integer(json, path, "rows", 2, UINT32_MAX, &column->num_rows);
    case PH_ENCODING_RAW:
        return get_integer(json, path, "rows", 1, UINT32_MAX, &column->num_rows);
    case PH_ENCODING_LOG_BUCKET:
    case PH_ENCODING_INHERIT:
        break;
    }
    return PH_OK;
}

static ph_status get_statistics(const struct ph__json *json, const char *path, struct ph__column *column)
{
    struct ph__statistics *statistics = &column->statistics;
    const struct ph__json *child = ph__json_get(json, "statistics");
    bool is_needed = ph__column_is_standardised(column);
    if (child == NULL)
        return is_needed ? fail_key(path, "statistics") : PH_OK;
    PH_TRY(get_integer(child, path, "values", 0, INT64_MAX, &statistics->num_values));
    PH_TRY(get_integer(child, path, "blanks", 0, INT64_MAX, &statistics->num_blanks));
    statistics->min = ph__json_as_number(ph__json_get(child, "min"), 0);
    statistics->max = ph__json_as_number(ph__json_get(child, "max"), 0);
    statistics->mean = ph__json_as_number(ph__json_get(child, "mean"), (double)NAN);
    statistics->deviation = ph__json_as_number(ph__json_get(child, "deviation"), 0);
    if (!isfinite(statistics->mean) || !(statistics->deviation > 0) || !isfinite(statistics->deviation))
        return fail_key(path, "statistics");
    return PH_OK;
}

static ph_status get_dense(const struct ph__json *json, const char *path, struct ph__column *column)
{
    int transform = 0;
    PH_TRY(get_word(json, path, "transform", PH_TRANSFORM_WORDS, &transform));
    column->transform = (enum ph__dense_transform)transform;
    column->missing = (float)ph__json_as_number(ph__json_get(json, "missing"), 0);
    if (!isfinite(column->missing))
        return fail_key(path, "missing");
    column->has_indicator = ph__json_as_bool(ph__json_get(json, "missing_indicator"), false);
    return get_statistics(json, path, column);
}

static ph_status get_class(const struct ph__json *json, const char *path, struct ph__column *column)
{
    const char *word = ph__json_as_text(ph__json_get(json, "class"), NULL);
    if (word == NULL)
        return PH_OK;
    const size_t name_length = strlen(column->name), length = strlen(word);
    if (column->kind != PH_FIELD_LABEL || name_length <= length ||
        strcmp(column->name + name_length - length, word) != 0)
        return fail_key(path, "class");
    column->class_start = name_length - length;
    return PH_OK;
}

static ph_status get_column(const struct ph__json *json, const char *path, struct ph_encoder *encoder)
{
    const char *name = ph__json_as_text(ph__json_get(json, "name"), "");
    if (name[0] == '\0')
        return fail_key(path, "name");
    struct ph__column *column;
    int kind = 0;
    PH_TRY(get_word(json, path, "kind", PH_FIELD_KIND_WORDS, &kind));
    PH_TRY(
        ph__encoder_add_column(encoder, name, ph__json_as_text(ph__json_get(json, "from"), name), &column));
    column->kind = (enum ph__field_kind)kind;
    PH_TRY(get_class(json, path, column));
    if (column->kind == PH_FIELD_DENSE)
        return get_dense(json, path, column);
    return column->kind == PH_FIELD_ID ? get_id(json, path, column) : PH_OK;
}

static ph_status get_graph(const struct ph__json *json, const char *path, struct ph_encoder *encoder)
{
    const struct ph__graph_settings graph = {
        .edges = ph__json_as_text(ph__json_get(json, "edges"), ""),
        .words = ph__json_as_text(ph__json_get(json, "words"), ""),
        .has_self_loops = ph__json_as_bool(ph__json_get(json, "self_loops"), false),
        .is_shuffled = ph__json_as_bool(ph__json_get(json, "shuffled"), false),
        .train_share = ph__json_as_number(ph__json_get(json, "train_share"), 0),
        .valid_share = ph__json_as_number(ph__json_get(json, "valid_share"), 0),
        .split_seed = ph__json_as_integer(ph__json_get(json, "split_seed"), 0),
    };
    return graph.edges[0] != '\0' ? ph__encoder_set_graph(encoder, &graph) : fail_key(path, "graph");
}

static ph_status get_encoder(const struct ph__json *json, const char *path, struct ph_encoder *encoder)
{
    const char *format = ph__json_as_text(ph__json_get(json, "format"), "");
    if (strcmp(format, FILE_FORMAT) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: not an encoder of Phloem", path);
    int64_t version = ph__json_as_integer(ph__json_get(json, "version"), 0);
    if (version < PLAIN_VERSION || version > FILE_VERSION)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: version %lld of the encoder's file is not supported, only versions %d to %d", path,
            (long long)version, PLAIN_VERSION, FILE_VERSION);
    int data_format = 0;
    PH_TRY(get_word(json, path, "data_format", PH_DATA_FORMAT_WORDS, &data_format));
    encoder->format = (enum ph__data_format)data_format;
    PH_TRY(get_separator(json, path, "separator", &encoder->separator));
    PH_TRY(get_separator(json, path, "list_separator", &encoder->list_separator));
    if (encoder->separator == encoder->list_separator)
        return fail_key(path, "list_separator");
    encoder->has_header = ph__json_as_bool(ph__json_get(json, "has_header"), true);
    if (encoder->format == PH_DATA_GRAPH)
        PH_TRY(get_graph(ph__json_get(json, "graph"), path, encoder));
    PH_TRY(get_integer(json, path, "training_rows", 0, INT64_MAX, &encoder->num_training_rows));
    const struct ph__json *columns = ph__json_get(json, "columns");
    for (size_t i = 0; ph__json_is_array(columns) && i < ph__json_size(columns); i++)
        PH_TRY(get_column(ph__json_at(columns, i), path, encoder));
    return ph__encoder_seal(encoder, path, PH_ERROR_CHECKPOINT);
}

ph_status ph_encoder_load(const char *path, struct ph_encoder **encoder_out)
{
    struct ph__json *json = NULL;
    struct ph_encoder *encoder = NULL;
    ph_status status = ph__encoder_new(&encoder);
    if (status == PH_OK)
        status = ph__sealed_json_read(path, PH_ERROR_CHECKPOINT, MAX_FILE_BYTES, &json);
    if (status == PH_OK) {
        snprintf(encoder->digest, sizeof encoder->digest, "%s",
            ph__json_as_text(ph__json_get(json, PH_SEAL_KEY), ""));
        status = get_encoder(json, path, encoder);
    }
    ph__json_destroy(json);
    if (status != PH_OK) {
        ph_encoder_destroy(encoder);
        return status;
    }
    *encoder_out = encoder;
    return PH_OK;
}
