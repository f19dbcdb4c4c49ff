#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "cli/foundation/learnt_rows.h"
#include "cli/foundation/replay.h"

/* ---- reading ---- */

static ph_status fail_line(const struct cli_replay_stream *stream, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": %s", ph__reader_path(stream->lines.reader),
        ph__reader_line_number(stream->lines.reader), problem);
}

static ph_status reserve_places(struct cli_replay_reader *reader, size_t num_columns)
{
    reader->num_columns = num_columns;
    reader->places = calloc(num_columns + 1, sizeof *reader->places);
    return reader->places != NULL ? PH_OK : ph__out_of_memory("%zu columns", num_columns);
}

static ph_status match(const struct cli_replay_stream *stream, struct cli_replay_reader *reader)
{
    if (reader->session == NULL)
        return PH_OK;
    PH_TRY(reserve_places(reader, ph_session_num_columns(reader->session)));
    return ph__keyed_lines_match(&stream->lines, reader->session, reader->filled, reader->places);
}

ph_status cli_replay_open(struct cli_replay_stream *stream, const char *path,
    const struct cli_replay_columns *columns, struct ph_session *student, struct ph_session *teacher)
{
    const char *const names[] = {columns->time, columns->request, columns->user, columns->item};
    *stream = (struct cli_replay_stream){
        .student = {.session = student, .filled = "fm_"}, .teacher = {.session = teacher}};
    size_t *const places[] = {&stream->time, &stream->request, &stream->user, &stream->item};
    const size_t num_places = columns->user != NULL ? 4 : 2;
    PH_TRY(ph__keyed_lines_open(&stream->lines, path, cli_is_csv(path), names, num_places));
    for (size_t i = 0; i < 4; i++)
        *places[i] = i < num_places ? stream->lines.key_cells[i] : SIZE_MAX;
    PH_TRY(match(stream, &stream->student));
    PH_TRY(match(stream, &stream->teacher));
    return ph__keyed_lines_next(&stream->lines, &stream->has_line);
}

ph_status cli_replay_read(struct cli_replay_stream *stream, const char *const *columns, size_t num_columns)
{
    struct cli_replay_reader *reader = &stream->student;
    PH_TRY(reserve_places(reader, num_columns));
    for (size_t i = 0; i < num_columns; i++)
        PH_TRY(ph__keyed_lines_place(&stream->lines, columns[i], &reader->places[i]));
    return PH_OK;
}

static ph_status read_cells(struct cli_replay_stream *stream, struct cli_replay_reader *reader)
{
    if (reader->places == NULL)
        return PH_OK;
    PH_TRY(ph__array_reserve((void **)&reader->cells, &reader->capacity,
        (stream->count + 1) * reader->num_columns, sizeof *reader->cells));
    return ph__keyed_lines_copy(&stream->lines, reader->num_columns, reader->places, &stream->arena,
        reader->cells + stream->count * reader->num_columns);
}

static uint64_t hash_cell(const struct ph__keyed_lines *lines, size_t place)
{
    return place != SIZE_MAX ? ph__hash_bytes(lines->cells[place], lines->lengths[place]) : 0;
}

static ph_status reserve_row(struct cli_replay_stream *stream)
{
    size_t users = stream->capacity, items = stream->capacity, cells = stream->capacity;
    PH_TRY(ph__array_reserve(
        (void **)&stream->user_cells, &cells, stream->count + 1, sizeof *stream->user_cells));
    PH_TRY(ph__array_reserve((void **)&stream->users, &users, stream->count + 1, sizeof *stream->users));
    PH_TRY(ph__array_reserve((void **)&stream->items, &items, stream->count + 1, sizeof *stream->items));
    return ph__array_reserve(
        (void **)&stream->texts, &stream->capacity, stream->count + 1, sizeof *stream->texts);
}

static ph_status add_row(struct cli_replay_stream *stream)
{
    const struct ph__keyed_lines *lines = &stream->lines;
    if (stream->learnt != NULL)
        PH_TRY(cli_learnt_check(stream->learnt, lines, stream->folder));
    PH_TRY(reserve_row(stream));
    PH_TRY(read_cells(stream, &stream->student));
    PH_TRY(read_cells(stream, &stream->teacher));
    PH_TRY(ph__keyed_lines_copy(lines, 1, &stream->user, &stream->arena, &stream->user_cells[stream->count]));
    char *text = ph__arena_alloc(&stream->arena, lines->text.size + 1);
    if (text == NULL)
        return PH_ERROR_MEMORY;
    memcpy(text, lines->text.bytes, lines->text.size);
    stream->texts[stream->count] = (struct ph__bytes){text, lines->text.size};
    stream->users[stream->count] = hash_cell(lines, stream->user);
    stream->items[stream->count++] = hash_cell(lines, stream->item);
    return PH_OK;
}

static ph_status begin_request(struct cli_replay_stream *stream)
{
    const double former = stream->seconds;
    const char *text = stream->lines.cells[stream->time];
    ph__arena_reset(&stream->arena);
    stream->count = 0;
    if (!ph__number_parse(text, &stream->seconds) || !(stream->seconds >= 0))
        return fail_line(stream, "the time is no number of seconds from 0 on");
    if (stream->seconds < former)
        return fail_line(stream, "the time is before that of the row above: sort the stream by time");
    stream->name = ph__arena_strdup(&stream->arena, stream->lines.cells[stream->request]);
    return stream->name != NULL ? PH_OK : PH_ERROR_MEMORY;
}

ph_status cli_replay_next(struct cli_replay_stream *stream, bool *has_request_out)
{
    *has_request_out = stream->has_line;
    if (!stream->has_line)
        return PH_OK;
    PH_TRY(begin_request(stream));
    while (stream->has_line && strcmp(stream->lines.cells[stream->request], stream->name) == 0) {
        PH_TRY(add_row(stream));
        PH_TRY(ph__keyed_lines_next(&stream->lines, &stream->has_line));
    }
    return PH_OK;
}

static void close_reader(struct cli_replay_reader *reader)
{
    free(reader->places);
    free(reader->cells);
}

void cli_replay_close(struct cli_replay_stream *stream)
{
    ph__keyed_lines_close(&stream->lines);
    close_reader(&stream->student);
    close_reader(&stream->teacher);
    free(stream->users);
    free(stream->items);
    free(stream->user_cells);
    free(stream->texts);
    ph__arena_fini(&stream->arena);
    *stream = (struct cli_replay_stream){.count = 0};
}

/* ---- the survey ---- */

static uint64_t pair_of(uint64_t user, uint64_t item)
{
    return ph__hash_bytes((const uint64_t[]){user, item}, 2 * sizeof(uint64_t));
}

static int by_pair(const void *a, const void *b)
{
    const struct cli_replay_ask *left = a, *right = b;
    if (left->pair != right->pair)
        return left->pair < right->pair ? -1 : 1;
    return left->seconds < right->seconds ? -1 : left->seconds > right->seconds;
}

static ph_status add_asks(struct cli_replay_survey *survey, const struct cli_replay_stream *stream)
{
    survey->first = survey->num_requests == 0 ? stream->seconds : survey->first;
    survey->last = stream->seconds;
    survey->num_requests++;
    PH_TRY(ph__array_reserve(
        (void **)&survey->asks, &survey->capacity, survey->num_asks + stream->count, sizeof *survey->asks));
    for (size_t i = 0; i < stream->count; i++)
        survey->asks[survey->num_asks++] =
            (struct cli_replay_ask){pair_of(stream->users[i], stream->items[i]), stream->seconds};
    return PH_OK;
}

static ph_status read_asks(struct cli_replay_survey *survey, struct cli_replay_stream *stream)
{
    bool has_request = true;
    while (has_request) {
        PH_TRY(cli_replay_next(stream, &has_request));
        if (has_request)
            PH_TRY(add_asks(survey, stream));
    }
    return PH_OK;
}

ph_status cli_replay_survey(
    const char *path, const struct cli_replay_columns *columns, struct cli_replay_survey *survey)
{
    struct cli_replay_stream stream;
    ph_status status = cli_replay_open(&stream, path, columns, NULL, NULL);
    if (status == PH_OK)
        status = read_asks(survey, &stream);
    cli_replay_close(&stream);
    PH_TRY(status);
    if (survey->num_asks > 0)
        qsort(survey->asks, survey->num_asks, sizeof *survey->asks, by_pair);
    for (size_t i = 0; i < survey->num_asks; i++)
        if (i == 0 || survey->asks[i].pair != survey->asks[i - 1].pair)
            PH_TRY(ph__key_map_add(&survey->places, survey->asks[i].pair, (uint32_t)i));
    survey->num_pairs = survey->places.count;
    return PH_OK;
}

void cli_replay_survey_fini(struct cli_replay_survey *survey)
{
    free(survey->asks);
    ph__key_map_fini(&survey->places);
}

size_t cli_replay_asks(
    const struct cli_replay_survey *survey, uint64_t user, uint64_t item, double from, double to)
{
    const uint64_t pair = pair_of(user, item);
    const uint32_t place = ph__key_map_find(&survey->places, pair);
    size_t count = 0;
    for (size_t i = place; place != PH_NO_NUMBER && i < survey->num_asks && survey->asks[i].pair == pair &&
                           survey->asks[i].seconds <= to;
         i++)
        count += survey->asks[i].seconds > from;
    return count;
}
