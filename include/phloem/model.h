/* Models: functions that build a graph from settings and features. A new architecture is one file in
 * src/model/ and one line in models.def; no other code has its name, or the keys of its own that its file may
 * declare.
 *
 * Follows the published click models as FuxiCTR's model_zoo writes them, so that results compare. B samples,
 * F sparse features, D embedding dimension, T tasks. */
#ifndef PHLOEM_MODEL_H
#define PHLOEM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ph_interaction { PH_INTERACTION_DOT, PH_INTERACTION_CAT };
enum ph_bias_layers { PH_BIAS_ALL, PH_BIAS_LAST };
enum ph_tower_module { PH_TOWER_LINEAR, PH_TOWER_CROSS, PH_TOWER_IDENTITY };

/* The keys under "model" of a config (docs/CONFIG.md). Arrays are borrowed. */
struct ph_model_settings {
    int kind;              /* ph_model_find("dlrm") */
    int64_t embedding_dim; /* D */
    double embedding_init_std;
    const int64_t *hidden_units; /* widths of the hidden layers of the deep part */
    size_t num_hidden_units;
    const int64_t *bottom_units; /* DLRM: hidden layers over the dense features, before the last one to D */
    size_t num_bottom_units;
    const int64_t *top_units; /* DLRM: hidden layers over the interaction; if empty: hidden_units */
    size_t num_top_units;
    bool batch_norm;
    bool block_norm;                 /* not with batch_norm */
    enum ph_bias_layers bias;        /* linear layers that have a bias: all, or the logits' alone */
    double dropout;                  /* rate in [0,1), after each hidden layer; 0: none */
    enum ph_activation activation;   /* activation of hidden layers */
    enum ph_pooling pooling;         /* pooling of the ids of one bag */
    enum ph_interaction interaction; /* DLRM */
    /* Towers of features, "user:C1,C2|item:C3"; NULL or "": none. Borrowed. */
    const char *towers;
    enum ph_tower_module tower_module; /* layers of each tower */
    int64_t tower_dim;                 /* length of a tower's vectors; 0: embedding_dim */
    int64_t tower_outputs;         /* a tower's vectors that depend on all its features, for each feature */
    int64_t tower_feature_outputs; /* vectors that depend on one feature alone, for each feature */
    /* Keys under "model.<kind>", for a kind that has some, as ph_config_read gives them: a struct that only
     * the kind's own file knows. NULL: their defaults. */
    const void *own;
};

/* Features that a model is built on. */
struct ph_model_features {
    size_t num_dense;
    size_t num_sparse;
    size_t num_tasks;
    const struct ph_table_slice *sparse; /* name and rows of each feature; borrowed while building */
    const struct ph_table_slice
        *slices; /* one for each feature, for ph_table, where features share slices; NULL: same as `sparse` */
    bool has_id_weights; /* id vectors are multiplied by their weights in the batch */
    bool has_classes;    /* the tasks are the classes of one label */
};

size_t ph_model_count(void);
const char *ph_model_name(int kind);        /* "dlrm"; NULL outside [0, ph_model_count()). Static. */
const char *ph_model_description(int kind); /* one line; NULL outside the same range. Static. */
int ph_model_find(const char *name);        /* -1: no such model */

/* Adds the model to the builder's current entry and returns the logits (B,T). Errors are sticky in the
 * builder: PH_ERROR_CONFIG where the model cannot be built on such features. The same settings and features
 * declare the same parameters in both modes, so that a training and an evaluation program share one store. */
ph_value ph_model_build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

#ifdef __cplusplus
}
#endif
#endif
