#include "data/source/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"
#include "data/encode/fit.h"
#include "data/source/dataset.h"
#include "data/source/input_file.h"

/* ---- files ---- */

static const struct ph__format *format_of(
    const struct ph_encoder *encoder, const struct ph__source_options *options)
{
    if (options->dataset != NULL)
        return &ph__format_arrow;
    switch (encoder->format) {
    case PH_DATA_LIBSVM:
    case PH_DATA_LIBFFM:
        return &ph__format_libsvm;
    case PH_DATA_NPY:
        return &ph__format_npy;
    case PH_DATA_CSV:
    case PH_DATA_TSV:
    case PH_DATA_CRITEO:
    case PH_DATA_AVAZU:
        break;
    case PH_DATA_ARROW:
        return &ph__format_arrow;
    case PH_DATA_GRAPH:
        return &ph__format_graph;
    }
    return &ph__format_delimited;
}

/* Keeps the split that the path names. */
static ph_status set_split(struct ph__source *source, const char *path)
{
    const char *split = ph__input_split(path);
    if (split == NULL)
        return PH_OK;
    if (!source->encoder->has_split)
        return ph_fail(
            PH_ERROR_DATA, "%s: names split '%s', but no field of data.fields has kind: split", path, split);
    source->row.split = ph__arena_strdup(&source->arena, split);
    return source->row.split != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* Lists the files of the path; a dataset is one. */
static ph_status list_paths(struct ph__source *source, const char *path)
{
    const struct ph_dataset *dataset = source->options.dataset;
    if (dataset == NULL && source->encoder->format == PH_DATA_ARROW)
        return ph_fail(PH_ERROR_USAGE,
            "%s: rows of format arrow cannot be read from a file; pass them as a dataset", path);
    if (dataset == NULL) {
        PH_TRY(set_split(source, path));
        return ph__input_list(&source->arena, path, &source->paths, &source->num_paths);
    }
    source->paths = ph__arena_alloc(&source->arena, sizeof *source->paths);
    if (source->paths == NULL)
        return PH_ERROR_MEMORY;
    source->paths[0] = dataset->name;
    source->num_paths = 1;
    return PH_OK;
}

static ph_status open_file(struct ph__source *source, const struct ph__source_position *position)
{
    if (source->options.fingerprint != NULL)
        PH_TRY(ph__fingerprint_begin(source->options.fingerprint, source->file));
    source->is_open = true;
    return source->format->open(source, position);
}

static void close_file(struct ph__source *source)
{
    if (source->is_open)
        source->format->close(source);
    source->is_open = false;
    source->state = NULL;
}

ph_status ph__source_open(struct ph__source *source, const struct ph_encoder *encoder, const char *path,
    const struct ph__source_options *options)
{
    struct ph__source_position start = {0};
    if (options->start != NULL)
        start = *options->start;
    *source = (struct ph__source){
        .format = format_of(encoder, options),
        .encoder = encoder,
        .options = *options,
        .num_rows = start.num_rows,
        .num_bad_rows = start.num_bad_rows,
        .file = (size_t)start.file,
        .is_uncounted = start.byte != 0 && start.row == 0,
    };
    source->options.start = NULL; /* borrowed until here */
    ph__row_encoder_init(&source->row, encoder, options->fit);
    PH_TRY(list_paths(source, path));
    if (source->file >= source->num_paths)
        return ph_fail(
            PH_ERROR_DATA, "%s: has %zu files, fewer than when reading stopped", path, source->num_paths);
    return open_file(source, &start);
}

void ph__source_close(struct ph__source *source)
{
    close_file(source);
    ph__row_encoder_fini(&source->row);
    ph__arena_fini(&source->arena);
}

struct ph__running_checksum *ph__source_checksum(const struct ph__source *source, const char *name)
{
    struct ph__fingerprint *fingerprint = source->options.fingerprint;
    return fingerprint != NULL ? ph__fingerprint_checksum(fingerprint, source->file, name) : NULL;
}

/* ---- rows ---- */

void ph__source_tell(const struct ph__source *source, struct ph__source_position *position_out)
{
    *position_out = (struct ph__source_position){
        .file = source->file, .num_rows = source->num_rows, .num_bad_rows = source->num_bad_rows};
    source->format->tell(source, position_out);
}

/* Moves to the next row, or to the first row of the next file. */
static ph_status fetch(struct ph__source *source, bool *is_end_out)
{
    static const struct ph__source_position beginning = {0};
    for (;;) {
        PH_TRY(source->format->fetch(source, is_end_out));
        if (!*is_end_out || source->options.is_one_file || source->file + 1 == source->num_paths)
            return PH_OK;
        close_file(source);
        source->file++;
        PH_TRY(open_file(source, &beginning));
    }
}

static ph_status encode(struct ph__source *source, struct ph__rows *rows)
{
    source->num_encoded++;
    PH_TRY(ph__row_begin(&source->row, rows));
    PH_TRY(source->format->encode(source));
    return ph__row_commit(&source->row);
}

/* Returns the path of the file being read, or of the last one. */
static const char *path_of(const struct ph__source *source)
{
    return source->paths[source->file < source->num_paths ? source->file : source->num_paths - 1];
}

static void remember_bad_row(struct ph__source *source, const char *reason)
{
    struct ph__source_position position = {0};
    char place[1024];
    source->format->tell(source, &position);
    source->first_bad_line = position.row;
    snprintf(place, sizeof place, "%s", path_of(source));
    if (!source->is_uncounted)
        source->format->locate(source, place, sizeof place);
    snprintf(source->first_bad_reason, sizeof source->first_bad_reason, "%s", reason);
    snprintf(source->first_bad_row, sizeof source->first_bad_row, "%.*s: %.*s",
        (int)ph__utf8_cut(place, strlen(place), 400), place, (int)ph__utf8_cut(reason, strlen(reason), 100),
        reason);
}

/* Counts the bad row, or fails with its place and the reason, which is the recorded error. */
static ph_status refuse_row(struct ph__source *source)
{
    char place[1024], reason[512];
    snprintf(reason, sizeof reason, "%s", ph_error_text());
    if (source->first_bad_row[0] == '\0')
        remember_bad_row(source, reason);
    if (source->num_bad_rows < source->options.max_bad_rows) {
        source->num_bad_rows++;
        return PH_OK;
    }
    source->format->locate(source, place, sizeof place);
    if (source->options.max_bad_rows == 0)
        return ph_fail(PH_ERROR_DATA, "%s: %s", place, reason);
    return ph_fail(PH_ERROR_DATA, "%s: %s; more bad rows than data.max_bad_rows = %" PRIu64, place, reason,
        source->options.max_bad_rows);
}

/* Returns a key of the row that is the same however its file is cut: from the file, and the row's first byte
 * or its number. */
static uint64_t row_key(const struct ph__source *source)
{
    struct ph__source_position position = {0};
    source->format->tell(source, &position);
    return ph__text_mix(ph__text_mix(source->file) ^ (position.byte != 0 ? position.byte : position.row));
}

ph_status ph__source_next(struct ph__source *source, struct ph__rows *rows, bool *is_end_out)
{
    for (;;) {
        PH_TRY(fetch(source, is_end_out));
        if (*is_end_out)
            return PH_OK;
        if (source->options.fit != NULL)
            source->options.fit->row_key = row_key(source);
        ph_status status = encode(source, rows);
        if (status == PH_OK) {
            source->num_rows++;
            return PH_OK;
        }
        if (status != PH_ERROR_DATA)
            return status;
        PH_TRY(refuse_row(source));
    }
}

ph_status ph__source_next_run(
    struct ph__source *source, struct ph__rows *rows, size_t wanted, bool *is_end_out)
{
    size_t num_rows = 0;
    ph_status status = PH_OK;
    if (source->num_single > 0)
        source->num_single--;
    else if (source->format->encode_run != NULL && wanted > 1)
        status = source->format->encode_run(source, rows, wanted, &num_rows);
    const bool has_bad = status == PH_ERROR_DATA && num_rows > 0;
    if (status != PH_OK && !has_bad)
        return status;
    source->num_single += has_bad ? num_rows - 1 : 0;
    if (has_bad || num_rows == 0)
        return ph__source_next(source, rows, is_end_out);
    source->num_rows += num_rows;
    source->num_encoded += num_rows;
    return PH_OK;
}

ph_status ph__source_skip(struct ph__source *source, uint64_t count, uint64_t *num_skipped_out)
{
    uint64_t num_skipped = 0;
    for (bool is_end = false; num_skipped < count; num_skipped++) {
        PH_TRY(fetch(source, &is_end));
        if (is_end)
            break;
        source->num_rows++;
    }
    *num_skipped_out = num_skipped;
    return PH_OK;
}

ph_status ph__source_return(struct ph__source *source, const struct ph__source_position *position)
{
    close_file(source);
    source->file = (size_t)position->file;
    source->num_rows = position->num_rows;
    source->num_bad_rows = position->num_bad_rows;
    source->num_single = 0;
    return open_file(source, position);
}
