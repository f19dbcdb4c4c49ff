/* Structured logs: one line an event, with a name, a level and fields, for people (logfmt) or programs
 * (JSON).
 *
 *     time=2026-03-01T12:00:00.123Z level=info event=joined job="click model" workers=4 seconds=0.25
 *     {"time":"2026-03-01T12:00:00.123Z","level":"info","event":"joined","job":"click
 * model","workers":4,"seconds":0.25}
 *
 * A line is one write(2), so lines of several threads never mix, nor those of processes that share a pipe. A
 * logger is handed around: no thread has one of its own. It never fails, allocates nothing, takes no lock,
 * raises no SIGPIPE and leaves errno alone. Nor does it wait for whoever reads: a line that cannot be written
 * at once is dropped, and the next one that can be comes behind an event log_lines_dropped with their number.
 * (Only when somebody else fills the same pipe between the look at it and the write does that write wait.)
 * Any thread. */
#ifndef PH_BASE_LOG_H
#define PH_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ph__log_level { PH_LOG_DEBUG, PH_LOG_INFO, PH_LOG_WARNING, PH_LOG_ERROR };

enum ph__log_format { PH_LOG_LOGFMT, PH_LOG_JSON };

/* Longer lines are cut: a text loses its end, later fields are left out, and a last field says cut=true. */
#define PH_LOG_LINE_BYTES 4096 /* what a pipe takes in one piece */

/* Settings, which are not changed while it is in use, and a count. */
struct ph__log {
    int descriptor; /* borrowed */
    enum ph__log_level least_level;
    enum ph__log_format format;
    _Atomic uint64_t num_dropped; /* lines that nobody has been told of yet */
};

/* Standard error, from info on, logfmt. */
void ph__log_init(struct ph__log *log);

enum ph__log_field_kind { PH_LOG_TEXT, PH_LOG_COUNT, PH_LOG_NUMBER };

struct ph__log_field {
    const char *key; /* as an event's name: the program's own word of letters, digits and underscores */
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

/* Whether such an event is written; a log that is NULL writes nothing. */
static inline bool ph__log_wants(const struct ph__log *log, enum ph__log_level level)
{
    return log != NULL && level >= log->least_level;
}

/* Everything is borrowed for the call. */
void ph__log_event(struct ph__log *log, enum ph__log_level level, const char *event,
    const struct ph__log_field *fields, size_t num_fields);

/* PH_LOG(log, PH_LOG_INFO, "joined", ph__log_text("job", name), ph__log_count("workers", n)): with one field
 * or more, which are not worked out when the event is not written. */
#define PH_LOG(log, level, event, ...)                                                                    \
    do {                                                                                                  \
        if (ph__log_wants((log), (level))) {                                                              \
            const struct ph__log_field ph__log_fields[] = {__VA_ARGS__};                                  \
            ph__log_event(                                                                                \
                (log), (level), (event), ph__log_fields, sizeof ph__log_fields / sizeof *ph__log_fields); \
        }                                                                                                 \
    } while (0)

#endif
