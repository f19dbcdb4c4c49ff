/* Structured logs: one line an event, with a name, a level and fields, for people (logfmt) or programs
 * (JSON).
 *
 *     time=2026-03-01T12:00:00.123Z level=info event=joined job="click model" workers=4
 *     {"time":"2026-03-01T12:00:00.123Z","level":"info","event":"joined","job":"click model","workers":4}
 *
 * A line is one write(2), so lines of several threads never mix, nor those of processes that share a pipe. A
 * logger is passed as an argument; threads have none of their own. Logging never fails, allocates nothing,
 * takes no lock, raises no SIGPIPE and leaves errno alone. It does not wait for the reader: a line that
 * cannot be written at once is dropped, and an event log_lines_dropped with the number of dropped lines
 * precedes the next line that can be written. (A write waits only when another process fills the same pipe
 * between poll and write.) Any thread. */
#ifndef PH_BASE_LOG_H
#define PH_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ph__log_level { PH_LOG_DEBUG, PH_LOG_INFO, PH_LOG_WARNING, PH_LOG_ERROR };

enum ph__log_format { PH_LOG_LOGFMT, PH_LOG_JSON };

/* Longest line. Longer ones are cut: a text loses its end, later fields are left out, and a last field says
 * cut=true. */
#define PH_LOG_LINE_BYTES 4096 /* a pipe takes as much in one piece */

/* A log: settings, constant while the log is in use, and a count. */
struct ph__log {
    int descriptor; /* borrowed */
    enum ph__log_level least_level;
    enum ph__log_format format;
    _Atomic uint64_t num_dropped; /* lines that no log_lines_dropped has counted yet */
};

/* Sets a log to standard error, from info on, logfmt. */
void ph__log_init(struct ph__log *log);

enum ph__log_field_kind { PH_LOG_TEXT, PH_LOG_COUNT, PH_LOG_NUMBER };

struct ph__log_field {
    const char *key; /* a word of the program, of letters, digits and underscores, like an event's name */
    enum ph__log_field_kind kind;
    union {
        const char *text; /* NUL-terminated, any bytes; NULL is "" */
        uint64_t count;
        double number; /* not finite: null in JSON */
    } value;
};

static inline struct ph__log_field ph__log_text(const char *key, const char *text)
{
    return (struct ph__log_field){.key = key, .kind = PH_LOG_TEXT, .value.text = text};
}

static inline struct ph__log_field ph__log_count(const char *key, uint64_t count)
{
    return (struct ph__log_field){.key = key, .kind = PH_LOG_COUNT, .value.count = count};
}

static inline struct ph__log_field ph__log_number(const char *key, double number)
{
    return (struct ph__log_field){.key = key, .kind = PH_LOG_NUMBER, .value.number = number};
}

/* Tells whether an event of the level is written; a NULL log writes nothing. */
static inline bool ph__log_wants(const struct ph__log *log, enum ph__log_level level)
{
    return log != NULL && level >= log->least_level;
}

/* Writes an event; borrows its arguments for the call. */
void ph__log_event(struct ph__log *log, enum ph__log_level level, const char *event,
    const struct ph__log_field *fields, size_t num_fields);

/* Writes an event with one field or more, as in
 * PH_LOG(log, PH_LOG_INFO, "joined", ph__log_text("job", name), ph__log_count("workers", n)).
 * The fields are not evaluated when the event is not written. */
#define PH_LOG(log, level, event, ...)                                                                    \
    do {                                                                                                  \
        if (ph__log_wants((log), (level))) {                                                              \
            const struct ph__log_field ph__log_fields[] = {__VA_ARGS__};                                  \
            ph__log_event(                                                                                \
                (log), (level), (event), ph__log_fields, sizeof ph__log_fields / sizeof *ph__log_fields); \
        }                                                                                                 \
    } while (0)

#endif
