/* Targets of a student, from a teacher's probabilities p (B,T), for rows of which a share `rate` of the
 * negatives was kept: their odds are 1 / rate as large, so the teacher's become
 *
 *     q = p / (p + rate (1 - p))
 *
 * outputs: targets min(scale q, 1), log-odds log(q / (1 - q)), and known: 1 where both the label and the
 * teacher are known, else 0. Where the teacher is not known, targets and log-odds are 0. Masks (B,T) may be
 * absent. Nothing has a gradient. */
#include <math.h>

#include "op/operator.h"

enum { TEACHER, TEACHER_MASK, LABEL_MASK, NUM_INPUTS };
enum { TARGETS, LOG_ODDS, KNOWN, NUM_OUTPUTS };

struct teacher_attributes {
    double scale, rate;
};

static ph_status teacher_infer(struct ph__infer *infer)
{
    const struct ph_type *teacher = &infer->inputs[TEACHER];
    if (!ph__type_is_real_of_dims(teacher, 2) || !ph__type_equal(teacher, &infer->inputs[TEACHER_MASK]) ||
        !ph__type_equal(teacher, &infer->inputs[LABEL_MASK]))
        return ph__infer_fail(infer, "a teacher's probabilities and two masks, (B,T) each");
    for (size_t i = 0; i < NUM_OUTPUTS; i++)
        infer->outputs[i] = *teacher;
    return PH_OK;
}

/* Counts exp and log as one operation each. */
static void teacher_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 8, cost_out);
}

struct teacher_call {
    ph_real scale, rate;
    const ph_real *teacher, *teacher_mask, *label_mask;
    ph_real *targets, *log_odds, *known;
};

static void teacher_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct teacher_call *call = argument;
    for (size_t i = first; i < last; i++) {
        const bool has_teacher = call->teacher_mask == NULL || call->teacher_mask[i] != 0;
        const bool has_label = call->label_mask == NULL || call->label_mask[i] != 0;
        const ph_real p = has_teacher ? call->teacher[i] : (ph_real).5;
        const ph_real q = p / (p + call->rate * (1 - p));
        call->targets[i] = has_teacher ? (ph_real)fmin((double)(call->scale * q), 1) : 0;
        call->log_odds[i] = has_teacher ? (ph_real)log((double)(p / (call->rate * (1 - p)))) : 0;
        call->known[i] = has_teacher && has_label ? 1 : 0;
    }
}

static ph_status teacher_run(struct ph__call *call)
{
    const struct teacher_attributes *attributes = call->attributes;
    struct teacher_call run = {.scale = (ph_real)attributes->scale,
        .rate = (ph_real)attributes->rate,
        .teacher = call->inputs[TEACHER].data,
        .teacher_mask = call->inputs[TEACHER_MASK].data,
        .label_mask = call->inputs[LABEL_MASK].data,
        .targets = call->outputs[TARGETS].data,
        .log_odds = call->outputs[LOG_ODDS].data,
        .known = call->outputs[KNOWN].data};
    ph__for_blocks(
        call->backend, ph__elements(&call->outputs[TARGETS]), PH_BLOCK_ELEMENTS, teacher_block, &run);
    return PH_OK;
}

const struct ph__op ph__op_teacher_targets = {
    .name = "teacher_targets",
    .infer = teacher_infer,
    .cost = teacher_cost,
    .run = teacher_run,
};

struct ph_teacher ph_teacher_targets(
    struct ph_builder *builder, size_t num_tasks, double scale, double negative_rate)
{
    const struct teacher_attributes attributes = {scale, negative_rate > 0 ? negative_rate : 1};
    const ph_value inputs[NUM_INPUTS] = {ph_input_teacher(builder, num_tasks),
        ph_input_teacher_mask(builder, num_tasks), ph_input_label_mask(builder, num_tasks)};
    ph_value outputs[NUM_OUTPUTS];
    ph__emit(builder, &ph__op_teacher_targets, NULL, &attributes, sizeof attributes, NUM_INPUTS, inputs,
        NUM_OUTPUTS, outputs);
    return (struct ph_teacher){outputs[TARGETS], outputs[LOG_ODDS], outputs[KNOWN]};
}
