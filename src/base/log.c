/* A line is built on the stack. Some room is reserved for its end, so that a line that is cut still closes
 * its quotes and braces. */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text/number.h"
#include "base/text/utf8.h"
#include "base/thread/clock.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */
#define END_BYTES (sizeof "\",\"cut\":true}\n")
#define ROOM (PH_LOG_LINE_BYTES - END_BYTES)

static const char *const level_names[] = {"debug", "info", "warning", "error"};

struct line {
    char bytes[PH_LOG_LINE_BYTES];
    size_t used;  /* at most ROOM until the end is put */
    size_t whole; /* length at which nothing was open: the end may stand there */
    bool is_json;
    bool is_cut; /* nothing but the end may follow */
};

void ph__log_init(struct ph__log *log)
{
    *log = (struct ph__log){.descriptor = STDERR_FILENO, .least_level = PH_LOG_INFO, .format = PH_LOG_LOGFMT};
}

/* ---- pieces of a line ---- */

static void put(struct line *line, const char *bytes, size_t size)
{
    line->is_cut = line->is_cut || size > ROOM - line->used;
    if (line->is_cut)
        return;
    memcpy(line->bytes + line->used, bytes, size);
    line->used += size;
}

static void put_word(struct line *line, const char *word)
{
    put(line, word, strlen(word));
}

/* Appends to the reserved room. */
static void put_end(struct line *line, const char *end)
{
    const size_t size = strlen(end);
    assert(size <= PH_LOG_LINE_BYTES - line->used);
    memcpy(line->bytes + line->used, end, size);
    line->used += size;
    line->whole = line->used;
}

/* Spells a character between quotes with JSON's escapes, which logfmt shares. Returns NULL when it needs no
 * escape. */
static const char *spell(uint32_t code, char spelled[8])
{
    if (code == '"' || code == '\\')
        snprintf(spelled, 8, "\\%c", (char)code);
    else if (code == '\n' || code == '\t')
        snprintf(spelled, 8, "\\%c", code == '\n' ? 'n' : 't');
    else if (ph__utf8_is_control(code))
        snprintf(spelled, 8, "\\u%04x", (unsigned)code & 0xff);
    else
        return NULL;
    return spelled;
}

static void put_character(struct line *line, const char *text, size_t *size)
{
    uint32_t code = 0;
    char spelled[8];
    *size = ph__utf8_decode(text, *size, &code);
    const char *other = *size > 0 ? spell(code, spelled) : REPLACEMENT;
    *size = *size > 0 ? *size : 1;
    put(line, other != NULL ? other : text, other != NULL ? strlen(other) : *size);
}

/* Appends as much of the text as there is room for; always closes its quotes. */
static void put_quoted(struct line *line, const char *text)
{
    put_word(line, "\"");
    if (line->is_cut)
        return;
    for (size_t left = strlen(text), size; left > 0 && !line->is_cut; left -= size, text += size) {
        size = left;
        put_character(line, text, &size);
    }
    put_word(line, "\"");
    if (line->is_cut)
        put_end(line, "\"");
}

/* Tells whether logfmt needs no quotes for the text and all of it fits. */
static bool is_bare(const struct line *line, const char *text)
{
    size_t length = 0;
    for (; text[length] > ' ' && text[length] < 0x7f; length++)
        if (strchr("\"\\=", text[length]) != NULL)
            return false;
    return length > 0 && text[length] == '\0' && length <= ROOM - line->used;
}

static void put_text(struct line *line, const char *text)
{
    if (!line->is_json && is_bare(line, text))
        put_word(line, text);
    else
        put_quoted(line, text);
}

static void put_number(struct line *line, double number)
{
    char text[PH_NUMBER_TEXT_BYTES];
    if (isfinite(number))
        put_word(line, ph__number_format(number, text));
    else if (line->is_json)
        put_word(line, "null");
    else
        put_word(line, isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

static void put_key(struct line *line, const char *key)
{
    const bool is_first = line->used == 0;
    if (line->is_json) {
        put_word(line, is_first ? "{\"" : ",\"");
        put_word(line, key);
        put_word(line, "\":");
        return;
    }
    put_word(line, is_first ? "" : " ");
    put_word(line, key);
    put_word(line, "=");
}

/* ---- lines ---- */

static void put_field(struct line *line, const struct ph__log_field *field)
{
    char count[24];
    if (line->is_cut)
        return;
    put_key(line, field->key);
    switch (field->kind) {
    case PH_LOG_TEXT:
        put_text(line, field->value.text != NULL ? field->value.text : "");
        break;
    case PH_LOG_COUNT:
        snprintf(count, sizeof count, "%" PRIu64, field->value.count);
        put_word(line, count);
        break;
    case PH_LOG_NUMBER:
        put_number(line, field->value.number);
        break;
    }
    if (!line->is_cut)
        line->whole = line->used;
}

static void finish_line(struct line *line)
{
    line->used = line->whole;
    if (line->is_cut)
        put_end(line, line->is_json ? ",\"cut\":true" : " cut=true");
    put_end(line, line->is_json ? "}\n" : "\n");
}

static void build_line(struct line *line, enum ph__log_format format, enum ph__log_level level,
    const char *event, const struct ph__log_field *fields, size_t num_fields)
{
    line->used = line->whole = 0;
    line->is_json = format == PH_LOG_JSON;
    line->is_cut = false;
    char time[PH_UTC_BYTES] = "";
    ph__utc_write(ph__clock_utc_ms(), time);
    const struct ph__log_field head[] = {
        ph__log_text("time", time), ph__log_text("level", level_names[level]), ph__log_text("event", event)};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        put_field(line, &head[i]);
    for (size_t i = 0; i < num_fields; i++)
        put_field(line, &fields[i]);
    finish_line(line);
}

/* ---- writing them ---- */

/* Tells whether a write takes a whole line at once: a pipe that is writable does. */
static bool is_writable(int descriptor)
{
    struct pollfd polled = {.fd = descriptor, .events = POLLOUT};
    return poll(&polled, 1, 0) == 1 && (polled.revents & (POLLOUT | POLLERR | POLLNVAL)) == POLLOUT;
}

/* Writes a line; a SIGPIPE that the write raises is taken back, an earlier one stays pending. */
static bool write_quietly(const struct line *line, int descriptor)
{
    static const struct timespec no_time = {0};
    sigset_t pipe, former, pending;
    ssize_t written;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &former);
    do
        written = write(descriptor, line->bytes, line->used);
    while (written < 0 && errno == EINTR);
    if (written < 0 && errno == EPIPE && sigismember(&pending, SIGPIPE) == 0)
        sigtimedwait(&pipe, NULL, &no_time);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    return written == (ssize_t)line->used;
}

static bool write_line(const struct line *line, int descriptor)
{
    return is_writable(descriptor) && write_quietly(line, descriptor);
}

/* Reports the lines that were dropped. Returns true when none is left to report. */
static bool tell_dropped(struct ph__log *log)
{
    struct line line;
    const uint64_t num_dropped = atomic_exchange(&log->num_dropped, 0);
    if (num_dropped == 0)
        return true;
    const struct ph__log_field field = ph__log_count("lines", num_dropped);
    build_line(&line, log->format, PH_LOG_WARNING, "log_lines_dropped", &field, 1);
    if (write_line(&line, log->descriptor))
        return true;
    atomic_fetch_add(&log->num_dropped, num_dropped);
    return false;
}

void ph__log_event(struct ph__log *log, enum ph__log_level level, const char *event,
    const struct ph__log_field *fields, size_t num_fields)
{
    if (!ph__log_wants(log, level))
        return;
    const int saved_errno = errno;
    struct line line;
    build_line(&line, log->format, level, event, fields, num_fields);
    if (!tell_dropped(log) || !write_line(&line, log->descriptor))
        atomic_fetch_add(&log->num_dropped, 1);
    errno = saved_errno;
}
