/* Joins a server's feature log with the rows of a stream, by request and place in it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/stream.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "cli/foundation/replay.h"
#include "cli/output.h"

struct joining {
    struct ph__key_map places; /* of a request's row: its index in the features */
    struct ph__arena arena;
    const char **features; /* (num_features) texts */
    size_t num_features, capacity;
    const char *header; /* of the features: "fm_1 <TAB> ..." */
    char separator;
    struct ph__keyed_lines stream;
    struct ph__writer *writer;
    uint64_t num_rows, num_joined;
};

static uint64_t key_of(const char *request, size_t length, uint64_t place)
{
    const uint64_t words[] = {ph__hash_bytes(request, length), place};
    return ph__hash_bytes(words, sizeof words);
}

/* Returns the text behind the first two cells of a line of the log, in the arena, with the stream's
 * separator. */
static char *features_of(struct joining *joining, const char *line, size_t size)
{
    const char *text = line;
    for (size_t tabs = 0; tabs < 2; text++)
        tabs += *text == '\t';
    char *features = ph__arena_alloc(&joining->arena, size - (size_t)(text - line) + 1);
    if (features == NULL)
        return NULL;
    memcpy(features, text, size - (size_t)(text - line));
    for (char *cell = features; *cell != '\0'; cell++)
        if (*cell == '\t')
            *cell = joining->separator;
    return features;
}

static ph_status add_features(struct joining *joining, const struct ph__keyed_lines *log)
{
    int64_t place;
    if (!ph__integer_parse(log->cells[1], &place) || place < 0)
        return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": the place '%s' must be a whole number from 0",
            ph__reader_path(log->reader), ph__reader_line_number(log->reader), log->cells[1]);
    PH_TRY(ph__array_reserve((void **)&joining->features, &joining->capacity, joining->num_features + 1,
        sizeof *joining->features));
    char *features = features_of(joining, (const char *)log->text.bytes, log->text.size);
    if (features == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__key_map_add(&joining->places, key_of(log->cells[0], log->lengths[0], (uint64_t)place),
        (uint32_t)joining->num_features));
    joining->features[joining->num_features++] = features;
    return PH_OK;
}

static ph_status read_header(struct joining *joining, const struct ph__keyed_lines *log)
{
    const char *header = "";
    if (log->header.num_names < 3 || strcmp(log->header.names[0], "request") != 0 ||
        strcmp(log->header.names[1], "place") != 0)
        return ph_fail(PH_ERROR_DATA,
            "%s: a feature log begins with the columns request and place; give the file of "
            "speculation.feature_log",
            ph__reader_path(log->reader));
    for (size_t i = 2; i < log->header.num_names && header != NULL; i++)
        header =
            ph__arena_printf(&joining->arena, "%s%c%s", header, joining->separator, log->header.names[i]);
    joining->header = header;
    return header != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status read_log(struct joining *joining, const char *path)
{
    struct ph__keyed_lines log;
    bool has_line = true;
    ph_status status = ph__keyed_lines_open(&log, path, false, NULL, 0);
    if (status == PH_OK)
        status = read_header(joining, &log);
    while (status == PH_OK && has_line) {
        status = ph__keyed_lines_next(&log, &has_line);
        if (status == PH_OK && has_line)
            status = add_features(joining, &log);
    }
    ph__keyed_lines_close(&log);
    return status;
}

static ph_status write_row(struct joining *joining, uint64_t place)
{
    const struct ph__keyed_lines *stream = &joining->stream;
    const size_t request = stream->key_cells[0];
    const uint32_t index =
        ph__key_map_find(&joining->places, key_of(stream->cells[request], stream->lengths[request], place));
    joining->num_rows++;
    if (index == PH_NO_NUMBER)
        return PH_OK;
    joining->num_joined++;
    PH_TRY(ph__writer_write(joining->writer, stream->text.bytes, stream->text.size));
    return ph__writer_printf(joining->writer, "%c%s\n", joining->separator, joining->features[index]);
}

static ph_status write_rows(struct joining *joining)
{
    const struct ph__keyed_lines *stream = &joining->stream;
    uint64_t place = 0, former = 0;
    bool has_line = true;
    for (size_t i = 0; i < stream->header.num_names; i++)
        PH_TRY(ph__writer_printf(
            joining->writer, "%.*s%s", i > 0, &joining->separator, stream->header.names[i]));
    PH_TRY(ph__writer_printf(joining->writer, "%s\n", joining->header));
    while (has_line) {
        PH_TRY(ph__keyed_lines_next(&joining->stream, &has_line));
        if (!has_line)
            break;
        place = joining->num_rows > 0 && stream->key == former ? place + 1 : 0;
        former = stream->key;
        PH_TRY(write_row(joining, place));
    }
    return PH_OK;
}

static ph_status join(
    struct joining *joining, const char *path, const char *log, const char *request_column, const char *out)
{
    PH_TRY(cli_output_spare_input(out, path));
    PH_TRY(cli_output_spare_input(out, log));
    PH_TRY(ph__keyed_lines_open(&joining->stream, path, cli_is_csv(path), &request_column, 1));
    joining->separator = joining->stream.separator;
    PH_TRY(read_log(joining, log));
    PH_TRY(ph__writer_open(out, &joining->writer));
    return ph__writer_end(joining->writer, write_rows(joining));
}

ph_status cli_replay_join(const char *path, const char *log, const char *request_column, const char *out)
{
    struct joining joining = {.num_rows = 0};
    const ph_status status = join(&joining, path, log, request_column, out);
    if (status == PH_OK)
        printf("%s: %" PRIu64 " of %" PRIu64 " rows, as they were served\n", out, joining.num_joined,
            joining.num_rows);
    ph__keyed_lines_close(&joining.stream);
    ph__key_map_fini(&joining.places);
    free((void *)joining.features);
    ph__arena_fini(&joining.arena);
    return status;
}
