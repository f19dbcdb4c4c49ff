/* The logger: one line an event, "level room: text", to stderr unless redirected. A library never prints by
 * itself; the logger is silent (PH_LOG_OFF) until a program sets a level. Any thread; one write(2) a line. */
#ifndef PH_BASE_LOG_H
#define PH_BASE_LOG_H

enum ph_log_level { PH_LOG_OFF, PH_LOG_ERROR, PH_LOG_WARNING, PH_LOG_INFO, PH_LOG_DEBUG };

void ph__log_set_level(enum ph_log_level level);
void ph__log(enum ph_log_level level, const char *room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
