/* Rows of libsvm and libffm files. */
#include <stdlib.h>

#include "data/source/libsvm_row.h"
#include "data/source/line_file.h"

struct libsvm_file {
    struct ph__line_file file;
    struct ph__libsvm libsvm;
};

static ph_status open_libsvm(struct ph__source *source, const struct ph__source_position *position)
{
    struct libsvm_file *state = calloc(1, sizeof *state);
    if (state == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory to read", source->paths[source->file]);
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
        PH_TRY(ph__line_file_fetch(&state->file, source, is_end_out));
    while (!*is_end_out && ph__libsvm_is_comment(state->file.line, state->file.length));
    return PH_OK;
}

static ph_status encode_libsvm(struct ph__source *source)
{
    struct libsvm_file *state = source->state;
    return ph__libsvm_encode(&state->libsvm, &source->row, state->file.line, source->options.needs_no_labels);
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
