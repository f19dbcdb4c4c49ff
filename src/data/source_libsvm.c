/* Rows of libsvm and libffm files: a label, then id:value pairs (libsvm) or field:id:value triples (libffm), separated by
 * blanks. What is behind a '#' is a comment.
 *
 * All ids of a libsvm row are one weighted list, the encoder's column "features". A libffm field is a weighted list of its
 * own, named by its number. Labels -1 and +1 are 0 and 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/decimal.h"
#include "data/line_file.h"

struct libsvm_file {
    struct ph__line_file file;
    const struct ph__column *label, *features; /* NULL: ignored */
    const struct ph__column **fields;          /* (num_fields) libffm, by number */
    size_t num_fields;
};

/* ---- opening --------------------------------------------------------------------------------------------- */

static ph_status match_fields(const struct ph_encoder *encoder, struct libsvm_file *state)
{
    state->fields = calloc(encoder->num_columns + 1, sizeof(const struct ph__column *));
    if (state->fields == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory to match %zu fields", encoder->num_columns);
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (column->kind == PH_FIELD_LABEL)
            state->label = column;
        else if (encoder->format == PH_DATA_LIBSVM)
            state->features = column;
        else
            state->fields[state->num_fields++] = column;
    }
    return PH_OK;
}

static ph_status open_libsvm(struct ph__source *source, const struct ph__source_position *position)
{
    struct libsvm_file *state = calloc(1, sizeof *state);
    if (state == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory to read", source->paths[source->file]);
    source->state = state;
    PH_TRY(ph__line_file_open(&state->file, source));
    PH_TRY(match_fields(source->encoder, state));
    return ph__line_file_start(&state->file, position);
}

static void close_libsvm(struct ph__source *source)
{
    struct libsvm_file *state = source->state;
    if (state == NULL)
        return;
    ph__line_file_close(&state->file);
    free(state->fields);
    free(state);
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

/* A line that holds only a comment is none. */
static ph_status fetch_libsvm(struct ph__source *source, bool *is_end_out)
{
    struct libsvm_file *state = source->state;
    do
        PH_TRY(ph__line_file_fetch(&state->file, source, is_end_out));
    while (!*is_end_out && state->file.line[strspn(state->file.line, " \t")] == '#');
    return PH_OK;
}

/* The next word of the line, NULL behind the last one. */
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

/* id:value */
static ph_status encode_pair(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length)
{
    const char *colon = memchr(word, ':', length);
    double value;
    if (colon == NULL || colon == word ||
        !ph__decimal_parse(colon + 1, length - (size_t)(colon - word) - 1, &value) || !isfinite((float)value))
        return fail_word(word, length, "id:value, the value a finite number");
    if (column == NULL || column->kind == PH_FIELD_IGNORE)
        return PH_OK;
    return ph__row_item(row, column, word, (size_t)(colon - word), (float)value);
}

/* field:id:value */
static ph_status encode_triple(
    struct ph__row_encoder *row, const struct libsvm_file *state, const char *word, size_t length)
{
    const char *colon = memchr(word, ':', length);
    uint64_t field;
    if (colon == NULL || !ph__decimal_parse_id(word, (size_t)(colon - word), &field))
        return fail_word(word, length, "field:id:value, the field a whole number");
    if (field >= state->num_fields)
        return ph_fail(PH_ERROR_DATA, "field %llu: there are only %zu, from 0 on", (unsigned long long)field,
            state->num_fields);
    size_t rest = (size_t)(colon - word) + 1;
    return encode_pair(row, state->fields[field], word + rest, length - rest);
}

static ph_status encode_libsvm(struct ph__source *source)
{
    struct libsvm_file *state = source->state;
    const char *cursor = state->file.line;
    size_t length;
    const char *word = next_word(&cursor, &length);
    bool has_label = word != NULL && memchr(word, ':', length) == NULL;
    if (has_label)
        PH_TRY(encode_label(&source->row, state->label, word, length));
    else if (!source->options.needs_no_labels)
        return ph_fail(PH_ERROR_DATA, "the row begins with no label");
    if (has_label)
        word = next_word(&cursor, &length);
    for (; word != NULL; word = next_word(&cursor, &length))
        PH_TRY(source->encoder->format == PH_DATA_LIBFFM
                   ? encode_triple(&source->row, state, word, length)
                   : encode_pair(&source->row, state->features, word, length));
    return PH_OK;
}

static void locate_libsvm(const struct ph__source *source, char *text, size_t size)
{
    const struct libsvm_file *state = source->state;
    ph__line_file_locate(&state->file, text, size);
}

static void tell_libsvm(const struct ph__source *source, struct ph__source_position *position)
{
    const struct libsvm_file *state = source->state;
    ph__line_file_tell(&state->file, position);
}

const struct ph__format ph__format_libsvm = {
    .open = open_libsvm,
    .close = close_libsvm,
    .fetch = fetch_libsvm,
    .encode = encode_libsvm,
    .locate = locate_libsvm,
    .tell = tell_libsvm,
};
