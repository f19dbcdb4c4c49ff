/* Builds the columns of an encoder from the settings' fields and from the training file's shape. Internal to
 * the data room. */
#ifndef PH_DATA_SCHEMA_H
#define PH_DATA_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "data/data_options.h"

struct ph__column;
struct ph_encoder;

/* ---- formats ---- */

/* Return true when the files' first line names the columns; the separator when data.separator is not set; and
 * true when cells may stand in double quotes. */
bool ph__has_header(const struct ph_data_settings *settings);
char ph__default_separator(enum ph__data_format format);
bool ph__has_quotes(enum ph__data_format format);

/* ---- columns ---- */

/* Names and kinds that the training file gives its columns; borrowed. */
struct ph__file_shape {
    char *const *names; /* (num_names) names of the columns, if the file names them */
    const bool
        *is_list; /* (num_names) true: several ids a row, whatever the field's settings are; NULL: no lists */
    size_t num_names;
    uint64_t header_line; /* line of the header, from 1; 0: no header line */
    size_t num_fields;    /* libffm */
};

/* Adds the columns of the settings and the file to the encoder. */
ph_status ph__schema_build(
    const struct ph_data_settings *settings, const struct ph__file_shape *shape, struct ph_encoder *encoder);

/* ---- entries of data.fields (schema_fields.c) ---- */

/* Return true for a name that stands for every column that starts so, for a feature made from a column of
 * another name, and for an id that shares another field's rows. */
static inline bool ph__field_is_pattern(const struct ph__field_settings *field)
{
    const size_t length = strlen(field->name);
    return length > 0 && field->name[length - 1] == '*';
}

static inline bool ph__field_is_derived(const struct ph__field_settings *field)
{
    return field->from != NULL && field->from[0] != '\0';
}

static inline bool ph__field_is_sharing(const struct ph__field_settings *field)
{
    return field->shares != NULL && field->shares[0] != '\0';
}

/* PH_ERROR_CONFIG when two entries have one name, or an entry has a key that its kind or encoding does not
 * use. With may_be_lists the data itself may make columns lists. */
ph_status ph__schema_check_fields(const struct ph_data_settings *settings, bool may_be_lists);

/* Sets the settings of an id field's column, except name and kind. PH_ERROR_CONFIG naming the field. */
ph_status ph__schema_set_id(const struct ph_data_settings *settings, const struct ph__field_settings *field,
    struct ph__column *column);

#endif
