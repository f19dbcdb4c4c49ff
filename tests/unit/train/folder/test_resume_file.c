/* What a checkpoint to resume from holds: written by one trainer, read by another. */
#include "train/folder/resume_file.h"

#include <math.h>

#include "store/tensor_list.h"
#include "train/config/job_config.h"
#include "train/loop/loop.h"
#include "unit/train/train_fixture.h"

/* A trainer before its first step, in a folder of its own. */
static struct ph__trainer *make_trainer(const char *folder, struct setup **setup_out)
{
    struct ph__trainer *trainer;
    struct setup *setup = set_up("dnn", folder);
    setup->optimizer.embedding_kind = PH_EMBEDDING_ROWWISE_ADAGRAD;
    assert_ok(ph__trainer_create(&setup->job, &trainer));
    *setup_out = setup;
    return trainer;
}

static void destroy(struct ph__trainer *trainer, struct setup *setup)
{
    ph__trainer_destroy(trainer);
    free(setup);
}

static const char *path_of(const char *name)
{
    return ph__path_join(&fixture.arena, test_folder(), name);
}

/* Numbers that are nobody's default, in every tensor, slot and member. */
static void fill(struct ph__trainer *trainer)
{
    for (size_t i = 0; i < ph__store_num_parameters(trainer->store); i++) {
        const struct ph_parameter *parameter = ph__store_parameter(trainer->store, i);
        for (size_t s = 0; s < parameter->num_slots; s++)
            for (size_t j = 0; j < parameter->slots[s].elements; j++)
                parameter->slots[s].data[j] = (ph_real)(1000 * i + 100 * s + j) / 7;
        parameter->data[0] = (ph_real)(i + 1) / 3;
    }
    for (size_t i = 0; i < ph_state_num_tensors(trainer->state); i++)
        *(ph_real *)ph_state_tensor(trainer->state, i).data = (ph_real)i / 9;
    trainer->recent.count = 3;
    trainer->recent.next = 3;
    for (size_t i = 0; i < 3; i++) {
        trainer->recent.scores[i] = (ph_real)i / 11;
        trainer->recent.labels[i] = (ph_real)(i % 2);
    }
    trainer->summary.steps = 41;
    trainer->summary.samples = 4100;
    trainer->summary.skipped_steps = 2;
    trainer->num_updates = 39;
    trainer->epoch = 4;
    trainer->is_in_epoch = true;
    for (size_t i = 0; i < PH_POSITION_WORDS; i++)
        trainer->position.words[i] = UINT64_MAX - i;
    trainer->epoch_first_step = 36;
    trainer->steps_per_epoch = 12;
    trainer->learning_rate = 0.1 + 0.2;
    trainer->evaluated_step = 40;
    trainer->protocol = (struct ph__protocol){true, -0.69314718055994529, 3, 0.1 * 0.1};
    trainer->best_step = 24;
    snprintf(trainer->best_seal, sizeof trainer->best_seal, "%064d", 5);
    trainer->summary.best_epoch = 2;
    trainer->summary.valid = (struct ph_metrics){.num_samples = 500,
        .auc = 0.7,
        .auc_error = 1e-7,
        .logloss = 1.0 / 3,
        .ne = 0.9,
        .calibration = 1.1,
        .grouped_auc = NAN,
        .base_rate = 0.25};
    trainer->tally = (struct ph__tally){0, 1.5, 5e-324, 1, 100};
    trainer->reported_step = 38;
    trainer->report_bytes = 12345;
    trainer->summary.train_seconds = 98.7;
    trainer->summary.flops_per_sample = 1e9 / 3;
    trainer->summary.memory.peak_anonymous_bytes = 1 << 20;
    trainer->summary.peak_rss_bytes = 1 << 21;
}

static void expect_same_tensors(const struct ph__trainer *a, const struct ph__trainer *b)
{
    char left[65], right[65];
    assert_ok(ph_checkpoint_digest(a->store, a->state, left));
    assert_ok(ph_checkpoint_digest(b->store, b->state, right));
    assert_string_equal(left, right);
    size_t num_slots = 0;
    for (size_t i = 0; i < ph__store_num_parameters(a->store); i++) {
        const struct ph_parameter *one = ph__store_parameter(a->store, i);
        const struct ph_parameter *other = ph__store_parameter(b->store, i);
        assert_int_equal(one->num_slots, other->num_slots);
        for (size_t s = 0; s < one->num_slots; s++, num_slots++)
            assert_memory_equal(
                one->slots[s].data, other->slots[s].data, one->slots[s].elements * sizeof(ph_real));
    }
    assert_true(num_slots > 2);
    assert_int_equal(a->recent.count, b->recent.count);
    assert_int_equal(a->recent.next, b->recent.next);
    assert_memory_equal(a->recent.scores, b->recent.scores, a->recent.count * sizeof(ph_real));
    assert_memory_equal(a->recent.labels, b->recent.labels, a->recent.count * sizeof(ph_real));
}

#define SAME(member) assert_memory_equal(&a->member, &b->member, sizeof a->member)

static void expect_same_numbers(const struct ph__trainer *a, const struct ph__trainer *b)
{
    SAME(summary.steps);
    SAME(summary.samples);
    SAME(summary.skipped_steps);
    SAME(num_updates);
    SAME(epoch);
    SAME(is_in_epoch);
    SAME(position);
    SAME(epoch_first_step);
    SAME(steps_per_epoch);
    SAME(learning_rate);
    SAME(evaluated_step);
    SAME(protocol.has_best);
    SAME(protocol.best);
    SAME(protocol.bad_in_row);
    SAME(protocol.cuts);
    SAME(best_step);
    SAME(best_seal);
    SAME(summary.best_epoch);
    SAME(summary.valid.num_samples);
    SAME(summary.valid.auc);
    SAME(summary.valid.auc_error);
    SAME(summary.valid.logloss);
    SAME(summary.valid.ne);
    SAME(summary.valid.calibration);
    assert_true(isnan(b->summary.valid.grouped_auc));
    SAME(summary.valid.base_rate);
    SAME(tally.seconds);
    SAME(tally.loss_sum);
    SAME(tally.steps);
    SAME(tally.samples);
    SAME(reported_step);
    SAME(report_bytes);
    SAME(summary.train_seconds);
    SAME(summary.flops_per_sample);
    SAME(summary.memory.peak_anonymous_bytes);
    SAME(summary.peak_rss_bytes);
}

static void everything_carried_comes_back_bit_for_bit(void **state)
{
    (void)state;
    struct setup *setups[2];
    struct ph__trainer *written = make_trainer("written", &setups[0]);
    struct ph__trainer *read = make_trainer("read", &setups[1]);
    const char *path = path_of("carried.safetensors");
    fill(written);
    assert_ok(ph__resume_file_write(path, written));
    assert_ok(ph__resume_file_read(path, read));
    expect_same_tensors(written, read);
    expect_same_numbers(written, read);
    uint64_t best_step = 0;
    assert_ok(ph__resume_file_best_step(path, &best_step));
    assert_int_equal(best_step, 24);
    destroy(written, setups[0]);
    destroy(read, setups[1]);
}

static void slots_have_the_names_of_logical_tensors(void **state)
{
    (void)state;
    static const char *const names[] = {"embedding.C1", "slot.s:embedding.C1", "slot.m:deep.0.weight",
        "slot.s:deep.0.weight", "deep.0.norm.mean", "recent:scores", "recent:labels"};
    struct setup *setup;
    struct ph__trainer *trainer = make_trainer("names", &setup);
    const char *path = path_of("names.safetensors");
    struct ph__safetensors *file;
    assert_ok(ph__resume_file_write(path, trainer));
    assert_ok(ph__safetensors_open(path, &file));
    for (size_t i = 0; i < COUNT(names); i++)
        if (ph__safetensors_find(file, names[i]) == ph__safetensors_num_tensors(file))
            fail_msg("there is no '%s'", names[i]);
    ph__safetensors_close(file);
    destroy(trainer, setup);
}

/* Reads as a trainer whose job has been changed. */
static void expect_other_value(const char *path, struct ph__trainer *read, const char *text)
{
    const struct ph__key_filter kept = {.without = PH_KEY_MAY_CHANGE};
    const char *values = read->values;
    assert_ok(ph__job_values(read->job, kept, &read->arena, &read->values));
    assert_fails(ph__resume_file_read(path, read), PH_ERROR_CHECKPOINT, text);
    read->values = values;
}

/* Another job's checkpoint changes nothing in a trainer. */
static void file_of_another_job_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct setup *setups[2];
    struct ph__trainer *written = make_trainer("one", &setups[0]);
    struct ph__trainer *read = make_trainer("other", &setups[1]);
    char before[65], after[65];
    const char *path = path_of("other.safetensors");
    fill(written);
    assert_ok(ph__resume_file_write(path, written));
    assert_ok(ph_checkpoint_digest(read->store, read->state, before));
    struct ph__train_job *job = &setups[1]->job;
    job->run.seed++;
    expect_other_value(path, read, "of a training with seed '");
    job->run.seed--;
    job->reading.is_shuffled = false;
    expect_other_value(path, read, "of a training with data.shuffle 'true', not 'false'");
    job->reading.is_shuffled = true;
    job->reading.shuffle_lanes = 2;
    expect_other_value(path, read, "of a training with data.shuffle_lanes '1', not '2'");
    job->reading.shuffle_lanes = 1; /* as 0 */
    setups[1]->train.batch_size++;
    expect_other_value(path, read, "of a training with train.batch_size '256', not '257'");
    setups[1]->train.batch_size--;
    setups[1]->train.row_format = PH_ROWS_BF16_SPLIT;
    expect_other_value(path, read, "of a training with train.row_format 'fp32', not 'bf16_split'");
    setups[1]->train.row_format = PH_ROWS_FP32;
    setups[1]->train.max_gradient_norm = 2;
    expect_other_value(path, read, "of a training with train.max_gradient_norm '10', not '2'");
    setups[1]->train.max_gradient_norm = 10;
    setups[1]->optimizer.rule.beta1 = .5;
    expect_other_value(path, read, "of a training with optimizer.beta1 '0.9', not '0.5'");
    setups[1]->optimizer.rule.beta1 = .9;
    const char *identity = read->identity;
    read->identity = "model.kind=dnn\n";
    assert_fails(ph__resume_file_read(path, read), PH_ERROR_CHECKPOINT,
        "other.safetensors: was trained with model.embedding_dim=");
    read->identity = identity;
    read->encoder_sha256[0] ^= 1;
    assert_fails(ph__resume_file_read(path, read), PH_ERROR_CHECKPOINT, "another encoder");
    read->encoder_sha256[0] ^= 1;
    assert_int_equal(read->summary.steps + read->epoch + read->recent.count, 0);
    assert_ok(ph_checkpoint_digest(read->store, read->state, after));
    assert_string_equal(before, after);
    assert_ok(ph__resume_file_read(path, read));
    destroy(written, setups[0]);
    destroy(read, setups[1]);
}

/* Sealed, and yet no checkpoint to resume from. */
static void expect_refused(struct ph__trainer *trainer, const char *const *metadata, const char *part)
{
    const char *path = path_of("foreign.safetensors");
    assert_ok(ph__safetensors_write(path, 0, NULL, metadata));
    assert_fails(ph__resume_file_read(path, trainer), PH_ERROR_CHECKPOINT, part);
}

static void foreign_file_is_refused(void **state)
{
    (void)state;
    struct setup *setup;
    struct ph__trainer *trainer = make_trainer("foreign", &setup);
    expect_refused(trainer, NULL, "not a checkpoint to resume from");
    expect_refused(trainer, (const char *const[]){"format", "pt", NULL}, "not a checkpoint to resume from");
    expect_refused(trainer, (const char *const[]){"format", "phloem.resume", "version", "1", NULL},
        "version '1', but this library reads version 3");
    expect_refused(trainer, (const char *const[]){"format", "phloem.resume", "version", "3", NULL}, "'job'");
    expect_refused(trainer,
        (const char *const[]){"format", "phloem.resume", "version", "3", "job", "{}", NULL}, "'library'");
    expect_refused(
        trainer, (const char *const[]){"format", "phloem.resume", "version", "3", "job", "no", NULL}, "JSON");
    assert_fails(ph__resume_file_read(path_of("synth.yaml"), trainer), PH_ERROR_CHECKPOINT, "synth.yaml");
    destroy(trainer, setup);
}

static void announced_bytes_are_those_of_the_store_in_every_format(void **state)
{
    (void)state;
    static const enum ph_row_format formats[] = {
        PH_ROWS_FP32, PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
    for (size_t i = 0; i < COUNT(formats); i++) {
        struct ph__trainer *trainer;
        struct setup *setup = set_up("wide_deep", "announced");
        setup->train.row_format = formats[i];
        remove_folder(setup);
        assert_ok(ph__trainer_create(&setup->job, &trainer));
        const struct ph_train_memory *memory = &trainer->summary.memory;
        assert_int_equal(memory->parameter_bytes, ph_store_parameter_bytes(trainer->store));
        assert_int_equal(memory->slot_bytes, ph_store_slot_bytes(trainer->store));
        destroy(trainer, setup);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(announced_bytes_are_those_of_the_store_in_every_format),
        cmocka_unit_test(everything_carried_comes_back_bit_for_bit),
        cmocka_unit_test(slots_have_the_names_of_logical_tensors),
        cmocka_unit_test(file_of_another_job_is_refused_and_changes_nothing),
        cmocka_unit_test(foreign_file_is_refused),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
