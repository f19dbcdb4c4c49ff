/* phloem teach DIR --data FILE --out LOG, and phloem teach --join LOG --data FILE --out FILE */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/memory/memory.h"
#include "cli/foundation/teach.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "serve/teacher/teacher_log.h"

/* ---- joining ---- */

enum { MOST_KEYS = PH_CLI_MAX_SETS };

struct joining {
    struct ph__arena arena;
    struct ph__teacher_log log;
    struct ph__keyed_lines lines;
    struct ph__writer *writer;
    uint64_t num_rows, num_blank;
};

/* Cuts a list at its commas. */
static ph_status cut_words(
    struct ph__arena *arena, const char *list, const char *words_out[MOST_KEYS], size_t *count_out)
{
    char *rest = ph__arena_strdup(arena, list);
    *count_out = 0;
    if (rest == NULL)
        return PH_ERROR_MEMORY;
    for (char *word; *list != '\0' && (word = strsep(&rest, ",")) != NULL && *count_out < MOST_KEYS;)
        words_out[(*count_out)++] = word;
    return PH_OK;
}

/* Writes a name and the separator, quoted where csv needs it. */
static ph_status write_name(const struct joining *joining, const char *name)
{
    const char separator = joining->lines.separator;
    if (separator != ',' || strpbrk(name, ",\"") == NULL)
        return ph__writer_printf(joining->writer, "%s%c", name, separator);
    PH_TRY(ph__writer_write(joining->writer, "\"", 1));
    for (; *name != '\0'; name++) {
        if (*name == '"')
            PH_TRY(ph__writer_write(joining->writer, name, 1));
        PH_TRY(ph__writer_write(joining->writer, name, 1));
    }
    return ph__writer_printf(joining->writer, "\"%c", separator);
}

/* Writes the header with a column for each task: "teacher", or "teacher_TASK" of several. */
static ph_status write_header(struct joining *joining)
{
    const struct ph__header *header = &joining->lines.header;
    const char *tasks[MOST_KEYS];
    size_t num_tasks;
    PH_TRY(cut_words(&joining->arena, joining->log.tasks, tasks, &num_tasks));
    for (size_t i = 0; i < header->num_names; i++)
        PH_TRY(write_name(joining, header->names[i]));
    for (size_t i = 0; i < num_tasks; i++)
        PH_TRY(num_tasks == 1 ? ph__writer_printf(joining->writer, "teacher")
                              : ph__writer_printf(joining->writer, "%steacher_%s",
                                    i > 0 ? (const char[]){joining->lines.separator, '\0'} : "", tasks[i]));
    return ph__writer_write(joining->writer, "\n", 1);
}

static ph_status write_line(struct joining *joining)
{
    const struct ph__keyed_lines *lines = &joining->lines;
    const float *probabilities = ph__teacher_log_find(&joining->log, lines->key);
    joining->num_rows++;
    joining->num_blank += probabilities == NULL;
    PH_TRY(ph__writer_write(joining->writer, lines->text.bytes, lines->text.size));
    for (size_t task = 0; task < joining->log.num_tasks; task++) {
        PH_TRY(ph__writer_write(joining->writer, &lines->separator, 1));
        if (probabilities != NULL)
            PH_TRY(ph__writer_printf(joining->writer, "%.9g", (double)probabilities[task]));
    }
    return ph__writer_write(joining->writer, "\n", 1);
}

static ph_status write_lines(struct joining *joining)
{
    bool has_line = true;
    PH_TRY(write_header(joining));
    while (has_line) {
        PH_TRY(ph__keyed_lines_next(&joining->lines, &has_line));
        if (has_line)
            PH_TRY(write_line(joining));
    }
    return PH_OK;
}

static ph_status join(struct joining *joining, const struct cli_teach_request *request)
{
    const char *path = request->data.items[0], *keys[MOST_KEYS];
    size_t num_keys;
    PH_TRY(cli_output_spare_input(request->out, path));
    PH_TRY(cli_output_spare_input(request->out, request->join));
    PH_TRY(ph__teacher_log_read(&joining->log, request->join));
    PH_TRY(cut_words(&joining->arena, joining->log.keys, keys, &num_keys));
    PH_TRY(ph__keyed_lines_open(&joining->lines, path, cli_is_csv(path), keys, num_keys));
    PH_TRY(ph__writer_open(request->out, &joining->writer));
    return ph__writer_end(joining->writer, write_lines(joining));
}

/* Writes the lines of a stream, each with what the log says of its example: a blank where it has none. */
static ph_status join_stream(const struct cli_teach_request *request)
{
    struct joining joining = {.log.descriptor = -1};
    const ph_status status = join(&joining, request);
    if (status == PH_OK)
        fprintf(strcmp(request->out, "-") == 0 ? stderr : stdout,
            "%s: %" PRIu64 " rows, %" PRIu64 " of them without a teacher\n", request->out, joining.num_rows,
            joining.num_blank);
    ph__keyed_lines_close(&joining.lines);
    ph__teacher_log_close(&joining.log);
    ph__arena_fini(&joining.arena);
    return status;
}

/* ---- the verb ---- */

static ph_status check(const struct cli_teach_request *request)
{
    if (request->out == NULL || request->data.count == 0)
        return ph_fail(PH_ERROR_USAGE, "teach requires --data FILE and --out FILE");
    if ((request->folder == NULL) == (request->join == NULL))
        return ph_fail(PH_ERROR_USAGE, "teach requires DIR, the folder of a teacher, or --join LOG");
    if (request->join != NULL && request->data.count > 1)
        return ph_fail(PH_ERROR_USAGE, "--join takes one --data FILE");
    if (request->join != NULL && (request->keys.count > 0 || request->learnt.files.count > 0))
        return ph_fail(PH_ERROR_USAGE, "--join takes neither --key nor --learnt: the log names its key");
    if (request->learnt.is_unchecked && request->learnt.files.count > 0)
        return ph_fail(PH_ERROR_USAGE, "--unchecked and --learnt contradict each other");
    for (size_t i = 0; i < request->keys.count; i++)
        if (strpbrk(request->keys.items[i], ",\t") != NULL)
            return ph_fail(PH_ERROR_USAGE,
                "--key %s: give each column its own --key; names with a comma or a tab "
                "cannot be part of a key",
                request->keys.items[i]);
    return PH_OK;
}

ph_status verb_teach(int argc, char **argv)
{
    struct cli_teach_request request = {0};
    const struct cli_flag flags[] = {
        {"--data", CLI_TEXTS, &request.data, "FILE",
            "stream of examples, csv (by its name) or tsv, with a header; may be repeated without --join "
            "(required)"},
        {"--out", CLI_TEXT, &request.out, "FILE",
            "log of the teacher's probabilities, which is appended to; with --join the stream with the "
            "column teacher, -: standard output (required)"},
        {"--key", CLI_TEXTS, &request.keys, "COLUMN",
            "column that names an example; may be repeated. Default: the whole line does"},
        {"--learnt", CLI_TEXTS, &request.learnt.files, "FILE",
            "rows that the teacher has learnt from, which are refused; may be repeated. Default: data.train "
            "of its config"},
        {"--unchecked", CLI_SWITCH, &request.learnt.is_unchecked, NULL,
            "scores rows that the teacher has learnt from as well"},
        {"--join", CLI_TEXT, &request.join, "LOG",
            "writes the stream with what LOG says of each example, instead of scoring"},
        {"--quiet", CLI_SWITCH, &request.is_quiet, NULL, "prints no progress"},
    };
    const struct cli_command command = {"teach", "teach runs/large --data stream.tsv --out teacher.log",
        "Scores each example of the streams once with the model in DIR, and logs its probabilities for the\n"
        "students that learn from them (train.distill). A command that was stopped goes on where it ended.",
        "DIR", 0, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    request.folder = arguments.num_positional > 0 ? arguments.positional[0] : NULL;
    PH_TRY(check(&request));
    return request.join != NULL ? join_stream(&request) : cli_teach_score(&request);
}
