#include "train/probe/matrix_normal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "train/probe/cholesky.h"

#define RIDGE 1e-6 /* eps, in mean variances, once many weights were seen */

/* ---- linear algebra ---- */

/* Returns eps, in mean variances: the estimates of few weights are singular, and their inverses huge. */
static double ridge_of(const struct ph__matrix_normal *normal)
{
    return fmax(RIDGE, 1 / ((double)normal->count * (double)normal->count));
}

/* Solves L y = b for each of `count` vectors, rows of b (count, size), in place. */
static void solve(size_t size, const double *lower, size_t count, double *b)
{
    for (size_t c = 0; c < count; c++, b += size)
        for (size_t i = 0; i < size; i++)
            b[i] = (b[i] - ph__dot(i, lower + i * size, b)) / lower[i * size + i];
}

/* Moves a covariance (size, size) towards the mean product of `count` pairs of vectors, rows of b. */
static void move(size_t size, double *covariance, size_t count, const double *b, double rate)
{
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j <= i; j++) {
            double *place = &covariance[i * size + j];
            *place += rate * (ph__dot(count, b + i * count, b + j * count) / (double)count - *place);
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

uint64_t ph__matrix_normal_bytes(size_t rows, size_t columns)
{
    const uint64_t largest = ph__max(rows, columns);
    return sizeof(double) * (3 * rows * columns + rows * rows + columns * columns + largest * largest);
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
    ph__cholesky(columns, normal->v, ridge_of(normal), normal->factor);
    memcpy(normal->solved, normal->deviations, rows * columns * sizeof *normal->solved);
    solve(columns, normal->factor, rows, normal->solved);
    move(rows, normal->u, columns, normal->solved, rate);
}

static void move_v(struct ph__matrix_normal *normal, double rate)
{
    const size_t rows = normal->rows, columns = normal->columns;
    ph__cholesky(rows, normal->u, ridge_of(normal), normal->factor);
    transpose(rows, columns, normal->deviations, normal->solved);
    solve(rows, normal->factor, columns, normal->solved);
    move(columns, normal->v, rows, normal->solved, rate);
}

/* Keeps U's mean variance at 1. */
static void normalise(struct ph__matrix_normal *normal)
{
    const double scale = ph__mean_variance(normal->rows, normal->u);
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
    for (size_t i = 0; i < rows * columns && normal->count < 2; i++)
        weight_out[i] = (ph_real)normal->mean[i];
    if (normal->count < 2)
        return;
    for (size_t i = 0; i < rows * columns; i++)
        z[i] = ph__rng_next_normal(random);
    ph__cholesky(columns, normal->v, RIDGE, normal->factor);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            right[c * rows + r] = ph__dot(c + 1, z + r * columns, normal->factor + c * columns);
    ph__cholesky(rows, normal->u, RIDGE, normal->factor);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            weight_out[r * columns + c] =
                (ph_real)(normal->mean[r * columns + c] +
                          ph__dot(r + 1, normal->factor + r * rows, right + c * rows));
}
