#include "serve/speculation/pair_predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/key_map.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"

enum { SCORE_BINS = 16, WAIT_BINS = 6 };
#define SESSION_SECONDS 1800. /* a longer wait ends a session */

struct user {
    uint64_t key;
    double first, last; /* seconds of requests */
    double recent;      /* requests, of which half are forgotten every half_seconds */
    size_t count, capacity;
    uint64_t *items; /* (count) of the last slate */
    float *scores;
};

struct share {
    double shown, stayed;
};

struct ph__pair_predictor {
    struct ph__pair_options options;
    struct ph__key_map slots;
    struct user *users; /* (num_users) */
    size_t num_users, capacity;
    struct share stays[SCORE_BINS][WAIT_BINS];
    double num_requests, num_continued; /* continued: followed by another one in the session */
    struct ph__pair *pairs;             /* scratch: all that could be chosen */
    size_t pairs_capacity;
    uint64_t num_rounds;
};

/* ---- the chance to stay ---- */

static size_t score_bin(float score)
{
    const double odds = log((double)score / (1 - (double)score) + 1e-9);
    return (size_t)fmin(fmax((odds + 4) * SCORE_BINS / 8, 0), SCORE_BINS - 1);
}

static size_t wait_bin(double seconds)
{
    static const double ends[WAIT_BINS - 1] = {600, 3600, 3 * 3600, 6 * 3600, 12 * 3600};
    size_t bin = 0;
    while (bin + 1 < WAIT_BINS && seconds >= ends[bin])
        bin++;
    return bin;
}

/* Returns the share that stayed, drawn towards one half while few were seen. */
static double stay_of(const struct ph__pair_predictor *predictor, float score, double wait)
{
    const struct share *share = &predictor->stays[score_bin(score)][wait_bin(wait)];
    return (share->stayed + 1) / (share->shown + 2);
}

static bool has_item(const struct user *user, uint64_t item)
{
    for (size_t i = 0; i < user->count; i++)
        if (user->items[i] == item)
            return true;
    return false;
}

static void count_stays(struct ph__pair_predictor *predictor, const struct user *user, double wait,
    size_t count, const uint64_t *items)
{
    const struct user next = {.count = count, .items = (uint64_t *)(uintptr_t)items};
    for (size_t i = 0; i < user->count; i++) {
        struct share *share = &predictor->stays[score_bin(user->scores[i])][wait_bin(wait)];
        share->shown++;
        share->stayed += has_item(&next, user->items[i]);
    }
}

/* ---- users ---- */

static void drop_user(struct ph__pair_predictor *predictor, size_t slot)
{
    struct user *user = &predictor->users[slot], *last = &predictor->users[--predictor->num_users];
    ph__key_map_remove(&predictor->slots, user->key);
    free(user->items);
    free(user->scores);
    if (user == last)
        return;
    *user = *last;
    ph__key_map_remove(&predictor->slots, user->key);
    (void)ph__key_map_add(&predictor->slots, user->key, (uint32_t)slot); /* in the place of the removed one */
}

static size_t oldest_user(const struct ph__pair_predictor *predictor)
{
    size_t oldest = 0;
    for (size_t i = 1; i < predictor->num_users; i++)
        if (predictor->users[i].last < predictor->users[oldest].last)
            oldest = i;
    return oldest;
}

static ph_status find_user(
    struct ph__pair_predictor *predictor, double now, uint64_t key, struct user **user_out)
{
    const uint32_t slot = ph__key_map_find(&predictor->slots, key);
    if (slot != PH_NO_NUMBER) {
        *user_out = &predictor->users[slot];
        return PH_OK;
    }
    if (predictor->num_users == predictor->options.most_users)
        drop_user(predictor, oldest_user(predictor));
    PH_TRY(ph__array_reserve((void **)&predictor->users, &predictor->capacity, predictor->num_users + 1,
        sizeof *predictor->users));
    PH_TRY(ph__key_map_add(&predictor->slots, key, (uint32_t)predictor->num_users));
    *user_out = &predictor->users[predictor->num_users++];
    **user_out = (struct user){.key = key, .first = now, .last = -INFINITY};
    return PH_OK;
}

static ph_status take_slate(struct user *user, size_t count, const uint64_t *items, const float *scores)
{
    size_t capacity = user->capacity;
    PH_TRY(ph__array_reserve((void **)&user->scores, &capacity, count, sizeof *user->scores));
    PH_TRY(ph__array_reserve((void **)&user->items, &user->capacity, count, sizeof *user->items));
    user->capacity = ph__min(capacity, user->capacity);
    memcpy(user->items, items, count * sizeof *items);
    memcpy(user->scores, scores, count * sizeof *scores);
    user->count = count;
    return PH_OK;
}

ph_status ph__pair_predictor_asked(struct ph__pair_predictor *predictor, double now, uint64_t user_key,
    size_t count, const uint64_t *items, const float *scores)
{
    struct user *user;
    PH_TRY(find_user(predictor, now, user_key, &user));
    const double wait = now - user->last;
    if (user->last > -INFINITY) {
        predictor->num_requests++;
        predictor->num_continued += wait < SESSION_SECONDS;
        count_stays(predictor, user, wait, count, items);
        user->recent *= exp2(-wait / predictor->options.half_seconds);
    }
    user->recent++;
    user->last = now;
    return take_slate(user, count, items, scores);
}

/* ---- choosing ---- */

/* Returns the user's requests a second: those remembered, over the time that is. */
static double rate_of(const struct ph__pair_predictor *predictor, const struct user *user, double now)
{
    const double half = predictor->options.half_seconds;
    const double seen = now - user->first + half / 8; /* a single request is no rate */
    return user->recent * exp2(-(now - user->last) / half) / (half / M_LN2 * -expm1(-seen * M_LN2 / half));
}

/* Returns how many requests the user is expected to make while a row lives. */
static double requests_of(const struct ph__pair_predictor *predictor, const struct user *user, double now)
{
    const double share = (predictor->num_continued + 1) / (predictor->num_requests + 2);
    const double in_session = fmax(0, 1 - (now - user->last) / SESSION_SECONDS);
    return rate_of(predictor, user, now) * predictor->options.seconds + in_session * share / (1 - share);
}

static double asks_of(
    const struct ph__pair_predictor *predictor, const struct user *user, double now, size_t place)
{
    const double count = requests_of(predictor, user, now);
    const double waited = now - user->last;
    const double wait = waited < SESSION_SECONDS ? 0 : fmax(waited, 1 / rate_of(predictor, user, now));
    const double first = stay_of(predictor, user->scores[place], wait);
    const double later = fmin(stay_of(predictor, user->scores[place], 0), .99);
    return first * (1 - pow(later, count)) / (1 - later);
}

static double worth(
    const struct ph__pair_predictor *predictor, const struct user *user, double now, size_t place)
{
    const struct ph__rng_key key = {
        .seed = predictor->options.seed, .step = predictor->num_rounds, .stream = user->key};
    switch (predictor->options.policy) {
    case PH_PAIRS_RANDOM:
        return ph__rng_uniform(&key, user->items[place], 0);
    case PH_PAIRS_LATEST:
        return user->last;
    case PH_PAIRS_FREQUENT:
        return rate_of(predictor, user, now);
    case PH_PAIRS_EXPECTED:
        break;
    }
    return asks_of(predictor, user, now, place);
}

static int best_first(const void *a, const void *b)
{
    const struct ph__pair *left = a, *right = b;
    if (left->asks != right->asks)
        return left->asks > right->asks ? -1 : 1;
    if (left->user != right->user)
        return left->user < right->user ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static int users_together(const void *a, const void *b)
{
    const struct ph__pair *left = a, *right = b;
    if (left->user != right->user)
        return left->user < right->user ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

size_t ph__pair_predictor_choose(struct ph__pair_predictor *predictor, double now, size_t most,
    ph__pair_is_fresh *is_fresh, void *context, struct ph__pair *pairs_out)
{
    size_t count = 0;
    predictor->num_rounds++;
    for (size_t u = 0; u < predictor->num_users; u++) {
        const struct user *user = &predictor->users[u];
        if (ph__array_reserve((void **)&predictor->pairs, &predictor->pairs_capacity, count + user->count,
                sizeof *predictor->pairs) != PH_OK)
            break;
        for (size_t place = 0; place < user->count; place++)
            if (!is_fresh(context, user->key, user->items[place]))
                predictor->pairs[count++] = (struct ph__pair){
                    user->key, user->items[place], place, worth(predictor, user, now, place)};
    }
    if (count > 0)
        qsort(predictor->pairs, count, sizeof *predictor->pairs, best_first);
    count = ph__min(count, most);
    if (count > 0) {
        memcpy(pairs_out, predictor->pairs, count * sizeof *pairs_out);
        qsort(pairs_out, count, sizeof *pairs_out, users_together);
    }
    return count;
}

/* ---- the whole ---- */

void ph__pair_predictor_forget_user(struct ph__pair_predictor *predictor, uint64_t user)
{
    const uint32_t slot = ph__key_map_find(&predictor->slots, user);
    if (slot != PH_NO_NUMBER)
        drop_user(predictor, slot);
}

void ph__pair_predictor_forget_item(struct ph__pair_predictor *predictor, uint64_t item)
{
    for (size_t u = 0; u < predictor->num_users; u++) {
        struct user *user = &predictor->users[u];
        size_t count = 0;
        for (size_t i = 0; i < user->count; i++)
            if (user->items[i] != item) {
                user->items[count] = user->items[i];
                user->scores[count++] = user->scores[i];
            }
        user->count = count;
    }
}

ph_status ph__pair_predictor_create(
    const struct ph__pair_options *options, struct ph__pair_predictor **predictor_out)
{
    struct ph__pair_predictor *predictor = calloc(1, sizeof *predictor);
    if (predictor == NULL)
        return ph__out_of_memory("a predictor of pairs");
    predictor->options = *options;
    *predictor_out = predictor;
    return PH_OK;
}

void ph__pair_predictor_destroy(struct ph__pair_predictor *predictor)
{
    if (predictor == NULL)
        return;
    while (predictor->num_users > 0)
        drop_user(predictor, predictor->num_users - 1);
    ph__key_map_fini(&predictor->slots);
    free(predictor->users);
    free(predictor->pairs);
    free(predictor);
}
