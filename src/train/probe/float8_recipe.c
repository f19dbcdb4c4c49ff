#include "train/probe/float8_recipe.h"

#include <math.h>

#include "base/sizes.h"
#include "tensor/float8.h"

enum { BLOCK = 128 };

/* Numbers that share a scale: 0 is as many as there are. */
struct scaling {
    const struct ph__float8_format *format;
    size_t rows, terms;
    bool is_power_of_two;
};

#define WHOLE 0, 0, false
#define A_ROW 1, 0, true

static const struct scaling scalings[PH_FLOAT8_COUNT][PH_FLOAT8_OPERANDS] = {
    [PH_FLOAT8_TENSOR] = {[PH_FLOAT8_X] = {&ph__e4m3, WHOLE},
        [PH_FLOAT8_DY] = {&ph__e5m2, WHOLE},
        [PH_FLOAT8_W] = {&ph__e4m3, WHOLE},
        [PH_FLOAT8_W_TRANSPOSED] = {&ph__e4m3, WHOLE}},
    [PH_FLOAT8_ROW] = {[PH_FLOAT8_X] = {&ph__e4m3, A_ROW},
        [PH_FLOAT8_DY] = {&ph__e4m3, A_ROW},
        [PH_FLOAT8_W] = {&ph__e4m3, A_ROW},
        [PH_FLOAT8_W_TRANSPOSED] = {&ph__e4m3, A_ROW}},
    [PH_FLOAT8_ROW_GW_HP] = {[PH_FLOAT8_X] = {&ph__e4m3, A_ROW},
        [PH_FLOAT8_DY] = {&ph__e4m3, A_ROW},
        [PH_FLOAT8_W] = {&ph__e4m3, A_ROW},
        [PH_FLOAT8_W_TRANSPOSED] = {&ph__e4m3, 0, 0, true}},
    [PH_FLOAT8_BLOCK] = {[PH_FLOAT8_X] = {&ph__e4m3, 1, BLOCK, false},
        [PH_FLOAT8_DY] = {&ph__e4m3, 1, BLOCK, false},
        [PH_FLOAT8_W] = {&ph__e4m3, BLOCK, BLOCK, false},
        [PH_FLOAT8_W_TRANSPOSED] = {&ph__e4m3, BLOCK, BLOCK, false}},
    [PH_FLOAT8_DELAYED] = {[PH_FLOAT8_X] = {&ph__e4m3, WHOLE},
        [PH_FLOAT8_DY] = {&ph__e5m2, WHOLE},
        [PH_FLOAT8_W] = {&ph__e4m3, WHOLE},
        [PH_FLOAT8_W_TRANSPOSED] = {&ph__e4m3, WHOLE}},
};

/* Returns the scale of numbers of which the largest magnitude is amax. */
static float scale_of(const struct scaling *scaling, float amax)
{
    const double scale = (double)scaling->format->largest / fmax((double)amax, 1e-12);
    return (float)(scaling->is_power_of_two ? exp2(floor(log2(scale))) : scale);
}

/* Rounds numbers that share a scale: a part (rows, terms) of a matrix whose rows have `stride` numbers.
 * amax 0: theirs. */
static void round_part(const struct scaling *scaling, float amax, size_t rows, size_t terms, size_t stride,
    const ph_real *numbers, ph_real *rounded)
{
    float largest = 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < terms; k++)
            largest = fmaxf(largest, fabsf((float)numbers[r * stride + k]));
    const float scale = scale_of(scaling, amax > 0 ? amax : largest);
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < terms; k++)
            rounded[r * stride + k] =
                (ph_real)(ph__float8_round(scaling->format, (float)numbers[r * stride + k] * scale) / scale);
}

void ph__float8_round_operand(enum ph__float8_recipe recipe, enum ph__float8_operand operand,
    double former_amax, size_t rows, size_t terms, const ph_real *numbers, ph_real *rounded_out)
{
    const struct scaling *scaling = &scalings[recipe][operand];
    const size_t part_rows = scaling->rows > 0 ? scaling->rows : ph__max(rows, 1);
    const size_t part_terms = scaling->terms > 0 ? scaling->terms : ph__max(terms, 1);
    for (size_t r = 0; r < rows; r += part_rows)
        for (size_t k = 0; k < terms; k += part_terms)
            round_part(scaling, recipe == PH_FLOAT8_DELAYED ? (float)former_amax : 0,
                ph__min(part_rows, rows - r), ph__min(part_terms, terms - k), terms, numbers + r * terms + k,
                rounded_out + r * terms + k);
}
