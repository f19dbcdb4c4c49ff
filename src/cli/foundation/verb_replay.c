/* phloem replay STUDENT: sends a recorded stream of requests through the cache of pairs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option/option.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "base/text/number.h"
#include "base/thread/stop.h"
#include "cli/arguments.h"
#include "cli/foundation/replay.h"
#include "cli/output.h"
#include "cli/stop_signal.h"
#include "cli/verb.h"
#include "serve/speculation/speculation.h"

/* ---- settings ---- */

struct replay_settings {
    enum ph__pair_policy policy;
    double budget, coverage, tick_seconds, speed;
    uint64_t seed, connections;
    const char *time, *request;
};

#define KEY(member) struct replay_settings, member

static const struct ph__option options[] = {
    PH_CHOICE_KEY("policy", KEY(policy), "expected", "expected|random|latest|frequent|known",
        "Pairs that are computed first. expected: those that are likely to be asked for most often, as the "
        "server does; the others are there to be compared. known: those that the stream will ask for most."),
    PH_NUMBER_KEY("budget", KEY(budget), "0", 0, 1e6,
        "Pairs that the foundation model computes, as a share of the stream's different ones, evenly over "
        "its time. 0: speculation.rows_per_second says."),
    PH_NUMBER_KEY("coverage", KEY(coverage), "-1", -1, 1,
        "Share of rows, drawn at random, whose pairs are computed when they are asked for, in place of "
        "those of the cache; the others get nothing. -1: the cache.",
        .range_text = "-1 or 0 to 1"),
    PH_NUMBER_KEY("tick_seconds", KEY(tick_seconds), "30", 1e-3, 1e6,
        "Seconds of the stream after which pairs are computed again."),
    PH_NUMBER_KEY("speed", KEY(speed), "1", 1e-3, 1e6,
        "With --server: seconds of the stream that are sent in one of the clock."),
    PH_INTEGER_KEY("connections", KEY(connections), "8", 1, 256,
        "With --server: connections, each of which has one request in flight."),
    PH_INTEGER_KEY("seed", KEY(seed), "1", 0, 9e15, "Seed of what is drawn at random."),
    PH_TEXT_KEY("time", KEY(time), "time", "Column of a row's time in seconds."),
    PH_TEXT_KEY("request", KEY(request), "request", "Column that is the same in all rows of a request."),
};

const struct ph__option_table cli_replay_options = {
    .section = "replay",
    .help = "Keys of phloem replay; those of serve.model.speculation stand under speculation there.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct replay_settings),
};

struct replay {
    const char *folder, *data, *out, *config, *teacher, *join, *server, *model, *token_file;
    struct cli_learnt_rows learnt_rows;
    struct ph__key_map learnt;
    struct cli_texts sets;
    struct ph__arena arena;
    struct replay_settings settings;
    struct ph_speculation_settings speculation_settings;
    struct cli_replay_survey survey;
    struct cli_replay_stream stream;
    struct ph_session *student;
    struct ph__speculation *speculation;
    struct ph__writer *writer;
    double next_tick;
    uint64_t num_rows;
    /* of a request */
    float *features; /* (count, columns) */
    float *scores;   /* (count) */
    uint8_t *rungs;
    struct ph__speculation_figures half; /* when half of the time is over */
    bool is_second_half;
};

static struct cli_replay_columns columns_of(const struct replay *replay)
{
    return (struct cli_replay_columns){replay->settings.time, replay->settings.request,
        replay->speculation_settings.user, replay->speculation_settings.item};
}

/* ---- a request ---- */

struct cells_request {
    struct ph__request base;
    const struct ph__inputs *inputs;
    const struct ph_cell *cells;
};

static ph_status encode_cells(struct ph__request *base, struct ph__context *context, size_t row)
{
    const struct cells_request *request = (const struct cells_request *)base;
    return ph__inputs_encode(
        request->inputs, &context->row, request->cells + row * request->inputs->index.count, &context->rows);
}

static struct cells_request teacher_request(const struct replay *replay)
{
    const struct cli_replay_stream *stream = &replay->stream;
    return (struct cells_request){
        {stream->count, encode_cells}, &stream->teacher.session->inputs, stream->teacher.cells};
}

/* Computes pairs on the spot, all rows of a request but for those that are drawn as holes. */
static ph_status force(struct replay *replay)
{
    struct ph__pair_teacher *teacher = ph__speculation_teacher(replay->speculation);
    const size_t width = ph__speculation_columns(replay->speculation)->count, dim = teacher->encoder.dim;
    const struct ph__rng_key key = {.seed = replay->settings.seed, .stream = ph__hash_name("replay.holes")};
    struct cells_request request = teacher_request(replay);
    float *e = ph__arena_alloc_array(&replay->stream.arena, replay->stream.count * dim, sizeof *e);
    if (e == NULL)
        return PH_ERROR_MEMORY;
    for (size_t first = 0, count; first < replay->stream.count; first += count) {
        count = ph__min(replay->stream.count - first, teacher->session->max_batch);
        PH_TRY(ph__pair_teacher_take(teacher, &request.base, first, count));
        PH_TRY(ph__pair_teacher_run(teacher, e + first * dim));
    }
    memset(replay->features, 0, replay->stream.count * width * sizeof *replay->features);
    for (size_t i = 0; i < replay->stream.count; i++) {
        if (ph__rng_uniform(&key, replay->num_rows + i, 0) >= replay->settings.coverage)
            continue;
        memcpy(replay->features + i * width, e + i * dim, dim * sizeof *e);
        replay->features[i * width + dim] = 1;
    }
    return PH_OK;
}

/* Fills the student's columns of pairs, and scores. */
static ph_status score(struct replay *replay)
{
    struct cli_replay_reader *reader = &replay->stream.student;
    const size_t width = ph__speculation_columns(replay->speculation)->count, count = replay->stream.count;
    const size_t num_tasks = ph_session_num_tasks(replay->student);
    float *probabilities = ph__arena_alloc_array(&replay->stream.arena, count * num_tasks, sizeof(float));
    if (probabilities == NULL)
        return PH_ERROR_MEMORY;
    for (size_t column = 0; column < width; column++) {
        const size_t place = ph_session_find_column(
            replay->student, ph__name_index_text(ph__speculation_columns(replay->speculation), column));
        for (size_t i = 0; i < count && place != SIZE_MAX; i++)
            reader->cells[i * reader->num_columns + place] =
                (struct ph_cell){.kind = PH_CELL_REAL, .real = (double)replay->features[i * width + column]};
    }
    PH_TRY(ph_session_score(replay->student, count, reader->cells, probabilities));
    for (size_t i = 0; i < count; i++)
        replay->scores[i] = probabilities[i * num_tasks];
    return PH_OK;
}

static ph_status write_rows(struct replay *replay)
{
    const size_t width = ph__speculation_columns(replay->speculation)->count;
    const char separator = replay->stream.lines.separator;
    char text[PH_NUMBER_TEXT_BYTES];
    for (size_t i = 0; i < replay->stream.count && replay->writer != NULL; i++) {
        PH_TRY(ph__writer_write(replay->writer, replay->stream.texts[i].bytes, replay->stream.texts[i].size));
        for (size_t column = 0; column < width; column++) {
            const double number = (double)replay->features[i * width + column];
            const size_t size = ph__real_write(number, PH_FLOAT_DIGITS, text);
            PH_TRY(ph__writer_write(replay->writer, &separator, 1));
            PH_TRY(ph__writer_write(replay->writer, text, size));
        }
        PH_TRY(ph__writer_write(replay->writer, "\n", 1));
    }
    return PH_OK;
}

static ph_status tell_asked(struct replay *replay)
{
    const struct cli_replay_stream *stream = &replay->stream;
    struct cells_request request = teacher_request(replay);
    const struct ph__asked asked = {
        stream->count, stream->users, stream->items, replay->scores, stream->user_cells, &request.base};
    return ph__speculation_asked(replay->speculation, stream->seconds, &asked);
}

static ph_status work_until(struct replay *replay, double seconds)
{
    for (; replay->next_tick <= seconds; replay->next_tick += replay->settings.tick_seconds)
        PH_TRY(ph__speculation_work(replay->speculation, replay->next_tick, NULL, NULL));
    return PH_OK;
}

static ph_status take_request(struct replay *replay)
{
    const struct cli_replay_stream *stream = &replay->stream;
    const size_t width = ph__speculation_columns(replay->speculation)->count;
    replay->features =
        ph__arena_alloc_array(&replay->stream.arena, stream->count * width, sizeof *replay->features);
    replay->scores = ph__arena_alloc_array(&replay->stream.arena, stream->count, sizeof *replay->scores);
    if (replay->features == NULL || replay->scores == NULL)
        return PH_ERROR_MEMORY;
    const bool is_forced = replay->settings.coverage >= 0;
    if (is_forced) {
        PH_TRY(force(replay));
    } else {
        PH_TRY(work_until(replay, stream->seconds));
        ph__pair_cache_look_up(ph__speculation_cache(replay->speculation), stream->seconds, stream->count,
            stream->users, stream->items, replay->features, NULL);
        PH_TRY(score(replay));
        PH_TRY(tell_asked(replay));
    }
    replay->num_rows += stream->count;
    return write_rows(replay);
}

static ph_status take_requests(struct replay *replay)
{
    const double middle = (replay->survey.first + replay->survey.last) / 2;
    bool has_request = true;
    while (has_request) {
        if (ph__is_stopped(cli_stop_signal()))
            return ph_fail(ph__stop_status(cli_stop_signal()), "stopped by a signal");
        PH_TRY(cli_replay_next(&replay->stream, &has_request));
        if (!has_request)
            break;
        if (!replay->is_second_half && replay->stream.seconds >= middle) {
            ph__speculation_figures(replay->speculation, &replay->half);
            replay->is_second_half = true;
        }
        PH_TRY(take_request(replay));
    }
    return PH_OK;
}

/* ---- the whole ---- */

static ph_status write_header(struct replay *replay)
{
    const struct ph__header *header = &replay->stream.lines.header;
    const char separator[] = {replay->stream.lines.separator, '\0'};
    for (size_t i = 0; i < header->num_names; i++)
        PH_TRY(ph__writer_printf(replay->writer, "%s%s", i > 0 ? separator : "", header->names[i]));
    for (size_t i = 0; i < ph__speculation_columns(replay->speculation)->count; i++)
        PH_TRY(ph__writer_printf(replay->writer, "%s%s", separator,
            ph__name_index_text(ph__speculation_columns(replay->speculation), i)));
    return ph__writer_write(replay->writer, "\n", 1);
}

static double known_asks(void *context, double now, uint64_t user, uint64_t item)
{
    const struct replay *replay = context;
    return (double)cli_replay_asks(
        &replay->survey, user, item, now, now + replay->speculation_settings.seconds);
}

static ph_status open_all(struct replay *replay)
{
    const struct ph_session_options session = {.size = sizeof session, .max_batch = 1024};
    const struct ph__pair_options predictor = {.policy = replay->settings.policy,
        .seed = replay->settings.seed,
        .known_asks = known_asks,
        .known_context = replay};
    const struct cli_replay_columns columns = columns_of(replay);
    PH_TRY(cli_replay_survey(replay->data, &columns, &replay->survey));
    if (replay->survey.num_requests == 0)
        return ph_fail(PH_ERROR_DATA, "%s: there are no requests", replay->data);
    const double duration = replay->survey.last - replay->survey.first;
    if (replay->settings.budget > 0)
        replay->speculation_settings.rows_per_second =
            replay->settings.budget * (double)replay->survey.num_pairs / fmax(duration, 1);
    PH_TRY(ph_session_open(replay->folder, &session, &replay->student));
    PH_TRY(ph__speculation_create(&replay->speculation_settings, &predictor, &replay->speculation));
    PH_TRY(cli_replay_open(&replay->stream, replay->data, &columns, replay->student,
        ph__speculation_teacher(replay->speculation)->session));
    const char *const keys[] = {columns.time, columns.request, columns.user, columns.item};
    PH_TRY(cli_learnt_find(
        &replay->learnt_rows, replay->speculation_settings.teacher, keys, 4, &replay->learnt));
    replay->stream.learnt = &replay->learnt;
    replay->stream.folder = replay->speculation_settings.teacher;
    replay->next_tick = replay->survey.first;
    return PH_OK;
}

static ph_status run(struct replay *replay)
{
    PH_TRY(open_all(replay));
    if (replay->out == NULL)
        return take_requests(replay);
    PH_TRY(cli_output_spare_input(replay->out, replay->data));
    PH_TRY(ph__writer_open(replay->out, &replay->writer));
    ph_status status = write_header(replay);
    if (status == PH_OK)
        status = take_requests(replay);
    return ph__writer_end(replay->writer, status);
}

/* ---- figures ---- */

static void print_coverage(
    const char *what, const struct ph__speculation_figures *from, const struct ph__speculation_figures *to)
{
    uint64_t all = 0;
    for (size_t rung = 0; rung < PH_NUM_RUNGS; rung++)
        all += to->rungs[rung] - from->rungs[rung];
    printf("%-12s", what);
    for (size_t rung = 0; rung < PH_NUM_RUNGS; rung++)
        printf(" %s %.4f", ph__rung_name((enum ph__rung)rung),
            all > 0 ? (double)(to->rungs[rung] - from->rungs[rung]) / (double)all : 0);
    printf("\n");
}

static void print_figures(const struct replay *replay)
{
    const struct ph__speculation_figures none = {.stale = 0};
    struct ph__speculation_figures figures;
    ph__speculation_figures(replay->speculation, &figures);
    printf("stream       requests %" PRIu64 " rows %" PRIu64 " pairs %zu hours %.2f\n",
        replay->survey.num_requests, replay->num_rows, replay->survey.num_pairs,
        (replay->survey.last - replay->survey.first) / 3600);
    if (replay->settings.coverage >= 0)
        return;
    print_coverage("coverage", &none, &figures);
    print_coverage("second half", &replay->half, &figures);
    printf("teacher      rows %" PRIu64 " of_pairs %.4f microseconds_a_row %.1f\n", figures.teacher_rows,
        (double)figures.teacher_rows / (double)replay->survey.num_pairs,
        figures.teacher_rows > 0 ? (double)figures.teacher_ns / 1e3 / (double)figures.teacher_rows : 0);
    printf("cache        written %" PRIu64 " replaced %" PRIu64 " never_read %" PRIu64 " stale %" PRIu64 "\n",
        figures.written, figures.replaced, figures.never_read, figures.stale);
}

static ph_status read_settings(struct replay *replay)
{
    const struct ph__section sections[] = {{&cli_replay_options, &replay->settings},
        {&ph__speculation_file_options, &replay->speculation_settings}};
    PH_TRY(cli_sets_add(&replay->sets, &replay->arena, "speculation.teacher", replay->teacher));
    PH_TRY(
        ph__config_read(replay->config, replay->sets.items, replay->sets.count, sections, 2, &replay->arena));
    const char *teacher = replay->speculation_settings.teacher;
    if (replay->folder != NULL && (teacher == NULL || teacher[0] == '\0'))
        return ph_fail(PH_ERROR_USAGE, "replay requires --teacher DIR, the folder of a foundation model");
    return PH_OK;
}

static ph_status check(const struct replay *replay)
{
    if (replay->data == NULL)
        return ph_fail(PH_ERROR_USAGE, "replay requires --data FILE");
    if ((replay->folder != NULL) + (replay->join != NULL) + (replay->server != NULL) != 1)
        return ph_fail(PH_ERROR_USAGE,
            "replay requires one of DIR, the folder of a student, --server ADDRESS, and --join LOG");
    if (replay->server != NULL && (replay->model == NULL || replay->out != NULL))
        return ph_fail(PH_ERROR_USAGE, "--server requires --model NAME, and takes no --out: the server's "
                                       "feature log has what was served");
    if (replay->join != NULL && replay->out == NULL)
        return ph_fail(PH_ERROR_USAGE, "--join requires --out FILE");
    return PH_OK;
}

/* Joins, sends, or replays. */
static ph_status run_wanted(struct replay *replay)
{
    const struct replay_settings *settings = &replay->settings;
    if (replay->join != NULL)
        return cli_replay_join(replay->data, replay->join, settings->request, replay->out);
    if (replay->server != NULL)
        return cli_replay_send(replay->data,
            &(struct cli_replay_columns){.time = settings->time, .request = settings->request},
            &(struct cli_replay_target){replay->server, replay->model, replay->token_file, settings->speed,
                (size_t)settings->connections});
    PH_TRY(run(replay));
    print_figures(replay);
    return PH_OK;
}

ph_status verb_replay(int argc, char **argv)
{
    struct replay replay = {.folder = NULL};
    const struct cli_flag flags[] = {
        {"--data", CLI_TEXT, &replay.data, "FILE",
            "stream of requests in the order of time, csv (by its name) or tsv, with a header (required)"},
        {"--teacher", CLI_TEXT, &replay.teacher, "DIR",
            "folder of the foundation model, with its encoder (phloem encode); same as --set "
            "speculation.teacher=DIR"},
        {"--out", CLI_TEXT, &replay.out, "FILE",
            "the stream with what was served of each pair, for students to learn from"},
        {"--join", CLI_TEXT, &replay.join, "LOG",
            "writes the rows of the stream that a server's feature log has, with its features, instead of "
            "replaying"},
        {"--server", CLI_TEXT, &replay.server, "ADDRESS",
            "sends the stream to the server at this address, its REST wire, instead, by the clock"},
        {"--model", CLI_TEXT, &replay.model, "NAME", "model of the server"},
        {"--token-file", CLI_TEXT, &replay.token_file, "FILE", "bearer token of the server"},
        {"--learnt", CLI_TEXTS, &replay.learnt_rows.files, "FILE",
            "rows that the foundation model has learnt from, which are refused; may be repeated. Default: "
            "data.train of its config"},
        {"--unchecked", CLI_SWITCH, &replay.learnt_rows.is_unchecked, NULL,
            "takes rows that the foundation model has learnt from as well"},
        {"--config", CLI_TEXT, &replay.config, "FILE", "config with keys under replay and speculation"},
        {"--set", CLI_TEXTS, &replay.sets, "KEY=VALUE", "overrides the config's value"},
    };
    const struct cli_command command = {"replay",
        "replay runs/student --teacher runs/large --data stream.tsv --out served.tsv",
        "Sends a recorded stream of requests through the cache of pairs of a server, by the stream's own "
        "clock.\nThe model in DIR gives the scores by which pairs are predicted. With --server the stream "
        "goes to a running server.",
        "DIR", 0, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    replay.folder = arguments.num_positional > 0 ? arguments.positional[0] : NULL;
    PH_TRY(check(&replay));
    ph_status status = read_settings(&replay);
    if (status == PH_OK)
        status = run_wanted(&replay);
    ph__key_map_fini(&replay.learnt);
    cli_replay_close(&replay.stream);
    cli_replay_survey_fini(&replay.survey);
    ph__speculation_destroy(replay.speculation);
    ph_session_close(replay.student);
    ph__arena_fini(&replay.arena);
    return status;
}
