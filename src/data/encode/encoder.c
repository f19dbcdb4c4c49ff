#include "data/encode/encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/name_index.h"
#include "base/text/utf8.h"

/* ---- columns ---- */

ph_status ph__encoder_new(struct ph_encoder **encoder_out)
{
    struct ph_encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder == NULL)
        return ph__out_of_memory("encoder");
    for (size_t i = 0; i < PH_LOG1P_TABLE_SIZE; i++)
        encoder->log1p[i] = (float)log1p((double)i);
    *encoder_out = encoder;
    return PH_OK;
}

ph_status ph__encoder_add_column(
    struct ph_encoder *encoder, const char *name, const char *from, struct ph__column **column_out)
{
    PH_TRY(ph__array_reserve((void **)&encoder->columns, &encoder->columns_capacity, encoder->num_columns + 1,
        sizeof *encoder->columns));
    struct ph__column *column = &encoder->columns[encoder->num_columns];
    memset(column, 0, sizeof *column);
    encoder->num_columns++;
    column->name = strdup(name);
    column->from = strdup(from);
    if (column->name == NULL || column->from == NULL)
        return ph__out_of_memory("encoder: column '%s'", name);
    *column_out = column;
    return PH_OK;
}

ph_status ph__column_share(struct ph__column *column, const char *shares)
{
    column->shares = strdup(shares);
    return column->shares != NULL ? PH_OK : ph__out_of_memory("encoder: '%s'", column->name);
}

ph_status ph__encoder_set_graph(struct ph_encoder *encoder, const struct ph__graph_settings *graph)
{
    encoder->graph = *graph;
    encoder->graph.edges = ph__arena_strdup(&encoder->arena, graph->edges);
    encoder->graph.words = ph__arena_strdup(&encoder->arena, graph->words);
    return encoder->graph.edges != NULL && encoder->graph.words != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* ---- sealing ---- */

/* Returns the rows of an id column's table: row 0, and the rows of its encoding. */
static uint64_t count_rows(const struct ph__column *column)
{
    switch (column->encoding) {
    case PH_ENCODING_VOCABULARY:
        return column->vocabulary.num_words + 1;
    case PH_ENCODING_BUCKET:
        return column->num_boundaries + 2;
    case PH_ENCODING_LOG_BUCKET:
        return 1 + PH_LOG_BUCKET_NEGATIVES + 3 + PH_LOG_BUCKET_MAX + 1;
    case PH_ENCODING_RAW:
    case PH_ENCODING_HASH:
    case PH_ENCODING_INHERIT:
        break;
    }
    return column->num_rows;
}

static ph_status seal_column(
    struct ph_encoder *encoder, struct ph__column *column, const char *where, ph_status status)
{
    bool is_group = column->is_group || column->kind == PH_FIELD_GROUP;
    if (column->kind == PH_FIELD_SPLIT && encoder->has_split)
        return ph_fail(status, "%s: '%s': another field is the split already", where, column->name);
    encoder->has_split |= column->kind == PH_FIELD_SPLIT;
    encoder->num_classes += column->class_start > 0;
    if ((column->kind == PH_FIELD_WEIGHT && encoder->has_weight) || (is_group && encoder->has_group))
        return ph_fail(status, "%s: '%s': another field is the %s already", where, column->name,
            is_group ? "group" : "weight");
    encoder->has_weight |= column->kind == PH_FIELD_WEIGHT;
    encoder->has_group |= is_group;
    if (column->kind == PH_FIELD_LABEL)
        column->slot = encoder->num_tasks++;
    if (column->kind == PH_FIELD_TEACHER)
        column->slot = encoder->num_teachers++;
    if (column->kind == PH_FIELD_DENSE) {
        column->slot = encoder->num_dense;
        encoder->num_dense += column->has_indicator ? 2 : 1;
    }
    if (column->kind == PH_FIELD_ID) {
        column->slot = encoder->num_sparse++;
        column->owner = (size_t)(column - encoder->columns);
        if (column->shares == NULL)
            column->num_rows = count_rows(column);
        column->hash_start = ph__text_hash_start(column->hash_seed);
        encoder->num_lists += column->is_list;
        encoder->has_id_weights |= column->is_weighted;
    }
    return PH_OK;
}

/* Copies the settings of the column whose rows this one shares; `names` indexes the columns. */
static ph_status share_rows(struct ph_encoder *encoder, const struct ph__name_index *names,
    struct ph__column *column, const char *where, ph_status status)
{
    if (column->kind != PH_FIELD_ID || column->shares == NULL)
        return PH_OK;
    const size_t found = ph__name_index_find(names, column->shares);
    const struct ph__column *owner = found != PH_NO_NAME ? &encoder->columns[found] : NULL;
    if (owner == NULL || owner->kind != PH_FIELD_ID)
        return ph_fail(status, "%s: '%s' shares the rows of '%s', which is not an id field", where,
            column->name, column->shares);
    if (owner->shares != NULL)
        return ph_fail(status, "%s: '%s' shares the rows of '%s', which shares those of another field", where,
            column->name, column->shares);
    if (ph__column_is_bucket(owner))
        return ph_fail(status, "%s: '%s' shares the rows of '%s', whose encoding puts numbers in buckets",
            where, column->name, column->shares);
    column->owner = owner->owner;
    column->encoding = owner->encoding;
    column->num_rows = owner->num_rows;
    column->min_count = owner->min_count;
    column->hash_seed = owner->hash_seed;
    column->hash_start = owner->hash_start;
    return PH_OK;
}

static void list_sparse(struct ph_encoder *encoder, const struct ph__column *column)
{
    encoder->sparse_columns[column->slot] = column;
    encoder->sparse[column->slot] = (struct ph_sparse_feature){.name = column->name,
        .num_rows = (size_t)column->num_rows,
        .owner = encoder->columns[column->owner].slot};
    if (column->is_list)
        encoder->lists[encoder->num_lists++] = column->slot;
}

static ph_status list_dense(struct ph_encoder *encoder, const struct ph__column *column)
{
    encoder->dense_names[column->slot] = column->name;
    if (!column->has_indicator)
        return PH_OK;
    const char *name = ph__arena_printf(&encoder->arena, "%s.missing", column->name);
    encoder->dense_names[column->slot + 1] = name;
    return name != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static int compare_sources(const void *a, const void *b)
{
    const struct ph__column *left = *(const struct ph__column *const *)a;
    const struct ph__column *right = *(const struct ph__column *const *)b;
    const int order = strcmp(left->from, right->from);
    return order != 0 ? order : (left > right) - (left < right);
}

static ph_status list_features(struct ph_encoder *encoder)
{
    encoder->sparse = calloc(encoder->num_sparse + 1, sizeof *encoder->sparse);
    encoder->dense_names = calloc(encoder->num_dense + 1, sizeof *encoder->dense_names);
    encoder->lists = calloc(encoder->num_lists + 1, sizeof *encoder->lists);
    encoder->sparse_columns = calloc(encoder->num_sparse + 1, sizeof(const struct ph__column *));
    encoder->by_source = calloc(encoder->num_columns + 1, sizeof(const struct ph__column *));
    if (encoder->sparse == NULL || encoder->dense_names == NULL || encoder->lists == NULL ||
        encoder->sparse_columns == NULL || encoder->by_source == NULL)
        return ph__out_of_memory("encoder: %zu features", encoder->num_columns);
    encoder->num_lists = 0;
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (column->kind == PH_FIELD_DENSE)
            PH_TRY(list_dense(encoder, column));
        if (column->kind == PH_FIELD_ID)
            list_sparse(encoder, column);
        encoder->by_source[i] = column;
    }
    qsort(encoder->by_source, encoder->num_columns, sizeof(const struct ph__column *), compare_sources);
    return PH_OK;
}

/* Indexes the columns' names; fails when two columns have the same name. */
static ph_status index_names(
    const struct ph_encoder *encoder, const char *where, ph_status status, struct ph__name_index *names)
{
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const char *name = encoder->columns[i].name;
        if (ph__name_index_find(names, name) != PH_NO_NAME)
            return ph_fail(status, "%s: two columns are called '%s'", where, name);
        PH_TRY(ph__name_index_add(names, name));
    }
    return PH_OK;
}

static ph_status seal_columns(struct ph_encoder *encoder, const char *where, ph_status status)
{
    struct ph__name_index names = {0};
    ph_status sealed = index_names(encoder, where, status, &names);
    for (size_t i = 0; i < encoder->num_columns && sealed == PH_OK; i++)
        sealed = seal_column(encoder, &encoder->columns[i], where, status);
    for (size_t i = 0; i < encoder->num_columns && sealed == PH_OK; i++)
        sealed = share_rows(encoder, &names, &encoder->columns[i], where, status);
    ph__name_index_fini(&names);
    return sealed;
}

static void free_lists(struct ph_encoder *encoder)
{
    free(encoder->sparse);
    free(encoder->dense_names);
    free(encoder->lists);
    free(encoder->sparse_columns);
    free(encoder->by_source);
}

/* Drops the results of an earlier seal. */
static void unseal(struct ph_encoder *encoder)
{
    free_lists(encoder);
    encoder->sparse = NULL;
    encoder->dense_names = NULL;
    encoder->lists = NULL;
    encoder->sparse_columns = NULL;
    encoder->by_source = NULL;
    encoder->num_tasks = encoder->num_teachers = encoder->num_classes = 0;
    encoder->num_dense = encoder->num_sparse = encoder->num_lists = 0;
    encoder->has_weight = encoder->has_group = encoder->has_split = encoder->has_id_weights = false;
}

/* Refuses labels beside one that has classes, and a single class. */
static ph_status check_classes(const struct ph_encoder *encoder, const char *where, ph_status status)
{
    const struct ph__column *first = NULL;
    for (size_t i = 0; encoder->num_classes > 0 && i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (column->kind != PH_FIELD_LABEL)
            continue;
        first = first == NULL ? column : first;
        if (encoder->num_classes != encoder->num_tasks || strcmp(column->from, first->from) != 0)
            return ph_fail(
                status, "%s: '%s': a label with classes must be the only label", where, column->from);
    }
    return encoder->num_classes != 1
               ? PH_OK
               : ph_fail(status, "%s: '%s': a label needs two classes or more", where, first->from);
}

ph_status ph__encoder_seal(struct ph_encoder *encoder, const char *where, ph_status status)
{
    unseal(encoder);
    PH_TRY(seal_columns(encoder, where, status));
    if (encoder->num_tasks == 0)
        return ph_fail(status, "%s: no column is a label", where);
    PH_TRY(check_classes(encoder, where, status));
    if (encoder->num_teachers != 0 && encoder->num_teachers != encoder->num_tasks)
        return ph_fail(status, "%s: %zu columns are teachers, but %zu are labels; give each label one", where,
            encoder->num_teachers, encoder->num_tasks);
    if (encoder->num_dense + encoder->num_sparse == 0)
        return ph_fail(status, "%s: no column is an id or dense; a model needs at least one", where);
    encoder->dense_word = encoder->num_tasks + encoder->num_teachers;
    encoder->weight_word = encoder->dense_word + encoder->num_dense;
    encoder->group_word = encoder->weight_word + (encoder->has_weight ? 1 : 0);
    encoder->sparse_word = encoder->group_word + (encoder->has_group ? 2 : 0);
    encoder->num_fixed_words = encoder->sparse_word + encoder->num_sparse;
    return list_features(encoder);
}

void ph_encoder_destroy(struct ph_encoder *encoder)
{
    if (encoder == NULL)
        return;
    for (size_t i = 0; i < encoder->num_columns; i++) {
        free(encoder->columns[i].name);
        free(encoder->columns[i].from);
        free(encoder->columns[i].shares);
        free(encoder->columns[i].boundaries);
        ph__vocabulary_fini(&encoder->columns[i].vocabulary);
    }
    free(encoder->columns);
    free_lists(encoder);
    ph__arena_fini(&encoder->arena);
    free(encoder);
}

/* ---- queries ---- */

/* Returns the first index into by_source whose column's source is not before `name`. */
static size_t first_made_from(const struct ph_encoder *encoder, const char *name)
{
    size_t begin = 0, end = encoder->num_columns;
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if (strcmp(encoder->by_source[middle]->from, name) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

const struct ph__column *const *ph__encoder_made_from(
    const struct ph_encoder *encoder, const char *name, size_t *count_out)
{
    const size_t first = first_made_from(encoder, name);
    size_t count = 0;
    while (first + count < encoder->num_columns && strcmp(encoder->by_source[first + count]->from, name) == 0)
        count++;
    *count_out = count;
    return encoder->by_source + first;
}

ph_status ph__encoder_check_word(const struct ph__column *column, const char *word, size_t length)
{
    const char *problem = NULL;
    if (memchr(word, '\n', length) != NULL || memchr(word, '\0', length) != NULL)
        problem = "holds a line feed or a NUL";
    else if (!ph__utf8_is_valid(word, length))
        problem = "is not UTF-8";
    if (problem == NULL)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA, "field '%s': the id %s, which a vocabulary cannot hold; use encoding hash",
        column->name, problem);
}

size_t ph_encoder_num_dense(const struct ph_encoder *encoder)
{
    return encoder->num_dense;
}

size_t ph_encoder_num_tasks(const struct ph_encoder *encoder)
{
    return encoder->num_tasks;
}

size_t ph_encoder_num_classes(const struct ph_encoder *encoder)
{
    return encoder->num_classes;
}

size_t ph_encoder_num_sparse(const struct ph_encoder *encoder)
{
    return encoder->num_sparse;
}

const struct ph_sparse_feature *ph_encoder_sparse(const struct ph_encoder *encoder, size_t feature)
{
    return &encoder->sparse[feature];
}

const char *ph_encoder_dense_name(const struct ph_encoder *encoder, size_t feature)
{
    return encoder->dense_names[feature];
}

bool ph_encoder_has_teacher(const struct ph_encoder *encoder)
{
    return encoder->num_teachers > 0;
}

bool ph_encoder_has_weights(const struct ph_encoder *encoder)
{
    return encoder->has_weight;
}

bool ph_encoder_has_groups(const struct ph_encoder *encoder)
{
    return encoder->has_group;
}

uint64_t ph_encoder_num_training_rows(const struct ph_encoder *encoder)
{
    return encoder->num_training_rows;
}

bool ph_encoder_has_id_weights(const struct ph_encoder *encoder)
{
    return encoder->has_id_weights;
}
