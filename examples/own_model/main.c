/* A custom model, trained through the public C API alone: a factorisation machine beside a small perceptron
 * over two sparse features, on made-up clicks that depend on the pair (user, item).
 *
 * Shows, in order: the model as a function of the builder, a training program with its three entries, batches
 * in the combined format, the training loop, and an evaluation program over the same store. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "phloem/phloem.h"

enum { BATCH = 256, STEPS = 300, USERS = 40, ITEMS = 30, DIM = 8 };

/* ---- the model: logits (B,1) ---- */

static ph_value build_model(struct ph_builder *builder)
{
    const struct ph_table_slice slices[] = {{"user", USERS}, {"item", ITEMS}};
    const struct ph_init small = {PH_INIT_NORMAL, 0.1}, xavier = {PH_INIT_XAVIER_NORMAL, 1},
                         zero = {PH_INIT_CONSTANT, 0};
    ph_value table = ph_table(builder, "embedding", 2, slices, DIM, small);
    ph_value vectors =
        ph_embedding_bag(builder, ph_input_ids(builder, 2), table, PH_POOL_SUM, 0); /* (B,2,D) */

    ph_value flat = ph_reshape(builder, vectors, 1, (size_t[]){2 * DIM}); /* (B,2D) */
    ph_value weight = ph_parameter(builder, "hidden.weight", 2, (size_t[]){16, 2 * DIM}, xavier);
    ph_value bias = ph_parameter(builder, "hidden.bias", 1, (size_t[]){16}, zero);
    ph_value hidden = ph_linear(builder, flat, weight, bias, PH_RELU); /* (B,16) */
    weight = ph_parameter(builder, "output.weight", 2, (size_t[]){1, 16}, xavier);
    bias = ph_parameter(builder, "output.bias", 1, (size_t[]){1}, zero);
    return ph_add(builder, ph_fm(builder, vectors), ph_linear(builder, hidden, weight, bias, PH_IDENTITY));
}

/* Builds entries "forward" (loss), "backward" (gradients of all parameters), "update" (one step of Adam
 * each). */
static ph_status build_training(struct ph_program **program_out)
{
    enum { MAX_PARAMETERS = 8 };
    ph_value parameters[MAX_PARAMETERS], gradients[MAX_PARAMETERS];
    const struct ph_optimizer adam = {
        .rule = {.kind = PH_ADAM, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}, .learning_rate_factor = 1};
    struct ph_builder *builder = NULL;
    PH_TRY(ph_builder_create(PH_TRAINING, &builder));
    ph_value logits = build_model(builder);
    ph_value loss = ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
    ph_output(builder, "loss", loss);

    size_t count = ph_builder_num_parameters(builder);
    for (size_t i = 0; i < count && i < MAX_PARAMETERS; i++)
        parameters[i] = ph_builder_parameter(builder, i);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, count, parameters, gradients);
    ph_builder_begin_entry(builder, "update");
    ph_value rate = ph_input_scalar(builder, "learning_rate"), step = ph_input_scalar(builder, "step");
    for (size_t i = 0; i < count; i++)
        ph_update(builder, parameters[i], gradients[i], &adam, rate, step, 0);

    ph_status status =
        ph_builder_finish(builder, program_out); /* reports the first mistake made above, if any */
    ph_builder_destroy(builder);
    return status;
}

static ph_status build_scoring(struct ph_program **program_out)
{
    struct ph_builder *builder = NULL;
    PH_TRY(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "probability", ph_sigmoid(builder, build_model(builder)));
    ph_status status = ph_builder_finish(builder, program_out);
    ph_builder_destroy(builder);
    return status;
}

/* ---- made-up clicks ---- */

/* The combined format: all users' ids, then all items'. */
struct clicks {
    int64_t ids[2 * BATCH];
    int32_t lengths[2 * BATCH];
    uint32_t offsets[2 * BATCH + 1];
    ph_real labels[BATCH];
};

static struct ph_batch make_batch(struct clicks *clicks)
{
    for (uint32_t i = 0; i < 2 * BATCH; i++) {
        clicks->lengths[i] = 1;
        clicks->offsets[i + 1] = i + 1;
        clicks->ids[i] = rand() % (i < BATCH ? USERS : ITEMS);
    }
    for (int i = 0; i < BATCH; i++)
        clicks->labels[i] = (clicks->ids[i] + clicks->ids[BATCH + i]) % 3 == 0 ? 1 : 0;
    return (struct ph_batch){.num_samples = BATCH,
        .num_sparse = 2,
        .num_tasks = 1,
        .num_ids = 2 * BATCH,
        .labels = clicks->labels,
        .lengths = clicks->lengths,
        .offsets = clicks->offsets,
        .ids = clicks->ids};
}

/* ---- training and scoring ---- */

struct run {
    struct ph_program *training, *scoring;
    struct ph_store *store; /* learnt values, shared by both programs */
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *trainer, *scorer;
    struct ph_workspace *train_memory, *score_memory;
};

static ph_status start(struct run *run)
{
    PH_TRY(build_training(&run->training));
    PH_TRY(build_scoring(&run->scoring));
    PH_TRY(ph_store_create(7, &run->store));
    PH_TRY(ph_state_create(&run->state));
    PH_TRY(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options)}, &run->backend));
    PH_TRY(ph_executor_create(run->training, run->store, run->state, run->backend, &run->trainer));
    PH_TRY(ph_executor_create(run->scoring, run->store, run->state, run->backend, &run->scorer));
    PH_TRY(ph_workspace_create(run->trainer, BATCH, 2 * BATCH, &run->train_memory));
    return ph_workspace_create(run->scorer, BATCH, 2 * BATCH, &run->score_memory);
}

static void stop(struct run *run)
{
    ph_workspace_destroy(run->score_memory);
    ph_workspace_destroy(run->train_memory);
    ph_executor_destroy(run->scorer);
    ph_executor_destroy(run->trainer);
    ph_backend_destroy(run->backend);
    ph_state_destroy(run->state);
    ph_store_destroy(run->store);
    ph_program_destroy(run->scoring);
    ph_program_destroy(run->training);
}

static ph_status train(struct run *run)
{
    struct clicks clicks = {0};
    PH_TRY(ph_workspace_set_scalar(run->train_memory, "learning_rate", 0.02));
    for (uint64_t step = 1; step <= STEPS; step++) {
        double loss = 0;
        struct ph_batch batch = make_batch(&clicks);
        PH_TRY(ph_workspace_bind(run->train_memory, &batch, 7, step));
        PH_TRY(ph_workspace_set_scalar(run->train_memory, "step", (double)step));
        PH_TRY(ph_workspace_run(run->train_memory, "forward"));
        PH_TRY(ph_workspace_run(run->train_memory, "backward"));
        PH_TRY(ph_workspace_run(run->train_memory, "update"));
        PH_TRY(ph_workspace_scalar(run->train_memory, "loss", &loss));
        if (step % 100 == 0 || step == 1)
            printf("step %3llu  loss %.4f\n", (unsigned long long)step, loss);
    }
    return PH_OK;
}

static ph_status score(struct run *run, double *accuracy_out)
{
    struct clicks clicks = {0};
    struct ph_batch batch = make_batch(&clicks);
    const ph_real *probability = NULL;
    struct ph_shape shape;
    PH_TRY(ph_workspace_bind(run->score_memory, &batch, 0, 0));
    PH_TRY(ph_workspace_run(run->score_memory, "forward"));
    PH_TRY(ph_workspace_output(run->score_memory, "probability", &probability, &shape));
    size_t right = 0;
    for (size_t i = 0; i < shape.dims[0]; i++)
        right += (probability[i] > 0.5f) == (clicks.labels[i] > 0.5f);
    *accuracy_out = (double)right / (double)shape.dims[0];
    return PH_OK;
}

int main(void)
{
    struct run run = {0};
    double accuracy = 0;
    ph_status status = start(&run);
    if (status == PH_OK)
        status = train(&run);
    if (status == PH_OK)
        status = score(&run, &accuracy);
    stop(&run);
    if (status != PH_OK) {
        fprintf(stderr, "own_model: %s\n", ph_error_text());
        return ph_status_exit_code(status);
    }
    printf("accuracy on fresh clicks: %.3f (always saying no: %.3f)\n", accuracy, 2.0 / 3.0);
    return accuracy > 0.9 ? 0 : 1;
}
