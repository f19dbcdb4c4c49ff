/* The status list's functions, and each thread's record of its last error. */
#include "phloem/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 1024

static _Thread_local char last_text[TEXT_BYTES];

ph_status ph_fail(ph_status status, const char *format, ...)
{
    /* Formatted aside, so that an argument may be the record itself. */
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        text[0] = '\0';
    memcpy(last_text, text, strlen(text) + 1);
    return status;
}

const char *ph_error_text(void)
{
    return last_text;
}

const char *ph_status_message(ph_status status)
{
    switch (status) {
#define MESSAGE_CASE(name, value, exit_code, message) \
    case name:                                        \
        return message;
        PH_STATUS_LIST(MESSAGE_CASE)
#undef MESSAGE_CASE
    default:
        return "unknown status";
    }
}

int ph_status_exit_code(ph_status status)
{
    switch (status) {
#define EXIT_CASE(name, value, exit_code, message) \
    case name:                                     \
        return exit_code;
        PH_STATUS_LIST(EXIT_CASE)
#undef EXIT_CASE
    default:
        return 1;
    }
}
