#include "unit/op/product_trial.h"

/* The shape on trial: x (B,c,n,d), weight (k,c,r,s). */
static size_t c, n, d, k, r, s;

static ph_value image_of(struct ph_builder *builder, ph_value x, size_t begin, size_t channels)
{
    ph_value numbers = ph_slice(builder, x, 1, begin, channels * n * d);
    return ph_reshape(builder, numbers, 3, (size_t[]){channels, n, d});
}

static ph_value convolution(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 4, (size_t[]){k, c, r, s});
    ph_value bias = learnt(builder, "bias", 1, (size_t[]){k});
    return ph_convolution(builder, image_of(builder, x, 0, c), weight, bias);
}

/* A term of the formula: which numbers of y, of x and of the weight, and the output. */
struct term {
    size_t y, x, w, output;
};

/* The terms of one sample, one after the other: next_term() from a zeroed counter until it says no. */
static bool next_term(size_t *counter, struct term *term_out)
{
    while (*counter < k * c * r * s * n * d) {
        size_t rest = (*counter)++;
        const size_t j = rest % d, i = (rest /= d) % n, v = (rest /= n) % s, u = (rest /= s) % r,
                     channel = (rest /= r) % c, o = rest / c;
        const size_t line = i + u, column = j + v; /* of the padded image */
        if (line < r / 2 || line >= n + r / 2 || column < s / 2 || column >= d + s / 2)
            continue;
        *term_out = (struct term){.y = (o * n + i) * d + j,
            .x = (channel * n + line - r / 2) * d + column - s / 2,
            .w = ((o * c + channel) * r + u) * s + v,
            .output = o};
        return true;
    }
    return false;
}

static size_t expect_convolution(
    size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    struct term term;
    for (size_t b = 0; b < num_samples; b++, x += c * n * d, y_out += k * n * d) {
        for (size_t i = 0; i < k * n * d; i++)
            y_out[i] = (double)parameters[k * c * r * s + i / (n * d)];
        for (size_t counter = 0; next_term(&counter, &term);)
            y_out[term.y] += (double)parameters[term.w] * (double)x[term.x];
    }
    return num_samples * k * n * d;
}

/* The gradients as operators of their own: the batch has x and dy (B,k,n,d). */
static ph_value convolution_backward_data(struct ph_builder *builder, ph_value x)
{
    const ph_value inputs[] = {
        image_of(builder, x, c * n * d, k), learnt(builder, "weight", 4, (size_t[]){k, c, r, s})};
    return ph__emit1(builder, &ph__op_convolution_backward_data, NULL, NULL, 0, 2, inputs);
}

static size_t expect_backward_data(
    size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    struct term term;
    for (size_t b = 0; b < num_samples; b++, x += (c + k) * n * d, y_out += c * n * d)
        for (size_t counter = 0; next_term(&counter, &term);)
            y_out[term.x] += (double)parameters[term.w] * (double)x[c * n * d + term.y];
    return num_samples * c * n * d;
}

static size_t which; /* output of the weight's gradient */

static ph_value convolution_backward_weight(struct ph_builder *builder, ph_value x)
{
    const size_t kernel[] = {r, s};
    const ph_value inputs[] = {image_of(builder, x, c * n * d, k), image_of(builder, x, 0, c)};
    ph_value outputs[2] = {0, 0};
    ph__emit(
        builder, &ph__op_convolution_backward_weight, NULL, kernel, sizeof kernel, 2, inputs, 2, outputs);
    return outputs[which];
}

static size_t expect_backward_weight(
    size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    (void)parameters;
    struct term term;
    for (size_t b = 0; b < num_samples; b++, x += (c + k) * n * d) {
        const ph_real *dy = x + c * n * d;
        for (size_t i = 0; i < k * n * d && which == 1; i++)
            y_out[i / (n * d)] += (double)dy[i];
        for (size_t counter = 0; which == 0 && next_term(&counter, &term);)
            y_out[term.w] += (double)dy[term.y] * (double)x[term.x];
    }
    return which == 0 ? k * c * r * s : k;
}

static void check_passes(size_t num_samples)
{
    check_products(&(struct product_trial){.num_samples = num_samples,
        .num_dense = c * n * d,
        .num_parameters = k * c * r * s + k,
        .build = convolution,
        .expect = expect_convolution});
    check_products(&(struct product_trial){.num_samples = num_samples,
        .num_dense = (c + k) * n * d,
        .num_parameters = k * c * r * s,
        .build = convolution_backward_data,
        .expect = expect_backward_data});
    for (which = 0; which < 2; which++)
        check_products(&(struct product_trial){.num_samples = num_samples,
            .num_dense = (c + k) * n * d,
            .build = convolution_backward_weight,
            .expect = expect_backward_weight,
            .is_of_all_samples = true});
}

static void check_shape(size_t num_samples, const size_t image[3], const size_t kernel[3])
{
    c = image[0];
    n = image[1];
    d = image[2];
    k = kernel[0];
    r = kernel[1];
    s = kernel[2];
    check_passes(num_samples);
}

static void images_keep_their_extent_and_miss_nothing(void **state)
{
    (void)state;
    check_shape(1, (size_t[]){1, 1, 1}, (size_t[]){1, 1, 1});
    check_shape(7, (size_t[]){1, 10, 10}, (size_t[]){4, 3, 3});
    check_shape(11, (size_t[]){3, 4, 5}, (size_t[]){5, 3, 5});  /* some images side by side */
    check_shape(2, (size_t[]){2, 3, 2}, (size_t[]){3, 7, 5});   /* windows larger than the image */
    check_shape(2, (size_t[]){4, 40, 33}, (size_t[]){3, 3, 3}); /* in chunks */
    check_shape(0, (size_t[]){2, 3, 4}, (size_t[]){2, 3, 3});
}

static ph_value an_even_window(struct ph_builder *builder, ph_value x)
{
    return ph_convolution(builder, ph_reshape(builder, x, 3, (size_t[]){1, 3, 4}),
        learnt(builder, "weight", 4, (size_t[]){2, 1, 2, 3}), 0);
}

static ph_value another_number_of_channels(struct ph_builder *builder, ph_value x)
{
    return ph_convolution(builder, ph_reshape(builder, x, 3, (size_t[]){1, 3, 4}),
        learnt(builder, "weight", 4, (size_t[]){2, 3, 3, 3}), 0);
}

static ph_value no_outputs(struct ph_builder *builder, ph_value x)
{
    return ph_convolution(builder, ph_reshape(builder, x, 3, (size_t[]){1, 3, 4}),
        learnt(builder, "weight", 4, (size_t[]){0, 1, 3, 3}), 0);
}

static void convolutions_refuse_what_does_not_fit(void **state)
{
    (void)state;
    assert_refused(an_even_window, "odd r and s, bias (k) or none; got (B,1,3,4), (2,1,2,3), token");
    assert_refused(another_number_of_channels, "got (B,1,3,4), (2,3,3,3), token");
    assert_refused(no_outputs, "got (B,1,3,4), (0,1,3,3), token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_keep_their_extent_and_miss_nothing),
        cmocka_unit_test(convolutions_refuse_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
