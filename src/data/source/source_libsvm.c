#include "data/source/source_libsvm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/number.h"
#include "data/encode/cell_text.h"
#include "data/source/line_file.h"

/* ---- rows ---- */

/* Refuses columns that a schema of libsvm or libffm cannot have, but a loaded encoder can. */
static ph_status check_column(const struct ph__column *column)
{
    bool is_list = column->kind == PH_FIELD_ID && column->is_list && column->is_weighted;
    is_list = is_list && strcmp(column->name, column->from) == 0;
    if (is_list || column->kind == PH_FIELD_LABEL || column->kind == PH_FIELD_IGNORE)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA,
        "field '%s': rows of libsvm and libffm have a list of weighted ids here, but the encoder has another "
        "kind of field",
        column->name);
}

ph_status ph__libsvm_match(struct ph__libsvm *libsvm, const struct ph_encoder *encoder)
{
    *libsvm = (struct ph__libsvm){
        .encoder = encoder, .fields = calloc(encoder->num_columns + 1, sizeof(const struct ph__column *))};
    if (libsvm->fields == NULL)
        return ph__out_of_memory("cannot match %zu fields", encoder->num_columns);
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        PH_TRY(check_column(column));
        if (column->kind == PH_FIELD_LABEL)
            libsvm->label = column;
        else if (encoder->format == PH_DATA_LIBSVM)
            libsvm->features = column;
        else
            libsvm->fields[libsvm->num_fields++] = column;
    }
    return PH_OK;
}

void ph__libsvm_fini(struct ph__libsvm *libsvm)
{
    free(libsvm->fields);
    *libsvm = (struct ph__libsvm){0};
}

bool ph__libsvm_is_comment(const char *line, size_t length)
{
    size_t i = 0;
    while (i < length && (line[i] == ' ' || line[i] == '\t'))
        i++;
    return i < length && line[i] == '#';
}

/* Returns the next word of the line, NULL after the last one. */
static const char *next_word(const char **cursor, size_t *length_out)
{
    const char *word = *cursor + strspn(*cursor, " \t");
    *length_out = strcspn(word, " \t#");
    *cursor = word + *length_out;
    return *length_out > 0 ? word : NULL;
}

static ph_status encode_label(
    struct ph__row_encoder *row, const struct ph__column *label, const char *word, size_t length)
{
    double number = 0;
    if (label == NULL)
        return PH_OK;
    if (!ph__decimal_parse(word, length, &number))
        return ph_fail(PH_ERROR_DATA, "'%.*s' is not a label", (int)(length < 40 ? length : 40), word);
    return ph__row_real(row, label, number == -1 ? 0 : number);
}

static ph_status fail_word(const char *word, size_t length, const char *wanted)
{
    return ph_fail(PH_ERROR_DATA, "'%.*s' is not %s", (int)(length < 40 ? length : 40), word, wanted);
}

/* Encodes id:value. */
static ph_status encode_pair(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length)
{
    const char *colon = memchr(word, ':', length);
    double value;
    if (colon == NULL || colon == word ||
        !ph__decimal_parse(colon + 1, length - (size_t)(colon - word) - 1, &value) || !isfinite((float)value))
        return fail_word(word, length, "id:value with a finite number as value");
    if (column == NULL || column->kind == PH_FIELD_IGNORE)
        return PH_OK;
    return ph__row_item(row, column, word, (size_t)(colon - word), (float)value);
}

/* Encodes field:id:value. */
static ph_status encode_triple(
    struct ph__row_encoder *row, const struct ph__libsvm *libsvm, const char *word, size_t length)
{
    const char *colon = memchr(word, ':', length);
    uint64_t field;
    if (colon == NULL || !ph__decimal_parse_id(word, (size_t)(colon - word), &field))
        return fail_word(word, length, "field:id:value with a whole number as field");
    if (field >= libsvm->num_fields)
        return ph_fail(PH_ERROR_DATA, "field %llu does not exist: the encoder has %zu fields, counted from 0",
            (unsigned long long)field, libsvm->num_fields);
    size_t rest = (size_t)(colon - word) + 1;
    return encode_pair(row, libsvm->fields[field], word + rest, length - rest);
}

ph_status ph__libsvm_encode(
    const struct ph__libsvm *libsvm, struct ph__row_encoder *row, const char *line, bool needs_no_labels)
{
    const char *cursor = line;
    size_t length;
    const char *word = next_word(&cursor, &length);
    bool has_label = word != NULL && memchr(word, ':', length) == NULL;
    if (has_label)
        PH_TRY(encode_label(row, libsvm->label, word, length));
    else if (!needs_no_labels)
        return ph_fail(PH_ERROR_DATA, "the row does not begin with a label");
    if (has_label)
        word = next_word(&cursor, &length);
    for (; word != NULL; word = next_word(&cursor, &length))
        PH_TRY(libsvm->encoder->format == PH_DATA_LIBFFM ? encode_triple(row, libsvm, word, length)
                                                         : encode_pair(row, libsvm->features, word, length));
    return PH_OK;
}

/* ---- files ---- */

struct libsvm_file {
    struct ph__line_file file; /* must stay the first member */
    struct ph__libsvm libsvm;
};

static ph_status open_libsvm(struct ph__source *source, const struct ph__source_position *position)
{
    struct libsvm_file *state = calloc(1, sizeof *state);
    if (state == NULL)
        return ph__out_of_memory("cannot read %s", source->paths[source->file]);
    source->state = state;
    PH_TRY(ph__line_file_open(&state->file, source));
    PH_TRY(ph__libsvm_match(&state->libsvm, source->encoder));
    return ph__line_file_start(&state->file, position);
}

static void close_libsvm(struct ph__source *source)
{
    struct libsvm_file *state = source->state;
    if (state == NULL)
        return;
    ph__line_file_close(&state->file);
    ph__libsvm_fini(&state->libsvm);
    free(state);
}

static ph_status fetch_libsvm(struct ph__source *source, bool *is_end_out)
{
    struct libsvm_file *state = source->state;
    do
        PH_TRY(ph__line_file_fetch(source, is_end_out));
    while (!*is_end_out && ph__libsvm_is_comment(state->file.line, state->file.length));
    return PH_OK;
}

static ph_status encode_libsvm(struct ph__source *source)
{
    struct libsvm_file *state = source->state;
    return ph__libsvm_encode(&state->libsvm, &source->row, state->file.line, source->options.needs_no_labels);
}

const struct ph__format ph__format_libsvm = {
    .open = open_libsvm,
    .close = close_libsvm,
    .fetch = fetch_libsvm,
    .encode = encode_libsvm,
    .locate = ph__line_file_locate,
    .tell = ph__line_file_tell,
};
