/* Predicts which pairs of user and item will be asked for: those of each user's last slate, by how often each
 * is likely to be asked for again while its row lives.
 *
 *     expected asks = s + s^2 + ... + s^n     n = the user's requests in that time, by the rate so far
 *                                             s = the chance to stay in the slate, by the item's score
 *
 * The chance is counted online: of items shown with a score of a bin, the share that the user's next slate
 * showed again. Everything is in the caller's seconds, so that recorded streams can be replayed. One thread
 * at a time.
 *
 * Source: the task is SOLARIS's (arXiv 2604.12110); its predictor is not published, this one is ours. */
#ifndef PH_SERVE_PAIR_PREDICTOR_H
#define PH_SERVE_PAIR_PREDICTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

/* Orders in which pairs are chosen. All but the first are there to be compared with it. */
enum ph__pair_policy {
    PH_PAIRS_EXPECTED, /* by expected asks */
    PH_PAIRS_RANDOM,
    PH_PAIRS_LATEST,  /* of the users who asked last */
    PH_PAIRS_FREQUENT /* of the users who ask most */
};

struct ph__pair_options {
    enum ph__pair_policy policy;
    double seconds;      /* that a pair's row lives */
    double half_seconds; /* in which a user's rate forgets half of what it has seen */
    size_t most_users;   /* those whose last request is oldest are forgotten */
    uint64_t seed;       /* of PH_PAIRS_RANDOM */
};

struct ph__pair_predictor;

ph_status ph__pair_predictor_create(
    const struct ph__pair_options *options, struct ph__pair_predictor **predictor_out);
void ph__pair_predictor_destroy(struct ph__pair_predictor *predictor);

/* Takes a request: items (count) as 64-bit keys, with the scores that the served model gave. PH_ERROR_MEMORY.
 */
ph_status ph__pair_predictor_asked(struct ph__pair_predictor *predictor, double now, uint64_t user,
    size_t count, const uint64_t *items, const float *scores);

struct ph__pair {
    uint64_t user, item;
    size_t place; /* of the item in the user's last slate */
    double asks;  /* expected */
};

/* Tells whether a pair's row is there and fresh. */
typedef bool ph__pair_is_fresh(void *context, uint64_t user, uint64_t item);

/* Chooses up to `most` pairs that are not fresh, the best first, a user's pairs together: pairs_out (most).
 * Returns how many. */
size_t ph__pair_predictor_choose(struct ph__pair_predictor *predictor, double now, size_t most,
    ph__pair_is_fresh *is_fresh, void *context, struct ph__pair *pairs_out);

/* Forgets a user, or an item of all users. */
void ph__pair_predictor_forget_user(struct ph__pair_predictor *predictor, uint64_t user);
void ph__pair_predictor_forget_item(struct ph__pair_predictor *predictor, uint64_t item);

#endif
