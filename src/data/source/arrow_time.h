/* Dates and times of Arrow columns as they are written in text, so that a row means the same wherever it comes from. */
#ifndef PH_DATA_ARROW_TIME_H
#define PH_DATA_ARROW_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PH_ARROW_TIME_BYTES 32

/* How the numbers of such a column count. */
struct ph__arrow_clock {
    int64_t ticks_a_day; /* 0: the format is none of a date or a time since 1970 */
    int num_digits;      /* of a fraction of a second */
    bool is_date;        /* the time of day is not told */
};

/* "tdD", "tdm", "tss:", "tsm:", "tsu:", "tsn:", these with any time zone behind: they count in UTC. */
struct ph__arrow_clock ph__arrow_clock_of(const char *format);

/* "2014-10-21", or "2014-10-21 05:30:00" with a fraction of as many digits as the unit has unless it is zero, in UTC.
 * Returns the length; 0 outside the years 1 to 9999. */
size_t ph__arrow_time_text(struct ph__arrow_clock clock, int64_t ticks, char text[PH_ARROW_TIME_BYTES]);

#endif
