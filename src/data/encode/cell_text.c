#include "data/encode/cell_text.h"

#include "base/text/number.h"

/* ---- ids ---- */

bool ph__decimal_parse_id(const char *text, size_t length, uint64_t *number_out)
{
    if (length == 0 || length > 18)
        return false;
    uint64_t number = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (digit >= 10)
            return false;
        number = number * 10 + digit;
    }
    *number_out = number;
    return true;
}

/* ---- times ---- */

#define SHORT_LENGTH (sizeof "YYMMDDHH" - 1)
#define DATE_LENGTH (sizeof "YYYY-MM-DD" - 1)
#define NO_HOUR (-1) /* hour of a date */

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

/* Returns true when the text has the first `length` characters of the shape, in which a 0 stands for any
 * digit and T also for a blank. */
static bool has_shape(const char *text, size_t length, const char *shape)
{
    for (size_t i = 0; i < length; i++)
        if (shape[i] == '0' ? !is_digit(text[i]) : text[i] != shape[i] && (shape[i] != 'T' || text[i] != ' '))
            return false;
    return true;
}

/* Returns the length without parts that affect neither hour nor day: a Z, and the fraction of a second. */
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

/* Reads YYYY-MM-DD, alone or followed by HH, HH:MM or HH:MM:SS. */
static bool read_long(const char *text, size_t length, struct written_time *time)
{
    static const char shape[] = "0000-00-00T00:00:00";
    length = whole_length(text, length);
    if (length < DATE_LENGTH || length >= sizeof shape || (length - DATE_LENGTH) % 3 != 0 ||
        !has_shape(text, length, shape))
        return false;
    const size_t num_groups = (length - DATE_LENGTH) / 3; /* groups of two digits after the date */
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

/* Checks the ranges of the parts (years as in base/text/number.h); the 60th second is a leap second. */
static bool is_in_range(const struct written_time *time)
{
    return time->year >= 1 && time->month >= 1 && time->month <= 12 && time->day >= 1 &&
           time->day <= ph__date_month_length(time->year, time->month) && time->hour <= 23 &&
           time->minute <= 59 && time->second <= 60;
}

int ph__time_component(enum ph__time_component component, const char *text, size_t length)
{
    struct written_time time;
    if (!read_short(text, length, &time) && !read_long(text, length, &time))
        return -1;
    if (!is_in_range(&time))
        return -1;
    if (component == PH_TIME_HOUR)
        return time.hour; /* NO_HOUR is -1, too */
    const int64_t day = ph__date_days(time.year, time.month, time.day);
    const int weekday = (int)((day + 2) % 7); /* 1 March of year 0 was a Wednesday */
    return component == PH_TIME_WEEKDAY ? weekday : weekday >= 5;
}
