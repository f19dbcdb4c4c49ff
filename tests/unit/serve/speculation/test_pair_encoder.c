#include "serve/speculation/pair_encoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "support/test_support.h"

enum { COUNT = 2000, WIDTH = 12, TASKS = 2, DIM = 5 };

static float z[COUNT][WIDTH], weights[TASKS][WIDTH], logits[COUNT][TASKS];

static double logit_of(size_t row, size_t task)
{
    double sum = .5;
    for (size_t i = 0; i < WIDTH; i++)
        sum += (double)(weights[task][i] * z[row][i]);
    return sum;
}

/* Rows of three strong directions and little beside them. */
static void draw(void)
{
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    double strong[3][WIDTH];
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < WIDTH; i++)
            strong[k][i] = ph__rng_next_normal(&random);
    for (size_t t = 0; t < TASKS; t++)
        for (size_t i = 0; i < WIDTH; i++)
            weights[t][i] = (float)ph__rng_next_normal(&random);
    for (size_t row = 0; row < COUNT; row++) {
        const double factors[3] = {
            3 * ph__rng_next_normal(&random), 2 * ph__rng_next_normal(&random), ph__rng_next_normal(&random)};
        for (size_t i = 0; i < WIDTH; i++) {
            double sum = 1 + .01 * ph__rng_next_normal(&random);
            for (size_t k = 0; k < 3; k++)
                sum += factors[k] * strong[k][i];
            z[row][i] = (float)sum;
        }
        for (size_t t = 0; t < TASKS; t++)
            logits[row][t] = (float)logit_of(row, t);
    }
}

static double decoded_logit(const struct ph__pair_encoder *encoder, const float *e, size_t task)
{
    double sum = .5;
    for (size_t i = 0; i < WIDTH; i++) {
        double number = (double)encoder->mean[i];
        for (size_t k = 0; k < encoder->dim; k++)
            number += (double)(encoder->directions[k * WIDTH + i] * e[k]);
        sum += (double)weights[task][i] * number;
    }
    return sum;
}

static void codes_keep_the_logits_and_the_variance(void **state)
{
    (void)state;
    struct ph__pair_encoder encoder;
    static float codes[COUNT][DIM];
    draw();
    assert_ok(ph__pair_encoder_fit(COUNT, WIDTH, &z[0][0], TASKS, &logits[0][0], DIM, &encoder));
    assert_true(encoder.kept > .999 && encoder.kept <= 1 + 1e-9);
    ph__pair_encode(&encoder, COUNT, &z[0][0], &codes[0][0]);
    for (size_t row = 0; row < COUNT; row++)
        for (size_t t = 0; t < TASKS; t++) {
            assert_near(decoded_logit(&encoder, codes[row], t), logit_of(row, t), 1e-3, 1e-3);
        }
    ph__pair_encoder_fini(&encoder);
}

static void encoders_are_saved_and_read(void **state)
{
    (void)state;
    struct ph__pair_encoder encoder, other;
    const char *path = test_path("encoder.safetensors");
    draw();
    assert_ok(ph__pair_encoder_fit(COUNT, WIDTH, &z[0][0], TASKS, &logits[0][0], DIM, &encoder));
    snprintf(encoder.teacher, sizeof encoder.teacher, "seal of the weights");
    assert_ok(ph__pair_encoder_save(&encoder, path));
    assert_ok(ph__pair_encoder_load(path, &other));
    assert_int_equal(other.width, WIDTH);
    assert_int_equal(other.dim, DIM);
    assert_string_equal(other.teacher, encoder.teacher);
    assert_memory_equal(other.mean, encoder.mean, WIDTH * sizeof *encoder.mean);
    assert_memory_equal(other.directions, encoder.directions, DIM * WIDTH * sizeof *encoder.directions);
    ph__pair_encoder_fini(&other);
    ph__pair_encoder_fini(&encoder);
    assert_fails(ph__pair_encoder_load(test_path("nothing"), &other), PH_ERROR_CHECKPOINT, "nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_keep_the_logits_and_the_variance),
        cmocka_unit_test(encoders_are_saved_and_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
