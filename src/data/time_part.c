#include "data/time_part.h"

#include <string.h>

#define MIN_DIGITS 8
#define MAX_DIGITS 20

static int number(const char *digits, size_t count)
{
    int value = 0;
    for (size_t i = 0; i < count; i++)
        value = 10 * value + (digits[i] - '0');
    return value;
}

/* Only the separators of a written time may stand between digits. */
static size_t collect_digits(const char *text, size_t length, char digits[MAX_DIGITS], size_t *num_before)
{
    *num_before = 0;
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        bool is_separator = text[i] == '-' || text[i] == ':' || text[i] == ' ' || text[i] == 'T' ||
                            text[i] == '/' || text[i] == '.' || text[i] == 'Z';
        if (!is_digit && !is_separator)
            return 0;
        if (is_digit && count == MAX_DIGITS)
            return 0;
        if (is_separator && *num_before == 0)
            *num_before = count;
        if (is_digit)
            digits[count++] = text[i];
    }
    return count;
}

/* Days since 1 March of year 0 in the proleptic Gregorian calendar: years begin in March, so that the leap day is last. */
static long days(int year, int month, int day)
{
    long y = month > 2 ? year : year - 1;
    long m = month > 2 ? month - 3 : month + 9;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
}

static int month_length(int year, int month)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return lengths[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

static bool is_day(int year, int month, int day)
{
    return month >= 1 && month <= 12 && day >= 1 && day <= month_length(year, month);
}

int ph__time_part(enum ph_time_part part, const char *text, size_t length)
{
    char digits[MAX_DIGITS];
    size_t num_before; /* the first separator */
    size_t count = collect_digits(text, length, digits, &num_before);
    bool is_date = count == MIN_DIGITS && num_before == 4;
    if (count < MIN_DIGITS || count == MIN_DIGITS + 1 || (is_date && part == PH_TIME_HOUR))
        return -1;
    size_t year_digits = count == MIN_DIGITS && !is_date ? 2 : 4;
    const char *rest = digits + year_digits;
    int year = number(digits, year_digits) + (year_digits == 2 ? 2000 : 0);
    int month = number(rest, 2), day = number(rest + 2, 2), hour = is_date ? 0 : number(rest + 4, 2);
    if (!is_day(year, month, day) || hour > 23)
        return -1;
    if (part == PH_TIME_HOUR)
        return hour;
    int weekday = (int)((days(year, month, day) + 2) % 7); /* 1 March of year 0 was a Wednesday */
    return part == PH_TIME_WEEKDAY ? weekday : weekday >= 5;
}

static void write_number(char *text, int count, int value)
{
    for (int i = count - 1; i >= 0; i--, value /= 10)
        text[i] = (char)('0' + value % 10);
}

bool ph__date_write(int64_t day, char text[PH_DATE_BYTES])
{
    const int64_t first = days(1, 1, 1), last = days(9999, 12, 31), shift = days(1970, 1, 1);
    if (day < first - shift || day > last - shift)
        return false;
    const int64_t wanted = day + shift;
    int year = (int)(wanted / 366), month = 1; /* of that year or a later one */
    while (days(year + 1, 1, 1) <= wanted)
        year++;
    while (days(year, month, month_length(year, month)) < wanted)
        month++;
    const int in_month = (int)(wanted - days(year, month, 1)) + 1;
    memcpy(text, "0000-00-00", PH_DATE_BYTES);
    write_number(text, 4, year);
    write_number(text + 5, 2, month);
    write_number(text + 8, 2, in_month);
    return true;
}
