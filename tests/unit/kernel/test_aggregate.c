/* Sums of copies with the optimizer's step: on every ISA the bits of a serial loop, then of that ISA's
 * optimizer_update, then of tensor/float16.h. */
#include "support/dtype_numbers.h"
#include "unit/kernel/kernel_test.h"

enum { MAX_COPIES = 9, MAX_RESULTS = 3, MARK = 0x5a };

static const enum ph_dtype dtypes[] = {PH_F32, PH_F16, PH_BF16};
enum { NUM_DTYPES = sizeof dtypes / sizeof *dtypes };

/* ---- what must come out ---- */

/* The sum that optimizer_update is given, by the serial loop. */
static float *serial_sums(const struct ph__aggregate_args *args)
{
    float *sums = new_array(args->n, sizeof *sums);
    for (size_t i = 0; i < args->n; i++) {
        float sum = args->sum_so_far != NULL ? args->sum_so_far[i] : 0;
        for (size_t c = 0; c < args->num_copies; c++) {
            const float number = dtype_number(args->copies[c], args->dtype, i);
            sum = c == 0 && args->sum_so_far == NULL ? number : sum + number;
        }
        sums[i] = sum * args->sum_scale;
    }
    return sums;
}

/* ---- a case ---- */

struct trial {
    struct ph__aggregate_args args;
    const void *copies[MAX_COPIES];
    void *results[MAX_RESULTS];
};

/* Numbers of many sizes, so that another order of the sum would have other bits. */
static void fill(void *array, enum ph_dtype dtype, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dtype_number_set(
            array, dtype, i, (float)random_between(-1, 1) * ldexpf(1, (int)(random_word() % 12) - 6));
}

static void *filled(enum ph_dtype dtype, size_t n)
{
    void *array = new_array(n, ph_dtype_size(dtype));
    fill(array, dtype, n);
    return array;
}

/* Results are marked, so that what is not written shows. */
static void *marked(enum ph_dtype dtype, size_t n)
{
    void *array = new_array(n, ph_dtype_size(dtype));
    memset(array, MARK, n * ph_dtype_size(dtype));
    return array;
}

static void trial_init(
    struct trial *trial, enum ph_dtype dtype, size_t n, size_t num_copies, size_t num_results)
{
    *trial = (struct trial){.args = {.n = n,
                                .num_copies = num_copies,
                                .copies = trial->copies,
                                .dtype = dtype,
                                .sum_scale = 1,
                                .num_results = num_results,
                                .results = trial->results}};
    for (size_t c = 0; c < num_copies; c++)
        trial->copies[c] = filled(dtype, n);
    for (size_t r = 0; r < num_results; r++)
        trial->results[r] = marked(dtype, n);
}

static void assert_results(const struct trial *trial, const float *weights)
{
    const size_t n = trial->args.n, size = ph_dtype_size(trial->args.dtype);
    void *wanted = marked(trial->args.dtype, n);
    for (size_t i = 0; i < n; i++)
        dtype_number_set(wanted, trial->args.dtype, i, weights[i]);
    for (size_t r = 0; r < trial->args.num_results; r++)
        assert_memory_equal(trial->results[r], wanted, n * size);
}

/* ---- sums ---- */

static void check_sum(const struct ph__kernels *kernels, enum ph_dtype dtype, size_t n, size_t num_copies)
{
    struct trial trial;
    for (int has_so_far = num_copies == 0; has_so_far < 2; has_so_far++) {
        reset_arrays(NULL);
        trial_init(&trial, dtype, n, num_copies, num_copies % (MAX_RESULTS + 1));
        trial.args.sum_scale = num_copies % 2 == 0 ? 1 : 1 / (float)num_copies;
        trial.args.sum_so_far = has_so_far ? filled(PH_F32, n) : NULL;
        trial.args.new_weight = num_copies == 3 ? NULL : marked(PH_F32, n);
        const float *wanted = serial_sums(&trial.args);
        kernels->aggregate(&trial.args);
        if (trial.args.new_weight != NULL)
            assert_memory_equal(trial.args.new_weight, wanted, n * sizeof *wanted);
        assert_results(&trial, wanted);
    }
}

static void check_sums(const struct ph__kernels *kernels)
{
    for (size_t d = 0; d < NUM_DTYPES; d++)
        for (size_t num_copies = 0; num_copies <= MAX_COPIES; num_copies++)
            for (size_t n = 0; n <= 300; n += n < 150 ? 1 : 7)
                check_sum(kernels, dtypes[d], n, num_copies);
}

static void sums_have_the_bits_of_a_serial_loop(void **state)
{
    (void)state;
    on_every_isa(check_sums);
}

static void check_order(const struct ph__kernels *kernels)
{
    const float first = 0x1p24F, second = 1, third = -0x1p24F; /* (first + second) is first */
    const void *copies[] = {&first, &second, &third};
    float sum = 7;
    struct ph__aggregate_args args = {
        .n = 1, .num_copies = 3, .copies = copies, .dtype = PH_F32, .sum_scale = 0.5F, .new_weight = &sum};
    kernels->aggregate(&args);
    assert_true(sum == 0);
    copies[1] = &third;
    copies[2] = &second;
    kernels->aggregate(&args);
    assert_true(sum == 0.5F);
    args.sum_so_far = &second;
    kernels->aggregate(&args); /* ((1 + 2^24) - 2^24) + 1 */
    assert_true(sum == 0.5F);
}

static void copies_are_added_in_their_order(void **state)
{
    (void)state;
    on_every_isa(check_order);
}

/* ---- steps ---- */

static const struct kind {
    enum ph_optimizer_kind kind;
    int is_nesterov, has_m, has_s;
} kinds[] = {
    {PH_SGD, 0, 0, 0},
    {PH_MOMENTUM, 0, 1, 0},
    {PH_MOMENTUM, 1, 1, 0},
    {PH_ADAGRAD, 0, 0, 1},
    {PH_ADAM, 0, 1, 1},
    {PH_ADAMW, 0, 1, 1},
};
enum { NUM_KINDS = sizeof kinds / sizeof *kinds };

static struct ph__optimizer_step some_step(const struct kind *kind)
{
    return (struct ph__optimizer_step){
        .kind = kind->kind,
        .is_nesterov = kind->is_nesterov,
        .learning_rate = 0.05F,
        .gradient_scale = 0.7F,
        .l2 = 0.03F,
        .weight_decay = 0.1F,
        .momentum = 0.9F,
        .beta1 = 0.9F,
        .beta2 = 0.99F,
        .epsilon = 1e-4F,
        .bias_correction1 = 0.271F,
        .bias_correction2 = 0.0297F,
    };
}

/* optimizer_update with the serial loop's sum; then the same by aggregate, whose args are complete. */
static void check_trial(const struct ph__kernels *kernels, const struct trial *trial)
{
    const struct ph__aggregate_args *args = &trial->args;
    const size_t n = args->n;
    float *weight = copied_floats(n, args->weight);
    float *m = args->m != NULL ? copied_floats(n, args->m) : NULL;
    float *s = args->s != NULL ? copied_floats(n, args->s) : NULL;
    kernels->optimizer_update(args->step, n, serial_sums(args), weight, m, s);
    kernels->aggregate(args);
    assert_memory_equal(args->new_weight, weight, n * sizeof *weight);
    if (m != NULL)
        assert_memory_equal(args->m, m, n * sizeof *m);
    if (s != NULL)
        assert_memory_equal(args->s, s, n * sizeof *s);
    assert_results(trial, weight);
}

static void check_step(const struct ph__kernels *kernels, const struct kind *kind, enum ph_dtype dtype,
    size_t n, bool is_in_place)
{
    const struct ph__optimizer_step step = some_step(kind);
    struct trial trial;
    reset_arrays(NULL);
    trial_init(&trial, dtype, n, 1 + n % MAX_COPIES, n % (MAX_RESULTS + 1));
    float *weight = random_floats(n, -1, 1);
    trial.args.step = &step;
    trial.args.sum_scale = 1 / (float)trial.args.num_copies;
    trial.args.weight = weight;
    trial.args.new_weight = is_in_place ? weight : marked(PH_F32, n);
    trial.args.m = kind->has_m ? random_floats(n, -1, 1) : NULL;
    trial.args.s = kind->has_s ? random_floats(n, 0, 2) : NULL;
    const float *before = copied_floats(n, weight);
    check_trial(kernels, &trial);
    if (!is_in_place)
        assert_memory_equal(weight, before, n * sizeof *before);
}

static void check_steps(const struct ph__kernels *kernels)
{
    for (size_t k = 0; k < NUM_KINDS; k++)
        for (size_t d = 0; d < NUM_DTYPES; d++)
            for (size_t n = 0; n <= 300; n += n < 150 ? 1 : 7) {
                check_step(kernels, &kinds[k], dtypes[d], n, true);
                check_step(kernels, &kinds[k], dtypes[d], n, false);
            }
}

static void a_step_has_the_bits_of_optimizer_update(void **state)
{
    (void)state;
    on_every_isa(check_steps);
}

/* ---- where things lie ---- */

/* A place that begins `offset` bytes behind a multiple of 64, and what lies around it. */
static void *placed(size_t bytes, size_t offset)
{
    unsigned char *memory = new_array(bytes + 192, 1);
    memset(memory, MARK, bytes + 192);
    return memory + (64 - (uintptr_t)memory % 64) + offset;
}

static void assert_marked_behind(const void *place, size_t bytes)
{
    const unsigned char *behind = (const unsigned char *)place + bytes;
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(behind[i], MARK);
}

static void check_placed(const struct ph__kernels *kernels, enum ph_dtype dtype, size_t n, size_t offset)
{
    const struct ph__optimizer_step step = some_step(&kinds[1]);
    const size_t bytes = n * ph_dtype_size(dtype), weight_bytes = n * sizeof(float);
    struct trial trial;
    reset_arrays(NULL);
    trial_init(&trial, dtype, n, 3, MAX_RESULTS);
    for (size_t r = 0; r < MAX_RESULTS; r++) /* one stays aligned */
        trial.results[r] = placed(bytes, r * offset % 64);
    trial.args.step = &step;
    trial.args.weight = random_floats(n, -1, 1);
    trial.args.new_weight = placed(weight_bytes, offset);
    trial.args.m = placed(weight_bytes, offset);
    fill(trial.args.m, PH_F32, n);
    trial.args.is_non_temporal = true;
    check_trial(kernels, &trial);
    assert_marked_behind(trial.args.new_weight, weight_bytes);
    assert_marked_behind(trial.args.m, weight_bytes);
    for (size_t r = 0; r < MAX_RESULTS; r++)
        assert_marked_behind(trial.results[r], bytes);
}

static void check_non_temporal(const struct ph__kernels *kernels)
{
    for (size_t d = 0; d < NUM_DTYPES; d++)
        for (size_t n = 0; n <= 300; n += n < 150 ? 1 : 7)
            for (size_t offset = 0; offset < 64; offset += offset == 0 ? 4 : 28) /* 0, 4, 32, 60 */
                check_placed(kernels, dtypes[d], n, offset);
}

static void non_temporal_stores_have_the_same_bits_wherever_arrays_lie(void **state)
{
    (void)state;
    on_every_isa(check_non_temporal);
}

/* The sum is written where it began, and results where copies stood. */
static void check_in_place(const struct ph__kernels *kernels)
{
    for (size_t d = 0; d < NUM_DTYPES; d++)
        for (size_t n = 0; n <= 150; n++) {
            struct trial trial;
            reset_arrays(NULL);
            trial_init(&trial, dtypes[d], n, 4, 2);
            trial.args.new_weight = filled(PH_F32, n);
            trial.args.sum_so_far = trial.args.new_weight;
            trial.results[0] = filled(dtypes[d], n);
            trial.results[1] = filled(dtypes[d], n);
            trial.copies[1] = trial.results[0];
            trial.copies[3] = trial.results[1];
            trial.args.is_non_temporal = n % 2 == 0;
            const float *wanted = serial_sums(&trial.args);
            kernels->aggregate(&trial.args);
            assert_memory_equal(trial.args.new_weight, wanted, n * sizeof *wanted);
            assert_results(&trial, wanted);
        }
}

static void outputs_may_be_inputs(void **state)
{
    (void)state;
    on_every_isa(check_in_place);
}

/* ---- numbers that are none ---- */

static void check_nan(const struct ph__kernels *kernels)
{
    enum { N = 85 };
    for (size_t d = 0; d < NUM_DTYPES; d++)
        for (size_t at = 0; at < N; at++) {
            struct trial trial;
            reset_arrays(NULL);
            trial_init(&trial, dtypes[d], N, 2, 1);
            trial.args.new_weight = marked(PH_F32, N);
            trial.results[0] = filled(dtypes[d], N);
            trial.copies[0] = trial.results[0];
            dtype_number_set(trial.results[0], dtypes[d], at, NAN);
            kernels->aggregate(&trial.args);
            for (size_t i = 0; i < N; i++) {
                assert_int_equal(isnan(trial.args.new_weight[i]), i == at);
                assert_int_equal(isnan(dtype_number(trial.results[0], dtypes[d], i)), i == at);
            }
        }
}

static void nan_reaches_its_own_weight_only(void **state)
{
    (void)state;
    on_every_isa(check_nan);
}

/* Results beyond a half's numbers, between them and below them. */
static void check_extremes(const struct ph__kernels *kernels)
{
    static const float numbers[] = {INFINITY, -INFINITY, 65504, 65519, 65520, -70000, 3.4e38F, 6.1e-5F,
        5.96e-8F, 2.98e-8F, -2.99e-8F, 1e-30F, 0, -0.0F, 1.00048828125F, 1.00146484375F, 0.1F};
    enum { N = sizeof numbers / sizeof *numbers };
    const float *sum_so_far = copied_floats(N, numbers);
    for (size_t d = 0; d < NUM_DTYPES; d++) {
        struct trial trial;
        trial_init(&trial, dtypes[d], N, 0, 1);
        trial.args.sum_so_far = sum_so_far;
        kernels->aggregate(&trial.args);
        assert_results(&trial, numbers);
    }
}

static void results_are_rounded_to_the_nearest_even(void **state)
{
    (void)state;
    on_every_isa(check_extremes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sums_have_the_bits_of_a_serial_loop, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(copies_are_added_in_their_order, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(a_step_has_the_bits_of_optimizer_update, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            non_temporal_stores_have_the_same_bits_wherever_arrays_lie, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(outputs_may_be_inputs, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(nan_reaches_its_own_weight_only, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(results_are_rounded_to_the_nearest_even, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
