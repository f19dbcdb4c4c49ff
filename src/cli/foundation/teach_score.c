/* Scores examples with a teacher, each once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/thread/stop.h"
#include "cli/foundation/teach.h"
#include "cli/progress.h"
#include "cli/stop_signal.h"
#include "data/source/input_file.h"
#include "phloem/serve.h"
#include "serve/model_folder.h"
#include "serve/teacher/teacher_log.h"
#include "store/checkpoint_names.h"

enum { BATCH_ROWS = 4096, SESSION_ROWS = 1024 };

struct scoring {
    const struct cli_teach_request *request;
    struct ph__arena arena;
    struct ph_session *session;
    struct ph__key_map learnt; /* keys of rows that the teacher has learnt from */
    struct ph__teacher_log log;
    /* Examples that wait for their scores. */
    struct ph__arena texts;
    struct ph_cell *cells; /* (BATCH_ROWS, num_columns) */
    uint64_t *keys;        /* (BATCH_ROWS) */
    struct ph__key_map waiting;
    float *probabilities; /* (BATCH_ROWS, num_tasks) */
    size_t count, num_columns;
    size_t *places; /* (num_columns) in the header of the file that is read */
    uint64_t num_rows, num_scored;
    struct cli_progress progress;
    const volatile int *signal;
};

/* ---- examples ---- */

static ph_status score_waiting(struct scoring *scoring)
{
    const size_t num_tasks = scoring->log.num_tasks;
    if (scoring->count == 0)
        return PH_OK;
    PH_TRY(ph_session_score(scoring->session, scoring->count, scoring->cells, scoring->probabilities));
    for (size_t i = 0; i < scoring->count; i++)
        PH_TRY(ph__teacher_log_add(&scoring->log, scoring->keys[i], scoring->probabilities + i * num_tasks));
    scoring->num_scored += scoring->count;
    scoring->count = 0;
    ph__arena_reset(&scoring->texts);
    ph__key_map_fini(&scoring->waiting);
    return ph__teacher_log_flush(&scoring->log);
}

static ph_status add_waiting(struct scoring *scoring, const struct ph__keyed_lines *lines)
{
    PH_TRY(ph__keyed_lines_copy(lines, scoring->num_columns, scoring->places, &scoring->texts,
        scoring->cells + scoring->count * scoring->num_columns));
    scoring->keys[scoring->count++] = lines->key;
    PH_TRY(ph__key_map_add(&scoring->waiting, lines->key, 0));
    return scoring->count == BATCH_ROWS ? score_waiting(scoring) : PH_OK;
}

static ph_status take_line(struct scoring *scoring, const struct ph__keyed_lines *lines)
{
    scoring->num_rows++;
    if (ph__teacher_log_find(&scoring->log, lines->key) != NULL ||
        ph__key_map_find(&scoring->waiting, lines->key) != PH_NO_NUMBER)
        return PH_OK;
    PH_TRY(cli_learnt_check(&scoring->learnt, lines, scoring->request->folder));
    return add_waiting(scoring, lines);
}

static void show(struct scoring *scoring, const char *path)
{
    char line[256];
    snprintf(line, sizeof line, "%s: %" PRIu64 " rows so far, %" PRIu64 " scored", path, scoring->num_rows,
        scoring->num_scored);
    if (!scoring->request->is_quiet)
        cli_progress_show_text(&scoring->progress, line);
}

static ph_status score_file(struct scoring *scoring, const char *path)
{
    const struct cli_texts *keys = &scoring->request->keys;
    struct ph__keyed_lines lines;
    bool has_line = true;
    ph_status status = ph__keyed_lines_open(&lines, path, cli_is_csv(path), keys->items, keys->count);
    if (status == PH_OK)
        status = ph__keyed_lines_match(&lines, scoring->session, NULL, scoring->places);
    while (status == PH_OK && has_line) {
        status =
            ph__is_stopped(scoring->signal) ? PH_ERROR_INTERRUPTED : ph__keyed_lines_next(&lines, &has_line);
        if (status == PH_OK && has_line)
            status = take_line(scoring, &lines);
        if (scoring->num_rows % BATCH_ROWS == 0)
            show(scoring, path);
    }
    ph__keyed_lines_close(&lines);
    return status;
}

/* ---- all ---- */

/* Joins words by commas. */
static const char *join_words(struct ph__arena *arena, const char *const *words, size_t count)
{
    const char *joined = "";
    for (size_t i = 0; i < count && joined != NULL; i++)
        joined = ph__arena_printf(arena, "%s%s%s", joined, i > 0 ? "," : "", words[i]);
    return joined;
}

/* Names the model's labels. */
static ph_status name_tasks(struct scoring *scoring, const char **tasks_out)
{
    const char *path = ph__path_join(&scoring->arena, scoring->request->folder, "encoder.json");
    const char *words[PH_CLI_MAX_SETS];
    struct ph_encoder *encoder;
    size_t count = 0;
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph_encoder_load(path, &encoder));
    for (size_t i = 0; i < encoder->num_columns && count < PH_CLI_MAX_SETS; i++)
        if (encoder->columns[i].kind == PH_FIELD_LABEL)
            words[count++] = encoder->columns[i].name;
    *tasks_out = join_words(&scoring->arena, words, count);
    ph_encoder_destroy(encoder);
    return *tasks_out != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status open_log(struct scoring *scoring)
{
    const struct cli_teach_request *request = scoring->request;
    const char *model = ph__path_join(&scoring->arena, request->folder, "model.safetensors");
    const char *keys = join_words(&scoring->arena, request->keys.items, request->keys.count), *tasks;
    char seal[65];
    if (model == NULL || keys == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(name_tasks(scoring, &tasks));
    PH_TRY(ph__checkpoint_read_seal(model, seal));
    return ph__teacher_log_open(&scoring->log, request->out, keys, tasks, seal);
}

static ph_status open_all(struct scoring *scoring)
{
    const struct ph_session_options options = {.size = sizeof options, .max_batch = SESSION_ROWS};
    PH_TRY(ph_session_open(scoring->request->folder, &options, &scoring->session));
    PH_TRY(open_log(scoring));
    const size_t num_columns = scoring->num_columns = ph_session_num_columns(scoring->session);
    scoring->places = ph__arena_alloc_array(&scoring->arena, num_columns, sizeof *scoring->places);
    scoring->keys = ph__arena_alloc_array(&scoring->arena, BATCH_ROWS, sizeof *scoring->keys);
    scoring->cells = ph__arena_alloc_array(&scoring->arena, BATCH_ROWS * num_columns, sizeof *scoring->cells);
    scoring->probabilities = ph__arena_alloc_array(
        &scoring->arena, BATCH_ROWS * scoring->log.num_tasks, sizeof *scoring->probabilities);
    return scoring->places != NULL && scoring->keys != NULL && scoring->cells != NULL &&
                   scoring->probabilities != NULL
               ? PH_OK
               : PH_ERROR_MEMORY;
}

static ph_status score_all(struct scoring *scoring)
{
    const struct cli_texts *data = &scoring->request->data;
    PH_TRY(open_all(scoring));
    PH_TRY(cli_learnt_find(&scoring->request->learnt, scoring->request->folder, scoring->request->keys.items,
        scoring->request->keys.count, &scoring->learnt));
    for (size_t i = 0; i < data->count; i++)
        PH_TRY(score_file(scoring, data->items[i]));
    return score_waiting(scoring);
}

ph_status cli_teach_score(const struct cli_teach_request *request)
{
    struct scoring scoring = {
        .request = request, .progress = cli_progress_on(stderr), .signal = cli_stop_signal()};
    ph_status status = score_all(&scoring);
    cli_progress_end(&scoring.progress);
    if (status == PH_ERROR_INTERRUPTED)
        status = ph_fail(ph__stop_status(scoring.signal),
            "stopped by a signal: the same command continues %s where it ended", request->out);
    if (status == PH_OK)
        printf("%s: %zu examples by %zu snapshots; %" PRIu64 " rows asked for %" PRIu64
               " examples that it did not have\n",
            request->out, scoring.log.num_rows, scoring.log.num_snapshots, scoring.num_rows,
            scoring.num_scored);
    ph__teacher_log_close(&scoring.log);
    ph_session_close(scoring.session);
    ph__key_map_fini(&scoring.learnt);
    ph__key_map_fini(&scoring.waiting);
    ph__arena_fini(&scoring.texts);
    ph__arena_fini(&scoring.arena);
    return status;
}
