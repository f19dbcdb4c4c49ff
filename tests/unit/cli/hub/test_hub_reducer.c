/* Ranks that are threads learn a network of dense layers, its gradients summed at a hub in another thread and
 * by AllReduce: the same bits, over worlds, wires, transports and several hubs. And what becomes of them when
 * the hub or a rank fails. */
#include "cli/hub/hub_reducer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "store/tensor_list.h"
#include "support/hub_thread.h"
#include "unit/shard/rank_fixture.h"

enum { INPUTS = 7, HIDDEN = 40, BATCH = 33, NUM_STEPS = 5, NUM_NUMBERS = HIDDEN * (INPUTS + 2) + 1 };

/* ---- the data ---- */

struct samples {
    struct ph_batch batch;
    ph_real dense[BATCH * INPUTS], labels[BATCH];
};

static double uniform(size_t step, size_t sample, uint32_t column)
{
    const struct ph__rng_key key = {test_seed(), step, column};
    return ph__rng_word(&key, sample, 0) / 4294967296. - .5;
}

static void make_samples(struct samples *samples, size_t step, size_t first, size_t last)
{
    for (size_t b = first; b < last; b++) {
        for (uint32_t j = 0; j < INPUTS; j++)
            samples->dense[(b - first) * INPUTS + j] = (ph_real)(4 * uniform(step, b, j));
        samples->labels[b - first] = (ph_real)(uniform(step, b, 0) > uniform(step, b, 1));
    }
    samples->batch = (struct ph_batch){.num_samples = last - first,
        .num_dense = INPUTS,
        .num_tasks = 1,
        .num_global_samples = BATCH,
        .first_sample = first,
        .dense = samples->dense,
        .labels = samples->labels};
}

/* ---- the model ---- */

static ph_value layer(struct ph_builder *builder, ph_value x, size_t inputs, size_t units,
    enum ph_activation activation, const char *name)
{
    const struct ph_init normal = {PH_INIT_NORMAL, .4};
    ph_builder_push_scope(builder, name);
    const ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){units, inputs}, normal);
    const ph_value bias = ph_parameter(builder, "bias", 1, (size_t[]){units}, normal);
    ph_builder_pop_scope(builder);
    return ph_linear(builder, x, weight, bias, activation);
}

static void build(struct ph_builder *builder, const struct ph_distribution *distribution, const void *context)
{
    const struct ph_optimizer optimizer = {.rule.kind = PH_SGD, .learning_rate_factor = 1};
    ph_value parameters[4], gradients[4];
    const ph_value *more;
    size_t num_more;
    (void)context;
    const ph_value hidden =
        layer(builder, ph_input_dense(builder, INPUTS), INPUTS, HIDDEN, PH_RELU, "hidden");
    const ph_value logits = layer(builder, hidden, HIDDEN, 1, PH_IDENTITY, "last");
    const ph_value loss = ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
    distribution->spread(distribution->context, builder, &more, &num_more);
    for (size_t i = 0; i < 4; i++)
        parameters[i] = ph_builder_parameter(builder, i);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, 4, parameters, gradients);
    distribution->reduce(distribution->context, builder, 4, parameters, gradients);
    ph_builder_begin_entry(builder, "update");
    const ph_value rate = ph_input_scalar(builder, "learning_rate"), step = ph_input_scalar(builder, "step");
    for (size_t i = 0; i < 4; i++)
        ph_update(builder, parameters[i], gradients[i], &optimizer, rate, step, 0);
}

static ph_status copy_parameters(const struct rank_model *model, ph_real numbers_out[NUM_NUMBERS])
{
    struct ph__tensor_list list = {0};
    size_t count = 0;
    ph_status status = ph__tensor_list_add_store(&list, model->store);
    for (size_t i = 0; status == PH_OK && i < list.count; i++) {
        const size_t more = ph_shape_elements(&list.tensors[i].shape);
        memcpy(numbers_out + count, list.tensors[i].data, more * sizeof *numbers_out);
        count += more;
    }
    ph__tensor_list_fini(&list);
    PH_TRY(status);
    RANK_CHECK(count == NUM_NUMBERS);
    return PH_OK;
}

/* ---- ranks ---- */

struct trial {
    const struct ph_parallel_settings *settings;
    enum ph_hub_transport transport;
    struct hub_thread *ending_hub; /* that the first rank ends in its second step; NULL: none */
    size_t failing_rank;           /* in its second step; SIZE_MAX: none */
    ph_real numbers[THREAD_RANKS_MOST][NUM_NUMBERS]; /* what the ranks have learnt */
};

/* What happens in the second step, while others are about to wait for the hub. */
static ph_status follow_forward(const struct trial *trial, size_t rank, size_t step)
{
    if (step != 1)
        return PH_OK;
    if (rank == trial->failing_rank)
        return ph_fail(PH_ERROR_DATA, "row 7 is no row");
    if (rank == 0 && trial->ending_hub != NULL)
        ph_hub_server_stop(trial->ending_hub->server);
    return PH_OK;
}

static ph_status take_step(
    const struct trial *trial, struct rank_model *model, size_t step, size_t rank, size_t world_size)
{
    static const char *const forward[] = {"forward", NULL};
    struct samples samples;
    make_samples(&samples, step, BATCH * rank / world_size, BATCH * (rank + 1) / world_size);
    PH_TRY(rank_model_run(model, &samples.batch, step, forward));
    PH_TRY(follow_forward(trial, rank, step));
    PH_TRY(ph_workspace_run(model->workspace, "backward"));
    return ph_workspace_run(model->workspace, "update");
}

static ph_status learn(struct trial *trial, struct ph_comm *comm, const struct ph_distribution *distribution)
{
    const size_t rank = ph_comm_rank(comm), world_size = ph_comm_world_size(comm);
    struct rank_model model;
    ph_status status = rank_model_init(&model, build, NULL, distribution);
    if (status == PH_OK)
        status = ph_workspace_set_scalar(model.workspace, "learning_rate", .5);
    if (status == PH_OK)
        status = ph_workspace_set_scalar(model.workspace, "step", 1);
    for (size_t step = 0; status == PH_OK && step < NUM_STEPS; step++)
        status = take_step(trial, &model, step, rank, world_size);
    if (status == PH_OK)
        status = copy_parameters(&model, trial->numbers[rank]);
    rank_model_fini(&model);
    return status;
}

static ph_status learn_by(struct trial *trial, struct ph_comm *comm, const struct ph_reducer *reducer)
{
    const struct ph_parallel_settings *settings = trial->settings;
    const struct ph__plan plan = {0};
    const struct ph__distribution_options options = {.comm = comm,
        .plan = &plan,
        .dense = (enum ph_wire_format)settings->dense,
        .bucket_bytes = (size_t)settings->bucket_bytes,
        .overlaps = settings->overlap,
        .reducer = reducer};
    struct ph_distribution *distribution;
    PH_TRY(ph__distribution_create(&options, &distribution));
    const ph_status status = learn(trial, comm, distribution);
    ph__distribution_destroy(distribution);
    return status;
}

static ph_status run_rank(struct ph_comm *comm, void *context)
{
    struct trial *trial = context;
    struct cli_hub_reducer hub;
    if (trial->settings->sync == PH_SYNC_ALLREDUCE)
        return learn_by(trial, comm, NULL);
    PH_TRY(cli_hub_reducer_init(&hub, trial->settings, comm));
    hub.options.transport = trial->transport;
    const ph_status status = learn_by(trial, comm, &hub.table);
    if (status != PH_OK)
        ph_comm_fail(comm, status);
    cli_hub_reducer_fini(&hub, status);
    return status;
}

static struct ph_parallel_settings settings_for(const char *addresses)
{
    return (struct ph_parallel_settings){.sync = PH_SYNC_HUB,
        .timeout_seconds = THREAD_RANKS_TIMEOUT_SECONDS,
        .bucket_bytes = HIDDEN * sizeof(ph_real), /* three buckets of four gradients */
        .overlap = true,
        .hub = addresses,
        .hub_job = "learns"};
}

/* ---- the same bits ---- */

static void learn_alike(
    struct ph_parallel_settings settings, enum ph_hub_transport transport, size_t world_size)
{
    struct ph_parallel_settings by_ranks = settings;
    by_ranks.sync = PH_SYNC_ALLREDUCE;
    static struct trial trial, reduced;
    trial = (struct trial){.settings = &settings, .transport = transport, .failing_rank = SIZE_MAX};
    reduced = (struct trial){.settings = &by_ranks, .failing_rank = SIZE_MAX};
    const struct thread_ranks ranks = {.world_size = world_size};
    thread_ranks_run(&ranks, run_rank, &reduced, NULL);
    thread_ranks_run(&ranks, run_rank, &trial, NULL);
    assert_memory_not_equal(trial.numbers[0], (ph_real[NUM_NUMBERS]){0}, sizeof *trial.numbers);
    assert_memory_equal(trial.numbers, reduced.numbers, sizeof trial.numbers);
}

static void hub_learns_the_bits_of_all_reduce(void **state)
{
    (void)state;
    static const size_t worlds[] = {1, 2, 3, 4, 8};
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
        learn_alike(settings_for(hub.address), PH_HUB_AUTO, worlds[i]);
    hub_thread_end(&hub);
}

/* One key for all gradients, or one for each; in the midst of backward, or behind it. */
static void buckets_and_overlap_change_no_bit(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    struct ph_parallel_settings settings = settings_for(hub.address);
    settings.bucket_bytes = 1;
    learn_alike(settings, PH_HUB_AUTO, 3);
    settings.bucket_bytes = 1 << 20;
    learn_alike(settings, PH_HUB_AUTO, 3);
    settings.overlap = false;
    learn_alike(settings, PH_HUB_AUTO, 3);
    hub_thread_end(&hub);
}

static void halved_gradients_learn_the_same_over_tcp_and_shared_memory(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    struct ph_parallel_settings settings = settings_for(hub.address);
    for (settings.dense = PH_WIRE_FP32; settings.dense <= PH_WIRE_BF16; settings.dense++) {
        learn_alike(settings, PH_HUB_TCP, 3);
        learn_alike(settings, PH_HUB_SHARED_MEMORY, 3);
    }
    hub_thread_end(&hub);
}

static void several_hubs_share_the_buckets(void **state)
{
    (void)state;
    struct hub_thread first, second;
    char addresses[2 * HUB_THREAD_ADDRESS + 1];
    hub_thread_begin(&first, (struct ph_hub_server_options){0});
    hub_thread_begin(&second, (struct ph_hub_server_options){0});
    snprintf(addresses, sizeof addresses, "%s,%s", first.address, second.address);
    learn_alike(settings_for(addresses), PH_HUB_AUTO, 3);
    hub_thread_end(&second);
    hub_thread_end(&first);
}

/* ---- others in need ---- */

/* The first rank waits for the hub, and the others push only when they have a sum of all ranks, of which it
 * makes a part. */
static ph_status wait_for_each_other(struct ph_comm *comm, const struct ph_reducer *reducer)
{
    static const struct ph__comm_call call = {100, "a sum"};
    const size_t one = 1;
    const void *sums;
    ph_real data[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint64_t ticket;
    PH_TRY(reducer->open(reducer->context, 1, &one, PH_F32));
    PH_TRY(ph__comm_all_reduce_start(
        comm, &call, ph__comm_world(comm), PH_WIRE_FP32, 1, 8, data, NULL, &ticket));
    if (ph_comm_rank(comm) > 0)
        PH_TRY(ph__comm_wait(comm, ticket));
    *(float *)reducer->numbers(reducer->context, 0) = 1;
    PH_TRY(reducer->start(reducer->context, 0));
    PH_TRY(reducer->wait(reducer->context, 0, &sums));
    PH_TRY(ph__comm_wait(comm, ticket));
    RANK_CHECK(data[0] == 3 && data[7] == 3 && *(const float *)sums == 3);
    return PH_OK;
}

static ph_status run_waiting_rank(struct ph_comm *comm, void *context)
{
    struct cli_hub_reducer hub;
    PH_TRY(cli_hub_reducer_init(&hub, context, comm));
    const ph_status status = wait_for_each_other(comm, &hub.table);
    cli_hub_reducer_fini(&hub, status);
    return status;
}

static void rank_that_waits_for_the_hub_serves_others(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    struct ph_parallel_settings settings = settings_for(hub.address);
    const struct thread_ranks ranks = {.world_size = 3};
    thread_ranks_run(&ranks, run_waiting_rank, &settings, NULL);
    hub_thread_end(&hub);
}

/* ---- failures ---- */

/* All ranks end so, and one speaks. */
static void learn_in_vain(
    struct ph_parallel_settings settings, struct trial trial, ph_status status, const char *part)
{
    const struct thread_ranks ranks = {
        .world_size = 3, .options = {.timeout_seconds = settings.timeout_seconds}};
    struct thread_rank_end ends[THREAD_RANKS_MOST];
    size_t num_speakers = 0;
    trial.settings = &settings;
    thread_ranks_run(&ranks, run_rank, &trial, ends);
    for (size_t r = 0; r < ranks.world_size; r++) {
        if (strstr(ends[r].text, part) == NULL)
            print_error("rank %zu: %s\n", r, ends[r].text);
        assert_non_null(strstr(ends[r].text, part));
        assert_int_equal(ends[r].status, status);
        num_speakers += ends[r].speaks;
    }
    assert_int_equal(num_speakers, 1);
}

/* The job's name is free, as it would not be if a service had been left. */
static void assert_free(const struct hub_thread *hub, const char *name)
{
    struct ph_hub_service service = hub_thread_service(name, 1);
    assert_ok(ph_hub_create_service(&hub->options, &service));
    assert_ok(ph_hub_destroy_service(&hub->options, name, service.nonce));
}

static void failure_of_a_rank_reaches_those_who_wait_for_the_hub(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    for (size_t rank = 0; rank < 3; rank++)
        learn_in_vain(settings_for(hub.address), (struct trial){.failing_rank = rank}, PH_ERROR_DATA,
            "row 7 is no row");
    assert_free(&hub, "learns");
    hub_thread_end(&hub);
}

static void end_of_the_hub_ends_all_ranks(void **state)
{
    (void)state;
    for (enum ph_hub_transport transport = PH_HUB_SHARED_MEMORY; transport <= PH_HUB_TCP; transport++) {
        struct hub_thread hub;
        hub_thread_begin(&hub, (struct ph_hub_server_options){0});
        learn_in_vain(settings_for(hub.address),
            (struct trial){.failing_rank = SIZE_MAX, .transport = transport, .ending_hub = &hub},
            PH_ERROR_PEER, "the hub");
        hub_thread_end(&hub);
    }
}

static void service_is_gone_when_all_is_learnt(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    learn_alike(settings_for(hub.address), PH_HUB_AUTO, 2);
    assert_free(&hub, "learns");
    hub_thread_end(&hub);
}

/* Another job of that name is not disturbed; of drawn names there is never another. */
static void name_of_another_job_is_refused(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    struct ph_hub_service other = hub_thread_service("learns", 1);
    assert_ok(ph_hub_create_service(&hub.options, &other));
    struct ph_parallel_settings settings = settings_for(hub.address);
    learn_in_vain(settings, (struct trial){.failing_rank = SIZE_MAX}, PH_ERROR_USAGE, "'learns'");
    assert_ok(ph_hub_destroy_service(&hub.options, "learns", other.nonce));
    settings.hub_job = "";
    learn_alike(settings, PH_HUB_AUTO, 2);
    hub_thread_end(&hub);
}

static void hub_that_is_not_there_is_an_error_of_all(void **state)
{
    (void)state;
    struct ph_parallel_settings settings = settings_for("127.0.0.1:1");
    settings.timeout_seconds = 1;
    learn_in_vain(settings, (struct trial){.failing_rank = SIZE_MAX}, PH_ERROR_PEER, "127.0.0.1:1");
}

static void int8_is_no_format_of_a_hub(void **state)
{
    (void)state;
    struct ph_parallel_settings settings = settings_for("127.0.0.1:1");
    settings.dense = PH_WIRE_INT8;
    learn_in_vain(
        settings, (struct trial){.failing_rank = SIZE_MAX}, PH_ERROR_CONFIG, "parallel.dense is int8");
}

static void settings_without_an_address_or_with_a_long_name_are_refused(void **state)
{
    (void)state;
    struct cli_hub_reducer hub;
    char name[PH_HUB_MAX_NAME + 2] = "";
    struct ph_parallel_settings settings = settings_for("");
    assert_fails(cli_hub_reducer_init(&hub, &settings, NULL), PH_ERROR_CONFIG, "parallel.hub ");
    settings = settings_for("127.0.0.1:1");
    memset(name, 'x', PH_HUB_MAX_NAME + 1);
    settings.hub_job = name;
    assert_fails(cli_hub_reducer_init(&hub, &settings, NULL), PH_ERROR_CONFIG, "parallel.hub_job");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hub_learns_the_bits_of_all_reduce),
        cmocka_unit_test(buckets_and_overlap_change_no_bit),
        cmocka_unit_test(halved_gradients_learn_the_same_over_tcp_and_shared_memory),
        cmocka_unit_test(several_hubs_share_the_buckets),
        cmocka_unit_test(rank_that_waits_for_the_hub_serves_others),
        cmocka_unit_test(failure_of_a_rank_reaches_those_who_wait_for_the_hub),
        cmocka_unit_test(end_of_the_hub_ends_all_ranks),
        cmocka_unit_test(service_is_gone_when_all_is_learnt),
        cmocka_unit_test(name_of_another_job_is_refused),
        cmocka_unit_test(hub_that_is_not_there_is_an_error_of_all),
        cmocka_unit_test(int8_is_no_format_of_a_hub),
        cmocka_unit_test(settings_without_an_address_or_with_a_long_name_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
