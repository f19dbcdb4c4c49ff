/* The logger: formats into a buffer of its own and writes it with one system call, so that the lines of several threads
 * and processes do not mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_BYTES 2048

static atomic_int current_level = PH_LOG_OFF;

void ph__log_set_level(enum ph_log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

void ph__log(enum ph_log_level level, const char *room, const char *format, ...)
{
    static const char *const names[] = {"off", "error", "warning", "info", "debug"};
    if (level == PH_LOG_OFF || (int)level > atomic_load_explicit(&current_level, memory_order_relaxed))
        return;
    char line[LINE_BYTES];
    size_t length = (size_t)snprintf(line, sizeof line, "%s %.64s: ", names[level], room);
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(line + length, sizeof line - length, format, arguments);
    va_end(arguments);
    if (added < 0)
        return;
    length += (size_t)added;
    if (length > sizeof line - 1)
        length = sizeof line - 1; /* cut, with room for the line's end */
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* there is nowhere to report that the log is gone */
}
