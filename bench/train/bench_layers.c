/* Measures what the layer options for low precision cost: the step of the DLRM of bench_dlrm, pooling 1 and
 * Adagrad, and the same with block norm and hard swish in place of ReLU and no biases but the logits' (lean),
 * one thread, in fp32 and bf16. The ways take turns.
 *
 * bench_layers [--rounds N] [--quick] [--json FILE] */
#include <math.h>
#include <stdio.h>

#include "base/thread/cpu.h"
#include "dlrm_case.h"
#include "figures.h"
#include "flags.h"
#include "training_step.h"

enum { NUM_WAYS = 4 };
static const char *const way_names[NUM_WAYS] = {"fp32", "bf16", "lean.fp32", "lean.bf16"};

static struct step *make_step(const struct dlrm_data *data, int way)
{
    const enum ph_precision precision = way % 2 == 0 ? PH_PRECISION_FP32 : PH_PRECISION_BF16;
    return step_create(&(struct step_options){
        .program = way < 2 ? dlrm_training_program(&data->of, PH_ADAGRAD, precision, NULL)
                           : dlrm_lean_program(&data->of, PH_ADAGRAD, precision),
        .batches = data->batches,
        .num_batches = DLRM_NUM_BATCHES,
        .threads = 1});
}

static void record(struct ph__json *figures, const char *way, double samples, const double *seconds,
    const double *plain, size_t rounds)
{
    double ratios[BENCH_MAX_ROUNDS];
    char name[96];
    for (size_t i = 0; i < rounds; i++)
        ratios[i] = plain[i] / seconds[i];
    snprintf(name, sizeof name, "train.layers.dlrm.%s", way);
    const struct bench_figure figure = {.name = name,
        .unit = "samples/s",
        .value = samples / bench_median(seconds, rounds),
        .spread = bench_spread(seconds, rounds),
        .peer = seconds == plain ? NULL : "fp32",
        .ratio = seconds == plain ? (double)NAN : bench_median(ratios, rounds)};
    printf("%-32s %9.0f samples/s   %5.2f x fp32\n", name, figure.value, bench_median(ratios, rounds));
    bench_record(figures, &figure);
}

int main(int argc, char **argv)
{
    static struct dlrm_data data;
    static double seconds[NUM_WAYS][BENCH_MAX_ROUNDS];
    struct bench_run run = {.rounds = 11};
    struct step *steps[NUM_WAYS];
    struct ph__json *figures = ph__json_array();
    char processor[128];
    bench_read_flags(argc, argv, &run, NULL, 0);
    const size_t count = run.is_quick ? 1 : DLRM_NUM_BATCHES;
    struct dlrm_case of = dlrm_cases[0];
    if (run.is_quick)
        of.rows = 1000;
    dlrm_data_init(&data, &of);
    ph__cpu_name(processor, sizeof processor);
    printf("DLRM step, one thread, batch %zu: %s\n", of.batch, processor);
    for (int way = 0; way < NUM_WAYS; way++) {
        steps[way] = make_step(&data, way);
        step_run(steps[way], count);
    }
    for (size_t round = 0; round < run.rounds; round++)
        for (int way = 0; way < NUM_WAYS; way++)
            seconds[way][round] = step_run(steps[way], count) / (double)count;
    for (int way = 0; way < NUM_WAYS; way++) {
        record(figures, way_names[way], (double)of.batch, seconds[way], seconds[0], run.rounds);
        step_destroy(steps[way]);
    }
    dlrm_data_fini(&data);
    bench_finish(figures, run.json);
    return 0;
}
