#include "serve/speculation/pair_predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/key_map.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"

enum { SCORE_BINS = 8, STREAK_BINS = 8, WAIT_BINS = 6 };
enum { USERS_AT_ONCE = 64 };  /* before it is asked whether to go on */
#define PRIOR_SHOWN 8.        /* items that the share of all scores counts for */
#define MOST_REQUESTS 64.     /* of a user that are looked ahead to */
#define SESSION_SECONDS 1800. /* a longer wait ends a session */

struct user {
    uint64_t key;
    double first, last; /* seconds of requests */
    double recent;      /* requests, of which half are forgotten every half_seconds */
    size_t count, capacity;
    uint64_t *items;      /* (count) of the last slate */
    uint8_t *bins;        /* (count) of their scores */
    uint32_t *places;     /* (count) in rows */
    uint32_t *streaks;    /* (count) slates in a row that showed the item */
    struct ph__rows rows; /* of the slate as it was shown; empty: none are kept */
    void *profile;
};

struct share {
    double shown, stayed;
};

struct ph__pair_predictor {
    struct ph__pair_options options;
    struct ph__key_map slots;
    struct user *users; /* (num_users) */
    size_t num_users, capacity;
    struct share stays[WAIT_BINS][STREAK_BINS][SCORE_BINS + 1]; /* the last: of all scores */
    double num_requests, num_continued; /* continued: followed by another one in the session */
    double sum_gaps;                    /* seconds between these */
    uint64_t num_rounds;
};

/* ---- the chance to stay ---- */

static uint8_t bin_of_score(float score)
{
    const double odds = log((double)score / (1 - (double)score) + 1e-9);
    return (uint8_t)fmin(fmax((odds + 4) * SCORE_BINS / 8, 0), SCORE_BINS - 1);
}

static size_t bin_of_wait(double seconds)
{
    static const double ends[WAIT_BINS - 1] = {600, 3600, 3 * 3600, 6 * 3600, 12 * 3600};
    size_t bin = 0;
    while (bin + 1 < WAIT_BINS && seconds >= ends[bin])
        bin++;
    return bin;
}

static size_t streak_bin(uint32_t streak)
{
    size_t bin = 0;
    for (uint32_t end = 1; bin + 1 < STREAK_BINS && streak > end; end += (uint32_t)bin)
        bin++;
    return bin;
}

/* Returns the share that stayed: drawn towards that of all scores while few were seen, and this one towards
 * one half. */
static double stay_of(
    const struct ph__pair_predictor *predictor, size_t score_bin, uint32_t streak, size_t wait_bin)
{
    const struct share *shares = predictor->stays[wait_bin][streak_bin(streak)];
    const struct share *all = &shares[SCORE_BINS], *own = &shares[score_bin];
    const double prior = (all->stayed + 1) / (all->shown + 2);
    return (own->stayed + PRIOR_SHOWN * prior) / (own->shown + PRIOR_SHOWN);
}

/* Returns the place of an item in a slate, `count` if it is not there. */
static size_t place_of(const uint64_t *items, size_t count, uint64_t item)
{
    size_t place = 0;
    while (place < count && items[place] != item)
        place++;
    return place;
}

static void count_stays(
    struct ph__pair_predictor *predictor, const struct user *user, double wait, const struct ph__slate *slate)
{
    for (size_t i = 0; i < user->count; i++) {
        struct share *shares = predictor->stays[bin_of_wait(wait)][streak_bin(user->streaks[i])];
        const bool stays = place_of(slate->items, slate->count, user->items[i]) < slate->count;
        struct share *const both[] = {&shares[user->bins[i]], &shares[SCORE_BINS]};
        for (size_t k = 0; k < 2; k++) {
            both[k]->shown++;
            both[k]->stayed += stays;
        }
    }
}

/* ---- users ---- */

static void drop_user(struct ph__pair_predictor *predictor, size_t slot)
{
    struct user *user = &predictor->users[slot], *last = &predictor->users[--predictor->num_users];
    ph__key_map_remove(&predictor->slots, user->key);
    free(user->items);
    free(user->bins);
    free(user->places);
    free(user->streaks);
    free(user->profile);
    ph__rows_fini(&user->rows);
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
    void *profile = calloc(1, predictor->options.profile_bytes + 1);
    if (profile == NULL)
        return ph__out_of_memory("a user");
    const ph_status status = ph__key_map_add(&predictor->slots, key, (uint32_t)predictor->num_users);
    if (status != PH_OK) {
        free(profile);
        return status;
    }
    *user_out = &predictor->users[predictor->num_users++];
    **user_out = (struct user){.key = key, .first = now, .last = -INFINITY, .profile = profile};
    return PH_OK;
}

/* Makes room for a slate, and moves its streaks on from those of the former one. */
static ph_status take_streaks(struct user *user, const struct ph__slate *slate)
{
    uint32_t *streaks = calloc(slate->count + 1, sizeof *streaks);
    if (streaks == NULL)
        return ph__out_of_memory("a slate");
    for (size_t i = 0; i < slate->count; i++) {
        const size_t place = place_of(user->items, user->count, slate->items[i]);
        streaks[i] = place < user->count ? user->streaks[place] + 1 : 1;
    }
    free(user->streaks);
    user->streaks = streaks;
    return PH_OK;
}

static ph_status reserve_slate(struct user *user, size_t count)
{
    size_t bins = user->capacity, places = user->capacity;
    PH_TRY(ph__array_reserve((void **)&user->bins, &bins, count, sizeof *user->bins));
    PH_TRY(ph__array_reserve((void **)&user->places, &places, count, sizeof *user->places));
    PH_TRY(ph__array_reserve((void **)&user->items, &user->capacity, count, sizeof *user->items));
    user->capacity = ph__min(user->capacity, ph__min(bins, places));
    return PH_OK;
}

static ph_status take_slate(struct user *user, const struct ph__slate *slate)
{
    PH_TRY(take_streaks(user, slate));
    user->count = user->rows.num_rows = 0;
    PH_TRY(reserve_slate(user, slate->count));
    for (size_t i = 0; i < slate->count; i++) {
        if (slate->rows != NULL)
            PH_TRY(ph__rows_append(&user->rows, slate->rows, i));
        user->items[i] = slate->items[i];
        user->bins[i] = bin_of_score(slate->scores[i]);
        user->places[i] = (uint32_t)i;
    }
    user->count = slate->count;
    return PH_OK;
}

ph_status ph__pair_predictor_asked(
    struct ph__pair_predictor *predictor, double now, const struct ph__slate *slate)
{
    struct user *user;
    PH_TRY(find_user(predictor, now, slate->user, &user));
    const double wait = now - user->last;
    if (user->last > -INFINITY) {
        predictor->num_requests++;
        predictor->num_continued += wait < SESSION_SECONDS;
        predictor->sum_gaps += wait < SESSION_SECONDS ? wait : 0;
        count_stays(predictor, user, wait, slate);
        user->recent *= exp2(-wait / predictor->options.half_seconds);
    }
    user->recent++;
    user->last = now;
    return take_slate(user, slate);
}

/* ---- choosing ---- */

/* Returns the user's requests a second: those remembered, over the time that is. */
static double rate_of(const struct ph__pair_predictor *predictor, const struct user *user, double now)
{
    const double half = predictor->options.half_seconds;
    const double seen = now - user->first + half / 8; /* a single request is no rate */
    return user->recent * exp2(-(now - user->last) / half) / (half / M_LN2 * -expm1(-seen * M_LN2 / half));
}

/* Returns the chance that the session of the user's last request goes on: waits within one are exponential.
 */
static double chance_of_session(
    const struct ph__pair_predictor *predictor, const struct user *user, double now)
{
    const double share = (predictor->num_continued + 1) / (predictor->num_requests + 2);
    const double gap = (predictor->sum_gaps + 60) / (predictor->num_continued + 1);
    const double waits = share * exp(-(now - user->last) / gap);
    return waits / (waits + 1 - share);
}

/* Returns how many requests the user is expected to make while a row lives. */
static double requests_of(const struct ph__pair_predictor *predictor, const struct user *user, double now)
{
    const double share = (predictor->num_continued + 1) / (predictor->num_requests + 2);
    return rate_of(predictor, user, now) * predictor->options.seconds +
           chance_of_session(predictor, user, now) / (1 - share);
}

/* Expectations that all items of a user share. */
struct forecast {
    double rate;     /* requests a second */
    double requests; /* while a row lives */
    size_t wait_bin; /* of the time until the next one */
};

static struct forecast forecast_of(
    const struct ph__pair_predictor *predictor, const struct user *user, double now)
{
    const double rate = rate_of(predictor, user, now), waited = now - user->last;
    const bool is_in_session = chance_of_session(predictor, user, now) > .5;
    return (struct forecast){
        rate, requests_of(predictor, user, now), bin_of_wait(is_in_session ? 0 : fmax(waited, 1 / rate))};
}

static double asks_of(const struct ph__pair_predictor *predictor, const struct user *user, size_t place,
    const struct forecast *forecast)
{
    const size_t bin = user->bins[place];
    const uint32_t streak = user->streaks[place];
    const double requests = fmin(forecast->requests, MOST_REQUESTS);
    double shown = stay_of(predictor, bin, streak, forecast->wait_bin), sum = 0;
    for (uint32_t k = 0; k < requests; k++) {
        sum += shown * fmin(requests - k, 1);
        shown *= stay_of(predictor, bin, streak + k + 1, 0);
    }
    return sum;
}

static double worth(const struct ph__pair_predictor *predictor, const struct user *user, double now,
    size_t place, const struct forecast *forecast)
{
    const struct ph__pair_options *options = &predictor->options;
    const struct ph__rng_key key = {
        .seed = options->seed, .step = predictor->num_rounds, .stream = user->key};
    switch (options->policy) {
    case PH_PAIRS_RANDOM:
        return ph__rng_uniform(&key, user->items[place], 0);
    case PH_PAIRS_LATEST:
        return user->last;
    case PH_PAIRS_FREQUENT:
        return forecast->rate;
    case PH_PAIRS_KNOWN:
        return options->known_asks(options->known_context, now, user->key, user->items[place]);
    case PH_PAIRS_EXPECTED:
        break;
    }
    return asks_of(predictor, user, place, forecast);
}

/* Orders pairs: the better one first. */
static bool is_better(const struct ph__pair *left, const struct ph__pair *right)
{
    if (left->asks != right->asks)
        return left->asks > right->asks;
    if (left->user != right->user)
        return left->user < right->user;
    return left->place < right->place;
}

/* Puts a pair at the top of a heap whose top is the worst, and lets it sink to its place. */
static void sink(struct ph__pair *heap, size_t count, struct ph__pair pair)
{
    size_t place = 0;
    for (size_t child = 1; child < count; child = 2 * place + 1) {
        if (child + 1 < count && is_better(&heap[child], &heap[child + 1]))
            child++;
        if (!is_better(&pair, &heap[child]))
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = pair;
}

static void rise(struct ph__pair *heap, size_t place, struct ph__pair pair)
{
    while (place > 0 && is_better(&heap[(place - 1) / 2], &pair)) {
        heap[place] = heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    heap[place] = pair;
}

static int users_together(const void *a, const void *b)
{
    const struct ph__pair *left = a, *right = b;
    if (left->user != right->user)
        return left->user < right->user ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

/* The best pairs so far: a heap whose top is the worst of them. */
struct best {
    struct ph__pair *pairs;
    size_t count;
    double least;
};

static void look_at_user(const struct ph__pair_predictor *predictor, const struct user *user,
    const struct ph__pair_choice *choice, struct best *best)
{
    const struct forecast forecast = forecast_of(predictor, user, choice->now);
    if (predictor->options.policy == PH_PAIRS_EXPECTED && forecast.requests <= best->least)
        return; /* no item is asked for more often than there are requests */
    for (size_t place = 0; place < user->count && user->rows.num_rows > 0; place++) {
        const struct ph__pair pair = {
            user->key, user->items[place], place, worth(predictor, user, choice->now, place, &forecast)};
        if (pair.asks <= best->least || (best->count == choice->most && !is_better(&pair, &best->pairs[0])) ||
            choice->is_fresh(choice->fresh_context, pair.user, pair.item))
            continue;
        if (best->count < choice->most)
            rise(best->pairs, best->count++, pair);
        else
            sink(best->pairs, best->count, pair);
    }
}

size_t ph__pair_predictor_choose(
    struct ph__pair_predictor *predictor, const struct ph__pair_choice *choice, struct ph__pair *pairs_out)
{
    const enum ph__pair_policy policy = predictor->options.policy;
    const bool counts_asks = policy == PH_PAIRS_EXPECTED || policy == PH_PAIRS_KNOWN;
    struct best best = {pairs_out, 0, counts_asks ? choice->least : -INFINITY};
    predictor->num_rounds++;
    for (size_t u = 0; u < predictor->num_users && choice->most > 0; u++) {
        if (u % USERS_AT_ONCE == 0 && choice->must_go_on != NULL && !choice->must_go_on(choice->context))
            break;
        look_at_user(predictor, &predictor->users[u], choice, &best);
    }
    const size_t count = best.count;
    if (count > 0)
        qsort(pairs_out, count, sizeof *pairs_out, users_together);
    return count;
}

ph_status ph__pair_predictor_row(
    const struct ph__pair_predictor *predictor, const struct ph__pair *pair, struct ph__rows *rows)
{
    const struct user *user = &predictor->users[ph__pair_predictor_find(predictor, pair->user)];
    return ph__rows_append(rows, &user->rows, user->places[pair->place]);
}

/* ---- the users ---- */

size_t ph__pair_predictor_num_users(const struct ph__pair_predictor *predictor)
{
    return predictor->num_users;
}

struct ph__pair_user ph__pair_predictor_user(const struct ph__pair_predictor *predictor, size_t index)
{
    const struct user *user = &predictor->users[index];
    return (struct ph__pair_user){user->key, user->count, user->items, user->profile};
}

size_t ph__pair_predictor_find(const struct ph__pair_predictor *predictor, uint64_t user)
{
    const uint32_t slot = ph__key_map_find(&predictor->slots, user);
    return slot != PH_NO_NUMBER ? slot : SIZE_MAX;
}

/* ---- the whole ---- */

void ph__pair_predictor_forget_user(struct ph__pair_predictor *predictor, uint64_t user)
{
    const size_t slot = ph__pair_predictor_find(predictor, user);
    if (slot != SIZE_MAX)
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
                user->places[count] = user->places[i];
                user->streaks[count] = user->streaks[i];
                user->bins[count++] = user->bins[i];
            }
        user->count = count;
    }
}

void ph__pair_predictor_forget_rows(struct ph__pair_predictor *predictor)
{
    for (size_t u = 0; u < predictor->num_users; u++)
        predictor->users[u].rows.num_rows = 0;
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
    free(predictor);
}
