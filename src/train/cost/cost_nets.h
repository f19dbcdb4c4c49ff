/* A cost model (plan/search/cost_model.h) learnt from measurements: three nets over one store.
 *
 *   compute             describes each part of a table, and prices the sum over a set's parts
 *   exchange, each way  describes each rank, and prices a rank by itself and the mean over all ranks, so that
 *                       any number of ranks can be priced
 *
 * Both are layers over items (parts, ranks), a sum over the items of a sample, and layers over the sum. Nets
 * learn ratios of milliseconds, predicted to measured: the squared error of a ratio is the relative one. A
 * net is learnt with z-scored features and a scaled result; both scales then become part of its first and
 * last layer, so that the store holds all that is learnt.
 *
 * Nets are used by one thread at a time. The same labels and seed give the same bits.
 *
 * Sources: Zha et al. 2023 (arXiv 2305.01868, NeuroShard) for features and the compute net; Zaheer et al.
 * 2017 (arXiv 1703.06114) for the mean over ranks. */
#ifndef PH_TRAIN_COST_NETS_H
#define PH_TRAIN_COST_NETS_H

#include "base/memory/arena.h"
#include "phloem/graph.h"
#include "plan/search/cost_label.h"

enum ph__cost_net_kind { PH_COST_COMPUTE, PH_COST_FORWARD, PH_COST_BACKWARD, PH_COST_NUM_NETS };

enum {
    PH_COST_PART_FEATURES = 4 + PH_ACCESS_BINS,
    PH_COST_RANK_FEATURES = 9,
    PH_COST_SIZE_FEATURES = 2, /* the last of a rank's: sizes of the topology */
    PH_COST_DESCRIPTION = 32,  /* numbers that an item's layers give */
    PH_COST_ITEM_LAYERS = 2,
    PH_COST_MOST_LAYERS = 5,
    PH_COST_MOST_LAYER = 128, /* numbers that a layer gives */
};

struct ph__cost_layer {
    const char *name; /* of its weight and bias: "compute.item0.weight" */
    size_t in, out;
};

struct ph__cost_net {
    const struct ph__cost_layer *layers; /* of items, then of their sum */
    size_t num_layers, num_features;
    bool is_of_ranks;                         /* a result for each item: its features, and the mean */
    ph_real *packed[PH_COST_MOST_LAYERS];     /* for the kernel row_product */
    const ph_real *bias[PH_COST_MOST_LAYERS]; /* the store's */
    bool is_learnt;
};

struct ph__cost_nets {
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend; /* of one thread */
    struct ph__arena arena;
    struct ph__cost_net nets[PH_COST_NUM_NETS];
    size_t batch_size; /* samples of the steps that the nets price */
    uint64_t seed;
    ph_real *rows; /* memory of runs, grown */
    size_t rows_capacity;
};

/* Creates nets with initial weights, for steps of batch_size samples. PH_ERROR_MEMORY. */
ph_status ph__cost_nets_create(uint64_t seed, size_t batch_size, struct ph__cost_nets **nets_out);
void ph__cost_nets_destroy(struct ph__cost_nets *nets);
/* Gives the nets to planners; borrowed. */
struct ph__cost_model ph__cost_nets_model(struct ph__cost_nets *nets);

/* ---- learning (cost_train.c) ---- */

/* Learns from `count` labels, and keeps the weights of the epoch with the least error on the last
 * num_validation of them, where there are any. Gives that epoch's mean absolute relative error, of
 * validation: NaN without. PH_ERROR_USAGE: no labels to learn from, or the net has learnt already;
 * PH_ERROR_DATA: a time that is not above 0; PH_ERROR_MEMORY. */
struct ph__cost_training {
    size_t count, num_validation, num_epochs;
};
ph_status ph__cost_learn_compute(struct ph__cost_nets *nets, const struct ph__cost_label *labels,
    const struct ph__cost_training *training, double *mape_out);
/* Learns one way, that of all labels. Times of 0 are left out: a rank that waits for nothing. */
ph_status ph__cost_learn_exchange(struct ph__cost_nets *nets, const struct ph__exchange_label *labels,
    const struct ph__cost_training *training, double *mape_out);

/* ---- for cost_train.c and cost_folder.c ---- */

/* Packs the net's weights anew, after the store's were written. */
ph_status ph__cost_net_renew(struct ph__cost_nets *nets, enum ph__cost_net_kind kind);
/* Adds the net to a graph: items (B,T,features), shares (B,1,T) that sum them, and for ranks known (B,T):
 * 1 for a rank, 0 for padding. Returns results (B,T), or (B,1) of sets. */
ph_value ph__cost_net_build(struct ph_builder *builder, const struct ph__cost_net *net, ph_value items,
    ph_value shares, ph_value known, size_t num_items);
void ph__cost_part_features(const struct ph__cost_nets *nets, const struct ph__cost_part *part,
    ph_real features_out[PH_COST_PART_FEATURES]);
/* features_out (world_size, PH_COST_RANK_FEATURES). */
void ph__cost_rank_features(const struct ph__topology *topology, const double *columns,
    const double *starts_ms, ph_real *features_out);

#endif
