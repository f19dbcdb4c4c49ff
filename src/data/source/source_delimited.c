/* Rows of CSV, TSV, Criteo and Avazu files. */
#include <stdlib.h>

#include "data/encode/schema.h"
#include "data/source/delimited.h"
#include "data/source/line_file.h"

struct delimited_file {
    struct ph__line_file file;
    struct ph__delimited delimited;
    bool is_unmatched; /* without a header the first row decides whether there are labels */
};

static ph_status match_header(struct ph__source *source, struct delimited_file *state)
{
    struct ph__header header = {0};
    const struct ph_encoder *encoder = source->encoder;
    bool has_quotes = ph__has_quotes((int)encoder->format);
    ph_status status = ph__header_read(state->file.reader, encoder->separator, has_quotes, &header);
    if (status == PH_ERROR_DATA && encoder->format == PH_DATA_AVAZU)
        status = ph__header_blame_avazu(&header, ph__reader_path(state->file.reader), status);
    if (status == PH_OK)
        status = ph__delimited_match_header(&state->delimited, encoder, &header,
            source->options.needs_no_labels, ph__reader_path(state->file.reader));
    ph__header_fini(&header);
    return status;
}

static ph_status open_delimited(struct ph__source *source, const struct ph__source_position *position)
{
    struct delimited_file *state = calloc(1, sizeof *state);
    if (state == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory to read", source->paths[source->file]);
    source->state = state;
    PH_TRY(ph__line_file_open(&state->file, source));
    if (source->encoder->has_header)
        PH_TRY(match_header(source, state));
    else
        PH_TRY(ph__delimited_match_positions(&state->delimited, source->encoder, true));
    state->is_unmatched = !source->encoder->has_header && source->options.needs_no_labels;
    return ph__line_file_start(&state->file, position);
}

static void close_delimited(struct ph__source *source)
{
    struct delimited_file *state = source->state;
    if (state == NULL)
        return;
    ph__line_file_close(&state->file);
    ph__delimited_fini(&state->delimited);
    free(state);
}

static ph_status fetch_delimited(struct ph__source *source, bool *is_end_out)
{
    struct delimited_file *state = source->state;
    return ph__line_file_fetch(&state->file, source, is_end_out);
}

/* Are there labels? By the number of cells of the first row. */
static ph_status match_first_row(const struct ph__source *source, struct delimited_file *state)
{
    struct ph__delimited without = {0};
    state->is_unmatched = false;
    ph_status status = ph__delimited_match_positions(&without, source->encoder, false);
    if (status == PH_OK && ph__delimited_count(source->encoder, state->file.line) == without.num_cells) {
        struct ph__delimited with = state->delimited;
        state->delimited = without;
        without = with;
    }
    ph__delimited_fini(&without);
    return status;
}

static ph_status encode_delimited(struct ph__source *source)
{
    struct delimited_file *state = source->state;
    if (state->is_unmatched)
        PH_TRY(match_first_row(source, state));
    return ph__delimited_encode(&state->delimited, &source->row, state->file.line, state->file.length);
}

static void locate_delimited(const struct ph__source *source, char *text, size_t size)
{
    const struct delimited_file *state = source->state;
    ph__line_file_locate(&state->file, text, size);
}

static void tell_delimited(const struct ph__source *source, struct ph__source_position *position)
{
    const struct delimited_file *state = source->state;
    ph__line_file_tell(&state->file, position);
}

const struct ph__format ph__format_delimited = {
    .open = open_delimited,
    .close = close_delimited,
    .fetch = fetch_delimited,
    .encode = encode_delimited,
    .locate = locate_delimited,
    .tell = tell_delimited,
};
