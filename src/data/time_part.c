#include "data/time_part.h"

#include <string.h>

#define SHORT_LENGTH (sizeof "YYMMDDHH" - 1)
#define DATE_LENGTH (sizeof "YYYY-MM-DD" - 1)
#define NO_HOUR (-1) /* of a date */

struct written_time {
    int year, month, day, hour, minute, second;
};

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

static int number(const char *digits, size_t count)
{
    int value = 0;
    for (size_t i = 0; i < count; i++)
        value = 10 * value + (digits[i] - '0');
    return value;
}

/* Whether the text is so long a beginning of the shape, in which a 0 stands for any digit and T also for a blank. */
static bool has_shape(const char *text, size_t length, const char *shape)
{
    for (size_t i = 0; i < length; i++)
        if (shape[i] == '0' ? !is_digit(text[i]) : text[i] != shape[i] && (shape[i] != 'T' || text[i] != ' '))
            return false;
    return true;
}

/* The length without what says nothing of hour and day: a Z, and the fraction of a second. */
static size_t whole_length(const char *text, size_t length)
{
    const size_t up_to_seconds = sizeof "YYYY-MM-DD HH:MM:SS" - 1;
    if (length > DATE_LENGTH + 1 && text[length - 1] == 'Z')
        length--;
    if (length < up_to_seconds + 2 || text[up_to_seconds] != '.')
        return length;
    for (size_t i = up_to_seconds + 1; i < length; i++)
        if (!is_digit(text[i]))
            return length;
    return up_to_seconds;
}

/* YYYY-MM-DD, and behind it HH, HH:MM or HH:MM:SS. */
static bool read_long(const char *text, size_t length, struct written_time *time)
{
    static const char shape[] = "0000-00-00T00:00:00";
    length = whole_length(text, length);
    if (length < DATE_LENGTH || length >= sizeof shape || (length - DATE_LENGTH) % 3 != 0 ||
        !has_shape(text, length, shape))
        return false;
    const size_t num_groups = (length - DATE_LENGTH) / 3; /* of two digits, behind the date */
    *time = (struct written_time){.year = number(text, 4),
        .month = number(text + 5, 2),
        .day = number(text + 8, 2),
        .hour = num_groups > 0 ? number(text + 11, 2) : NO_HOUR,
        .minute = num_groups > 1 ? number(text + 14, 2) : 0,
        .second = num_groups > 2 ? number(text + 17, 2) : 0};
    return true;
}

static bool read_short(const char *text, size_t length, struct written_time *time)
{
    if (length != SHORT_LENGTH || !has_shape(text, length, "00000000"))
        return false;
    *time = (struct written_time){.year = 2000 + number(text, 2),
        .month = number(text + 2, 2),
        .day = number(text + 4, 2),
        .hour = number(text + 6, 2)};
    return true;
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

/* Years as ph__date_write has them; the 60th second is a leap second. */
static bool is_in_range(const struct written_time *time)
{
    return time->year >= 1 && time->month >= 1 && time->month <= 12 && time->day >= 1 &&
           time->day <= month_length(time->year, time->month) && time->hour <= 23 && time->minute <= 59 &&
           time->second <= 60;
}

int ph__time_part(enum ph_time_part part, const char *text, size_t length)
{
    struct written_time time;
    if (!read_short(text, length, &time) && !read_long(text, length, &time))
        return -1;
    if (!is_in_range(&time))
        return -1;
    if (part == PH_TIME_HOUR)
        return time.hour; /* NO_HOUR is no such time */
    int weekday =
        (int)((days(time.year, time.month, time.day) + 2) % 7); /* 1 March of year 0 was a Wednesday */
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
