#include "support/op_trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/cpu.h"

static struct ph_program *build_program(const struct op_trial *trial)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    assert_ok(ph_builder_create(trial->mode, &builder));
    ph_value x = ph_input_dense(builder, trial->batch.num_dense);
    ph_output(builder, "y", trial->build(builder, x));
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

static void fill_parameters(const struct op_trial *trial, struct ph_store *store)
{
    const ph_real *values = trial->parameters;
    for (size_t i = 0; i < ph_store_num_tensors(store) && values != NULL; i++) {
        struct ph_tensor tensor = ph_store_tensor(store, i);
        const size_t elements = ph_shape_elements(&tensor.shape);
        memcpy(tensor.data, values, elements * sizeof *values);
        values += elements;
    }
    ph_store_touch(store);
}

static void compare(const struct op_trial *trial, struct ph_workspace *workspace)
{
    const double tolerance = trial->tolerance > 0 ? trial->tolerance : 1e-6;
    const ph_real *y = NULL;
    struct ph_shape shape;
    double scalar = 0;
    if (ph_workspace_output(workspace, "y", &y, &shape) != PH_OK) {
        assert_ok(ph_workspace_scalar(workspace, "y", &scalar));
        assert_int_equal(trial->num_expected, 1);
        assert_near(scalar, trial->expected[0], tolerance, tolerance);
        return;
    }
    assert_int_equal(ph_shape_elements(&shape), trial->num_expected);
    for (size_t i = 0; i < trial->num_expected; i++)
        assert_near((double)y[i], trial->expected[i], tolerance, tolerance);
}

static void run_on(const struct op_trial *trial, size_t num_threads)
{
    const struct ph_backend_options options = {.size = sizeof options, .num_threads = num_threads};
    struct ph_program *program = build_program(trial);
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(&options, &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    fill_parameters(trial, store);
    assert_ok(ph_workspace_create(executor, trial->batch.num_samples, trial->batch.num_ids, &workspace));
    assert_ok(ph_workspace_bind(workspace, &trial->batch, 1, 1));
    for (size_t run = 0; run < (trial->num_runs > 0 ? trial->num_runs : 1); run++)
        assert_ok(ph_workspace_run(workspace, "forward"));
    compare(trial, workspace);
    if (trial->check != NULL)
        trial->check(workspace, state);
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(program);
}

void check_trial(const struct op_trial *trial)
{
    const char *given = getenv("PHLOEM_ISA");
    enum ph__isa best = PH_ISA_REF;
    assert_ok(ph__cpu_isa(&best));
    for (int isa = PH_ISA_REF; isa <= (int)best; isa++) {
        assert_int_equal(setenv("PHLOEM_ISA", ph__isa_name((enum ph__isa)isa), 1), 0);
        run_on(trial, 1);
        run_on(trial, 3);
    }
    if (given == NULL)
        unsetenv("PHLOEM_ISA");
}

void assert_refused(ph_value (*build)(struct ph_builder *builder, ph_value x), const char *part)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    build(builder, ph_input_dense(builder, 12));
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG, part);
    ph_builder_destroy(builder);
}
