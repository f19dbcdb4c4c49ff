/* FinalMLP (Mao et al., AAAI 2023, arXiv 2304.00902): two perceptrons x and y over all fields, each behind a
 * gate of its own, and
 *   logits = w_x . x + w_y . y + sum_h x_h^T W_h y_h + b.
 * A stream's gate is 2 sigmoid(MLP(c)) for every number of the embeddings; c are the embeddings of the
 * stream's context, a few named features, in tables of their own. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

struct finalmlp_keys {
    struct ph__integer_list first_units, second_units, gate_units;
    int64_t heads;
    struct ph__text_list first_context, second_context;
};

#define FIELD(member) struct finalmlp_keys, member

static const struct ph__option options[] = {
    PH_INTEGERS_KEY("first_units", FIELD(first_units), "64,64", 1, 1048576,
        "Widths of the hidden layers of the first stream."),
    PH_INTEGERS_KEY("second_units", FIELD(second_units), "32,32", 1, 1048576,
        "Widths of the hidden layers of the second stream."),
    PH_INTEGER_KEY("heads", FIELD(heads), "1", 1, 4096,
        "Number of heads of the bilinear layer over both streams; the last width of each stream must be a "
        "multiple of it."),
    PH_TEXTS_KEY("first_context", FIELD(first_context), "",
        "Names of the id features that the gate of the first stream reads. Empty: no gate."),
    PH_TEXTS_KEY("second_context", FIELD(second_context), "",
        "Names of the id features that the gate of the second stream reads. Empty: no gate."),
    PH_INTEGERS_KEY("gate_units", FIELD(gate_units), "64", 1, 1048576,
        "Widths of the hidden layers of the perceptron in a gate."),
};

static const struct ph__option_table keys = {
    .section = "model.finalmlp",
    .help = "Keys of FinalMLP. hidden_units are not used.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct finalmlp_keys),
    .traits = PH_KEY_OF_MODEL,
};

struct stream {
    const char *name;
    const struct ph__text_list *context;
    const struct ph__integer_list *units;
};

/* Multiplies x (B,K) by its gate. */
static ph_value gated(struct ph_builder *builder, const struct stream *stream, ph_value x,
    const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    const struct finalmlp_keys *own = settings->own;
    ph_builder_push_scope(builder, "gate");
    ph_value c = ph__layer_flatten(
        builder, ph__feature_named_embeddings(builder, stream->context, settings, features));
    for (size_t i = 0; i < own->gate_units.count; i++) {
        ph__layer_push_index(builder, "hidden", i);
        c = ph__layer_affine(builder, "linear", c, (size_t)own->gate_units.items[i], PH_RELU, settings);
        ph_builder_pop_scope(builder);
    }
    c = ph__layer_affine(builder, "output", c, ph__layer_extent(builder, x, 1), PH_SIGMOID, settings);
    ph_builder_pop_scope(builder);
    return ph_multiply(builder, x, ph_scale(builder, c, 2));
}

/* (B,K) -> (B, last of its units) */
static ph_value run_stream(struct ph_builder *builder, const struct stream *stream, ph_value x,
    const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    ph_builder_push_scope(builder, stream->name);
    if (stream->context->count > 0)
        x = gated(builder, stream, x, settings, features);
    x = ph__layer_perceptron(builder, "hidden", x, stream->units->items, stream->units->count, settings);
    ph_builder_pop_scope(builder);
    return x;
}

static ph_value head(struct ph_builder *builder, ph_value x, ph_value y, size_t num_heads, size_t num_tasks)
{
    const size_t x_width = ph__layer_extent(builder, x, 1), y_width = ph__layer_extent(builder, y, 1);
    if (x_width % num_heads != 0 || y_width % num_heads != 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "model.finalmlp: streams of %zu and %zu units must be multiples of %zu heads", x_width, y_width,
            num_heads);
    const size_t dims[] = {num_tasks, num_heads, x_width / num_heads, y_width / num_heads};
    ph_value linear = ph__layer_logits(builder, ph__layer_beside(builder, x, y), num_tasks); /* (B,T) */
    ph_value weight = ph_parameter(builder, "bilinear", 4, dims, ph__layer_xavier);
    return ph_add(builder, linear, ph_bilinear_head(builder, x, y, weight));
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct finalmlp_keys *own = settings->own;
    const struct stream first = {"first", &own->first_context, &own->first_units},
                        second = {"second", &own->second_context, &own->second_units};
    ph_value all =
        ph__layer_flatten(builder, ph__feature_field_vectors(builder, settings, features)); /* (B,K) */
    ph_value x = run_stream(builder, &first, all, settings, features);
    ph_value y = run_stream(builder, &second, all, settings, features);
    return head(builder, x, y, (size_t)own->heads, features->num_tasks); /* (B,T) */
}

const struct ph__model ph__model_finalmlp = {
    .description = "FinalMLP: two gated perceptrons and a bilinear layer over both",
    .keys = &keys,
    .build = build,
};
