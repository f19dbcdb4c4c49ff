#include "unit/op/product_trial.h"

/* The shape on trial: x (B, heads * k), y (B, heads * m), weight (tasks, heads, k, m). */
static size_t tasks, heads, k, m;

static ph_value weight_of(struct ph_builder *builder)
{
    return learnt(builder, "weight", 4, (size_t[]){tasks, heads, k, m});
}

static ph_value head(struct ph_builder *builder, ph_value x)
{
    return ph_bilinear_head(builder, ph_slice(builder, x, 1, 0, heads * k),
        ph_slice(builder, x, 1, heads * k, heads * m), weight_of(builder));
}

/* A term of the formula: which numbers of x, of y and of the weight, and the task. */
struct term {
    size_t task, x, y, w;
};

static struct term term_at(size_t w)
{
    const size_t j = w % m, i = w / m % k, h = w / m / k % heads;
    return (struct term){.task = w / m / k / heads, .x = h * k + i, .y = heads * k + h * m + j, .w = w};
}

static size_t num_terms(void)
{
    return tasks * heads * k * m;
}

static size_t expect_head(size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    for (size_t b = 0; b < num_samples; b++, x += heads * (k + m), y_out += tasks)
        for (size_t w = 0; w < num_terms(); w++) {
            const struct term term = term_at(w);
            y_out[term.task] += (double)parameters[w] * (double)x[term.x] * (double)x[term.y];
        }
    return num_samples * tasks;
}

/* The gradients as operators of their own: the batch has x, y and dz (B,tasks). */
static size_t which; /* output of backward data */

static void list_inputs(struct ph_builder *builder, ph_value x, ph_value inputs_out[4])
{
    inputs_out[0] = ph_slice(builder, x, 1, heads * (k + m), tasks);
    inputs_out[1] = ph_slice(builder, x, 1, 0, heads * k);
    inputs_out[2] = ph_slice(builder, x, 1, heads * k, heads * m);
    inputs_out[3] = weight_of(builder);
}

static ph_value head_backward_data(struct ph_builder *builder, ph_value x)
{
    ph_value inputs[4], outputs[2] = {0, 0};
    list_inputs(builder, x, inputs);
    ph__emit(builder, &ph__op_bilinear_head_backward_data, NULL, NULL, 0, 4, inputs, 2, outputs);
    return outputs[which];
}

static size_t expect_backward_data(
    size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    const size_t first = which == 0 ? 0 : heads * k, width = heads * (which == 0 ? k : m);
    for (size_t b = 0; b < num_samples; b++, x += heads * (k + m) + tasks, y_out += width)
        for (size_t w = 0; w < num_terms(); w++) {
            const struct term term = term_at(w);
            y_out[(which == 0 ? term.x : term.y) - first] += (double)parameters[w] *
                                                             (double)x[heads * (k + m) + term.task] *
                                                             (double)x[which == 0 ? term.y : term.x];
        }
    return num_samples * width;
}

static ph_value head_backward_weight(struct ph_builder *builder, ph_value x)
{
    ph_value inputs[4];
    list_inputs(builder, x, inputs);
    return ph__emit1(builder, &ph__op_bilinear_head_backward_weight, NULL, NULL, 0, 4, inputs);
}

static size_t expect_backward_weight(
    size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    (void)parameters;
    for (size_t b = 0; b < num_samples; b++, x += heads * (k + m) + tasks)
        for (size_t w = 0; w < num_terms(); w++) {
            const struct term term = term_at(w);
            y_out[w] += (double)x[heads * (k + m) + term.task] * (double)x[term.x] * (double)x[term.y];
        }
    return num_terms();
}

static void check_shape(size_t num_samples, size_t num_tasks, size_t num_heads, size_t x_dim, size_t y_dim)
{
    tasks = num_tasks;
    heads = num_heads;
    k = x_dim;
    m = y_dim;
    struct product_trial trial = {.num_samples = num_samples,
        .num_dense = heads * (k + m),
        .num_parameters = num_terms(),
        .build = head,
        .expect = expect_head};
    check_products(&trial);
    trial.num_dense += tasks;
    trial.build = head_backward_data;
    trial.expect = expect_backward_data;
    for (which = 0; which < 2; which++)
        check_products(&trial);
    trial.build = head_backward_weight;
    trial.expect = expect_backward_weight;
    trial.is_of_all_samples = true;
    check_products(&trial);
}

static void a_head_multiplies_its_slices_of_both_vectors(void **state)
{
    (void)state;
    check_shape(1, 1, 1, 1, 1);
    check_shape(60, 1, 5, 16, 4); /* several blocks of samples, and a rest */
    check_shape(800, 1, 2, 3, 2); /* parts of the weight's gradient with several blocks */
    check_shape(9, 3, 2, 17, 33);
    check_shape(0, 2, 2, 3, 4);
}

static ph_value a_weight_of_other_heads(struct ph_builder *builder, ph_value x)
{
    return ph_bilinear_head(builder, x, x, learnt(builder, "weight", 4, (size_t[]){1, 2, 4, 4}));
}

static ph_value slices_of_other_lengths(struct ph_builder *builder, ph_value x)
{
    return ph_bilinear_head(builder, x, x, learnt(builder, "weight", 4, (size_t[]){1, 3, 4, 5}));
}

static void heads_refuse_what_does_not_fit(void **state)
{
    (void)state;
    assert_refused(a_weight_of_other_heads, "got (B,12), (B,12), (1,2,4,4)");
    assert_refused(slices_of_other_lengths, "got (B,12), (B,12), (1,3,4,5)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_multiplies_its_slices_of_both_vectors),
        cmocka_unit_test(heads_refuse_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
