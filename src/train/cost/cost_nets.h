/* A cost model (plan/search/cost_model.h) learnt from measurements: three nets over one store.
 *
 *   compute             describes each part of a table, and prices the sum over a set's parts
 *   exchange, each way  prices a rank by what it sends and receives, and by the most that a rank or host
 *                       sends, so that any number of ranks can be priced
 *
 * All are layers over items (parts, ranks), a sum over the items of a sample, and layers over the sum; a
 * sample of an exchange is one rank. The first layer scales the features. A rank's wait for the last one to
 * start an exchange is known: its net learns the rest. Nets learn by the squared error, relative to the time
 * of a set, or to the longest rest among the ranks of an exchange.
 *
 * Nets are used by one thread at a time. The same labels and seed give the same bits.
 *
 * Source: Zha et al. 2023 (arXiv 2305.01868, NeuroShard) for features and the compute net. */
#ifndef PH_TRAIN_COST_NETS_H
#define PH_TRAIN_COST_NETS_H

#include "phloem/graph.h"
#include "plan/search/cost_label.h"

enum ph__cost_net_kind { PH_COST_COMPUTE, PH_COST_FORWARD, PH_COST_BACKWARD, PH_COST_NUM_NETS };

enum {
    PH_COST_PART_NUMBERS = 11,
    PH_COST_PART_FEATURES = PH_COST_PART_NUMBERS + PH_ACCESS_BINS,
    PH_COST_RANK_NUMBERS = 10,
    PH_COST_SIZE_FEATURES = 2, /* the last of a rank's: sizes of the topology */
    PH_COST_RANK_FEATURES = 2 * PH_COST_RANK_NUMBERS + PH_COST_SIZE_FEATURES,
    PH_COST_DESCRIPTION = 32, /* numbers that an item's layers give */
    PH_COST_ITEM_LAYERS = 3,
    PH_COST_LAST_WIDTH = 64, /* numbers that the last layer reads */
    PH_COST_LAYERS = 5,
};

/* A program that is ready to run; zero-initialised: none. */
struct ph__cost_graph {
    struct ph_program *program;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
};

struct ph__cost_nets {
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;                           /* of one thread */
    struct ph__cost_graph describe, compute, exchange[2]; /* exchange: by way */
    bool is_learnt[PH_COST_NUM_NETS];
    size_t batch_size;   /* samples of the steps that the nets price */
    double lookup_share; /* of compute (plan/search/cost_model.h); the creator sets it */
    uint64_t seed;
    ph_real *rows; /* inputs of runs, grown */
    size_t rows_capacity;
};

/* Creates nets with initial weights, for steps of batch_size samples. PH_ERROR_MEMORY. */
ph_status ph__cost_nets_create(uint64_t seed, size_t batch_size, struct ph__cost_nets **nets_out);
void ph__cost_nets_destroy(struct ph__cost_nets *nets);
/* Gives the nets to planners; borrowed. */
struct ph__cost_model ph__cost_nets_model(struct ph__cost_nets *nets);

/* ---- learning (cost_train.c) ---- */

/* Learns from `count` labels, and keeps the weights of the epoch with the least error on the last
 * num_validation of them, where there are any. Gives that epoch's mean absolute error of
 * validation, relative likewise: NaN without. PH_ERROR_USAGE: no labels to learn from, or the net has learnt
 * already; PH_ERROR_DATA: a time that is not above 0; PH_ERROR_MEMORY. */
struct ph__cost_training {
    size_t count, num_validation, num_epochs;
};
ph_status ph__cost_learn_compute(struct ph__cost_nets *nets, const struct ph__cost_label *labels,
    const struct ph__cost_training *training, double *mape_out);
/* Learns one way, that of all labels. */
ph_status ph__cost_learn_exchange(struct ph__cost_nets *nets, const struct ph__exchange_label *labels,
    const struct ph__cost_training *training, double *mape_out);

/* ---- for cost_train.c ---- */

/* Adds layers [first, end) of a net to a graph. Their parameters are declared in this order, weight, bias. */
ph_value ph__cost_net_layers(
    struct ph_builder *builder, enum ph__cost_net_kind kind, size_t first, size_t end, ph_value x);
/* Makes a graph of what a builder has, and destroys the builder. Call close also after a failure. */
ph_status ph__cost_graph_open(struct ph__cost_graph *graph, const struct ph__cost_nets *nets,
    struct ph_builder *builder, size_t batch_size);
void ph__cost_graph_close(struct ph__cost_graph *graph);
size_t ph__cost_net_features(enum ph__cost_net_kind kind);
void ph__cost_part_features(const struct ph__cost_nets *nets, const struct ph__cost_part *part,
    ph_real features_out[PH_COST_PART_FEATURES]);
/* Returns how long a rank waits for the last one to start. */
double ph__cost_wait_ms(const struct ph__topology *topology, const double *starts_ms, size_t rank);
/* features_out (world_size, PH_COST_RANK_FEATURES). */
void ph__cost_rank_features(const struct ph__topology *topology, const double *columns,
    const double *starts_ms, ph_real *features_out);

#endif
