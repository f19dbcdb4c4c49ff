/* MaskNet (Wang et al., DLP-KDD 2021, arXiv 2102.07619): blocks that multiply their input by a mask made of
 * the embeddings,
 *   block(v) = dropout(activation(LN(W (mask(e) * v)))),  mask(e) = W_2 relu(W_1 e + b_1) + b_2.
 * Serial: each block reads the output of the one before it. Parallel: all blocks read the embeddings, and a
 * perceptron reads their outputs. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

enum structure { PARALLEL, SERIAL };

struct masknet_keys {
    int structure;
    int64_t blocks, block_units;
    double reduction;
    bool has_embedding_norm;
};

static const struct ph__option options[] = {
    PH_CHOICE_KEY("structure", struct masknet_keys, structure, "parallel", "parallel|serial",
        "Arrangement of the blocks. parallel: side by side, with the perceptron of hidden_units on top. "
        "serial: one after another, one for each width of hidden_units."),
    PH_INTEGER_KEY("blocks", struct masknet_keys, blocks, "3", 1, 64, "parallel: number of blocks."),
    PH_INTEGER_KEY("block_units", struct masknet_keys, block_units, "64", 1, 1048576,
        "parallel: width of the output of a block."),
    PH_NUMBER_KEY("reduction", struct masknet_keys, reduction, "2", 0.001, 1000,
        "Width of the hidden layer that computes a mask, as a multiple of the mask's width."),
    PH_BOOL_KEY("embedding_norm", struct masknet_keys, has_embedding_norm, "true",
        "true: blocks multiply the fields' vectors after a layer norm for each field. Masks are computed "
        "from the vectors without it."),
};

static const struct ph__option_table keys = {
    .section = "model.masknet",
    .help = "Keys of MaskNet.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct masknet_keys),
    .traits = PH_KEY_OF_MODEL,
};

/* Returns mask(e) * v: (B,K). */
static ph_value masked(
    struct ph_builder *builder, ph_value embeddings, ph_value v, const struct ph_model_settings *settings)
{
    const struct masknet_keys *own = settings->own;
    const size_t width = ph__layer_extent(builder, v, 1);
    const double inner = own->reduction * (double)width;
    ph_value mask =
        ph__layer_affine(builder, "mask.0", embeddings, inner >= 1 ? (size_t)inner : 1, PH_RELU, settings);
    return ph_multiply(builder, ph__layer_affine(builder, "mask.1", mask, width, PH_IDENTITY, settings), v);
}

/* Builds block `index`: (B,units). */
static ph_value block(struct ph_builder *builder, size_t index, ph_value embeddings, ph_value v, size_t units,
    const struct ph_model_settings *settings)
{
    ph__layer_push_index(builder, "block", index);
    v = masked(builder, embeddings, v, settings);
    const size_t dims[] = {units, ph__layer_extent(builder, v, 1)};
    ph_value weight = ph_parameter(builder, "weight", 2, dims, ph__layer_xavier);
    v = ph__layer_norm(builder, "norm", ph_linear(builder, v, weight, 0, PH_IDENTITY));
    v = ph__layer_drop(builder, ph_activate(builder, v, settings->activation), settings);
    ph_builder_pop_scope(builder);
    return v;
}

/* Normalises the vectors of each field by a norm of the field's own: (B,F,D). */
static ph_value normed_fields(struct ph_builder *builder, ph_value vectors)
{
    const size_t num_fields = ph__layer_extent(builder, vectors, 1);
    ph_value all = 0;
    for (size_t field = 0; field < num_fields; field++) {
        ph__layer_push_index(builder, "embedding_norm", field);
        ph_value normed = ph__layer_norm(builder, "norm", ph_slice(builder, vectors, 1, field, 1));
        ph_builder_pop_scope(builder);
        all = ph__layer_beside(builder, all, normed);
    }
    return all;
}

static ph_value serial(
    struct ph_builder *builder, ph_value embeddings, ph_value v, const struct ph_model_settings *settings)
{
    for (size_t i = 0; i < settings->num_hidden_units; i++)
        v = block(builder, i, embeddings, v, (size_t)settings->hidden_units[i], settings);
    return v;
}

static ph_value parallel(
    struct ph_builder *builder, ph_value embeddings, ph_value v, const struct ph_model_settings *settings)
{
    const struct masknet_keys *own = settings->own;
    ph_value all = 0;
    for (size_t i = 0; i < (size_t)own->blocks; i++)
        all = ph__layer_beside(
            builder, all, block(builder, i, embeddings, v, (size_t)own->block_units, settings));
    return ph__layer_hidden(builder, all, settings);
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct masknet_keys *own = settings->own;
    ph_value vectors = ph__feature_field_vectors(builder, settings, features); /* (B,F,D) */
    ph_value embeddings = ph__layer_flatten(builder, vectors);                 /* (B, F*D) */
    ph_value v = embeddings;
    if (own->has_embedding_norm)
        v = ph__layer_flatten(builder, normed_fields(builder, vectors));
    v = (own->structure == SERIAL ? serial : parallel)(builder, embeddings, v, settings);
    return ph__layer_logits(builder, v, features->num_tasks); /* (B,T) */
}

const struct ph__model ph__model_masknet = {
    .description = "MaskNet: blocks that multiply their input by a mask made of the embeddings, in series or "
                   "in parallel",
    .keys = &keys,
    .build = build,
};
