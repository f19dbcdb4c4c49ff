/* Whole trainings whose batches are cut into micro-batches, alone and on ranks, against the same trainings by
 * whole batches: the losses of all steps, what is learnt, and what it takes. */
#include <math.h>

#include "store/safetensors.h"
#include "support/thread_ranks.h"
#include "train/config/job_config.h"
#include "unit/train/train_fixture.h"

enum { ROWS = 130, MANY_ROWS = 2400, MOST_STEPS = 16, MOST_SETS = 24 };

static const char *const taught[] = {"train.distill=single train.distill_weight=2",
    "train.distill=head train.distill_gradient_scale=3 train.distill_units=8",
    "train.distill=adapter train.distill_label_scale=2 train.distill_units=8"};

/* Two labels, of which some are unknown, with a teacher each, of whom some are blank; weights of samples,
 * some 0; a list with weights of ids, and one that shares a table. */
static char *write_row(char *at, unsigned b)
{
    static const char *const buys[] = {"", "0", "1", "0", "1"};
    static const char *const clicks_taught[] = {".2", "", ".7"}, *const buys_taught[] = {".4", ".1", "", ""};
    const double weight = b % 11 == 0 ? 0 : .25 * (1 + b % 7);
    at += sprintf(at, "%u,%s,%s,%s,%g,%g,%g,u%u,i%u,", (b * 7 / 3) % 2, buys[b % 5], clicks_taught[b % 3],
        buys_taught[b % 4], weight, sin(b), cos(3. * b), b * 5 % 17, b * b % 23);
    for (unsigned j = 0; j < b % 4; j++)
        at += sprintf(at, "%si%u", j > 0 ? " " : "", (b + 3 * j) % 23);
    *at++ = ',';
    for (unsigned j = 0; j < (b + 1) % 5; j++)
        at += sprintf(at, "%sw%u:%g", j > 0 ? " " : "", (b * 3 + j) % 9, .5 * (1 + (b + j) % 4));
    return at + sprintf(at, "\n");
}

enum { NO_ROW = -1 };

/* The row `monster` is too much for any weights. */
static const char *write_rows(const char *name, unsigned num_rows, int monster)
{
    char *text = malloc(128 * (num_rows + 1)), *at = text;
    assert_non_null(text);
    at += sprintf(at, "click,buy,clicks_taught,buys_taught,importance,age,price,user,item,history,words\n");
    for (unsigned b = 0; b < num_rows; b++)
        at = (int)b == monster ? at + sprintf(at, "1,1,,,1,3e38,-3e38,u1,i1,,w1:3e38\n") : write_row(at, b);
    const char *path = test_write_file(name, text);
    free(text);
    return path;
}

/* 40 samples a step, and 10 in the last one of an epoch. Without its large epsilon an optimizer that divides
 * by the gradient's size would make steps of full length out of gradients that are rounding alone. */
static const char *write_config(uint64_t seed)
{
    const char *rows = write_rows("rows.csv", ROWS, NO_ROW);
    char text[4096];
    snprintf(text, sizeof text,
        "seed: %llu\nthreads: 1\n"
        "data:\n  train: %s\n  test: %s\n  list_separator: ' '\n  fields:\n"
        "    - {name: click, kind: label}\n    - {name: buy, kind: label}\n"
        "    - {name: clicks_taught, kind: teacher}\n    - {name: buys_taught, kind: teacher}\n"
        "    - {name: importance, kind: weight}\n"
        "    - {name: age, kind: dense}\n    - {name: price, kind: dense}\n"
        "    - {name: user, kind: id}\n    - {name: item, kind: id}\n"
        "    - {name: history, kind: id, list: true, shares: item}\n"
        "    - {name: words, kind: id, list: true, weighted: true}\n"
        "model: {kind: dlrm, embedding_dim: 32, embedding_init_std: 0.1, bottom_units: [16], top_units: "
        "[16],\n"
        "        hidden_units: [16], batch_norm: false, dropout: 0.2}\n"
        "optimizer: {kind: adagrad, learning_rate: 0.05, epsilon: 0.01, embedding_scope: touched}\n"
        "train: {epochs: 2, batch_size: 40, schedule: constant, report_seconds: 0}\n",
        (unsigned long long)seed, rows, rows);
    return test_write_file("job.yaml", text);
}

static int make_job(void **state)
{
    (void)state;
    write_config(test_seed());
    return 0;
}

/* ---- a training ---- */

struct outcome {
    char folder[512];
    uint64_t num_steps;
    double losses[MOST_STEPS];
    struct ph_train_summary summary;
};

static ph_status take_loss(void *context, const struct ph_train_progress *progress)
{
    struct outcome *outcome = context;
    if (progress->valid != NULL || progress->step > MOST_STEPS)
        return PH_OK;
    outcome->losses[progress->step - 1] = progress->loss;
    outcome->num_steps = progress->step;
    return PH_OK;
}

/* "key=value key=value", which text becomes; the config's own settings are behind path. */
static ph_status read_config(const char *path, char *text, struct ph_config **config_out)
{
    const char *sets[MOST_SETS];
    size_t num_sets = 0;
    char *rest = NULL;
    for (char *set = strtok_r(text, " ", &rest); set != NULL; set = strtok_r(NULL, " ", &rest))
        sets[num_sets++] = set;
    return ph_config_read(path, sets, num_sets, config_out);
}

struct training {
    const char *sets, *more;
    const char *plan; /* of ranks */
    bool is_resumed;
    char folder[512];
    struct outcome *outcome; /* of the first rank */
    uint64_t *sent_bytes;    /* of all ranks; NULL: nobody asks */
};

static ph_status train_config(const struct training *training, struct ph_comm *comm, struct ph_config *config)
{
    const bool is_first = comm == NULL || ph_comm_rank(comm) == 0;
    const struct ph_train_observer observer = {.context = training->outcome, .on_progress = take_loss};
    struct ph_parallel_settings parallel = {
        .plan = training->plan, .sync = PH_SYNC_ALLREDUCE, .bucket_bytes = 1 << 20, .overlap = true};
    struct ph_encoder *encoder;
    struct ph_train_summary summary;
    struct ph__train_job job = ph__config_job(config);
    PH_TRY(ph_encoder_create(ph_config_data(config), &encoder));
    job.encoder = encoder;
    job.options.folder = training->folder;
    job.options.is_resumed = training->is_resumed;
    job.options.observer = is_first ? &observer : NULL;
    job.options.comm = comm;
    job.parallel = comm != NULL ? &parallel : NULL;
    const ph_status status = ph__train(&job, &summary);
    if (status == PH_OK && is_first)
        training->outcome->summary = summary;
    ph_encoder_destroy(encoder);
    return status;
}

static ph_status run_rank(struct ph_comm *comm, void *context)
{
    const struct training *training = context;
    char path[512], text[1024];
    struct ph_config *config;
    snprintf(path, sizeof path, "%s/job.yaml", test_folder());
    snprintf(text, sizeof text, "%s %s", training->sets, training->more);
    PH_TRY(read_config(path, text, &config));
    const ph_status status = train_config(training, comm, config);
    ph_config_destroy(config);
    for (size_t i = 0; comm != NULL && training->sent_bytes != NULL && i < ph_comm_world_size(comm); i++)
        __atomic_add_fetch(training->sent_bytes, ph__comm_counters(comm).sent_bytes[i], __ATOMIC_RELAXED);
    return status;
}

static void begin(struct training *training, const char *folder, struct outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    snprintf(training->folder, sizeof training->folder, "%s/%s", test_folder(), folder);
    snprintf(outcome->folder, sizeof outcome->folder, "%s", training->folder);
    struct setup setup = {0};
    snprintf(setup.folder, sizeof setup.folder, "%s", training->folder);
    remove_folder(&setup);
    training->outcome = outcome;
}

static struct outcome train_alone(const char *sets, const char *more, const char *folder)
{
    struct training training = {.sets = sets, .more = more};
    struct outcome outcome;
    begin(&training, folder, &outcome);
    assert_ok(run_rank(NULL, &training));
    return outcome;
}

/* plan: a file's text behind its head, or "none". */
static struct outcome train_on_hosts(size_t world_size, size_t ranks_per_host, const char *plan,
    const char *sets, const char *more, uint64_t *sent_bytes)
{
    char text[256];
    struct training training = {.sets = sets, .more = more, .plan = plan, .sent_bytes = sent_bytes};
    struct outcome outcome;
    const struct thread_ranks ranks = {
        .world_size = world_size, .options = {.ranks_per_host = ranks_per_host}};
    if (strcmp(plan, "none") != 0) {
        snprintf(text, sizeof text, "version: 1\nworld_size: %zu\n%s", world_size, plan);
        training.plan = test_write_file("plan.yaml", text);
    }
    begin(&training, "ranks", &outcome);
    thread_ranks_run(&ranks, run_rank, &training, NULL);
    return outcome;
}

static struct outcome train_on_ranks(
    size_t world_size, const char *plan, const char *sets, const char *more, uint64_t *sent_bytes)
{
    return train_on_hosts(world_size, world_size, plan, sets, more, sent_bytes);
}

/* ---- two trainings ---- */

static double greatest_share; /* of a tolerance that a comparison has used up */

static void check_close(const char *what, double is, double should_be, double tolerance)
{
    const double share = fabs(is - should_be) / (tolerance * (1 + fabs(should_be)));
    greatest_share = isnan(share) ? INFINITY : fmax(greatest_share, share);
    if (!(share <= 1))
        fail_msg("%s: %.9g, by whole batches %.9g", what, is, should_be);
}

static int tell_greatest_share(void **state)
{
    (void)state;
    test_learned_at_most("accumulated_steps.share_of_tolerance", greatest_share, 1);
    assert_true(greatest_share > 0); /* something has been compared */
    return 0;
}

static void check_losses(const struct outcome *parts, const struct outcome *whole, double tolerance)
{
    assert_int_equal(parts->num_steps, 8);
    assert_int_equal(parts->num_steps, whole->num_steps);
    assert_int_equal(parts->summary.samples, whole->summary.samples);
    for (size_t i = 0; i < parts->num_steps; i++)
        check_close("loss", parts->losses[i], whole->losses[i], tolerance);
    check_close("logloss", parts->summary.test.logloss, whole->summary.test.logloss, tolerance);
}

static float *read_tensor(const struct ph__safetensors *file, size_t index, size_t count)
{
    float *numbers = malloc(count * sizeof *numbers);
    assert_non_null(numbers);
    assert_int_equal(ph__safetensors_tensor(file, index).dtype, PH_F32);
    assert_ok(ph__safetensors_read(file, index, numbers));
    return numbers;
}

static struct ph__safetensors *open_model(const struct outcome *outcome)
{
    struct ph__safetensors *file;
    char path[600];
    snprintf(path, sizeof path, "%s/model.safetensors", outcome->folder);
    assert_ok(ph__safetensors_open(path, &file));
    return file;
}

static void check_models(const struct outcome *parts, const struct outcome *whole, double tolerance)
{
    struct ph__safetensors *is = open_model(parts), *should_be = open_model(whole);
    assert_int_equal(ph__safetensors_num_tensors(is), ph__safetensors_num_tensors(should_be));
    for (size_t t = 0; t < ph__safetensors_num_tensors(is); t++) {
        const struct ph_tensor tensor = ph__safetensors_tensor(is, t);
        const size_t count = ph_shape_elements(&tensor.shape);
        float *a = read_tensor(is, t, count), *b = read_tensor(should_be, t, count);
        for (size_t i = 0; i < count; i++)
            check_close(tensor.name, (double)a[i], (double)b[i], tolerance);
        free(a);
        free(b);
    }
    ph__safetensors_close(is);
    ph__safetensors_close(should_be);
}

/* 7 does not divide a batch; of 40, the last batch of an epoch has fewer samples. */
static void check_parts(const char *sets, double tolerance)
{
    static const char *const parts[] = {"train.accumulation_steps=7", "train.accumulation_steps=40"};
    const struct outcome whole = train_alone(sets, "", "whole");
    for (size_t i = 0; i < COUNT(parts); i++) {
        const struct outcome cut = train_alone(sets, parts[i], "cut");
        check_losses(&cut, &whole, tolerance);
        if (strstr(sets, "row_format") == NULL)
            check_models(&cut, &whole, tolerance);
    }
}

/* ---- alone ---- */

static void every_optimizer_learns_what_it_learns_of_whole_batches(void **state)
{
    (void)state;
    static const char *const kinds[] = {"sgd", "momentum", "adagrad", "rowwise_adagrad", "adam", "adamw"};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char sets[128];
        snprintf(sets, sizeof sets, "optimizer.embedding_kind=%s optimizer.kind=%s", kinds[i],
            i == 3 ? "adagrad" : kinds[i]);
        check_parts(sets, 1e-5);
    }
}

static void clipping_reads_the_gradient_of_the_batch(void **state)
{
    (void)state;
    check_parts("train.max_gradient_norm=0.05", 1e-5);
    check_parts("train.max_gradient_norm=0.05 optimizer.embedding_kind=rowwise_adagrad", 1e-5);
}

static void decay_of_whole_tables_acts_once_a_step(void **state)
{
    (void)state;
    check_parts("optimizer.embedding_scope=whole optimizer.embedding_l2=0.01 optimizer.net_l2=0.01", 1e-5);
}

static void means_of_ids_are_of_their_own_bags(void **state)
{
    (void)state;
    check_parts("model.pooling=mean", 1e-5);
}

/* Items of a history are looked up one by one, in a table that its target looks up, too. */
static void histories_may_be_cut(void **state)
{
    (void)state;
    check_parts("model.kind=din model.din.targets=item model.din.histories=history", 1e-5);
}

/* A teacher of each task, which some rows do not have, and others have in place of the label. */
static void blank_teachers_count_as_in_the_whole_batch(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(taught); i++)
        check_parts(taught[i], 1e-5);
}

/* Both blocks of its layers learn from their mean as well. */
static void losses_that_a_model_adds_share_alike(void **state)
{
    (void)state;
    check_parts("model.kind=finalnet model.finalnet.first_units=8 model.finalnet.second_units=8", 1e-5);
}

/* What fp16 rounds by chance may be rounded the other way. */
static void rows_of_sixteen_bits_are_learnt(void **state)
{
    (void)state;
    check_parts("train.row_format=bf16_split", 1e-5);
    check_parts("train.row_format=fp16", 2e-3);
}

static void products_of_bf16_differ_by_their_rounding(void **state)
{
    (void)state;
    check_parts("train.precision=bf16", 2e-3);
}

/* Its statistics are of a micro-batch: other numbers, but numbers. */
static void batch_norm_goes_along(void **state)
{
    (void)state;
    const struct outcome whole = train_alone("model.batch_norm=true", "", "whole");
    const struct outcome cut = train_alone("model.batch_norm=true", "train.accumulation_steps=2", "cut");
    check_losses(&cut, &whole, .2);
    assert_true(fabs(cut.losses[7] - whole.losses[7]) > 1e-6);
}

static void rows_are_scored_before_any_micro_batch_of_theirs_is_learnt(void **state)
{
    (void)state;
    static const char stream[] =
        "train.progressive=true train.progressive_rows=50 train.epochs=1 data.shuffle=false";
    const struct outcome whole = train_alone(stream, "", "whole");
    const struct outcome cut = train_alone(stream, "train.accumulation_steps=7", "cut");
    assert_int_equal(cut.summary.progressive.num_samples, whole.summary.progressive.num_samples);
    check_close("progressive", cut.summary.progressive.logloss, whole.summary.progressive.logloss, 1e-6);
}

/* What other micro-batches of the step have given is forgotten, too. */
static void a_step_with_a_loss_that_is_not_finite_is_skipped_as_a_whole(void **state)
{
    (void)state;
    char sets[512];
    snprintf(sets, sizeof sets, "data.train=%s data.shuffle=false train.non_finite=skip train.epochs=1",
        write_rows("monster.csv", ROWS, 35));
    const struct outcome whole = train_alone(sets, "", "whole");
    const struct outcome cut = train_alone(sets, "train.accumulation_steps=4", "cut");
    assert_int_equal(whole.summary.skipped_steps, 1);
    assert_int_equal(cut.summary.skipped_steps, 1);
    check_models(&cut, &whole, 1e-5);
}

/* Between two steps there is nothing that a micro-batch has left. */
static void a_training_resumes_between_steps(void **state)
{
    (void)state;
    static const char cut[] = "train.accumulation_steps=7 optimizer.kind=adam train.max_gradient_norm=0.05";
    const struct outcome whole = train_alone(cut, "", "whole");
    struct training training = {.sets = cut, .more = "train.max_steps=6"};
    struct outcome outcome;
    begin(&training, "cut", &outcome);
    assert_ok(run_rank(NULL, &training));
    training.more = "";
    training.is_resumed = true;
    assert_ok(run_rank(NULL, &training));
    assert_int_equal(outcome.summary.resumed_step, 6);
    assert_string_equal(outcome.summary.checkpoint_sha256, whole.summary.checkpoint_sha256);
}

static void a_batch_is_not_cut_finer_than_its_samples(void **state)
{
    (void)state;
    struct training training = {.sets = "train.accumulation_steps=41", .more = ""};
    struct outcome outcome;
    begin(&training, "cut", &outcome);
    assert_fails(run_rank(NULL, &training), PH_ERROR_CONFIG,
        "train.accumulation_steps is 41; a batch of 40 samples (train.batch_size) can be cut into 1 to 40");
    training.sets = "train.accumulation_steps=0";
    assert_fails(run_rank(NULL, &training), PH_ERROR_CONFIG, "train.accumulation_steps");
    training.sets = "train.accumulation_steps=-1";
    assert_fails(run_rank(NULL, &training), PH_ERROR_CONFIG, "train.accumulation_steps");
}

static void threads_do_not_change_a_bit(void **state)
{
    (void)state;
    const struct outcome one = train_alone("threads=1", "train.accumulation_steps=3", "whole");
    const struct outcome three = train_alone("threads=3", "train.accumulation_steps=3", "cut");
    assert_string_equal(one.summary.checkpoint_sha256, three.summary.checkpoint_sha256);
}

static void micro_batches_take_less_memory(void **state)
{
    (void)state;
    char wide[512];
    snprintf(wide, sizeof wide,
        "data.train=%s train.batch_size=%d train.epochs=1 model.top_units=256,256,256",
        write_rows("many.csv", MANY_ROWS, NO_ROW), MANY_ROWS);
    const struct outcome whole = train_alone(wide, "", "whole");
    const struct outcome cut = train_alone(wide, "train.accumulation_steps=8", "cut");
    assert_int_equal(whole.num_steps, 1);
    check_close("loss", cut.losses[0], whole.losses[0], 1e-6);
    print_message("planned: %llu bytes, %llu by whole batches\n",
        (unsigned long long)cut.summary.memory.plan_bytes,
        (unsigned long long)whole.summary.memory.plan_bytes);
    assert_true(3 * cut.summary.memory.plan_bytes < whole.summary.memory.plan_bytes);
}

/* ---- on ranks ---- */

static void ranks_learn_what_one_does(void **state)
{
    (void)state;
    const struct {
        const char *plan, *sets;
    } cases[] = {
        {"none", "optimizer.kind=adam"},
        {"default: {kind: table_wise}\n", "train.max_gradient_norm=0.05"},
        {"default: {kind: row_wise}\n", "optimizer.kind=momentum"},
        {"default: {kind: column_wise}\n", "optimizer.embedding_kind=rowwise_adagrad"},
        {"default: {kind: column_wise}\n",
            "model.kind=din model.din.targets=item model.din.histories=history"},
        {"none", taught[0]},
        {"default: {kind: table_wise}\n", taught[1]},
        {"default: {kind: row_wise}\ndense: {mode: full, unit_bytes: 1024}\n", taught[2]},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct outcome whole = train_alone(cases[i].sets, "", "whole");
        for (size_t world_size = 1; world_size <= 3; world_size++) {
            const char *more = world_size == 2 ? "train.accumulation_steps=4" : "train.accumulation_steps=7";
            const struct outcome cut = train_on_ranks(world_size, cases[i].plan, cases[i].sets, more, NULL);
            check_losses(&cut, &whole, 1e-5);
        }
    }
}

/* Heads and adapter are units of their own, whose parameters nobody saves. */
static void sharded_heads_learn_the_bits_of_replicas(void **state)
{
    (void)state;
    static const char replicated[] = "default: {kind: row_wise}\n";
    static const char *const plans[] = {"default: {kind: row_wise}\ndense: {mode: full, unit_bytes: 1024}\n",
        "default: {kind: row_wise}\ndense: {mode: keep_after_forward, units: {\"distill.*\": {}}}\n"};
    const struct outcome plain = train_on_ranks(2, replicated, "", "", NULL);
    const struct outcome whole = train_on_ranks(2, replicated, taught[2], "", NULL);
    assert_string_not_equal(whole.summary.checkpoint_sha256, plain.summary.checkpoint_sha256);
    for (size_t p = 0; p < COUNT(plans); p++) {
        const struct outcome cut = train_on_ranks(2, plans[p], taught[2], "", NULL);
        assert_string_equal(cut.summary.checkpoint_sha256, whole.summary.checkpoint_sha256);
        assert_memory_equal(cut.losses, whole.losses, sizeof whole.losses);
    }
}

/* What is summed within hosts has a size of its own in each micro-batch, and replicas have kept ids of their
 * own samples alone. */
static void hosts_sum_each_micro_batch(void **state)
{
    (void)state;
    static const char *const plans[] = {"default: {kind: grid}\n",
        "tables:\n  embedding.user: {kind: data_parallel}\ndefault: {kind: table_row_wise}\n"};
    static const char sets[] = "optimizer.embedding_kind=rowwise_adagrad train.max_gradient_norm=0.05";
    const struct outcome whole = train_alone(sets, "", "whole");
    for (size_t i = 0; i < COUNT(plans); i++) {
        const struct outcome cut = train_on_hosts(4, 2, plans[i], sets, "train.accumulation_steps=7", NULL);
        check_losses(&cut, &whole, 1e-5);
    }
}

/* Batches of 2: one rank of three has none, and no batch is cut. */
static void ranks_may_have_fewer_samples_than_micro_batches(void **state)
{
    (void)state;
    static const char few[] = "train.batch_size=2 train.max_steps=8 model.dropout=0";
    const struct outcome whole = train_alone(few, "", "whole");
    const struct outcome cut =
        train_on_ranks(3, "default: {kind: row_wise}\n", few, "train.accumulation_steps=2", NULL);
    check_losses(&cut, &whole, 1e-5);
}

/* What is sent for the samples is as much, in other portions; gradients of wide layers, which are most, are
 * sent once a step. */
static void ranks_reduce_gradients_once_a_step(void **state)
{
    (void)state;
    static const char wide[] = "model.top_units=256,256", plan[] = "default: {kind: table_wise}\n";
    uint64_t whole_bytes = 0, cut_bytes = 0;
    train_on_ranks(2, plan, wide, "", &whole_bytes);
    train_on_ranks(2, plan, wide, "train.accumulation_steps=5", &cut_bytes);
    print_message("sent: %llu bytes, %llu by whole batches\n", (unsigned long long)cut_bytes,
        (unsigned long long)whole_bytes);
    assert_true(cut_bytes < whole_bytes + whole_bytes / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_optimizer_learns_what_it_learns_of_whole_batches),
        cmocka_unit_test(clipping_reads_the_gradient_of_the_batch),
        cmocka_unit_test(decay_of_whole_tables_acts_once_a_step),
        cmocka_unit_test(means_of_ids_are_of_their_own_bags),
        cmocka_unit_test(histories_may_be_cut),
        cmocka_unit_test(blank_teachers_count_as_in_the_whole_batch),
        cmocka_unit_test(losses_that_a_model_adds_share_alike),
        cmocka_unit_test(rows_of_sixteen_bits_are_learnt),
        cmocka_unit_test(products_of_bf16_differ_by_their_rounding),
        cmocka_unit_test(batch_norm_goes_along),
        cmocka_unit_test(rows_are_scored_before_any_micro_batch_of_theirs_is_learnt),
        cmocka_unit_test(a_step_with_a_loss_that_is_not_finite_is_skipped_as_a_whole),
        cmocka_unit_test(a_training_resumes_between_steps),
        cmocka_unit_test(a_batch_is_not_cut_finer_than_its_samples),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(micro_batches_take_less_memory),
        cmocka_unit_test(ranks_learn_what_one_does),
        cmocka_unit_test(sharded_heads_learn_the_bits_of_replicas),
        cmocka_unit_test(hosts_sum_each_micro_batch),
        cmocka_unit_test(ranks_may_have_fewer_samples_than_micro_batches),
        cmocka_unit_test(ranks_reduce_gradients_once_a_step),
    };
    return cmocka_run_group_tests(tests, make_job, tell_greatest_share);
}
