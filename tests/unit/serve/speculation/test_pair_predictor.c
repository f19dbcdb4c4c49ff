#include "serve/speculation/pair_predictor.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/key_map.h"
#include "base/rng.h"
#include "support/test_support.h"

enum { USERS = 200, ITEMS = 400, SLATE = 16, REQUESTS = 2500, PAIRS = 200 };
#define SECONDS_ALIVE 7200.

/* Users of unlike rates; items stay by a chance that their score says. */
struct stream {
    struct ph__rng_sequence random;
    double now, rates[USERS], all_rates;
    uint64_t slates[USERS][SLATE];
    float scores[USERS][SLATE];
};

static float score_of(uint64_t user, uint64_t item)
{
    const struct ph__rng_key key = {.seed = 7, .stream = user};
    return (float)(.05 + .9 * ph__rng_uniform(&key, item, 0));
}

static void begin(struct stream *stream)
{
    *stream = (struct stream){.random.key.seed = test_seed()};
    for (size_t user = 0; user < USERS; user++) {
        stream->rates[user] = exp(1.2 * ph__rng_next_normal(&stream->random));
        stream->all_rates += stream->rates[user];
    }
}

static size_t draw_user(struct stream *stream)
{
    double rest = ph__rng_next_uniform(&stream->random) * stream->all_rates;
    size_t user = 0;
    while (user + 1 < USERS && (rest -= stream->rates[user]) > 0)
        user++;
    return user;
}

static size_t request(struct stream *stream)
{
    const size_t user = draw_user(stream);
    stream->now += -30 * log(ph__rng_next_uniform(&stream->random));
    for (size_t i = 0; i < SLATE; i++) {
        if (stream->scores[user][i] == 0 ||
            ph__rng_next_uniform(&stream->random) > (double)stream->scores[user][i])
            stream->slates[user][i] = i * ITEMS + ph__rng_below(&stream->random, ITEMS);
        stream->scores[user][i] = score_of(user, stream->slates[user][i]);
    }
    return user;
}

/* Returns rows of one word each, the row's number. */
static const struct ph__rows *numbered_rows(size_t count)
{
    static uint32_t words[SLATE];
    static size_t starts[SLATE + 1];
    static struct ph__rows rows = {.words = words, .starts = starts};
    for (size_t i = 0; i < count; i++)
        words[i] = (uint32_t)i, starts[i + 1] = i + 1;
    rows.num_rows = count;
    return &rows;
}

struct cache {
    struct ph__key_map births; /* of pairs: the second of their birth */
    double now;
};

static uint64_t pair_key(uint64_t user, uint64_t item)
{
    return ph__hash_bytes((const uint64_t[]){user, item}, 16);
}

static bool is_fresh(void *context, uint64_t user, uint64_t item)
{
    const struct cache *cache = context;
    const uint32_t birth = ph__key_map_find(&cache->births, pair_key(user, item));
    return birth != PH_NO_NUMBER && cache->now - birth < SECONDS_ALIVE;
}

/* Returns the share of pairs asked for that were there, where two pairs are computed after each request. */
static double coverage(enum ph__pair_policy policy)
{
    struct stream *stream = malloc(sizeof *stream);
    const struct ph__pair_options options = {.policy = policy,
        .seconds = SECONDS_ALIVE,
        .half_seconds = 24 * 3600,
        .most_users = USERS,
        .seed = 3};
    struct ph__pair_predictor *predictor;
    struct cache cache = {.births = {0}};
    struct ph__pair pairs[PAIRS];
    double asked = 0, found = 0;
    assert_non_null(stream);
    begin(stream);
    assert_ok(ph__pair_predictor_create(&options, &predictor));
    for (size_t number = 0; number < REQUESTS; number++) {
        const size_t user = request(stream);
        cache.now = stream->now;
        for (size_t i = 0; i < SLATE && number > REQUESTS / 4; i++, asked++)
            found += is_fresh(&cache, user, stream->slates[user][i]);
        const struct ph__slate slate = {
            user, SLATE, stream->slates[user], stream->scores[user], numbered_rows(SLATE)};
        assert_ok(ph__pair_predictor_asked(predictor, stream->now, &slate));
        const struct ph__pair_choice choice = {
            .now = stream->now, .most = 2, .is_fresh = is_fresh, .fresh_context = &cache};
        const size_t count = ph__pair_predictor_choose(predictor, &choice, pairs);
        for (size_t i = 0; i < count; i++) {
            const uint64_t key = pair_key(pairs[i].user, pairs[i].item);
            ph__key_map_remove(&cache.births, key);
            assert_ok(ph__key_map_add(&cache.births, key, (uint32_t)stream->now));
        }
    }
    ph__pair_predictor_destroy(predictor);
    ph__key_map_fini(&cache.births);
    free(stream);
    return found / asked;
}

static void expected_asks_cover_more_than_other_orders(void **state)
{
    (void)state;
    const double expected = coverage(PH_PAIRS_EXPECTED), random = coverage(PH_PAIRS_RANDOM),
                 latest = coverage(PH_PAIRS_LATEST), frequent = coverage(PH_PAIRS_FREQUENT);
    print_message("coverage: expected %.4f, random %.4f, latest %.4f, frequent %.4f\n", expected, random,
        latest, frequent);
    assert_true(expected > 1.3 * random);
    assert_true(expected > 1.05 * fmax(latest, frequent));
}

static bool is_never_fresh(void *context, uint64_t user, uint64_t item)
{
    (void)context;
    (void)user;
    (void)item;
    return false;
}

static void pairs_that_are_forgotten_are_not_chosen(void **state)
{
    (void)state;
    const struct ph__pair_options options = {
        .policy = PH_PAIRS_EXPECTED, .seconds = 3600, .half_seconds = 3600, .most_users = 3};
    const uint64_t items[] = {1, 2, 3};
    const float scores[] = {.5f, .6f, .7f};
    const struct ph__pair_choice choice = {.now = 60, .most = PAIRS, .is_fresh = is_never_fresh};
    struct ph__pair_predictor *predictor;
    struct ph__pair pairs[PAIRS];
    assert_ok(ph__pair_predictor_create(&options, &predictor));
    for (uint64_t user = 0; user < 5; user++)
        assert_ok(ph__pair_predictor_asked(
            predictor, 10 * (double)user, &(struct ph__slate){user, 3, items, scores, numbered_rows(3)}));
    assert_int_equal(ph__pair_predictor_choose(predictor, &choice, pairs), 9);
    assert_int_equal(pairs[0].user, 2); /* the first two were the oldest */
    ph__pair_predictor_forget_user(predictor, 3);
    ph__pair_predictor_forget_item(predictor, 2);
    const size_t count = ph__pair_predictor_choose(predictor, &choice, pairs);
    assert_int_equal(count, 4);
    struct ph__rows rows = {.num_rows = 0};
    for (size_t i = 0; i < count; i++) {
        assert_true(pairs[i].user != 3 && pairs[i].item != 2);
        assert_ok(ph__pair_predictor_row(predictor, &pairs[i], &rows));
        assert_int_equal(rows.words[i], pairs[i].item - 1);
    }
    ph__rows_fini(&rows);
    ph__pair_predictor_forget_rows(predictor);
    assert_int_equal(ph__pair_predictor_choose(predictor, &choice, pairs), 0);
    ph__pair_predictor_destroy(predictor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_asks_cover_more_than_other_orders),
        cmocka_unit_test(pairs_that_are_forgotten_are_not_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
