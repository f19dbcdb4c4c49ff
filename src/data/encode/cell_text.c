#include "data/encode/cell_text.h"

#include <math.h>

#include "base/text/number.h"

/* ---- decimal numbers ---- */

/* A decimal number while it is read: mantissa * 10^exponent. */
struct decimal {
    uint64_t mantissa;
    int64_t exponent;
};

#define FULL_MANTISSA ((UINT64_MAX - 9) / 10) /* room for one more digit of any value */

/* Appends the digits at *text; each moves the exponent by `step` (-1 after the point). A mantissa of 19 or 20
 * digits is full: further digits only change the exponent. A mantissa of any size is rounded as a cast to
 * double rounds it. Returns the number of digits. */
static size_t read_digits(const char **text, const char *end, int step, struct decimal *decimal)
{
    const char *at = *text;
    for (; at < end && (unsigned)(*at - '0') < 10; at++) {
        if (decimal->mantissa <= FULL_MANTISSA) {
            decimal->mantissa = decimal->mantissa * 10 + (uint64_t)(*at - '0');
            decimal->exponent += step;
        } else {
            decimal->exponent += step + 1;
        }
    }
    size_t num_digits = (size_t)(at - *text);
    *text = at;
    return num_digits;
}

static bool read_exponent(const char *text, const char *end, int64_t *exponent)
{
    bool is_negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+'))
        text++;
    if (text == end)
        return false;
    int64_t value = 0;
    for (; text < end; text++) {
        if ((unsigned)(*text - '0') >= 10)
            return false;
        if (value < 100000)
            value = value * 10 + (*text - '0');
    }
    *exponent += is_negative ? -value : value;
    return true;
}

/* Returns mantissa * 10^exponent. Powers up to 10^22 are exact in double, so one operation rounds once. */
static double scale(uint64_t mantissa, int64_t exponent)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
        1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (mantissa == 0)
        return 0;
    if (mantissa < ((uint64_t)1 << 53) && exponent >= -22 && exponent <= 22)
        return exponent < 0 ? (double)mantissa / powers[-exponent] : (double)mantissa * powers[exponent];
    long double value = (long double)mantissa;
    if (exponent > 400)
        return HUGE_VAL;
    if (exponent < -400)
        return 0;
    for (; exponent >= 22; exponent -= 22)
        value *= 1e22L;
    for (; exponent <= -22; exponent += 22)
        value /= 1e22L;
    return (double)(exponent < 0 ? value / powers[-exponent] : value * powers[exponent]);
}

/* Parses up to nine digits and nothing else, as most counts are. */
static bool parse_count(const char *text, size_t length, double *number_out)
{
    uint32_t number = 0;
    if (length == 0 || length > 9)
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (digit >= 10)
            return false;
        number = number * 10 + digit;
    }
    *number_out = number;
    return true;
}

bool ph__decimal_parse(const char *text, size_t length, double *number_out)
{
    if (parse_count(text, length, number_out))
        return true;
    const char *end = text + length;
    bool is_negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+'))
        text++;
    struct decimal decimal = {0, 0};
    size_t num_digits = read_digits(&text, end, 0, &decimal);
    if (text < end && *text == '.') {
        text++;
        num_digits += read_digits(&text, end, -1, &decimal);
    }
    if (num_digits == 0)
        return false;
    if (text < end && ((*text != 'e' && *text != 'E') || !read_exponent(text + 1, end, &decimal.exponent)))
        return false;
    double number = scale(decimal.mantissa, decimal.exponent);
    if (!isfinite(number))
        return false;
    *number_out = is_negative ? -number : number;
    return true;
}

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
