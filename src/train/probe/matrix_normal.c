#include "train/probe/matrix_normal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

#define RIDGE 1e-6 /* eps, in mean variances, once many weights were seen */

/* ---- linear algebra ---- */

static double dot(size_t count, const double *a, const double *b)
{
    double sums[4] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += a[i + k] * b[i + k];
    for (; i < count; i++)
        sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static double mean_variance(size_t size, const double *covariance)
{
    double sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += covariance[i * size + i];
    return sum / (double)size;
}

/* Returns eps, in mean variances: the estimates of few weights are singular, and their inverses huge. */
static double ridge_of(const struct ph__matrix_normal *normal)
{
    return fmax(RIDGE, 1 / ((double)normal->count * (double)normal->count));
}

/* Factors covariance + eps I = L L^T (size, size), of which the lower half is given. A pivot that rounding
 * has made negative becomes eps. */
static void factorise(size_t size, const double *covariance, double eps, double *lower)
{
    const double ridge = eps * fmax(mean_variance(size, covariance), 1e-300);
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j <= i; j++) {
            const double *row = lower + i * size, *other = lower + j * size;
            const double rest = covariance[i * size + j] + (i == j ? ridge : 0) - dot(j, row, other);
            lower[i * size + j] = i == j ? sqrt(fmax(rest, ridge)) : rest / other[j];
        }
}

/* Solves L y = b for each of `count` vectors, rows of b (count, size), in place. */
static void solve(size_t size, const double *lower, size_t count, double *b)
{
    for (size_t c = 0; c < count; c++, b += size)
        for (size_t i = 0; i < size; i++)
            b[i] = (b[i] - dot(i, lower + i * size, b)) / lower[i * size + i];
}

/* Moves a covariance (size, size) towards the mean product of `count` pairs of vectors, rows of b. */
static void move(size_t size, double *covariance, size_t count, const double *b, double rate)
{
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j <= i; j++) {
            double *place = &covariance[i * size + j];
            *place += rate * (dot(count, b + i * count, b + j * count) / (double)count - *place);
            covariance[j * size + i] = *place;
        }
}

static void transpose(size_t rows, size_t columns, const double *from, double *to)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            to[c * rows + r] = from[r * columns + c];
}

/* ---- the distribution ---- */

static void set_identity(size_t size, double *matrix)
{
    memset(matrix, 0, size * size * sizeof *matrix);
    for (size_t i = 0; i < size; i++)
        matrix[i * size + i] = 1;
}

ph_status ph__matrix_normal_open(
    struct ph__matrix_normal *normal, size_t rows, size_t columns, double momentum)
{
    const size_t largest = ph__max(rows, columns), elements = rows * columns;
    *normal = (struct ph__matrix_normal){.rows = rows,
        .columns = columns,
        .momentum = momentum,
        .mean = calloc(elements, sizeof(double)),
        .u = calloc(rows * rows, sizeof(double)),
        .v = calloc(columns * columns, sizeof(double)),
        .deviations = calloc(elements, sizeof(double)),
        .factor = calloc(largest * largest, sizeof(double)),
        .solved = calloc(elements, sizeof(double))};
    if (normal->mean == NULL || normal->u == NULL || normal->v == NULL || normal->deviations == NULL ||
        normal->factor == NULL || normal->solved == NULL) {
        ph__matrix_normal_close(normal);
        return ph__out_of_memory("a distribution of (%zu,%zu) weights", rows, columns);
    }
    set_identity(rows, normal->u);
    set_identity(columns, normal->v);
    return PH_OK;
}

void ph__matrix_normal_close(struct ph__matrix_normal *normal)
{
    free(normal->mean);
    free(normal->u);
    free(normal->v);
    free(normal->deviations);
    free(normal->factor);
    free(normal->solved);
    *normal = (struct ph__matrix_normal){.rows = 0};
}

/* Moves U: with V + eps I = L L^T, W_c (V + eps I)^-1 W_c^T = (L^-1 W_c^T)^T (L^-1 W_c^T). */
static void move_u(struct ph__matrix_normal *normal, double rate)
{
    const size_t rows = normal->rows, columns = normal->columns;
    factorise(columns, normal->v, ridge_of(normal), normal->factor);
    memcpy(normal->solved, normal->deviations, rows * columns * sizeof *normal->solved);
    solve(columns, normal->factor, rows, normal->solved);
    move(rows, normal->u, columns, normal->solved, rate);
}

static void move_v(struct ph__matrix_normal *normal, double rate)
{
    const size_t rows = normal->rows, columns = normal->columns;
    factorise(rows, normal->u, ridge_of(normal), normal->factor);
    transpose(rows, columns, normal->deviations, normal->solved);
    solve(rows, normal->factor, columns, normal->solved);
    move(columns, normal->v, rows, normal->solved, rate);
}

/* Keeps U's mean variance at 1. */
static void normalise(struct ph__matrix_normal *normal)
{
    const double scale = mean_variance(normal->rows, normal->u);
    if (!(scale > 0))
        return;
    for (size_t i = 0; i < normal->rows * normal->rows; i++)
        normal->u[i] /= scale;
    for (size_t i = 0; i < normal->columns * normal->columns; i++)
        normal->v[i] *= scale;
}

void ph__matrix_normal_add(struct ph__matrix_normal *normal, const ph_real *weight)
{
    const size_t elements = normal->rows * normal->columns;
    const double rate = fmax(1 / (double)(normal->count + 1), 1 - normal->momentum);
    for (size_t i = 0; i < elements; i++) {
        normal->deviations[i] = (double)weight[i] - normal->mean[i];
        normal->mean[i] += rate * normal->deviations[i];
    }
    if (normal->count > 0) { /* the first has no mean before it */
        const double covariance_rate = fmax(1 / (double)normal->count, 1 - normal->momentum);
        move_u(normal, covariance_rate);
        move_v(normal, covariance_rate);
        normalise(normal);
    }
    normal->count++;
}

/* weight = mean + L_U Z L_V^T */
void ph__matrix_normal_draw(
    struct ph__matrix_normal *normal, struct ph__rng_sequence *random, ph_real *weight_out)
{
    const size_t rows = normal->rows, columns = normal->columns;
    double *z = normal->deviations, *right = normal->solved; /* Z L_V^T, transposed */
    for (size_t i = 0; i < rows * columns; i++)
        z[i] = ph__rng_next_normal(random);
    factorise(columns, normal->v, RIDGE, normal->factor);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            right[c * rows + r] = dot(c + 1, z + r * columns, normal->factor + c * columns);
    factorise(rows, normal->u, RIDGE, normal->factor);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            weight_out[r * columns + c] = (ph_real)(normal->mean[r * columns + c] +
                                                    dot(r + 1, normal->factor + r * rows, right + c * rows));
}
