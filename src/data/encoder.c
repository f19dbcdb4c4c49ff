#include "data/encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/header.h"
#include "data/vocabulary_pass.h"

bool ph__is_utf8(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + length;
    while (at < end) {
        size_t size = *at < 0x80 ? 1 : *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
        if (size == 1) {
            at++;
            continue;
        }
        if (*at < 0xc2 || *at > 0xf4 || (size_t)(end - at) < size)
            return false;
        uint32_t code = *at & (0xffu >> (size + 1));
        for (size_t i = 1; i < size; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return false;
            code = code << 6 | (at[i] & 0x3fu);
        }
        bool is_overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
        if (is_overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return false;
        at += size;
    }
    return true;
}

ph_status ph__encoder_add_column(struct ph_encoder *encoder, const char *name, struct ph__column **column_out)
{
    PH_TRY(ph__array_reserve((void **)&encoder->columns, &encoder->columns_capacity, encoder->num_columns + 1,
        sizeof *encoder->columns));
    struct ph__column *column = &encoder->columns[encoder->num_columns];
    memset(column, 0, sizeof *column);
    column->name = strdup(name);
    if (column->name == NULL)
        return ph_fail(PH_ERROR_MEMORY, "encoder: no memory for column '%s'", name);
    encoder->num_columns++;
    *column_out = column;
    return PH_OK;
}

const struct ph__column *ph__encoder_find(const struct ph_encoder *encoder, const char *name)
{
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (strcmp(encoder->columns[i].name, name) == 0)
            return &encoder->columns[i];
    return NULL;
}

/* ---- sealing ------------------------------------------------------------------------------------------- */

static ph_status seal_column(
    struct ph_encoder *encoder, struct ph__column *column, const char *where, ph_status status)
{
    if (ph__encoder_find(encoder, column->name) != column)
        return ph_fail(status, "%s: two columns are called '%s'", where, column->name);
    bool is_group = column->is_group || column->kind == PH_FIELD_GROUP;
    if ((column->kind == PH_FIELD_WEIGHT && encoder->has_weight) || (is_group && encoder->has_group))
        return ph_fail(
            status, "%s: '%s': there is a %s already", where, column->name, is_group ? "group" : "weight");
    encoder->has_weight |= column->kind == PH_FIELD_WEIGHT;
    encoder->has_group |= is_group;
    if (column->kind == PH_FIELD_LABEL)
        column->slot = encoder->num_tasks++;
    if (column->kind == PH_FIELD_DENSE)
        column->slot = encoder->num_dense++;
    if (column->kind == PH_FIELD_ID)
        column->slot = encoder->num_sparse++;
    if (column->kind == PH_FIELD_ID && column->encoding == PH_ENCODING_VOCABULARY)
        column->num_rows = column->vocabulary.num_words + 1;
    return PH_OK;
}

static ph_status list_features(struct ph_encoder *encoder)
{
    encoder->sparse = calloc(encoder->num_sparse + 1, sizeof *encoder->sparse);
    encoder->dense_names = calloc(encoder->num_dense + 1, sizeof *encoder->dense_names);
    if (encoder->sparse == NULL || encoder->dense_names == NULL)
        return ph_fail(PH_ERROR_MEMORY, "encoder: no memory for %zu features", encoder->num_columns);
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (column->kind == PH_FIELD_DENSE)
            encoder->dense_names[column->slot] = column->name;
        if (column->kind == PH_FIELD_ID)
            encoder->sparse[column->slot] =
                (struct ph_sparse_feature){.name = column->name, .num_rows = (size_t)column->num_rows};
    }
    return PH_OK;
}

ph_status ph__encoder_seal(struct ph_encoder *encoder, const char *where, ph_status status)
{
    for (size_t i = 0; i < encoder->num_columns; i++)
        PH_TRY(seal_column(encoder, &encoder->columns[i], where, status));
    if (encoder->num_tasks == 0)
        return ph_fail(status, "%s: no column is a label", where);
    if (encoder->num_dense + encoder->num_sparse == 0)
        return ph_fail(status, "%s: no column is an id or dense: there is nothing to learn from", where);
    encoder->dense_word = encoder->num_tasks;
    encoder->weight_word = encoder->dense_word + encoder->num_dense;
    encoder->group_word = encoder->weight_word + (encoder->has_weight ? 1 : 0);
    encoder->sparse_word = encoder->group_word + (encoder->has_group ? 2 : 0);
    encoder->num_fixed_words = encoder->sparse_word + encoder->num_sparse;
    for (size_t i = 0; i < PH_LOG1P_TABLE_SIZE; i++)
        encoder->log1p[i] = (float)log1p((double)i);
    return list_features(encoder);
}

/* ---- creation ------------------------------------------------------------------------------------------ */

static const struct ph__column *first_vocabulary(const struct ph_encoder *encoder)
{
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (encoder->columns[i].kind == PH_FIELD_ID && encoder->columns[i].encoding == PH_ENCODING_VOCABULARY)
            return &encoder->columns[i];
    return NULL;
}

static ph_status build(const struct ph_data_settings *settings, struct ph_reader *reader,
    struct ph__header *header, struct ph_encoder *encoder)
{
    PH_TRY(ph__schema_build(settings, header->names, header->num_names, encoder));
    const struct ph__column *column = first_vocabulary(encoder);
    if (column != NULL && reader == NULL)
        return ph_fail(
            PH_ERROR_CONFIG, "data.train: missing, and '%s' needs it for its vocabulary", column->name);
    if (column != NULL)
        PH_TRY(ph__vocabulary_pass(encoder, reader));
    return ph__encoder_seal(encoder, "data.fields", PH_ERROR_CONFIG);
}

static char header_separator(const struct ph_data_settings *settings)
{
    if (settings->separator != NULL && settings->separator[0] != '\0')
        return settings->separator[0];
    return settings->format == PH_DATA_CSV ? ',' : '\t';
}

ph_status ph_encoder_create(const struct ph_data_settings *settings, struct ph_encoder **encoder_out)
{
    struct ph_encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder == NULL)
        return ph_fail(PH_ERROR_MEMORY, "encoder: no memory");
    struct ph__header header = {0};
    struct ph_reader *reader = NULL;
    ph_status status = PH_OK;
    if (settings->train != NULL)
        status = ph__reader_open(settings->train, &reader);
    if (status == PH_OK && reader != NULL && settings->has_header && settings->format != PH_DATA_CRITEO)
        status =
            ph__header_read(reader, header_separator(settings), settings->format == PH_DATA_CSV, &header);
    if (status == PH_OK)
        status = build(settings, reader, &header, encoder);
    ph__reader_close(reader);
    ph__header_fini(&header);
    if (status != PH_OK) {
        ph_encoder_destroy(encoder);
        return status;
    }
    *encoder_out = encoder;
    return PH_OK;
}

void ph_encoder_destroy(struct ph_encoder *encoder)
{
    if (encoder == NULL)
        return;
    for (size_t i = 0; i < encoder->num_columns; i++) {
        free(encoder->columns[i].name);
        ph__vocabulary_fini(&encoder->columns[i].vocabulary);
    }
    free(encoder->columns);
    free(encoder->sparse);
    free(encoder->dense_names);
    free(encoder);
}

/* ---- what others ask ----------------------------------------------------------------------------------- */

size_t ph_encoder_num_dense(const struct ph_encoder *encoder)
{
    return encoder->num_dense;
}

size_t ph_encoder_num_tasks(const struct ph_encoder *encoder)
{
    return encoder->num_tasks;
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
