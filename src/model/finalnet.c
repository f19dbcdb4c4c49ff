/* FinalNet (Zhu et al., SIGIR 2023): blocks of factorised interaction layers in place of a perceptron. A
 * layer computes [h2, h1] = W x + b and returns [h2, h1 * h2] (concat) or h2 + h1 * h2 (sum), then batch
 * norm, activation, dropout.
 *
 * With second_units there are two blocks, each with its own logits, whose mean is the model's; each also
 * learns from that mean as its teacher. A field gate before the first block returns [x, x * g], with g a
 * linear function of all fields, dimension by dimension. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

enum residual { CONCAT, SUM };

struct finalnet_keys {
    struct ph__integer_list first_units, second_units;
    bool has_field_gate;
    int residual;
};

static const struct ph__option options[] = {
    PH_INTEGERS_KEY("first_units", struct finalnet_keys, first_units, "64,64,64", 1, 1048576,
        "Widths of the layers of the first block; even numbers where residual is concat."),
    PH_INTEGERS_KEY("second_units", struct finalnet_keys, second_units, "64,64,64", 1, 1048576,
        "Widths of the layers of the second block, which reads the fields without their gate. Empty: one "
        "block."),
    PH_BOOL_KEY("field_gate", struct finalnet_keys, has_field_gate, "true",
        "true: the first block reads the fields' vectors twice, as they are and multiplied by a gate."),
    PH_CHOICE_KEY("residual", struct finalnet_keys, residual, "concat", "concat|sum",
        "Combination of a layer's product with its linear part. concat: [h2, h1 * h2]. sum: h2 + h1 * h2."),
};

static const struct ph__option_table keys = {
    .section = "model.finalnet",
    .help = "Keys of FinalNet. hidden_units are not used.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct finalnet_keys),
    .traits = PH_KEY_OF_MODEL,
};

/* (B,F,D) -> (B,2F,D); all gates begin at 1. */
static ph_value field_gate(struct ph_builder *builder, ph_value x)
{
    const size_t num_fields = ph__layer_extent(builder, x, 1);
    ph_builder_push_scope(builder, "gate");
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){num_fields, num_fields}, ph__layer_zeros);
    ph_value bias = ph_parameter(builder, "bias", 1, &num_fields, ph__layer_ones);
    ph_value gated = ph_multiply(builder, x, ph_mix_fields(builder, x, weight, bias));
    ph_builder_pop_scope(builder);
    return ph_concat(builder, 2, (ph_value[]){x, gated}, 1);
}

/* (B,K) -> (B,units) */
static ph_value factorised(
    struct ph_builder *builder, ph_value x, size_t units, const struct ph_model_settings *settings)
{
    const enum residual residual = (enum residual)((const struct finalnet_keys *)settings->own)->residual;
    const size_t half = residual == SUM ? units : units / 2;
    ph_value h = ph__layer_affine(builder, "interaction", x, 2 * half, PH_IDENTITY, settings);
    ph_value h2 = ph_slice(builder, h, 1, 0, half), h1 = ph_slice(builder, h, 1, half, half);
    if (residual == SUM)
        return ph_cross(builder, h1, h2, h2);
    return ph__layer_beside(builder, h2, ph_multiply(builder, h1, h2));
}

/* (B,K) -> (B,T) */
static ph_value block(struct ph_builder *builder, const char *name, ph_value x,
    const struct ph__integer_list *units, const struct ph_model_settings *settings, size_t num_tasks)
{
    const struct finalnet_keys *own = settings->own;
    ph_builder_push_scope(builder, name);
    for (size_t i = 0; i < units->count; i++) {
        if (own->residual == CONCAT && units->items[i] % 2 != 0)
            return ph_builder_fail(builder, PH_ERROR_CONFIG,
                "model.finalnet: a layer of %lld units must be even with residual concat",
                (long long)units->items[i]);
        ph__layer_push_index(builder, "layer", i);
        x = factorised(builder, x, (size_t)units->items[i], settings);
        x = ph__layer_activate(builder, x, settings);
        ph_builder_pop_scope(builder);
    }
    ph_value logits = ph__layer_logits(builder, x, num_tasks);
    ph_builder_pop_scope(builder);
    return logits;
}

/* Adds a loss of a block's logits against the whole model's probabilities. */
static void learn_from(struct ph_builder *builder, const char *name, ph_value logits, ph_value teacher)
{
    const size_t num_tasks = ph__layer_extent(builder, logits, 1);
    ph_value labels = ph_stop_gradient(builder, ph_sigmoid(builder, teacher));
    ph_value mask = ph_input_label_mask(builder, num_tasks);
    ph_add_loss(
        builder, name, ph_bce_with_logits(builder, logits, labels, mask, ph_input_weights(builder)), 1);
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct finalnet_keys *own = settings->own;
    ph_value vectors = ph__feature_field_vectors(builder, settings, features); /* (B,F,D) */
    ph_value gated = own->has_field_gate ? field_gate(builder, vectors) : vectors;
    ph_value first = block(builder, "first", ph__layer_flatten(builder, gated), &own->first_units, settings,
        features->num_tasks);
    if (own->second_units.count == 0)
        return first;
    ph_value second = block(builder, "second", ph__layer_flatten(builder, vectors), &own->second_units,
        settings, features->num_tasks);
    ph_value logits = ph_scale(builder, ph_add(builder, first, second), 0.5); /* (B,T) */
    if (ph_builder_mode(builder) == PH_TRAINING) {
        learn_from(builder, "loss.first", first, logits);
        learn_from(builder, "loss.second", second, logits);
    }
    return logits;
}

const struct ph__model ph__model_finalnet = {
    .description =
        "FinalNet: blocks of factorised interaction layers, trained also on their common prediction",
    .keys = &keys,
    .build = build,
};
