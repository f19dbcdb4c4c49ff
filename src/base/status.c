/* Functions of the status list, and each thread's record of its last error. */
#include "phloem/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 1024

static _Thread_local char last_text[TEXT_BYTES];

/* Spells a byte in a record: as itself, or as an escape where the byte would end the line or steer the
 * terminal. */
static size_t spell(unsigned char byte, char spelled[8])
{
    if (byte == '\n' || byte == '\t')
        return (size_t)sprintf(spelled, "\\%c", byte == '\n' ? 'n' : 't');
    if (byte < ' ' || byte == 0x7f)
        return (size_t)sprintf(spelled, "\\x%02x", byte);
    spelled[0] = (char)byte;
    return 1;
}

/* Records a text as one line, whatever bytes files and arguments put into it. The first byte whose spelling
 * does not fit ends the record: half an escape would mean something else. */
static void record(const char *text)
{
    char spelled[8];
    size_t used = 0;
    for (; *text != '\0'; text++) {
        size_t length = spell((unsigned char)*text, spelled);
        if (used + length >= TEXT_BYTES)
            break;
        memcpy(last_text + used, spelled, length);
        used += length;
    }
    last_text[used] = '\0';
}

ph_status ph_fail(ph_status status, const char *format, ...)
{
    /* Formats into another buffer, since an argument may be the record itself. */
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        text[0] = '\0';
    record(text);
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
