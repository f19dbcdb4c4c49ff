#include "data/source/arrow_time.h"

#include <stdio.h>
#include <string.h>

#include "base/text/date.h"

#define SECONDS_A_DAY 86400

struct ph__arrow_clock ph__arrow_clock_of(const char *format)
{
    static const struct {
        const char *start; /* of the format; without a colon all of it */
        struct ph__arrow_clock clock;
    } clocks[] = {
        {"tdD", {1, 0, true}},
        {"tdm", {SECONDS_A_DAY * 1000LL, 3, true}},
        {"tss:", {SECONDS_A_DAY, 0, false}},
        {"tsm:", {SECONDS_A_DAY * 1000LL, 3, false}},
        {"tsu:", {SECONDS_A_DAY * 1000000LL, 6, false}},
        {"tsn:", {SECONDS_A_DAY * 1000000000LL, 9, false}},
    };
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        const size_t length = strlen(clocks[i].start);
        const bool may_go_on = clocks[i].start[length - 1] == ':'; /* a time zone */
        if (strncmp(format, clocks[i].start, length) == 0 && (may_go_on || format[length] == '\0'))
            return clocks[i].clock;
    }
    return (struct ph__arrow_clock){0};
}

/* Appends the digits of a fraction with their point; nothing where the second is whole. */
static size_t write_fraction(int64_t ticks, int num_digits, char *text)
{
    if (ticks == 0)
        return 0;
    text[0] = '.';
    for (int i = num_digits; i > 0; i--, ticks /= 10)
        text[i] = (char)('0' + ticks % 10);
    return 1 + (size_t)num_digits;
}

size_t ph__arrow_time_text(struct ph__arrow_clock clock, int64_t ticks, char text[PH_ARROW_TIME_BYTES])
{
    int64_t days = ticks / clock.ticks_a_day, rest = ticks % clock.ticks_a_day;
    if (rest < 0) {
        rest += clock.ticks_a_day;
        days--;
    }
    if (!ph__date_write(days, text))
        return 0;
    size_t length = PH_DATE_BYTES - 1;
    if (clock.is_date)
        return length;
    const int64_t ticks_a_second = clock.ticks_a_day / SECONDS_A_DAY;
    const int seconds = (int)(rest / ticks_a_second);
    length += (size_t)snprintf(text + length, PH_ARROW_TIME_BYTES - length, " %02d:%02d:%02d",
        seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    length += write_fraction(rest % ticks_a_second, clock.num_digits, text + length);
    text[length] = '\0';
    return length;
}
