/* The columns of an encoder, from the settings' fields and from what the training file says of itself.
 * Internal to the data room. */
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

/* Whether the files' first line names the columns, and the separator where data.separator says none. */
bool ph__has_header(const struct ph_data_settings *settings);
char ph__default_separator(enum ph__data_format format);
bool ph__has_quotes(enum ph__data_format format); /* cells may stand in double quotes */

/* ---- columns ---- */

/* What the training file says about its columns. Borrowed. */
struct ph__file_shape {
    char *const *names; /* (num_names) of the columns, where it names them */
    const bool
        *is_list; /* (num_names) the column has several ids a row, whatever its field says; NULL: none has */
    size_t num_names;
    uint64_t header_line; /* where they stand in it, from 1; 0: not in a line of text */
    size_t num_fields;    /* libffm */
};

/* The columns from the settings and the file. */
ph_status ph__schema_build(
    const struct ph_data_settings *settings, const struct ph__file_shape *shape, struct ph_encoder *encoder);

/* ---- entries of data.fields (schema_fields.c) ---- */

/* A name that stands for every column that starts so; a feature that is made from a column of another name.
 */
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

/* PH_ERROR_CONFIG when two entries have one name, and for a key of an entry that its kind or encoding has no
 * use for. Lists: the data itself may say which columns are some. */
ph_status ph__schema_check_fields(const struct ph_data_settings *settings, bool may_be_lists);

/* Sets what an id field's column is beyond its name and kind. PH_ERROR_CONFIG naming the field. */
ph_status ph__schema_set_id(const struct ph_data_settings *settings, const struct ph__field_settings *field,
    struct ph__column *column);

#endif
