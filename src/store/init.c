/* Counter-based initialisation.
 *
 * The value at (row, column) comes from lane column % 4 of the rng block (row, column / 4) under the key
 * (seed, logical name). So rows can be filled in any order, by any thread, and a slice has the same values
 * wherever it is stored, and in however many parts.
 *
 * A table of a hundred million weights is filled at every start. So the normal deviates are made here, four
 * from one rng block, by Box-Muller with short polynomials in plain double arithmetic: exact to float
 * precision, and the same bits with every compiler and C library. */
#include "store/init.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/thread/stop.h"
#include "tensor/row_format.h"

enum { BLOCK_ELEMENTS = 1 << 16 /* of one task */, PART_COLUMNS = 256 };

#define WORD_SCALE 0x1p-32

struct fill {
    enum ph_init_kind kind;
    double scale;
    struct ph__rng_key key;
    const struct ph__init_target *target;
    size_t rows_per_task;
};

/* Returns ln u, u in (0,1]: u = m 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 (s + s^3/3 + ...),
 * s = (m - 1) / (m + 1). */
static double natural_log(double u)
{
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcdu;
    const int64_t exponent = (int64_t)(bits - sqrt_half) >> 52;
    bits -= (uint64_t)exponent << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    const double s = (m - 1) / (m + 1);
    const double z = s * s;
    const double series = 1 + z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11)))));
    return 2 * s * series + (double)exponent * 0.69314718055994530942;
}

/* Makes two independent N(0,1) numbers from two words: radius sqrt(-2 ln u), angle of the second word. The
 * two high bits of the angle are the quadrant, the others an angle x in [-pi/4, pi/4) whose sine and cosine
 * are short series. */
static void normal_pair(uint32_t radius_word, uint32_t angle_word, double pair_out[2])
{
    const double radius = sqrt(-2 * natural_log(((double)radius_word + 0.5) * WORD_SCALE));
    const double turn = (double)(angle_word & 0x3fffffffu) * 0x1p-30 - 0.5;
    const double x = turn * 1.57079632679489661923;
    const double z = x * x;
    const double sine = x * (1 - z / 6 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72))));
    const double cosine = 1 - z / 2 * (1 - z / 12 * (1 - z / 30 * (1 - z / 56 * (1 - z / 90))));
    const double sign = (angle_word >> 31) != 0 ? -radius : radius;
    const int is_turned = (angle_word >> 30 & 1) != 0;
    pair_out[0] = sign * (is_turned ? -sine : cosine);
    pair_out[1] = sign * (is_turned ? cosine : sine);
}

static void normal_values(const struct ph__rng_block *block, double values_out[4])
{
    normal_pair(block->word[0], block->word[1], values_out);
    normal_pair(block->word[2], block->word[3], values_out + 2);
}

static void uniform_values(const struct ph__rng_block *block, double values_out[4])
{
    for (size_t lane = 0; lane < 4; lane++)
        values_out[lane] = ((double)block->word[lane] + 0.5) * (2 * WORD_SCALE) - 1;
}

/* Fills the columns [begin, end) of a row of the target; begin is a multiple of 4. */
static void fill_columns(const struct fill *fill, size_t row, size_t begin, size_t end, ph_real *out)
{
    const size_t logical_row = fill->target->first_row + row, first_column = fill->target->first_column;
    for (size_t first = begin; first < end; first += 4) {
        const struct ph__rng_block block =
            ph__rng_block(&fill->key, logical_row, (uint32_t)((first_column + first) / 4));
        double values[4];
        if (fill->kind == PH_INIT_NORMAL)
            normal_values(&block, values);
        else
            uniform_values(&block, values);
        for (size_t column = first; column < end && column < first + 4; column++)
            out[column - begin] = (ph_real)(fill->scale * values[column - first]);
    }
}

/* Writes `count` numbers in the target's format, from its number `place` on. */
static void put_numbers(
    const struct ph__init_target *target, size_t place, size_t count, const ph_real *numbers)
{
    ph__rows_encode(target->row_format, 1, count, numbers,
        (char *)target->data + place * ph__row_bytes(target->row_format, 1),
        target->low != NULL ? target->low + place : NULL);
}

static void fill_row(const struct fill *fill, size_t row)
{
    const size_t columns = fill->target->columns, place = row * columns;
    ph_real part[PART_COLUMNS];
    if (fill->target->row_format == PH_ROWS_FP32) {
        fill_columns(fill, row, 0, columns, (ph_real *)fill->target->data + place);
        return;
    }
    for (size_t begin = 0; begin < columns; begin += PART_COLUMNS) {
        const size_t end = begin + PART_COLUMNS < columns ? begin + PART_COLUMNS : columns;
        fill_columns(fill, row, begin, end, part);
        put_numbers(fill->target, place + begin, end - begin, part);
    }
}

static void fill_rows(void *argument, size_t task, size_t worker)
{
    const struct fill *fill = argument;
    const struct ph__init_target *target = fill->target;
    const size_t first = task * fill->rows_per_task;
    const size_t left = target->rows - first;
    const size_t last = first + (left < fill->rows_per_task ? left : fill->rows_per_task);
    (void)worker;
    for (size_t row = first; row < last && !ph__is_stopped(target->stop_signal); row++)
        fill_row(fill, row);
}

static void fill_constant(const struct ph__init_target *target, ph_real value)
{
    if (value == 0)
        return; /* memory is zeroed already: a fresh table's pages stay untouched until they are used */
    for (size_t i = 0; i < target->rows * target->columns; i++)
        put_numbers(target, i, 1, &value);
}

/* Reduces the kinds to a constant, a scaled normal or a scaled uniform distribution. */
static struct fill make_fill(const struct ph_init *init, uint64_t seed, const struct ph__init_target *target)
{
    struct fill fill = {
        .kind = init->kind,
        .scale = init->scale,
        .key = {.seed = seed, .stream = ph__hash_name(target->name)},
        .target = target,
    };
    const double fans = (double)target->whole_rows + (double)target->whole_columns;
    if (init->kind == PH_INIT_XAVIER_NORMAL) {
        fill.kind = PH_INIT_NORMAL;
        fill.scale *= sqrt(2 / fans);
    } else if (init->kind == PH_INIT_XAVIER_UNIFORM) {
        fill.kind = PH_INIT_UNIFORM;
        fill.scale *= sqrt(6 / fans);
    }
    return fill;
}

void ph__init_fill(
    const struct ph_init *init, uint64_t seed, const struct ph__init_target *target, struct ph__team *team)
{
    if (target->rows == 0 || target->columns == 0)
        return;
    struct fill fill = make_fill(init, seed, target);
    if (fill.kind == PH_INIT_CONSTANT) {
        fill_constant(target, (ph_real)init->scale);
        return;
    }
    fill.rows_per_task = target->columns < BLOCK_ELEMENTS ? BLOCK_ELEMENTS / target->columns : 1;
    const size_t num_tasks = (target->rows - 1) / fill.rows_per_task + 1;
    if (team != NULL && num_tasks > 1) {
        ph__parallel_for(team, num_tasks, fill_rows, &fill);
        return;
    }
    for (size_t task = 0; task < num_tasks; task++)
        fill_rows(&fill, task, 0);
}

void ph__init_matrix(const struct ph_shape *shape, size_t *rows_out, size_t *columns_out)
{
    size_t columns = 1;
    for (size_t i = shape->num_dims < 2 ? 0 : 1; i < shape->num_dims; i++)
        columns *= shape->dims[i];
    *rows_out = shape->num_dims < 2 ? 1 : shape->dims[0];
    *columns_out = columns;
}
