#include "train/measure/calibration.h"

#include <math.h>

#include "serve/scorer.h"

#define FIRST_EDGE (-8.0)
#define BINS_A_UNIT 8
#define MAX_COUNT ((int64_t)1 << 53) /* samples of a bin: more than any data has */

static size_t bin_of(double score)
{
    double bin = floor((score - FIRST_EDGE) * BINS_A_UNIT) + 1;
    return (size_t)fmin(fmax(bin, 0), PH_CALIBRATION_BINS - 1);
}

double ph__calibration_edge(size_t bin)
{
    return FIRST_EDGE + ((double)bin - 1) / BINS_A_UNIT;
}

void ph__calibration_add(struct ph__calibration *calibration, ph_real score, ph_real label)
{
    if (isnan(score))
        return;
    struct ph__calibration_bin *bin = &calibration->bins[bin_of((double)score)];
    bin->count++;
    bin->predicted += ph__sigmoid((double)score);
    bin->observed += (double)label;
}

uint64_t ph__calibration_count(const struct ph__calibration *calibration)
{
    uint64_t count = 0;
    for (size_t i = 0; i < PH_CALIBRATION_BINS; i++)
        count += calibration->bins[i].count;
    return count;
}

static void add_bin(struct ph__calibration_bin *sum, const struct ph__calibration_bin *bin)
{
    sum->count += bin->count;
    sum->predicted += bin->predicted;
    sum->observed += bin->observed;
}

size_t ph__calibration_group(
    const struct ph__calibration *calibration, size_t max_groups, struct ph__calibration_bin *groups_out)
{
    uint64_t wanted = (ph__calibration_count(calibration) + max_groups - 1) / max_groups;
    struct ph__calibration_bin group = {0};
    size_t num_groups = 0;
    for (size_t i = 0; i < PH_CALIBRATION_BINS; i++) {
        add_bin(&group, &calibration->bins[i]);
        if (group.count > 0 && (group.count >= wanted || i + 1 == PH_CALIBRATION_BINS)) {
            groups_out[num_groups++] = group;
            group = (struct ph__calibration_bin){0};
        }
    }
    return num_groups;
}

size_t ph__calibration_join(struct ph__calibration_bin *groups, size_t num_groups)
{
    size_t num_joined = 0;
    bool is_open = false; /* the last of the joined groups lacks a positive */
    for (size_t i = 0; i < num_groups; i++) {
        if (is_open)
            add_bin(&groups[num_joined - 1], &groups[i]);
        else
            groups[num_joined++] = groups[i];
        is_open = !(groups[num_joined - 1].observed > 0);
    }
    if (is_open && num_joined > 1) {
        num_joined--;
        add_bin(&groups[num_joined - 1], &groups[num_joined]);
    }
    return num_joined;
}

/* (p + z^2/2n +- z sqrt(p (1 - p) / n + z^2/4n^2)) / (1 + z^2/n) */
void ph__rate_interval(double positives, double count, double *low_out, double *high_out)
{
    const double z = 1.959963984540054; /* 95% of the normal distribution lies within +-z */
    double rate = positives / count, scale = 1 + z * z / count;
    double middle = (rate + z * z / (2 * count)) / scale;
    double half = z * sqrt(rate * (1 - rate) / count + z * z / (4 * count * count)) / scale;
    *low_out = fmax(middle - half, 0);
    *high_out = fmin(middle + half, 1);
}

/* ---- as JSON ---- */

struct ph__json *ph__calibration_json(const struct ph__calibration *calibration)
{
    struct ph__json *bins = ph__json_array();
    for (size_t i = 0; i < PH_CALIBRATION_BINS; i++) {
        const struct ph__calibration_bin *bin = &calibration->bins[i];
        if (bin->count == 0)
            continue;
        struct ph__json *numbers = ph__json_array();
        ph__json_append_integer(numbers, (int64_t)i);
        ph__json_append_integer(numbers, (int64_t)bin->count);
        ph__json_append_number(numbers, bin->predicted);
        ph__json_append_number(numbers, bin->observed);
        ph__json_append(bins, numbers);
    }
    return bins;
}

/* Returns true when `sum` can be the sum of `count` numbers from 0 to 1; false for NaN. */
static bool is_sum(double sum, int64_t count)
{
    return sum >= 0 && sum <= (double)count;
}

bool ph__calibration_from_json(const struct ph__json *json, struct ph__calibration *calibration_out)
{
    struct ph__calibration calibration = {0};
    if (!ph__json_is_array(json))
        return false;
    for (size_t i = 0; i < ph__json_size(json); i++) {
        const struct ph__json *numbers = ph__json_at(json, i);
        int64_t bin = ph__json_as_integer(ph__json_at(numbers, 0), -1);
        int64_t count = ph__json_as_integer(ph__json_at(numbers, 1), -1);
        double predicted = ph__json_as_number(ph__json_at(numbers, 2), (double)NAN);
        double observed = ph__json_as_number(ph__json_at(numbers, 3), (double)NAN);
        bool is_sound = bin >= 0 && bin < PH_CALIBRATION_BINS && count >= 1 && count <= MAX_COUNT &&
                        is_sum(predicted, count) && is_sum(observed, count);
        if (!is_sound)
            return false;
        calibration.bins[bin] = (struct ph__calibration_bin){(uint64_t)count, predicted, observed};
    }
    *calibration_out = calibration;
    return true;
}
