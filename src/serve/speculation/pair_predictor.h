/* Predicts which pairs of user and item will be asked for: those of each user's last slate, by how often each
 * is likely to be asked for again while its row lives.
 *
 *     expected asks = s_1 + s_1 s_2 + ... + s_1 ... s_n     n = the user's requests in that time
 *
 * s_k is the chance that the item stays once more in the user's slate. It is counted online: of items shown
 * with a score of a bin, in as many slates in a row, after as long a wait, the share that the user's next
 * slate showed again. n follows from the user's rate so far, and from whether a session is going on.
 *
 * Everything is in the caller's seconds, so that recorded streams can be replayed. One thread at a time.
 *
 * Source: the task is SOLARIS's (arXiv 2604.12110); its predictor is not published, this one is ours. */
#ifndef PH_SERVE_PAIR_PREDICTOR_H
#define PH_SERVE_PAIR_PREDICTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/encode/rows.h"
#include "phloem/status.h"

/* Orders in which pairs are chosen. All but the first are there to be compared with it. */
enum ph__pair_policy {
    PH_PAIRS_EXPECTED, /* by expected asks */
    PH_PAIRS_RANDOM,
    PH_PAIRS_LATEST,   /* of the users who asked last */
    PH_PAIRS_FREQUENT, /* of the users who ask most */
    PH_PAIRS_KNOWN     /* by the asks that the options' function tells */
};

struct ph__pair_options {
    enum ph__pair_policy policy;
    double seconds;       /* that a pair's row lives */
    double half_seconds;  /* in which a user's rate forgets half of what it has seen */
    size_t most_users;    /* those whose last request is oldest are forgotten */
    size_t profile_bytes; /* that the caller keeps beside each user, zeros at first */
    uint64_t seed;        /* of PH_PAIRS_RANDOM */
    double (*known_asks)(void *context, double now, uint64_t user, uint64_t item); /* PH_PAIRS_KNOWN */
    void *known_context;
};

struct ph__pair_predictor;

ph_status ph__pair_predictor_create(
    const struct ph__pair_options *options, struct ph__pair_predictor **predictor_out);
void ph__pair_predictor_destroy(struct ph__pair_predictor *predictor);

/* Items that a request showed to a user. */
struct ph__slate {
    uint64_t user;
    size_t count;
    const uint64_t *items;       /* (count) 64-bit keys */
    const float *scores;         /* (count) that the served model gave */
    const struct ph__rows *rows; /* (count) encoded; NULL: none are kept */
};

/* Takes a request: copies the slate. PH_ERROR_MEMORY. */
ph_status ph__pair_predictor_asked(
    struct ph__pair_predictor *predictor, double now, const struct ph__slate *slate);

struct ph__pair {
    uint64_t user, item;
    size_t place; /* of the item in the user's last slate */
    double asks;  /* expected */
};

struct ph__pair_choice {
    double now;
    size_t most;
    double least; /* asks that a pair must be worth more than, as far as the policy counts asks */
    /* Tells whether a pair's row is there and fresh. */
    bool (*is_fresh)(void *fresh_context, uint64_t user, uint64_t item);
    void *fresh_context;
    bool (*must_go_on)(void *context); /* asked once in a while; false ends the search. NULL: always true */
    void *context;
};

/* Chooses up to `most` pairs that are not fresh and have rows, the best first, a user's pairs together:
 * pairs_out (most). Returns how many. */
size_t ph__pair_predictor_choose(
    struct ph__pair_predictor *predictor, const struct ph__pair_choice *choice, struct ph__pair *pairs_out);

/* Appends the encoded row of a pair that was chosen last. */
ph_status ph__pair_predictor_row(
    const struct ph__pair_predictor *predictor, const struct ph__pair *pair, struct ph__rows *rows);

/* A user that is known. */
struct ph__pair_user {
    uint64_t user;
    size_t count; /* of the last slate */
    const uint64_t *items;
    void *profile; /* profile_bytes */
};
size_t ph__pair_predictor_num_users(const struct ph__pair_predictor *predictor);
struct ph__pair_user ph__pair_predictor_user(const struct ph__pair_predictor *predictor, size_t index);
/* Returns the index of a user, SIZE_MAX: unknown. Indices hold until a user is added or forgotten. */
size_t ph__pair_predictor_find(const struct ph__pair_predictor *predictor, uint64_t user);

/* Forgets a user, or an item of all users. */
void ph__pair_predictor_forget_user(struct ph__pair_predictor *predictor, uint64_t user);
void ph__pair_predictor_forget_item(struct ph__pair_predictor *predictor, uint64_t item);
/* Forgets all encoded rows: the model that they were encoded for has gone. */
void ph__pair_predictor_forget_rows(struct ph__pair_predictor *predictor);

#endif
