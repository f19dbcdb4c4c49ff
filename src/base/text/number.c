/* Numbers as text. The grammar is checked by hand first, because strtod and strtoll accept more. */
#include "base/text/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_sign(const char *at)
{
    return *at == '-' || *at == '+' ? at + 1 : at;
}

static const char *skip_digits(const char *at)
{
    while (*at >= '0' && *at <= '9')
        at++;
    return at;
}

/* Tells whether the text is [sign] (digits [. [digits]] | . digits) [e [sign] digits]. */
static bool is_number(const char *text)
{
    const char *start = skip_sign(text);
    const char *at = skip_digits(start);
    bool has_digits = at > start;
    if (*at == '.') {
        const char *fraction = at + 1;
        at = skip_digits(fraction);
        has_digits = has_digits || at > fraction;
    }
    if (!has_digits)
        return false;
    if (*at == 'e' || *at == 'E') {
        const char *exponent = skip_sign(at + 1);
        at = skip_digits(exponent);
        if (at == exponent)
            return false;
    }
    return *at == '\0';
}

bool ph__number_parse(const char *text, double *number_out)
{
    if (!is_number(text))
        return false;
    double number = strtod(text, NULL);
    if (!isfinite(number))
        return false;
    *number_out = number;
    return true;
}

int ph__hex_digit(char digit)
{
    const char lower = (char)(digit | 0x20);
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool ph__integer_parse(const char *text, int64_t *integer_out)
{
    const char *digits = skip_sign(text);
    const char *end = skip_digits(digits);
    if (end == digits || *end != '\0')
        return false;
    errno = 0;
    long long integer = strtoll(text, NULL, 10);
    if (errno != 0)
        return false;
    *integer_out = integer;
    return true;
}

const char *ph__number_format(double number, char text[PH_NUMBER_TEXT_BYTES])
{
    if (number == floor(number) && fabs(number) < 1e15) { /* 100, not %g's 1e+02 */
        snprintf(text, PH_NUMBER_TEXT_BYTES, "%.0f", number);
        return text;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, PH_NUMBER_TEXT_BYTES, "%.*g", digits, number);
        if (strtod(text, NULL) == number) /* exact comparison is intended */
            break;
    }
    return text;
}

size_t ph__real_write(double number, int num_digits, char text[PH_NUMBER_TEXT_BYTES])
{
    const int length = snprintf(text, PH_NUMBER_TEXT_BYTES, "%.*g", num_digits, number);
    char *comma = text + strspn(text, "+-.0123456789einfa");
    if (*comma != '\0')
        *comma = '.';
    return (size_t)length;
}

const char *ph__bytes_text(uint64_t bytes, char text[PH_NUMBER_TEXT_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double amount = (double)bytes;
    size_t unit = 0;
    while (amount >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        amount /= 1024;
        unit++;
    }
    snprintf(text, PH_NUMBER_TEXT_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
    return text;
}

/* ---- decimal numbers, fast ---- */

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

/* ---- dates ---- */

#define MS_A_DAY 86400000

/* Counts years from March, so that the leap day is last. */
int64_t ph__date_days(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t m = month > 2 ? month - 3 : month + 9;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
}

int ph__date_month_length(int year, int month)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return lengths[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

static void write_number(char *text, int count, int value)
{
    for (int i = count - 1; i >= 0; i--, value /= 10)
        text[i] = (char)('0' + value % 10);
}

bool ph__date_write(int64_t days, char text[PH_DATE_BYTES])
{
    const int64_t first = ph__date_days(1, 1, 1), last = ph__date_days(9999, 12, 31);
    const int64_t shift = ph__date_days(1970, 1, 1);
    if (days < first - shift || days > last - shift)
        return false;
    const int64_t wanted = days + shift;
    int year = (int)(wanted / 366), month = 1; /* the wanted year or an earlier one */
    while (ph__date_days(year + 1, 1, 1) <= wanted)
        year++;
    while (ph__date_days(year, month, ph__date_month_length(year, month)) < wanted)
        month++;
    const int in_month = (int)(wanted - ph__date_days(year, month, 1)) + 1;
    memcpy(text, "0000-00-00", PH_DATE_BYTES);
    write_number(text, 4, year);
    write_number(text + 5, 2, month);
    write_number(text + 8, 2, in_month);
    return true;
}

bool ph__utc_write(uint64_t milliseconds, char text[PH_UTC_BYTES])
{
    char date[PH_DATE_BYTES];
    const int in_day = (int)(milliseconds % MS_A_DAY);
    if (!ph__date_write((int64_t)(milliseconds / MS_A_DAY), date))
        return false;
    memcpy(text, "0000-00-00T00:00:00.000Z", PH_UTC_BYTES);
    memcpy(text, date, PH_DATE_BYTES - 1);
    write_number(text + 11, 2, in_day / 3600000);
    write_number(text + 14, 2, in_day / 60000 % 60);
    write_number(text + 17, 2, in_day / 1000 % 60);
    write_number(text + 20, 3, in_day % 1000);
    return true;
}

/* ---- integers as text ---- */

/* Writes the digits, and the NUL. */
static size_t write_digits(uint64_t integer, char *text)
{
    char reversed[PH_INTEGER_TEXT_BYTES];
    size_t length = 0;
    do {
        reversed[length++] = (char)('0' + integer % 10);
        integer /= 10;
    } while (integer > 0);
    for (size_t i = 0; i < length; i++)
        text[i] = reversed[length - 1 - i];
    text[length] = '\0';
    return length;
}

size_t ph__unsigned_write(uint64_t integer, char text[PH_INTEGER_TEXT_BYTES])
{
    return write_digits(integer, text);
}

size_t ph__integer_write(int64_t integer, char text[PH_INTEGER_TEXT_BYTES])
{
    if (integer >= 0)
        return write_digits((uint64_t)integer, text);
    text[0] = '-';
    return 1 + write_digits(0 - (uint64_t)integer, text + 1);
}
