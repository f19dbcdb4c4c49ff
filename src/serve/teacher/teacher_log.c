#include "serve/teacher/teacher_log.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/memory/memory.h"
#include "base/text/number.h"

static const char head[] = "phloem teacher log 1\t", snapshot[] = "snapshot\t";

enum { KEY_DIGITS = 16, MOST_NUMBER = 20 };

/* ---- rows ---- */

const float *ph__teacher_log_find(const struct ph__teacher_log *log, uint64_t key)
{
    const uint32_t row = ph__key_map_find(&log->rows, key);
    return row != PH_NO_NUMBER ? log->probabilities + row * log->num_tasks : NULL;
}

/* Adds a row, and returns where its probabilities go; NULL: out of memory. */
static float *add_row(struct ph__teacher_log *log, uint64_t key)
{
    void *probabilities = log->probabilities;
    if (log->num_rows >= PH_NO_NUMBER ||
        ph__array_reserve(&probabilities, &log->capacity, (log->num_rows + 1) * log->num_tasks,
            sizeof *log->probabilities) != PH_OK)
        return NULL;
    log->probabilities = probabilities;
    if (ph__key_map_add(&log->rows, key, (uint32_t)log->num_rows) != PH_OK)
        return NULL;
    return log->probabilities + log->num_rows++ * log->num_tasks;
}

/* ---- reading ---- */

static ph_status fail_line(const struct ph__reader *reader, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": %s", ph__reader_path(reader),
        ph__reader_line_number(reader), problem);
}

static size_t count_words(const char *list)
{
    size_t count = 1;
    for (; *list != '\0'; list++)
        count += *list == ',';
    return count;
}

static ph_status read_head(struct ph__teacher_log *log, const struct ph__reader *reader, const char *line)
{
    const char *keys = line + strlen(head), *end;
    if (strncmp(line, head, strlen(head)) != 0 || (end = strchr(keys, '\t')) == NULL || end[1] == '\0')
        return fail_line(reader, "not the head of a teacher's log, as phloem teach writes it");
    log->keys = ph__arena_printf(&log->arena, "%.*s", (int)(end - keys), keys);
    log->tasks = ph__arena_strdup(&log->arena, end + 1);
    if (log->keys == NULL || log->tasks == NULL)
        return PH_ERROR_MEMORY;
    log->num_tasks = count_words(log->tasks);
    return PH_OK;
}

/* Reads one probability, and moves behind the tab or end that follows it. */
static bool read_probability(char **at, bool is_last, float *probability_out)
{
    char *end = *at + strcspn(*at, "\t");
    double number;
    const bool is_end = *end == '\0';
    *end = '\0';
    if (is_end != is_last || !ph__number_parse(*at, &number) || !((float)number > 0 && (float)number < 1))
        return false;
    *probability_out = (float)number;
    *at = end + !is_end;
    return true;
}

static ph_status read_row(struct ph__teacher_log *log, const struct ph__reader *reader, char *line)
{
    char *at = line + KEY_DIGITS;
    if (strspn(line, "0123456789abcdef") != KEY_DIGITS || *at != '\t')
        return fail_line(reader, "not an example of a teacher's log: it begins with 16 hexadecimal digits");
    *at++ = '\0';
    float *probabilities = add_row(log, strtoull(line, NULL, KEY_DIGITS));
    if (probabilities == NULL)
        return ph__out_of_memory("the rows of %s", log->path);
    for (size_t task = 0; task < log->num_tasks; task++)
        if (!read_probability(&at, task + 1 == log->num_tasks, &probabilities[task]))
            return fail_line(reader, "a teacher's probability is missing, or not above 0 and below 1");
    return PH_OK;
}

static ph_status read_line(struct ph__teacher_log *log, const struct ph__reader *reader, char *line)
{
    if (log->keys == NULL)
        return read_head(log, reader, line);
    if (strncmp(line, snapshot, strlen(snapshot)) != 0)
        return read_row(log, reader, line);
    log->num_snapshots++;
    snprintf(log->seal, sizeof log->seal, "%s", line + strlen(snapshot));
    return PH_OK;
}

/* Reads the lines before `end`, and gives the bytes that they take. */
static ph_status read_lines(
    struct ph__teacher_log *log, struct ph__reader *reader, uint64_t end, uint64_t *bytes_out)
{
    char *line;
    size_t length;
    *bytes_out = 0;
    while (*bytes_out < end) {
        PH_TRY(ph__reader_line(reader, &line, &length));
        if (line == NULL)
            break;
        PH_TRY(read_line(log, reader, line));
        *bytes_out = ph__reader_byte(reader);
    }
    return PH_OK;
}

/* Finds the end of the last line that is whole. */
static ph_status find_end(const char *path, uint64_t *end_out)
{
    char piece[4096];
    int descriptor;
    uint64_t end;
    PH_TRY(ph__file_open(path, &descriptor, &end));
    ph_status status = PH_OK;
    *end_out = 0;
    while (end > 0 && status == PH_OK && *end_out == 0) {
        const size_t size = end < sizeof piece ? (size_t)end : sizeof piece;
        status = ph__file_read_at(descriptor, path, end - size, piece, size);
        const char *mark = status == PH_OK ? memrchr(piece, '\n', size) : NULL;
        *end_out = mark != NULL ? end - size + (size_t)(mark - piece) + 1 : 0;
        end -= size;
    }
    close(descriptor);
    return status;
}

static ph_status read_all(struct ph__teacher_log *log, uint64_t *bytes_out)
{
    struct ph__reader *reader;
    uint64_t end;
    PH_TRY(find_end(log->path, &end));
    PH_TRY(ph__reader_open(log->path, &reader));
    const ph_status status = read_lines(log, reader, end, bytes_out);
    ph__reader_close(reader);
    return status;
}

ph_status ph__teacher_log_read(struct ph__teacher_log *log, const char *path)
{
    uint64_t bytes;
    *log = (struct ph__teacher_log){.path = path, .descriptor = -1};
    PH_TRY(read_all(log, &bytes));
    return log->keys != NULL ? PH_OK
                             : ph_fail(PH_ERROR_DATA, "%s: the file is empty, not a teacher's log", path);
}

/* ---- appending ---- */

static ph_status begin_file(struct ph__teacher_log *log, const char *keys, const char *tasks)
{
    log->keys = ph__arena_strdup(&log->arena, keys);
    log->tasks = ph__arena_strdup(&log->arena, tasks);
    if (log->keys == NULL || log->tasks == NULL)
        return PH_ERROR_MEMORY;
    log->num_tasks = count_words(tasks);
    ph__buffer_append_text(&log->pending, head);
    ph__buffer_append_text(&log->pending, keys);
    ph__buffer_append_text(&log->pending, "\t");
    ph__buffer_append_text(&log->pending, tasks);
    ph__buffer_append_text(&log->pending, "\n");
    return PH_OK;
}

static ph_status compare(const struct ph__teacher_log *log, const char *keys, const char *tasks)
{
    if (strcmp(log->keys, keys) != 0)
        return ph_fail(PH_ERROR_USAGE, "%s: its examples have the key '%s', not '%s': choose another --out",
            log->path, log->keys, keys);
    if (strcmp(log->tasks, tasks) != 0)
        return ph_fail(PH_ERROR_USAGE,
            "%s: its teachers have the tasks %s, this one has %s: choose another "
            "--out",
            log->path, log->tasks, tasks);
    return PH_OK;
}

ph_status ph__teacher_log_open(
    struct ph__teacher_log *log, const char *path, const char *keys, const char *tasks, const char *seal)
{
    uint64_t bytes;
    *log = (struct ph__teacher_log){.path = path, .descriptor = -1};
    log->descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (log->descriptor < 0)
        return ph__file_cannot_write(path);
    if (flock(log->descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return ph_fail(PH_ERROR_USAGE, "%s: another process appends to the log", path);
    PH_TRY(read_all(log, &bytes));
    if (ftruncate(log->descriptor, (off_t)bytes) != 0 || lseek(log->descriptor, 0, SEEK_END) < 0)
        return ph__file_cannot_write(path);
    PH_TRY(log->keys == NULL ? begin_file(log, keys, tasks) : compare(log, keys, tasks));
    if (strcmp(log->seal, seal) != 0) {
        log->num_snapshots++;
        snprintf(log->seal, sizeof log->seal, "%s", seal);
        ph__buffer_append_text(&log->pending, snapshot);
        ph__buffer_append_text(&log->pending, seal);
        ph__buffer_append_text(&log->pending, "\n");
    }
    return PH_OK;
}

/* Moves rounded probabilities into (0, 1). */
static float open_probability(float probability)
{
    return fminf(fmaxf(probability, FLT_MIN), 1 - FLT_EPSILON / 2);
}

ph_status ph__teacher_log_add(struct ph__teacher_log *log, uint64_t key, const float *probabilities)
{
    char text[KEY_DIGITS + MOST_NUMBER];
    for (size_t task = 0; task < log->num_tasks; task++)
        if (isnan(probabilities[task]))
            return ph_fail(PH_ERROR_DATA, "%s: the teacher gives a score that is not a number", log->path);
    float *row = add_row(log, key);
    if (row == NULL)
        return ph__out_of_memory("the rows of %s", log->path);
    for (size_t task = 0; task < log->num_tasks; task++)
        row[task] = open_probability(probabilities[task]);
    snprintf(text, sizeof text, "%016" PRIx64, key);
    ph__buffer_append_text(&log->pending, text);
    for (size_t task = 0; task < log->num_tasks; task++) {
        snprintf(text, sizeof text, "\t%.9g", (double)row[task]);
        ph__buffer_append_text(&log->pending, text);
    }
    ph__buffer_append_text(&log->pending, "\n");
    return PH_OK;
}

ph_status ph__teacher_log_flush(struct ph__teacher_log *log)
{
    if (log->pending.has_failed)
        return ph__out_of_memory("lines of %s", log->path);
    const ph_status status = ph__write_all(log->descriptor, log->pending.bytes, log->pending.size);
    ph__buffer_clear(&log->pending);
    return status == PH_OK ? PH_OK : ph__file_cannot_write(log->path);
}

void ph__teacher_log_close(struct ph__teacher_log *log)
{
    if (log->descriptor >= 0 && log->path != NULL)
        close(log->descriptor);
    ph__buffer_fini(&log->pending);
    ph__key_map_fini(&log->rows);
    free(log->probabilities);
    ph__arena_fini(&log->arena);
    *log = (struct ph__teacher_log){.descriptor = -1};
}
