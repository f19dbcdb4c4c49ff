#include "data/time_part.h"

#include <stdbool.h>

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
static size_t collect_digits(const char *text, size_t length, char digits[MAX_DIGITS])
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        bool is_separator = text[i] == '-' || text[i] == ':' || text[i] == ' ' || text[i] == 'T' ||
                            text[i] == '/' || text[i] == '.' || text[i] == 'Z';
        if (!is_digit && !is_separator)
            return 0;
        if (is_digit && count == MAX_DIGITS)
            return 0;
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

static bool is_date(int year, int month, int day)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (month < 1 || month > 12 || day < 1)
        return false;
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= lengths[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

int ph__time_part(enum ph_time_part part, const char *text, size_t length)
{
    char digits[MAX_DIGITS];
    size_t count = collect_digits(text, length, digits);
    if (count < MIN_DIGITS || count == MIN_DIGITS + 1)
        return -1;
    size_t year_digits = count == MIN_DIGITS ? 2 : 4;
    const char *rest = digits + year_digits;
    int year = number(digits, year_digits) + (year_digits == 2 ? 2000 : 0);
    int month = number(rest, 2), day = number(rest + 2, 2), hour = number(rest + 4, 2);
    if (!is_date(year, month, day) || hour > 23)
        return -1;
    if (part == PH_TIME_HOUR)
        return hour;
    int weekday = (int)((days(year, month, day) + 2) % 7); /* 1 March of year 0 was a Wednesday */
    return part == PH_TIME_WEEKDAY ? weekday : weekday >= 5;
}
