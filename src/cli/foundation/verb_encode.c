/* phloem encode FM: fits the encoder with which a foundation model tells few numbers of a pair. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/thread/stop.h"
#include "cli/arguments.h"
#include "cli/foundation/learnt_rows.h"
#include "cli/stop_signal.h"
#include "cli/verb.h"
#include "serve/speculation/pair_teacher.h"
#include "store/checkpoint_names.h"

enum { BATCH_ROWS = 256, DEFAULT_NUMBERS = 16, DEFAULT_ROWS = 100000 };

struct encoding {
    const char *folder, *data, *numbers_text, *rows_text;
    int64_t dim, most_rows;
    struct ph__arena arena;
    struct ph_session *session;
    struct ph__keyed_lines lines;
    size_t num_columns, output, width, num_tasks;
    size_t *places;    /* (num_columns) */
    float *z, *logits; /* (most_rows, width), (most_rows, num_tasks): a sample */
    uint64_t num_read;
    /* Rows of the sample that wait to be scored. */
    struct ph__arena texts;
    struct ph_cell *cells; /* (BATCH_ROWS, num_columns) */
    size_t *targets;       /* (BATCH_ROWS) rows of the sample that they become */
    size_t num_waiting;
    struct ph__rng_sequence random;
};

static ph_status score_waiting(struct encoding *encoding)
{
    const size_t outputs[] = {encoding->output, ph_session_find_output(encoding->session, "logit")};
    const size_t count = encoding->num_waiting, width = encoding->width, tasks = encoding->num_tasks;
    float *values[] = {ph__arena_alloc_array(&encoding->texts, count * width, sizeof(float)),
        ph__arena_alloc_array(&encoding->texts, count * tasks, sizeof(float))};
    if (values[0] == NULL || values[1] == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph_session_score_outputs(encoding->session, count, encoding->cells, 2, outputs, values));
    for (size_t i = 0; i < count; i++) {
        const size_t target = encoding->targets[i];
        for (size_t k = 0; k < width; k++)
            encoding->z[target * width + k] = values[0][i * width + k];
        for (size_t k = 0; k < tasks; k++)
            encoding->logits[target * tasks + k] = values[1][i * tasks + k];
    }
    encoding->num_waiting = 0;
    ph__arena_reset(&encoding->texts);
    return PH_OK;
}

/* Takes a line into the sample, in the place of a random one when it is full. */
static ph_status take_line(struct encoding *encoding)
{
    const uint64_t most = (uint64_t)encoding->most_rows, number = encoding->num_read++;
    const uint64_t target = number < most ? number : ph__rng_below(&encoding->random, number + 1);
    if (target >= most)
        return PH_OK;
    PH_TRY(ph__keyed_lines_copy(&encoding->lines, encoding->num_columns, encoding->places, &encoding->texts,
        encoding->cells + encoding->num_waiting * encoding->num_columns));
    encoding->targets[encoding->num_waiting++] = (size_t)target;
    return encoding->num_waiting == BATCH_ROWS ? score_waiting(encoding) : PH_OK;
}

static ph_status read_sample(struct encoding *encoding)
{
    bool has_line = true;
    PH_TRY(ph__keyed_lines_match(&encoding->lines, encoding->session, NULL, encoding->places));
    while (has_line) {
        if (ph__is_stopped(cli_stop_signal()))
            return ph_fail(ph__stop_status(cli_stop_signal()), "stopped by a signal; nothing was written");
        PH_TRY(ph__keyed_lines_next(&encoding->lines, &has_line));
        if (has_line)
            PH_TRY(take_line(encoding));
    }
    return score_waiting(encoding);
}

static ph_status fit(struct encoding *encoding)
{
    const uint64_t count = encoding->num_read < (uint64_t)encoding->most_rows ? encoding->num_read
                                                                              : (uint64_t)encoding->most_rows;
    const char *model = ph__path_join(&encoding->arena, encoding->folder, "model.safetensors");
    const char *path = ph__path_join(&encoding->arena, encoding->folder, PH_PAIR_ENCODER_FILE);
    struct ph__pair_encoder encoder;
    if (model == NULL || path == NULL)
        return PH_ERROR_MEMORY;
    if (count == 0)
        return ph_fail(PH_ERROR_DATA, "%s: there are no rows", encoding->data);
    PH_TRY(ph__pair_encoder_fit((size_t)count, encoding->width, encoding->z, encoding->num_tasks,
        encoding->logits, (size_t)encoding->dim, &encoder));
    ph_status status = ph__checkpoint_read_seal(model, encoder.teacher);
    if (status == PH_OK)
        status = ph__pair_encoder_save(&encoder, path);
    if (status == PH_OK)
        printf("%s: %zu numbers for %zu of '" PH_PAIR_OUTPUT "', with %.4f of their variance, of %" PRIu64
               " rows\n",
            path, encoder.dim, encoder.width, encoder.kept, count);
    ph__pair_encoder_fini(&encoder);
    return status;
}

static ph_status open_all(struct encoding *encoding)
{
    const struct ph_session_options options = {.size = sizeof options, .max_batch = BATCH_ROWS};
    PH_TRY(ph_session_open(encoding->folder, &options, &encoding->session));
    struct ph_session *session = encoding->session;
    encoding->output = ph_session_find_output(session, PH_PAIR_OUTPUT);
    if (encoding->output == SIZE_MAX)
        return ph_fail(PH_ERROR_USAGE, "%s: the model has no value '" PH_PAIR_OUTPUT "' to be encoded",
            encoding->folder);
    encoding->width = ph_session_output_width(session, encoding->output);
    encoding->num_tasks = ph_session_num_tasks(session);
    if (encoding->numbers_text == NULL && (size_t)encoding->dim > encoding->width)
        encoding->dim = (int64_t)encoding->width;
    if ((size_t)encoding->dim < encoding->num_tasks || (size_t)encoding->dim > encoding->width)
        return ph_fail(PH_ERROR_USAGE,
            "--numbers %" PRId64 ": must be from %zu, the tasks, to %zu, the width of '" PH_PAIR_OUTPUT "'",
            encoding->dim, encoding->num_tasks, encoding->width);
    const size_t most = (size_t)encoding->most_rows;
    encoding->num_columns = ph_session_num_columns(session);
    encoding->places = ph__arena_alloc_array(&encoding->arena, encoding->num_columns, sizeof(size_t));
    encoding->targets = ph__arena_alloc_array(&encoding->arena, BATCH_ROWS, sizeof(size_t));
    encoding->cells =
        ph__arena_alloc_array(&encoding->arena, BATCH_ROWS * encoding->num_columns, sizeof(struct ph_cell));
    encoding->z = ph__arena_alloc_array(&encoding->arena, most * encoding->width, sizeof(float));
    encoding->logits = ph__arena_alloc_array(&encoding->arena, most * encoding->num_tasks, sizeof(float));
    if (encoding->places == NULL || encoding->targets == NULL || encoding->cells == NULL ||
        encoding->z == NULL || encoding->logits == NULL)
        return PH_ERROR_MEMORY;
    return ph__keyed_lines_open(&encoding->lines, encoding->data, cli_is_csv(encoding->data), NULL, 0);
}

ph_status verb_encode(int argc, char **argv)
{
    struct encoding encoding = {
        .dim = DEFAULT_NUMBERS, .most_rows = DEFAULT_ROWS, .random.key.stream = ph__hash_name("cli.encode")};
    const struct cli_flag flags[] = {
        {"--data", CLI_TEXT, &encoding.data, "FILE",
            "rows as the model will meet them, csv (by its name) or tsv, with a header (required)"},
        {"--numbers", CLI_TEXT, &encoding.numbers_text, "N",
            "numbers of a pair. Default: 16, or all of a narrower model"},
        {"--rows", CLI_TEXT, &encoding.rows_text, "N",
            "rows of the sample that is fitted to. Default: 100000"},
    };
    const struct cli_command command = {"encode", "encode runs/large --data stream.tsv",
        "Fits the encoder with which the model in DIR tells served models a few numbers of a pair of user\n"
        "and item, and puts it into DIR (serve.model.speculation).",
        "DIR", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    encoding.folder = arguments.positional[0];
    if (encoding.data == NULL)
        return ph_fail(PH_ERROR_USAGE, "encode requires --data FILE");
    PH_TRY(cli_count_parse("--numbers", encoding.numbers_text, 1, 256, &encoding.dim));
    PH_TRY(cli_count_parse("--rows", encoding.rows_text, 1, 10000000, &encoding.most_rows));
    ph_status status = open_all(&encoding);
    if (status == PH_OK)
        status = read_sample(&encoding);
    if (status == PH_OK)
        status = fit(&encoding);
    ph__keyed_lines_close(&encoding.lines);
    ph_session_close(encoding.session);
    ph__arena_fini(&encoding.texts);
    ph__arena_fini(&encoding.arena);
    return status;
}
