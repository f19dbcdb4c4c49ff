/* Training steps with products in fewer bits: the DLRM of bench_dlrm, Adagrad, one thread, batches of 2048
 * samples; in fp32, with the recipes bf16 and int8 both ways in all products that take them, with int8
 * forward alone, in the precision bf16 (which also makes values between layers and weights' gradients of
 * bf16), and with the fastest recipe of each product. Steps take turns; a round gives the least of each
 * way's.
 *
 * bench_train_recipes [--rounds N] [--json FILE] */
#include <math.h>
#include <stdio.h>

#include "base/thread/cpu.h"
#include "dlrm_case.h"
#include "figures.h"
#include "flags.h"
#include "recipe_choice.h"
#include "training_step.h"

enum { STEPS = 15, FP32 = 0, BF16, INT8, INT8_FORWARD, PRECISION_BF16, CHOSEN, NUM_WAYS };
static const char *const way_names[NUM_WAYS] = {
    "fp32", "bf16", "int8", "int8_forward", "precision_bf16", "chosen"};

static struct ph_program *build(const struct dlrm_case *of, int way, const struct recipe_choice *chosen)
{
    static const struct ph_site_recipe single[] = {[FP32] = {"*", PH_RECIPE_FP32, PH_RECIPE_FP32},
        [BF16] = {"*", PH_RECIPE_BF16, PH_RECIPE_BF16},
        [INT8] = {"*", PH_RECIPE_INT8, PH_RECIPE_INT8},
        [INT8_FORWARD] = {"*", PH_RECIPE_INT8, PH_RECIPE_FP32}};
    if (way == PRECISION_BF16)
        return dlrm_training_program(of, PH_ADAGRAD, PH_PRECISION_BF16, NULL);
    return way == CHOSEN ? dlrm_recipes_program(of, PH_ADAGRAD, chosen->recipes, chosen->count)
                         : dlrm_recipes_program(of, PH_ADAGRAD, &single[way], 1);
}

static void create_steps(const struct dlrm_data *data, struct step *steps[NUM_WAYS])
{
    struct recipe_choice chosen;
    struct ph_program *plain = build(&data->of, FP32, NULL);
    recipe_choice_make(&chosen, plain, 1, data->of.batch, true);
    ph_program_destroy(plain);
    printf("chosen for %zu rows, forward/backward:\n", data->of.batch);
    recipe_choice_print(&chosen);
    for (int way = 0; way < NUM_WAYS; way++) {
        steps[way] = step_create(&(struct step_options){.program = build(&data->of, way, &chosen),
            .batches = data->batches,
            .num_batches = DLRM_NUM_BATCHES,
            .threads = 1,
            .beside = way > 0 ? steps[0] : NULL});
        step_run(steps[way], DLRM_NUM_BATCHES);
    }
}

/* Gives the least of each way's steps, which take turns: others on the machine only make a step longer. */
static void run_round(struct step *steps[NUM_WAYS], double least_out[NUM_WAYS])
{
    for (int way = 0; way < NUM_WAYS; way++)
        least_out[way] = HUGE_VAL;
    for (size_t i = 0; i < STEPS; i++)
        for (int way = 0; way < NUM_WAYS; way++)
            least_out[way] = fmin(least_out[way], step_run(steps[way], 1));
}

static void report(double (*seconds)[NUM_WAYS], size_t rounds, struct ph__json *results)
{
    static double values[BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS];
    double least = HUGE_VAL;
    for (size_t round = 0; round < rounds; round++) {
        const double *s = seconds[round];
        least = fmin(least, fmin(s[FP32], fmin(s[BF16], s[INT8])) / s[CHOSEN]);
    }
    for (int way = 0; way < NUM_WAYS; way++) {
        char name[64];
        for (size_t round = 0; round < rounds; round++) {
            values[round] = 1e3 * seconds[round][way];
            ratios[round] = seconds[round][FP32] / seconds[round][way];
        }
        snprintf(name, sizeof name, "train.recipes.dlrm.%s", way_names[way]);
        const struct bench_figure figure = {.name = name,
            .unit = "ms",
            .value = bench_median(values, rounds),
            .spread = bench_spread(values, rounds),
            .peer = way == FP32 ? NULL : "fp32",
            .ratio = way == FP32 ? NAN : bench_median(ratios, rounds)};
        printf("%-36s %9.2f ms", name, figure.value);
        if (way != FP32)
            printf("   %5.2f x fp32", figure.ratio);
        if (way == CHOSEN)
            printf(", in each round >= %.3f x the best single recipe", least);
        printf("\n");
        bench_record(results, &figure);
    }
}

int main(int argc, char **argv)
{
    static double seconds[BENCH_MAX_ROUNDS][NUM_WAYS];
    const struct dlrm_case of = {"pool1", 26, 100000, 16, 1, 2048, false};
    struct bench_run run = {.rounds = 11};
    struct ph__json *results = ph__json_array();
    struct dlrm_data data;
    struct step *steps[NUM_WAYS];
    char processor[128];
    bench_read_flags(argc, argv, &run, NULL, 0);
    ph__cpu_name(processor, sizeof processor);
    printf("DLRM training, one thread: %s, VNNI %s\n", processor, ph__cpu_has_int8_dot() ? "yes" : "no");
    dlrm_data_init(&data, &of);
    create_steps(&data, steps);
    for (size_t round = 0; round < run.rounds; round++)
        run_round(steps, seconds[round]);
    report(seconds, run.rounds, results);
    for (int way = NUM_WAYS; way-- > 0;)
        step_destroy(steps[way]);
    dlrm_data_fini(&data);
    bench_finish(results, run.json);
    return 0;
}
