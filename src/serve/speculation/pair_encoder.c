#include "serve/speculation/pair_encoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "store/checkpoint_folder.h"
#include "store/safetensors.h"

enum { ROUNDS = 200 };   /* of orthogonal iteration */
#define LEAST_GAIN 1e-22 /* of a squared residual, by which conjugate gradients end */
#define TEACHER_KEY "teacher"

struct fitting {
    size_t width, dim, num_fixed;
    double *covariance;        /* (D,D) */
    double *directions;        /* (d,D) */
    double *image;             /* (D) */
    double *residual, *search; /* (D) of conjugate gradients */
};

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Makes a direction orthogonal to those before it, and of length 1. Returns the length that it had then. */
static double orthonormalise(const struct fitting *fitting, size_t index)
{
    double *direction = fitting->directions + index * fitting->width;
    for (int twice = 0; twice < 2; twice++)
        for (size_t other = 0; other < index; other++) {
            const double *before = fitting->directions + other * fitting->width;
            const double along = dot(direction, before, fitting->width);
            for (size_t i = 0; i < fitting->width; i++)
                direction[i] -= along * before[i];
        }
    const double length = sqrt(dot(direction, direction, fitting->width));
    for (size_t i = 0; i < fitting->width; i++)
        direction[i] /= length > 0 ? length : 1;
    return length;
}

/* image = covariance direction */
static void multiply(const struct fitting *fitting, const double *direction)
{
    for (size_t i = 0; i < fitting->width; i++)
        fitting->image[i] = dot(fitting->covariance + i * fitting->width, direction, fitting->width);
}

/* Multiplies a direction by the covariance. */
static void spread(const struct fitting *fitting, size_t index)
{
    double *direction = fitting->directions + index * fitting->width;
    multiply(fitting, direction);
    memcpy(direction, fitting->image, fitting->width * sizeof *direction);
}

/* Solves covariance weights = residual by conjugate gradients, from weights 0. */
static void solve(const struct fitting *fitting, double *weights)
{
    const size_t width = fitting->width;
    double *residual = fitting->residual, *search = fitting->search;
    double square = dot(residual, residual, width);
    const double end = square * LEAST_GAIN;
    memcpy(search, residual, width * sizeof *search);
    for (size_t step = 0; step < 8 * width && square > end; step++) {
        multiply(fitting, search);
        const double curvature = dot(search, fitting->image, width);
        if (curvature <= 0)
            return;
        const double former = square;
        for (size_t i = 0; i < width; i++) {
            weights[i] += former / curvature * search[i];
            residual[i] -= former / curvature * fitting->image[i];
        }
        square = dot(residual, residual, width);
        for (size_t i = 0; i < width; i++)
            search[i] = residual[i] + square / former * search[i];
    }
}

/* Finds the weights with which a task's logits follow from z, by least squares. */
static void find_weights(const struct fitting *fitting, size_t count, const float *z, const float *mean,
    const float *logits, size_t task)
{
    const size_t width = fitting->width;
    memset(fitting->residual, 0, width * sizeof *fitting->residual);
    for (size_t row = 0; row < count; row++)
        for (size_t i = 0; i < width; i++)
            fitting->residual[i] += (double)(z[row * width + i] - mean[i]) *
                                    (double)logits[row * fitting->num_fixed + task] / (double)count;
    solve(fitting, fitting->directions + task * width);
}

static void find_directions(const struct fitting *fitting)
{
    struct ph__rng_sequence random = {.key = {.stream = ph__hash_name("pair.encoder")}};
    for (size_t i = 0; i < fitting->num_fixed; i++)
        orthonormalise(fitting, i);
    for (size_t i = fitting->num_fixed * fitting->width; i < fitting->dim * fitting->width; i++)
        fitting->directions[i] = ph__rng_next_normal(&random);
    for (size_t i = fitting->num_fixed; i < fitting->dim; i++)
        orthonormalise(fitting, i);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = fitting->num_fixed; i < fitting->dim; i++)
            spread(fitting, i);
        for (size_t i = fitting->num_fixed; i < fitting->dim; i++)
            orthonormalise(fitting, i);
    }
}

static void find_moments(const struct fitting *fitting, size_t count, const float *z, float *mean)
{
    const size_t width = fitting->width;
    for (size_t i = 0; i < width; i++) {
        double sum = 0;
        for (size_t row = 0; row < count; row++)
            sum += (double)z[row * width + i];
        mean[i] = (float)(sum / (double)count);
    }
    for (size_t row = 0; row < count; row++)
        for (size_t i = 0; i < width; i++)
            for (size_t k = 0; k <= i; k++)
                fitting->covariance[i * width + k] += (double)(z[row * width + i] - mean[i]) *
                                                      (double)(z[row * width + k] - mean[k]) / (double)count;
    for (size_t i = 0; i < width; i++)
        for (size_t k = 0; k < i; k++)
            fitting->covariance[k * width + i] = fitting->covariance[i * width + k];
}

/* Returns the share of the variance that the directions have. */
static double share_kept(const struct fitting *fitting)
{
    double all = 0, kept = 0;
    for (size_t i = 0; i < fitting->width; i++)
        all += fitting->covariance[i * fitting->width + i];
    for (size_t k = 0; k < fitting->dim; k++) {
        const double *direction = fitting->directions + k * fitting->width;
        for (size_t i = 0; i < fitting->width; i++)
            kept += direction[i] * dot(fitting->covariance + i * fitting->width, direction, fitting->width);
    }
    return all > 0 ? kept / all : 1;
}

static ph_status allocate(size_t width, size_t dim, struct ph__pair_encoder *encoder)
{
    *encoder = (struct ph__pair_encoder){.width = width,
        .dim = dim,
        .mean = calloc(width, sizeof *encoder->mean),
        .directions = calloc(dim * width, sizeof *encoder->directions)};
    if (encoder->mean != NULL && encoder->directions != NULL)
        return PH_OK;
    ph__pair_encoder_fini(encoder);
    return ph__out_of_memory("an encoder of %zu numbers", width);
}

ph_status ph__pair_encoder_fit(size_t count, size_t width, const float *z, size_t num_tasks,
    const float *logits, size_t dim, struct ph__pair_encoder *encoder_out)
{
    struct ph__arena arena = {0};
    double *numbers = ph__arena_alloc_array(&arena, (width + dim + 3) * width, sizeof *numbers);
    ph_status status = numbers != NULL ? allocate(width, dim, encoder_out) : (ph_status)PH_ERROR_MEMORY;
    if (status == PH_OK) {
        double *rest = numbers + (width + dim) * width;
        const struct fitting fitting = {
            width, dim, num_tasks, numbers, numbers + width * width, rest, rest + width, rest + 2 * width};
        find_moments(&fitting, count, z, encoder_out->mean);
        for (size_t task = 0; task < num_tasks; task++)
            find_weights(&fitting, count, z, encoder_out->mean, logits, task);
        find_directions(&fitting);
        for (size_t i = 0; i < dim * width; i++)
            encoder_out->directions[i] = (float)fitting.directions[i];
        encoder_out->kept = share_kept(&fitting);
    }
    ph__arena_fini(&arena);
    return status;
}

void ph__pair_encoder_fini(struct ph__pair_encoder *encoder)
{
    free(encoder->mean);
    free(encoder->directions);
    *encoder = (struct ph__pair_encoder){0};
}

void ph__pair_encode(const struct ph__pair_encoder *encoder, size_t count, const float *z, float *e)
{
    for (size_t row = 0; row < count; row++, z += encoder->width)
        for (size_t k = 0; k < encoder->dim; k++) {
            const float *direction = encoder->directions + k * encoder->width;
            float sum = 0;
            for (size_t i = 0; i < encoder->width; i++)
                sum += direction[i] * (z[i] - encoder->mean[i]);
            *e++ = sum;
        }
}

/* ---- files ---- */

static void list_tensors(const struct ph__pair_encoder *encoder, struct ph_tensor tensors_out[2])
{
    tensors_out[0] = (struct ph_tensor){
        .name = "mean", .dtype = PH_F32, .shape = {1, {encoder->width}}, .data = encoder->mean};
    tensors_out[1] = (struct ph_tensor){.name = "directions",
        .dtype = PH_F32,
        .shape = {2, {encoder->dim, encoder->width}},
        .data = encoder->directions};
}

ph_status ph__pair_encoder_save(const struct ph__pair_encoder *encoder, const char *path)
{
    const char *const metadata[] = {TEACHER_KEY, encoder->teacher, NULL};
    struct ph_tensor tensors[2];
    list_tensors(encoder, tensors);
    return ph__safetensors_write(path, 2, tensors, metadata);
}

static ph_status load(const struct ph__folder *folder, const char *path, struct ph__pair_encoder *encoder)
{
    struct ph_tensor tensors[2];
    const size_t index = ph__folder_find(folder, "directions");
    PH_TRY(ph__folder_check_seals(folder, 0, 1));
    if (index == ph__folder_num_tensors(folder))
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: not an encoder of pairs: tensor 'directions' is missing", path);
    const struct ph_shape shape = ph__folder_tensor(folder, index).shape;
    if (shape.num_dims != 2 || shape.dims[0] == 0 || shape.dims[1] < shape.dims[0])
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: 'directions' is not a matrix of an encoder, (numbers kept, numbers read)", path);
    PH_TRY(allocate(shape.dims[1], shape.dims[0], encoder));
    list_tensors(encoder, tensors);
    const char *teacher = ph__folder_metadata(folder, TEACHER_KEY);
    snprintf(encoder->teacher, sizeof encoder->teacher, "%s", teacher != NULL ? teacher : "");
    return ph__folder_load(folder, 2, tensors);
}

ph_status ph__pair_encoder_load(const char *path, struct ph__pair_encoder *encoder_out)
{
    struct ph__folder *folder;
    *encoder_out = (struct ph__pair_encoder){0};
    PH_TRY(ph__folder_open(path, &folder));
    const ph_status status = load(folder, path, encoder_out);
    ph__folder_close(folder);
    if (status != PH_OK)
        ph__pair_encoder_fini(encoder_out);
    return status;
}
