/* The ladder, its budget and its end: what is looked up agrees with what the teacher's files say. */
#include "serve/speculation/speculation.h"

#include <math.h>
#include <pthread.h>

#include "unit/serve/speculation/pair_folder.h"

enum { ITEMS = 4, WIDTH = PAIR_DIM + 4 };
#define LIFE 600.

static struct ph_speculation_settings settings_of(const char *folder)
{
    return (struct ph_speculation_settings){.teacher = folder,
        .user = "user",
        .item = "shop",
        .seconds = LIFE,
        .rows_per_second = 1,
        .cache_bytes = 1 << 20,
        .max_users = 100,
        .num_neighbours = 2,
        .feature_log = ""};
}

static const char *pair_folder(const char *kind)
{
    const char *folder = make_run_folder(kind);
    fit_pair_encoder(folder, PAIR_DIM);
    return folder;
}

static struct ph__speculation *create(const struct ph_speculation_settings *settings)
{
    struct ph__speculation *speculation = NULL;
    assert_ok(ph__speculation_create(settings, NULL, &speculation));
    return speculation;
}

/* ---- requests ---- */

struct pairs_request {
    struct ph__request base;
    struct ph__speculation *speculation;
    const struct ph_cell *cells;
};

static ph_status encode(struct ph__request *base, struct ph__context *context, size_t row)
{
    const struct pairs_request *request = (const struct pairs_request *)base;
    return ph__inputs_encode(&ph__speculation_teacher(request->speculation)->session->inputs, &context->row,
        request->cells + row * PAIR_COLUMNS, &context->rows);
}

/* Shows items first ... first + ITEMS - 1 to a user. */
static void ask(struct ph__speculation *speculation, double now, uint64_t user, uint64_t first)
{
    struct ph_cell cells[ITEMS][PAIR_COLUMNS];
    uint64_t items[ITEMS], users[ITEMS];
    float scores[ITEMS];
    struct ph_cell user_cells[ITEMS];
    struct pairs_request request = {{ITEMS, encode}, speculation, &cells[0][0]};
    for (uint64_t i = 0; i < ITEMS; i++) {
        fill_pair(cells[i], (int64_t)user, (int64_t)(first + i));
        users[i] = user;
        items[i] = first + i;
        scores[i] = .5f;
        user_cells[i] = cells[i][2];
    }
    const struct ph__asked asked = {ITEMS, users, items, scores, user_cells, &request.base};
    assert_ok(ph__speculation_asked(speculation, now, &asked));
}

static float features[ITEMS][WIDTH];
static uint8_t rungs[ITEMS];

static void look_up(struct ph__speculation *speculation, double now, uint64_t user, uint64_t first)
{
    uint64_t users[ITEMS], items[ITEMS];
    for (uint64_t i = 0; i < ITEMS; i++) {
        users[i] = user;
        items[i] = first + i;
    }
    ph__pair_cache_look_up(
        ph__speculation_cache(speculation), now, ITEMS, users, items, &features[0][0], rungs);
}

static void assert_rungs(enum ph__rung a, enum ph__rung b, enum ph__rung c, enum ph__rung d)
{
    const uint8_t wanted[ITEMS] = {(uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)d};
    assert_memory_equal(rungs, wanted, sizeof wanted);
}

/* Computes what is wanted of users in their order, without a price. */
static void work(struct ph__speculation *speculation, double now)
{
    assert_ok(ph__speculation_work(speculation, now, NULL, NULL));
}

static void expected_of(const char *folder, uint64_t user, uint64_t first, float e[ITEMS][PAIR_DIM])
{
    struct ph_cell cells[ITEMS][PAIR_COLUMNS];
    for (uint64_t i = 0; i < ITEMS; i++)
        fill_pair(cells[i], (int64_t)user, (int64_t)(first + i));
    encode_pairs(folder, ITEMS, &cells[0][0], &e[0][0]);
}

static void assert_numbers(const float *actual, const float *expected)
{
    for (size_t k = 0; k < PAIR_DIM; k++)
        assert_near((double)actual[k], (double)expected[k], 2e-3, 2e-3); /* halves */
}

/* ---- tests ---- */

static void a_pair_is_found_as_the_teacher_says_it(void **state)
{
    (void)state;
    const char *folder = pair_folder("dnn");
    const struct ph_speculation_settings settings = settings_of(folder);
    struct ph__speculation *speculation = create(&settings);
    float e[ITEMS][PAIR_DIM];
    expected_of(folder, 3, 10, e);
    ask(speculation, 0, 3, 10);
    look_up(speculation, 1, 3, 10);
    assert_rungs(PH_RUNG_none, PH_RUNG_none, PH_RUNG_none, PH_RUNG_none);
    for (size_t k = 0; k < WIDTH; k++)
        assert_true(features[0][k] == 0);
    work(speculation, 100);
    look_up(speculation, 220, 3, 10);
    assert_rungs(PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair);
    for (size_t i = 0; i < ITEMS; i++) {
        assert_numbers(features[i], e[i]);
        assert_true(
            features[i][PAIR_DIM] == 1 && features[i][PAIR_DIM + 1] == 0 && features[i][PAIR_DIM + 2] == 0);
        assert_near((double)features[i][PAIR_DIM + 3], 120 / LIFE, 1e-6, 0);
    }
    ph__speculation_destroy(speculation);
}

static void the_mean_of_a_users_pairs_stands_in(void **state)
{
    (void)state;
    const char *folder = pair_folder("dnn");
    const struct ph_speculation_settings settings = settings_of(folder);
    struct ph__speculation *speculation = create(&settings);
    float e[ITEMS][PAIR_DIM], mean[PAIR_DIM] = {0};
    expected_of(folder, 3, 10, e);
    for (size_t i = 0; i < ITEMS; i++)
        for (size_t k = 0; k < PAIR_DIM; k++)
            mean[k] += e[i][k] / ITEMS;
    ask(speculation, 0, 3, 10);
    work(speculation, 100);
    look_up(speculation, 100, 3, 12);
    assert_rungs(PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_user, PH_RUNG_user);
    assert_numbers(features[2], mean);
    assert_true(features[2][PAIR_DIM] == 0 && features[2][PAIR_DIM + 1] == 1);
    look_up(speculation, 100, 4, 10); /* another user has nothing */
    assert_rungs(PH_RUNG_none, PH_RUNG_none, PH_RUNG_none, PH_RUNG_none);
    ph__speculation_destroy(speculation);
}

/* Users 0 to 5 have pairs; user 6 is known and has none: the two who are most alike stand in. */
static void similar_users_stand_in_for_one_who_has_nothing(void **state)
{
    (void)state;
    const char *folder = pair_folder("dnn");
    struct ph_speculation_settings settings = settings_of(folder);
    struct ph__speculation *speculation;
    struct ph_session *session = NULL;
    enum { USERS = 7 };
    float means[USERS][PAIR_DIM] = {{0}}, embeddings[USERS][16], mean[PAIR_DIM];
    struct ph_cell cells[USERS][PAIR_COLUMNS], users[USERS];
    size_t nearest[2] = {0, 0};
    double likeness[USERS];
    settings.rows_per_second = (USERS - 1) * ITEMS / 100.;
    speculation = create(&settings);
    assert_ok(ph_session_open(folder, NULL, &session));
    const size_t dim = ph_session_embedding_dim(session, "user");
    assert_true(dim > 0 && dim <= 16);
    for (uint64_t user = 0; user < USERS; user++) {
        float e[ITEMS][PAIR_DIM];
        expected_of(folder, user, 5 * user, e);
        for (size_t i = 0; i < ITEMS; i++)
            for (size_t k = 0; k < PAIR_DIM; k++)
                means[user][k] += e[i][k] / ITEMS;
        fill_pair(cells[user], (int64_t)user, 0);
        users[user] = cells[user][2];
        assert_ok(ph_session_embed(session, "user", 1, &users[user], embeddings[user]));
        ask(speculation, 0, user, 5 * user);
    }
    work(speculation, 100); /* all are worth the same, so the last user's pairs are left out */
    for (size_t user = 0; user < USERS - 1; user++) {
        double product = 0, square = 0;
        for (size_t k = 0; k < dim; k++) {
            product += (double)(embeddings[user][k] * embeddings[USERS - 1][k]);
            square += (double)(embeddings[user][k] * embeddings[user][k]);
        }
        likeness[user] = product / sqrt(square);
    }
    for (size_t i = 0; i < 2; i++) {
        for (size_t user = 0; user < USERS - 1; user++)
            if ((i == 0 || user != nearest[0]) &&
                (likeness[user] > likeness[nearest[i]] || (i == 1 && nearest[1] == nearest[0])))
                nearest[i] = user;
    }
    for (size_t k = 0; k < PAIR_DIM; k++)
        mean[k] = (means[nearest[0]][k] + means[nearest[1]][k]) / 2;
    look_up(speculation, 100, USERS - 1, 44);
    ph_session_close(session);
    assert_rungs(PH_RUNG_near, PH_RUNG_near, PH_RUNG_near, PH_RUNG_near);
    assert_numbers(features[0], mean);
    assert_true(features[0][PAIR_DIM + 2] == 1);
    ph__speculation_destroy(speculation);
}

static void rows_end_with_their_life(void **state)
{
    (void)state;
    const struct ph_speculation_settings settings = settings_of(pair_folder("dnn"));
    struct ph__speculation *speculation = create(&settings);
    struct ph__speculation_figures figures;
    ask(speculation, 0, 3, 10);
    work(speculation, 100);
    look_up(speculation, 100 + LIFE, 3, 10);
    assert_rungs(PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair);
    look_up(speculation, 102 + LIFE, 3, 10);
    assert_rungs(PH_RUNG_none, PH_RUNG_none, PH_RUNG_none, PH_RUNG_none);
    ph__speculation_figures(speculation, &figures);
    assert_int_equal(figures.rungs[PH_RUNG_pair], ITEMS);
    assert_int_equal(figures.rungs[PH_RUNG_none], ITEMS);
    assert_int_equal(figures.stale, ITEMS + 1); /* and the user's mean */
    ph__speculation_destroy(speculation);
}

static void no_more_rows_are_computed_than_the_budget_has(void **state)
{
    (void)state;
    struct ph_speculation_settings settings = settings_of(pair_folder("dnn"));
    struct ph__speculation_figures figures;
    settings.rows_per_second = .1;
    struct ph__speculation *speculation = create(&settings);
    for (uint64_t user = 0; user < 20; user++)
        ask(speculation, 0, user, user);
    for (double now = 0; now <= 200; now += 5)
        work(speculation, now);
    ph__speculation_figures(speculation, &figures);
    assert_true(figures.teacher_rows <= 20 && figures.teacher_rows >= 15);
    ph__speculation_destroy(speculation);
}

/* Looks at the folder, and takes the teacher if it is another one. */
static ph_status refresh(struct ph__speculation *speculation, bool *has_changed_out)
{
    struct ph__pair_teacher teacher;
    *has_changed_out = false;
    PH_TRY(
        ph__speculation_find_teacher(speculation, ph__speculation_teacher(speculation)->version, &teacher));
    if (teacher.session != NULL)
        *has_changed_out = ph__speculation_take_teacher(speculation, &teacher);
    ph__pair_teacher_close(&teacher);
    return PH_OK;
}

/* The teacher's folder is replaced: rows of the former one are not found any more. They are still there, so
 * that they would be found if the key did not name the teacher. */
static void another_teachers_rows_are_not_served(void **state)
{
    (void)state;
    char folder[512], command[1200];
    snprintf(folder, sizeof folder, "%s", pair_folder("dnn"));
    const struct ph_speculation_settings settings = settings_of(folder);
    struct ph__speculation *speculation = create(&settings);
    struct ph__speculation_figures figures;
    float e[ITEMS][PAIR_DIM], former[WIDTH];
    bool has_changed;
    ask(speculation, 0, 3, 10);
    work(speculation, 100);
    look_up(speculation, 100, 3, 10);
    assert_rungs(PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair);
    memcpy(former, features[0], sizeof former);
    assert_ok(refresh(speculation, &has_changed));
    assert_false(has_changed);

    /* Weights alone change: the encoder is of the former ones, so the folder is refused, and all goes on. */
    const char *other = make_run_folder("deepfm");
    snprintf(command, sizeof command, "cp %s/* %s/", other, folder);
    assert_int_equal(system(command), 0);
    assert_fails(refresh(speculation, &has_changed), PH_ERROR_CHECKPOINT, "fit it anew");
    look_up(speculation, 100, 3, 10);
    assert_rungs(PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair);

    fit_pair_encoder(folder, PAIR_DIM);
    assert_ok(refresh(speculation, &has_changed));
    assert_true(has_changed);
    look_up(speculation, 100, 3, 10);
    assert_rungs(PH_RUNG_none, PH_RUNG_none, PH_RUNG_none, PH_RUNG_none);
    ph__speculation_figures(speculation, &figures);
    assert_true(figures.num_rows >= ITEMS);

    ask(speculation, 101, 3, 10);
    work(speculation, 200);
    look_up(speculation, 200, 3, 10);
    assert_rungs(PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair);
    expected_of(folder, 3, 10, e);
    assert_numbers(features[0], e[0]);
    double difference = 0;
    for (size_t k = 0; k < PAIR_DIM; k++)
        difference += fabs((double)(features[0][k] - former[k]));
    assert_true(difference > .05); /* what the former one said would fail this test */

    fit_pair_encoder(folder, PAIR_DIM - 1);
    assert_fails(refresh(speculation, &has_changed), PH_ERROR_CHECKPOINT,
        "4 numbers of a pair, but served models read 5");
    ph__speculation_destroy(speculation);
}

static void what_is_forgotten_is_not_found(void **state)
{
    (void)state;
    const struct ph_speculation_settings settings = settings_of(pair_folder("dnn"));
    struct ph__speculation *speculation = create(&settings);
    ask(speculation, 0, 3, 10);
    ask(speculation, 0, 4, 10);
    work(speculation, 100);
    ph__speculation_forget_user(speculation, 3);
    look_up(speculation, 100, 3, 10);
    assert_rungs(PH_RUNG_none, PH_RUNG_none, PH_RUNG_none, PH_RUNG_none);
    look_up(speculation, 100, 4, 10);
    assert_rungs(PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair, PH_RUNG_pair);
    float with_item[PAIR_DIM];
    look_up(speculation, 100, 4, 13);
    memcpy(with_item, features[1], sizeof with_item);
    ph__speculation_forget_item(speculation, 11);
    look_up(speculation, 100, 4, 10);
    assert_rungs(PH_RUNG_pair, PH_RUNG_user, PH_RUNG_pair, PH_RUNG_pair);
    assert_memory_not_equal(features[1], with_item, sizeof with_item); /* the mean has lost it, too */
    work(speculation, 200);                                            /* nothing brings it back */
    look_up(speculation, 200, 4, 10);
    assert_rungs(PH_RUNG_pair, PH_RUNG_user, PH_RUNG_pair, PH_RUNG_pair);
    ph__speculation_destroy(speculation);
}

static void *work_elsewhere(void *speculation)
{
    work(speculation, 200);
    return NULL;
}

static void rows_of_other_threads_are_counted_apart(void **state)
{
    (void)state;
    const struct ph_speculation_settings settings = settings_of(pair_folder("dnn"));
    struct ph__speculation *speculation = create(&settings);
    struct ph__speculation_figures figures;
    pthread_t thread;
    ph__speculation_own(speculation);
    ask(speculation, 0, 3, 10);
    work(speculation, 100);
    ph__speculation_figures(speculation, &figures);
    assert_int_equal(figures.foreign_rows, 0);
    ask(speculation, 100, 4, 10);
    assert_int_equal(pthread_create(&thread, NULL, work_elsewhere, speculation), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    ph__speculation_figures(speculation, &figures);
    assert_int_equal(figures.foreign_rows, ITEMS);
    ph__speculation_destroy(speculation);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct ph__speculation *speculation = NULL;
    struct ph_speculation_settings settings = settings_of(make_run_folder("lr"));
    assert_fails(ph__speculation_create(&settings, NULL, &speculation), PH_ERROR_CHECKPOINT, "model");
    settings = settings_of(make_run_folder("dnn"));
    char path[600];
    snprintf(path, sizeof path, "%s/" PH_PAIR_ENCODER_FILE, settings.teacher);
    (void)remove(path);
    assert_fails(
        ph__speculation_create(&settings, NULL, &speculation), PH_ERROR_CHECKPOINT, PH_PAIR_ENCODER_FILE);
    settings = settings_of(pair_folder("dnn"));
    settings.cache_bytes = (uint64_t)1 << 50;
    assert_fails(ph__speculation_create(&settings, NULL, &speculation), PH_ERROR_MEMORY, "does not fit");
    assert_null(speculation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_is_found_as_the_teacher_says_it),
        cmocka_unit_test(the_mean_of_a_users_pairs_stands_in),
        cmocka_unit_test(similar_users_stand_in_for_one_who_has_nothing),
        cmocka_unit_test(rows_end_with_their_life),
        cmocka_unit_test(no_more_rows_are_computed_than_the_budget_has),
        cmocka_unit_test(another_teachers_rows_are_not_served),
        cmocka_unit_test(what_is_forgotten_is_not_found),
        cmocka_unit_test(rows_of_other_threads_are_counted_apart),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
