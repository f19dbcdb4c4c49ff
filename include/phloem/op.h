/* Operators: the functions that build a model. Each adds one or two nodes to the builder and returns the
 * value. Shapes are checked at once; errors are sticky in the builder (phloem/graph.h). B samples, F
 * features, D embedding dimension, N ids, I items of a history, T tasks, K features in, M features out. */
#ifndef PHLOEM_OP_H
#define PHLOEM_OP_H

#include "phloem/graph.h"
#include "phloem/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns activation(x W^T + bias), (...,M): x (...,K) of 2 dims or more, weight (M,K), bias (M) or 0. Where
 * ph_aggregate has made x and M < K, the product is made first and M columns are aggregated.
 * Weight and bias are parameters, or computed values of fixed size. */
ph_value ph_linear(
    struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias, enum ph_activation activation);

/* Returns activation(block norm(x W^T + bias)), (...,M): ph_linear and ph_block_norm in one pass. */
ph_value ph_linear_block_norm(
    struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias, enum ph_activation activation);

/* Pools the embeddings of all features in one lookup: (B,F,D). ids is jagged (F*B bags); table has F
 * features, some of which may share slices; id_weights (N) or 0 multiplies each row before pooling. An empty
 * bag is all zeros. Of ids from ph_select_features, the S selected features are looked up, in a table of all
 * features or of these alone: (B,S,D). Gradients flow into the table alone: differentiating to id_weights is
 * PH_ERROR_CONFIG. */
ph_value ph_embedding_bag(
    struct ph_builder *builder, ph_value ids, ph_value table, enum ph_pooling pooling, ph_value id_weights);

/* ---- histories: I items in B bags, I counted when a batch runs ---- */

/* Selects the ids of `features`, in ascending order, from a batch's ids (F*B bags): S*B bags of I items. So a
 * model that looks a history up item by item can pool the other features alone. */
ph_value ph_select_features(
    struct ph_builder *builder, ph_value ids, size_t num_features, const size_t *features);
ph_value ph_feature_bags(
    struct ph_builder *builder, ph_value ids, size_t feature); /* ids of one feature: B bags */
/* Looks up the embedding of each item of a feature's bags, not pooled: (I,D). Row i is the table's row of
 * item i of `feature`, times its weight where id_weights (N, of the whole batch) is not 0. Gradients flow as
 * in ph_embedding_bag; a table may be looked up in both ways. */
ph_value ph_embedding_rows(
    struct ph_builder *builder, ph_value bags, ph_value table, size_t feature, ph_value id_weights);
/* Repeats each sample's row of x (B,K) once for each item of its bag: (I,K). */
ph_value ph_repeat_rows(struct ph_builder *builder, ph_value x, ph_value bags);
/* Sums weight * row over each bag: (B,K). x (I,K), weights (I,1) or 0. An empty bag is all zeros. */
ph_value ph_pool_rows(struct ph_builder *builder, ph_value x, ph_value bags, ph_value weights);

/* ---- graphs: the batch's samples are nodes ---- */

/* Options of aggregation over neighbours (phloem/kernel.h has the formulas). */
struct ph_aggregate_options {
    size_t size;                         /* sizeof the struct: phloem/options.h */
    struct ph_sampling sampling;         /* the neighbours that count */
    enum ph_normalisation normalisation; /* of their sum */
    unsigned bias; /* MEAN: 1 where the caller adds the node's own row outside; else 0 */
};
/* Sums rows of x (B,F) over each node's neighbours, or a sample of them: (B,F). neighbours: B bags of I ids,
 * as from ph_feature_bags, which are rows of x; weights (I,1) or 0 are of edges. A node without neighbours
 * gives zeros. The gradient is the adjoint of the same sample; weights have none: differentiating to them is
 * PH_ERROR_CONFIG. Running fails with PH_ERROR_DATA where a chosen id is not in [0,B). */
ph_value ph_aggregate(struct ph_builder *builder, ph_value x, ph_value neighbours, ph_value weights,
    const struct ph_aggregate_options *options);

/* Returns (B,F,D) with row f = x_f * vectors_f: x (B,F) dense features, vectors parameter (F,D). */
ph_value ph_dense_embedding(struct ph_builder *builder, ph_value x, ph_value vectors);

/* Second-order factorisation machine: (B,1) = 1/2 sum_d ((sum_f x)^2 - sum_f x^2), x (B,F,D). */
ph_value ph_fm(struct ph_builder *builder, ph_value x);

/* Computes the P pairwise dot products of the F+1 vectors [first, x]: first (B,D) or 0, x (B,F,D). Returns
 * (B,P), the strictly lower triangle in row order; with first, (B, D + P): first, then the products. */
ph_value ph_dot_interaction(struct ph_builder *builder, ph_value first, ph_value x);

/* Multiplies two matrices of each sample, op(a) op(b), where op transposes if is_a_transposed or
 * is_b_transposed is set: a (B,p,r) or (B,r,p), b (B,r,q) or (B,q,r); (B,p,q). */
ph_value ph_batch_product(
    struct ph_builder *builder, ph_value a, ph_value b, bool is_a_transposed, bool is_b_transposed);
/* Returns weighted sums of a sample's vectors, W x_b, (B,m,d): x (B,n,d), weight parameter (m,n), bias
 * parameter (m), added to each number of a vector, or 0. */
ph_value ph_mix_fields(struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias);

/* Layer of xDeepFM's compressed interaction network: x (B,h,d), first (B,m,d), which may be x, weight
 * parameter (k,h*m), bias parameter (k) or 0;
 *
 *     (B,k,d) = sum_ij weight[k, i*m + j] x[b,i,:] * first[b,j,:] + bias_k. */
ph_value ph_cin(struct ph_builder *builder, ph_value x, ph_value first, ph_value weight, ph_value bias);

/* 2-d convolution of stride 1, padded with zeros so that the extent stays the same: x (B,c,n,d), weight
 * parameter (k,c,r,s) with odd r and s, bias parameter (k) or 0; (B,k,n,d). */
ph_value ph_convolution(struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias);
/* Sums the pairs of a field-aware factorisation machine: (B,1) = sum over i < j of <v_ij, v_ji>. x (B,F,F*D):
 * row i holds for each field j the vector v_ij (D) of field i's feature towards field j. */
ph_value ph_field_aware(struct ph_builder *builder, ph_value x);
/* FinalMLP's head: (B,T) = sum_h x_h^T W_th y_h, where x_h and y_h are the h-th of H slices. x (B,K), y
 * (B,M), weight parameter (T,H,K/H,M/H). */
ph_value ph_bilinear_head(struct ph_builder *builder, ph_value x, ph_value y, ph_value weight);

ph_value ph_sum_features(struct ph_builder *builder, ph_value x); /* (B,F,D) -> (B,D) */
ph_value ph_sum_last(struct ph_builder *builder, ph_value x);     /* (B,...,K) of 3 dims or more -> (B,...) */

/* Joins values along dimension `axis` (>= 1); all other dimensions must be equal. */
ph_value ph_concat(struct ph_builder *builder, size_t num_values, const ph_value *values, size_t axis);
/* x[.., begin : begin + size, ..] along dimension `axis` (>= 1). */
ph_value ph_slice(struct ph_builder *builder, ph_value x, size_t axis, size_t begin, size_t size);
/* Gives the same elements another shape behind the batch, without a copy: dims are the dimensions after B. */
ph_value ph_reshape(struct ph_builder *builder, ph_value x, size_t num_dims, const size_t *dims);

/* Options of batch norm over (B,K), gamma and beta parameters (K). Running statistics are kept in the state
 * (scoped names). */
struct ph_batch_norm_options {
    size_t size;     /* sizeof the struct: phloem/options.h */
    double epsilon;  /* added to the variance */
    double momentum; /* share of the new batch in the running statistics */
};
ph_value ph_batch_norm(struct ph_builder *builder, ph_value x, ph_value gamma, ph_value beta,
    const char *name, const struct ph_batch_norm_options *options);

/* Layer norm over the last dimension: x (...,K) of 2 dims or more, gamma and beta parameters (K). The result
 * has x's shape. epsilon > 0 is added to the variance. */
ph_value ph_layer_norm(struct ph_builder *builder, ph_value x, ph_value gamma, ph_value beta, double epsilon);

/* RMS norm without parameters over blocks of 256 numbers of the last dimension, the last block perhaps
 * shorter, then the activation: x (...,K) of 2 dims or more; y = activation(x / sqrt(mean square of the block
 * + 1e-6)), x's shape. A block of zeros stays zero. */
ph_value ph_block_norm(struct ph_builder *builder, ph_value x, enum ph_activation activation);

/* Options of multi-head attention: softmax(scale q k^T) v for each sample and each of H heads. The heads'
 * columns stand side by side: K and M are multiples of H. bags 0: q (B,n,K), k (B,m,K), v (B,m,M); the result
 * is (B,n,M). bags jagged, B bags of I items: k (I,K), v (I,M), and sample b attends to the rows of bag b; q
 * (B,n,K) gives (B,n,M); q (I,K), each history attending to itself, gives (I,M). An empty bag gives zeros. */
struct ph_attention_options {
    size_t size;      /* sizeof the struct: phloem/options.h */
    size_t num_heads; /* H */
    double scale;     /* 0: 1 / sqrt(K / H) */
};
ph_value ph_attention(struct ph_builder *builder, ph_value q, ph_value k, ph_value v, ph_value bags,
    const struct ph_attention_options *options);

/* Inverted dropout; rate in [0,1). The random choice depends on the sample, not on its batch; for items, on
 * the place in the bag, too. PH_ERROR_CONFIG where rows are neither samples nor items of a history. */
ph_value ph_dropout(struct ph_builder *builder, ph_value x, double rate);
ph_value ph_relu(struct ph_builder *builder, ph_value x);
ph_value ph_sigmoid(struct ph_builder *builder, ph_value x);
ph_value ph_hard_swish(struct ph_builder *builder, ph_value x); /* x clamp(x + 3, 0, 6) / 6 */
/* Applies one of these; returns x for the identity. */
ph_value ph_activate(struct ph_builder *builder, ph_value x, enum ph_activation activation);
ph_value ph_add(struct ph_builder *builder, ph_value a, ph_value b); /* b: a's shape, or its last dimension */
ph_value ph_multiply(struct ph_builder *builder, ph_value a, ph_value b); /* same shapes */
ph_value ph_scale(struct ph_builder *builder, ph_value x, double factor);
/* Returns a cross layer's product, first * w + x elementwise, all of one shape. w is the layer's linear part,
 * W x + b. */
ph_value ph_cross(struct ph_builder *builder, ph_value first, ph_value w, ph_value x);
ph_value ph_scale_rows(struct ph_builder *builder, ph_value x, ph_value s); /* x (B,K), s (B,1): s_b x_b */
ph_value ph_row_dots(struct ph_builder *builder, ph_value a, ph_value b);   /* (B,K) twice: (B,1) */
ph_value ph_stop_gradient(struct ph_builder *builder, ph_value x);
ph_value ph_scale_gradient(
    struct ph_builder *builder, ph_value x, double factor); /* x; its gradient times factor */

/* Binary cross entropy with logits, mean over known labels: sum w m l / sum w m. logits, labels (B,T), soft
 * labels allowed; mask (B,T) or 0, weights (B) or 0. A scalar; 0 when no label is known. Only the logits have
 * a gradient: other arguments that depend on parameters need ph_stop_gradient, or it is PH_ERROR_CONFIG. */
ph_value ph_bce_with_logits(
    struct ph_builder *builder, ph_value logits, ph_value labels, ph_value mask, ph_value weights);
/* Softmax cross entropy, mean over rows: l = log sum_t exp(z_t) sum_t y_t - sum_t y_t z_t. logits z, labels y
 * (B,T), a row's shares of each class; mask (B,T), whose rows are all 1 or all 0, or 0; weights (B) or 0. A
 * scalar and gradients as above. */
ph_value ph_softmax_cross_entropy(
    struct ph_builder *builder, ph_value logits, ph_value labels, ph_value mask, ph_value weights);
/* Squared error, mean over all elements: sum w (y - t)^2 / (B T). predictions y and labels t (B,T), weights w
 * (B) or 0. A scalar; 0 without samples. Only the predictions have a gradient, as above. */
ph_value ph_squared_error(
    struct ph_builder *builder, ph_value predictions, ph_value labels, ph_value weights);
/* A teacher's probabilities as a student learns them, each (B,T) and without a gradient. */
struct ph_teacher {
    ph_value targets;  /* min(scale * q, 1); 0 where the teacher is not known */
    ph_value log_odds; /* log(q / (1 - q)), likewise */
    ph_value known;    /* mask: 1 where teacher and label are known */
};
/* Reads the batch's teacher p, as q = p / (p + negative_rate (1 - p)): what it would say of rows of which so
 * many of the negatives were kept (0: all). */
struct ph_teacher ph_teacher_targets(
    struct ph_builder *builder, size_t num_tasks, double scale, double negative_rate);
/* sum_i factors[i] * scalars[i]: losses, named and weighted. */
ph_value ph_weighted_sum(
    struct ph_builder *builder, size_t num_scalars, const ph_value *scalars, const double *factors);

/* ---- updates ---- */

struct ph_optimizer {
    struct ph_update_rule rule;
    double l2;                   /* lambda of lambda/2 |w|^2, added to the gradient */
    double learning_rate_factor; /* of the parameter's group */
    /* Set for tables whose every row is updated in every step, as by a dense gradient (BARS; whole-table L2).
     * Otherwise only rows touched by the batch are updated (and decayed). Tables only. */
    bool is_whole_table;
};

/* Returns the scalar min(1, max_norm / (norm + 1e-6)) over all gradients together, tables included. Each
 * gradient is taken as its optimizer will see it (with its l2 term: over touched rows, or the whole table).
 * max_norm > 0. gradients[i] belongs to parameters[i] and optimizers[i]. */
ph_value ph_clip_factor(struct ph_builder *builder, size_t num_gradients, const ph_value *parameters,
    const ph_value *gradients, const struct ph_optimizer *optimizers, double max_norm);

/* Adds one optimizer step on a parameter or table; returns a token. gradient 0: no gradient (only a
 * whole-table or dense decay acts). learning_rate and step (from 1, for bias correction) are scalars;
 * clip_factor is a scalar or 0. */
ph_value ph_update(struct ph_builder *builder, ph_value parameter, ph_value gradient,
    const struct ph_optimizer *optimizer, ph_value learning_rate, ph_value step, ph_value clip_factor);

#ifdef __cplusplus
}
#endif
#endif
