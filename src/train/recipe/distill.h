/* Distillation: a student also learns a teacher's probabilities, which its rows carry (kind: teacher).
 *
 *     z = logits of the model, x = what its last layer reads, y = label, p = the teacher's probability,
 *     h = binary cross entropy with logits, w, a, b = weight, label scale and gradient scale of the settings
 *
 *   single   h(z, y) + w h(z, p)
 *   head     h(z, y) + w h(head(b x), min(a p, 1))    the auxiliary head's gradient reaches x times b
 *   adapter  as head, + h(head'(b x), s)              s = sigmoid(l + adapter(l)), l the log-odds of p
 *
 * The adapter learns the labels; s passes no gradient on.
 * The adapter learns from a row in the same step as the student, so that s is the adapter before it has seen
 * the row's label. Parameters of heads and adapter are "distill.…" (PH_TRAINING_SCOPE): a model that is saved
 * and served has none of them.
 *
 * Source: Liang et al. 2025 (arXiv 2502.17494, ExFM). Ours: sizes of heads and adapter, and that the adapter
 * adds to l. */
#ifndef PH_TRAIN_DISTILL_H
#define PH_TRAIN_DISTILL_H

#include "phloem/graph.h"
#include "phloem/train.h"

/* Returns the objective with the losses that the settings ask for, of a model that has been built. logits
 * (B,T). negative_rate: of the rows that the student learns from; 0: 1. Each loss is a mean over the rows
 * whose teacher is known; the adapter's also asks for the label. In a micro-batch it is that one's share of
 * the batch's mean, by the scalars "teacher_weight" and "taught_weight": ph__batch_weight of the teachers,
 * and of rows where both are known (adapter alone). */
ph_value ph__distill_add(struct ph_builder *builder, const struct ph_train_settings *settings,
    ph_value logits, double negative_rate, ph_value objective);

#endif
