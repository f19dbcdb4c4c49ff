#include "base/format/ticks.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static bool is_range(double low, double high)
{
    return isfinite(low) && isfinite(high) && high > low && isfinite(high - low);
}

/* The least of 1, 2, 5 times a power of ten that is not below `least`. */
static double round_step(double least)
{
    double power = pow(10, floor(log10(least)));
    static const double steps[] = {1, 2, 5};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i] * power >= least * (1 - 1e-9))
            return steps[i] * power;
    return 10 * power;
}

/* Digits behind the point that tell multiples of `step` apart. */
static int decimals_of(double step)
{
    double decimals = -floor(log10(step) + 1e-9);
    return decimals > 0 ? (int)fmin(decimals, 12) : 0;
}

static void format_tick(double number, double step, double largest, char text[PH_TICK_TEXT_BYTES])
{
    static const struct {
        double unit;
        const char *letter;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    double unit = 1;
    const char *letter = "";
    for (size_t i = 0; i < sizeof units / sizeof *units && unit == 1; i++)
        if (largest >= 10 * units[i].unit || (largest >= units[i].unit && step >= units[i].unit)) {
            unit = units[i].unit;
            letter = units[i].letter;
        }
    if (number == 0)
        snprintf(text, PH_TICK_TEXT_BYTES, "0");
    else if (largest >= 1e16 || largest < 1e-5)
        snprintf(text, PH_TICK_TEXT_BYTES, "%.3g", number);
    else
        snprintf(text, PH_TICK_TEXT_BYTES, "%.*f%s", decimals_of(step / unit), number / unit, letter);
}

void ph__ticks(double low, double high, size_t wanted, struct ph__ticks *ticks_out)
{
    ticks_out->count = 0;
    if (!is_range(low, high))
        return;
    double step = round_step((high - low) / (double)wanted);
    double slack = 1e-9 * step, largest = fmax(fabs(low), fabs(high));
    for (double k = ceil((low - slack) / step); k * step <= high + slack; k++) {
        if (ticks_out->count == PH_MAX_TICKS)
            break;
        double at = k == 0 ? 0 : k * step; /* no minus zero */
        ticks_out->at[ticks_out->count] = at;
        format_tick(at, step, largest, ticks_out->text[ticks_out->count]);
        ticks_out->count++;
    }
}

void ph__ticks_log(double low, double high, size_t wanted, struct ph__ticks *ticks_out)
{
    ticks_out->count = 0;
    if (!is_range(low, high) || low <= 0)
        return;
    double first = ceil(log10(low) - 1e-9), last = floor(log10(high) + 1e-9);
    double stride = fmax(1, ceil((last - first) / (double)wanted));
    for (double power = first; power <= last && ticks_out->count < PH_MAX_TICKS; power += stride) {
        double at = pow(10, power);
        ticks_out->at[ticks_out->count] = at;
        ph__quantity_text(at, ticks_out->text[ticks_out->count]);
        ticks_out->count++;
    }
}

void ph__ticks_widen(double *low, double *high)
{
    if (!isfinite(*low) || !isfinite(*high) || *low > *high || !isfinite(*high - *low)) {
        *low = 0;
        *high = 1;
        return;
    }
    double room = *high > *low ? 0.06 * (*high - *low) : *low != 0 ? 0.05 * fabs(*low) : 0.5;
    *low -= room;
    *high += room;
}

const char *ph__quantity_text(double number, char text[PH_TICK_TEXT_BYTES])
{
    static const char letters[] = " kMGTPE";
    double amount = fabs(number);
    size_t letter = 0;
    if (!isfinite(number)) {
        snprintf(text, PH_TICK_TEXT_BYTES, "–");
        return text;
    }
    if (amount >= 9999.5)
        for (; amount >= 999.95 && letters[letter + 1] != '\0'; letter++)
            amount /= 1000;
    if (letter > 0)
        snprintf(text, PH_TICK_TEXT_BYTES, "%.4g%c", copysign(amount, number), letters[letter]);
    else
        snprintf(text, PH_TICK_TEXT_BYTES, "%.4g", number);
    return text;
}
