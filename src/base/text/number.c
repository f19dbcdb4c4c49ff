/* Numbers as text. The grammar is checked by hand first, because strtod and strtoll take more than it. */
#include "base/text/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* [sign] (digits [. [digits]] | . digits) [e [sign] digits] */
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
    if (number == floor(number) && fabs(number) < 1e15) { /* 100, where %g would say 1e+02 */
        snprintf(text, PH_NUMBER_TEXT_BYTES, "%.0f", number);
        return text;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, PH_NUMBER_TEXT_BYTES, "%.*g", digits, number);
        if (strtod(text, NULL) == number) /* exact: that is the point */
            break;
    }
    return text;
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
