/* A server whose model reads what a foundation model said of pairs: what it answers, what reaches the cache,
 * and what becomes of it when the worker and the foundation model go. */
#include "unit/serve/server/scoring_server_case.h"

#include <math.h>

#include "unit/serve/speculation/pair_folder.h"

enum { SHOPS = 3 };

static char student[512], teacher[512], feature_log[600];

/* A student that reads user, shop and the columns of pairs. */
static void make_student(void)
{
    char text[2048], row[400];
    int length = 0;
    length +=
        snprintf(text, sizeof text, "label,user,shop,fm_1,fm_2,fm_3,fm_4,fm_5,fm_pair,fm_user,fm_age\n");
    for (int i = 0; i < 8; i++) {
        snprintf(row, sizeof row, "%d,u%d,%d,0,0,0,0,0,0,0,0\n", i % 2, i, i);
        length += snprintf(text + length, sizeof text - (size_t)length, "%s", row);
    }
    const char *data = test_write_file("student.csv", text);
    snprintf(text, sizeof text,
        "seed: 3\ntrain: {batch_size: 64}\ndata:\n  train: %s\n  fields:\n    - {name: label, kind: label}\n"
        "    - {name: user, kind: id, encoding: hash, rows: 50}\n"
        "    - {name: shop, kind: id, encoding: hash, rows: 50}\n    - {name: \"fm_*\", kind: dense}\n"
        "model: {kind: dnn, embedding_dim: 4, embedding_init_std: 0.3, hidden_units: [16]}\n",
        data);
    snprintf(student, sizeof student, "%s", make_folder("student", text));
}

static void write_speculation(const char *more)
{
    char path[1200], text[2400];
    snprintf(path, sizeof path, "%s/ads/serve.yaml", repository);
    snprintf(text, sizeof text,
        "max_batch: 64\nspeculation:\n  teacher: %s\n  item: shop\n  seconds: 3600\n  rows_per_second: 1000\n"
        "  cache_bytes: 1048576\n%s",
        teacher, more);
    test_write_text(path, text);
}

static int make_all(void **state)
{
    (void)state;
    snprintf(teacher, sizeof teacher, "%s", make_run_folder("dnn"));
    fit_pair_encoder(teacher, PAIR_DIM);
    make_student();
    snprintf(repository, sizeof repository, "%s", test_fresh_folder());
    snprintf(feature_log, sizeof feature_log, "%s/features.tsv", test_folder());
    put_version(student, repository, "ads", 3);
    write_speculation("");
    return 0;
}

/* ---- requests: a user with shops 0 to SHOPS - 1 ---- */

#define TEACHER_INPUTS                                                                           \
    ",{\"name\":\"price\",\"datatype\":\"INT64\",\"shape\":[3],\"data\":[%d,%d,%d]}"             \
    ",{\"name\":\"clicks\",\"datatype\":\"INT64\",\"shape\":[3],\"data\":[%d,%d,%d]}"            \
    ",{\"name\":\"city\",\"datatype\":\"INT64\",\"shape\":[3],\"data\":[%d,%d,%d]}"              \
    ",{\"name\":\"topics__values\",\"datatype\":\"INT64\",\"shape\":[6],\"data\":[3,7,3,7,3,7]}" \
    ",{\"name\":\"topics__offsets\",\"datatype\":\"INT32\",\"shape\":[4],\"data\":[0,2,4,6]}"    \
    ",{\"name\":\"seen__values\",\"datatype\":\"INT64\",\"shape\":[6],\"data\":[3,7,3,7,3,7]}"   \
    ",{\"name\":\"seen__offsets\",\"datatype\":\"INT32\",\"shape\":[4],\"data\":[0,2,4,6]}"

static void write_request(char *text, size_t size, int user, const char *more)
{
    const int base = user * 7, a = base % 40, b = (base + 1) % 40, c = (base + 2) % 40;
    const int length = snprintf(text, size,
        "{\"id\":\"r%d\",\"inputs\":[{\"name\":\"user\",\"datatype\":\"BYTES\",\"shape\":[3],\"data\":[\"u%"
        "d\","
        "\"u%d\",\"u%d\"]},{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[3],\"data\":[0,1,2]"
        "}" TEACHER_INPUTS "%s]}",
        user, user, user, user, a, b, c, a, b, c, a, b, c, more);
    assert_true(length > 0 && (size_t)length < size);
}

static void score_user(int user, double probabilities[SHOPS])
{
    char text[4096];
    write_request(text, sizeof text, user, "");
    struct answer answer = ask("POST /v2/models/ads/infer", text);
    if (answer.status != 200)
        fail_msg("%s", answer.text);
    const char *data = strstr(answer.body, "\"data\":[");
    assert_non_null(data);
    assert_int_equal(
        sscanf(data, "\"data\":[%lf,%lf,%lf", &probabilities[0], &probabilities[1], &probabilities[2]),
        SHOPS);
    free(answer.text);
}

/* Scores a user's pairs with these numbers of each, on the given rung; age 0. */
static void expect_scores(int user, const float *e, bool is_pair, double probabilities[SHOPS])
{
    struct ph_session *session = NULL;
    struct ph_cell cells[SHOPS][10];
    float scores[SHOPS];
    char name[8];
    snprintf(name, sizeof name, "u%d", user);
    assert_ok(ph_session_open(student, NULL, &session));
    assert_int_equal(ph_session_num_columns(session), 10);
    for (size_t i = 0; i < SHOPS; i++) {
        for (size_t c = 0; c < 10; c++)
            cells[i][c] = (struct ph_cell){.kind = PH_CELL_REAL, .real = 0};
        cells[i][0] = (struct ph_cell){.kind = PH_CELL_TEXT, .text = name, .length = strlen(name)};
        cells[i][1] = (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = (int64_t)i};
        for (size_t k = 0; k < PAIR_DIM && e != NULL; k++)
            cells[i][2 + k].real = (double)e[i * PAIR_DIM + k];
        cells[i][2 + PAIR_DIM].real = is_pair;
    }
    assert_ok(ph_session_score(session, SHOPS, &cells[0][0], scores));
    for (size_t i = 0; i < SHOPS; i++)
        probabilities[i] = (double)scores[i];
    ph_session_close(session);
}

static void expected_numbers(int user, float *e)
{
    struct ph_cell cells[SHOPS][PAIR_COLUMNS];
    static const int64_t list[] = {3, 7};
    for (int64_t i = 0; i < SHOPS; i++) {
        fill_pair(cells[i], user, i);
        for (size_t c = 5; c < PAIR_COLUMNS; c++)
            cells[i][c] = (struct ph_cell){.kind = PH_CELL_INTEGERS, .integers = list, .count = 2};
    }
    encode_pairs(teacher, SHOPS, &cells[0][0], e);
}

/* Tells whether a metric has this value. Waits a moment first: the worker runs only where nobody else does.
 */
static bool has_figure(const char *name, const char *value)
{
    char line[200];
    usleep(2000);
    snprintf(line, sizeof line, "phloem_speculation_%s{model=\"ads\",version=\"3\"} %s\n", name, value);
    return has_metric(line);
}

static bool has_rung(const char *rung, const char *value)
{
    char line[200];
    snprintf(line, sizeof line, "phloem_speculation_lookups{model=\"ads\",version=\"3\",rung=\"%s\"} %s\n",
        rung, value);
    return has_metric(line);
}

static void assert_scores(const double actual[SHOPS], const double expected[SHOPS])
{
    for (size_t i = 0; i < SHOPS; i++)
        assert_near(actual[i], expected[i], 1e-3, 0);
}

/* ---- tests ---- */

static void answers_read_what_the_teacher_said_before(void **state)
{
    (void)state;
    double actual[SHOPS], expected[SHOPS], without[SHOPS];
    float e[SHOPS * PAIR_DIM];
    start();
    score_user(3, actual);
    expect_scores(3, NULL, false, without);
    assert_scores(actual, without);
    await(has_figure("teacher_rows", "3"));
    score_user(3, actual);
    expected_numbers(3, e);
    expect_scores(3, e, true, expected);
    assert_scores(actual, expected);
    double difference = 0;
    for (size_t i = 0; i < SHOPS; i++)
        difference += fabs(expected[i] - without[i]);
    assert_true(difference > .02); /* the student heeds what it reads */
    assert_true(has_rung("pair", "3") && has_rung("none", "3"));
    assert_true(has_figure("request_teacher_rows", "0"));
    stop();
}

static void the_log_has_what_was_served(void **state)
{
    (void)state;
    char more[700], line[1000];
    float e[SHOPS * PAIR_DIM], number;
    double actual[SHOPS];
    int place = -1;
    snprintf(more, sizeof more, "  feature_log: %s\n", feature_log);
    write_speculation(more);
    start();
    score_user(5, actual);
    await(has_figure("teacher_rows", "3"));
    score_user(5, actual);
    stop();
    drop_server(NULL); /* writes what is left */
    write_speculation("");
    FILE *file = fopen(feature_log, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(
        line, "request\tplace\tfm_1\tfm_2\tfm_3\tfm_4\tfm_5\tfm_pair\tfm_user\tfm_near\tfm_age\n");
    for (int i = 0; i < SHOPS; i++) {
        assert_non_null(fgets(line, sizeof line, file));
        assert_non_null(strstr(line, "\t0\t0\t0\t0\t0\t0\t0\t0\t0\n"));
    }
    expected_numbers(5, e);
    for (int i = 0; i < SHOPS; i++) {
        assert_non_null(fgets(line, sizeof line, file));
        assert_int_equal(sscanf(line, "r5\t%d\t%f\t", &place, &number), 2);
        assert_int_equal(place, i);
        assert_near((double)number, (double)e[i * PAIR_DIM], 2e-3, 2e-3);
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
}

static void deletions_reach_the_cache(void **state)
{
    (void)state;
    double actual[SHOPS], without[SHOPS];
    start();
    score_user(3, actual);
    score_user(4, actual);
    await(has_figure("teacher_rows", "6"));
    expect("POST /v2/models/ads/speculation", "{\"parameters\":{\"forget_user\":\"u3\"}}", 200,
        "\"worker\":true");
    await(has_figure("orders", "0"));
    expect_scores(3, NULL, false, without);
    score_user(3, actual);
    assert_scores(actual, without);
    score_user(4, actual);
    assert_true(has_rung("pair", "3"));
    expect("POST /v2/models/ads/speculation", "{\"parameters\":{\"forget_item\":\"1\"}}", 200, "\"orders\":");
    await(has_figure("orders", "0"));
    score_user(4, actual);
    await(has_rung("user", "1")); /* the mean of the two others */
    expect("POST /v2/models/ads/speculation", "{\"parameters\":{\"forget\":\"1\"}}", 400, "forget_user");
    stop();
}

/* The worker is switched off, and the teacher's folder removed: answers go on, first with what is known. */
static void requests_do_without_worker_and_teacher(void **state)
{
    (void)state;
    char away[600];
    double actual[SHOPS], expected[SHOPS];
    float e[SHOPS * PAIR_DIM];
    expected_numbers(3, e);
    expect_scores(3, e, true, expected);
    start();
    score_user(3, actual);
    await(has_figure("teacher_rows", "3"));
    expect("POST /v2/models/ads/speculation", "{\"parameters\":{\"worker\":false}}", 200, "\"worker\":false");
    snprintf(away, sizeof away, "%s.away", teacher);
    assert_int_equal(rename(teacher, away), 0);
    score_user(3, actual);
    assert_scores(actual, expected);
    score_user(6, actual);
    score_user(6, actual);
    assert_true(has_rung("none", "9") && has_rung("pair", "3"));
    assert_true(has_figure("teacher_rows", "3") && has_figure("worker_on", "0"));
    assert_true(has_figure("request_teacher_rows", "0"));
    /* Deletions are done, too. */
    expect(
        "POST /v2/models/ads/speculation", "{\"parameters\":{\"forget_user\":\"u3\"}}", 200, "\"orders\":");
    await(has_figure("orders", "0"));
    score_user(3, actual);
    assert_true(has_rung("none", "12"));
    /* The worker starts without a teacher, and computes when it is back. */
    expect("POST /v2/models/ads/speculation", "{\"parameters\":{\"worker\":true}}", 200, "\"worker\":true");
    score_user(6, actual);
    assert_int_equal(rename(away, teacher), 0);
    await((score_user(6, actual), has_figure("teacher_rows", "6")));
    stop();
}

static void another_version_of_the_student_keeps_the_cache(void **state)
{
    (void)state;
    double actual[SHOPS], expected[SHOPS];
    float e[SHOPS * PAIR_DIM];
    options.control = PH_CONTROL_EXPLICIT;
    options.load = "*";
    start();
    score_user(3, actual);
    await(has_figure("teacher_rows", "3"));
    put_version(student, repository, "ads", 4);
    expect("POST /v2/repository/models/ads/load", "", 200, "");
    expected_numbers(3, e);
    expect_scores(3, e, true, expected);
    score_user(3, actual);
    assert_scores(actual, expected);
    assert_true(has_metric("phloem_speculation_lookups{model=\"ads\",version=\"4\",rung=\"pair\"} 3\n"));
    stop();
    char command[700];
    snprintf(command, sizeof command, "rm -r %s/ads/4", repository);
    assert_int_equal(system(command), 0);
}

static void expect_refused(const char *more, const char *part)
{
    char text[4096];
    write_request(text, sizeof text, 3, more);
    expect("POST /v2/models/ads/infer", text, 400, part);
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    start();
    expect_refused(",{\"name\":\"shopp\",\"datatype\":\"INT64\",\"shape\":[3],\"data\":[1,2,3]}",
        "neither the model nor its foundation model has an input 'shopp'");
    expect_refused(",{\"name\":\"fm_1\",\"datatype\":\"FP32\",\"shape\":[3],\"data\":[1,2,3]}",
        "'fm_1': the server fills this column");
    expect("POST /v2/models/ads/infer",
        "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1]}]}", 400,
        "the request has no input 'user'");
    expect("POST /v2/models/ads/infer",
        "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1]},"
        "{\"name\":\"user\",\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"a\",\"b\"]}]}",
        400, "rows");
    stop();
}

/* Inputs are read by names, whatever their order and the columns that the teacher does not read. */
#define NARROW                                                                              \
    "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT64\",\"shape\":[2],\"data\":[0,1]}," \
    "{\"name\":\"user\",\"datatype\":\"BYTES\",\"shape\":[%d],\"data\":[%s]},"              \
    "{\"name\":\"price\",\"datatype\":\"INT64\",\"shape\":[%d],\"data\":[%s]}]}"

/* The metadata has the foundation model's columns, and none that the server fills. */
static void metadata_names_what_clients_send(void **state)
{
    (void)state;
    start();
    struct answer answer = ask("GET /v2/models/ads", "");
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.body, "\"inputs\":[{\"name\":\"user\""));
    assert_non_null(strstr(answer.body, "{\"name\":\"price\",\"datatype\":\"BYTES\""));
    assert_null(strstr(answer.body, "fm_"));
    assert_null(strstr(answer.body, "\"lines\""));
    free(answer.text);
    stop();
}

static void a_teacher_need_not_read_user_and_item(void **state)
{
    (void)state;
    char text[2048], former[512];
    snprintf(text, sizeof text,
        "seed: 3\ndata:\n  train: %s\n  fields:\n    - {name: label, kind: label}\n"
        "    - {name: price, kind: id, encoding: hash, rows: 50}\n    - {name: \"*\", kind: ignore}\n"
        "model: {kind: dnn, embedding_dim: 4, embedding_init_std: 0.3, hidden_units: [16]}\n",
        write_rows("narrow.csv"));
    snprintf(former, sizeof former, "%s", teacher);
    snprintf(teacher, sizeof teacher, "%s", make_folder("narrow", text));
    struct ph_cell cells[SAMPLE];
    for (int64_t i = 0; i < SAMPLE; i++)
        cells[i] = (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = i % 40};
    put_pair_encoder(teacher, PAIR_DIM, SAMPLE, cells);
    write_speculation("");
    start();
    snprintf(text, sizeof text, NARROW, 2, "\"u1\",\"u2\"", 2, "5,6"); /* two users: two slates */
    expect("POST /v2/models/ads/infer", text, 200, "probability");
    await(has_figure("teacher_rows", "2"));
    expect("POST /v2/models/ads/infer", text, 200, "probability");
    assert_true(has_rung("pair", "2"));
    snprintf(text, sizeof text, NARROW, 2, "\"u3\",\"u3\"", 1, "5"); /* the worker refuses it */
    expect("POST /v2/models/ads/infer", text, 200, "probability");
    await(has_figure("waiting", "0"));
    snprintf(text, sizeof text, NARROW, 0, "", 2, "5,6");
    expect("POST /v2/models/ads/infer", text, 400, "'shop' has 2 rows, but 'user' has 0");
    stop();
    drop_server(NULL);
    snprintf(teacher, sizeof teacher, "%s", former);
    write_speculation("");
}

static void expect_not_loaded(const char *more, const char *part)
{
    write_speculation(more);
    assert_ok(ph_server_create(&options, &server));
    assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
    is_running = true;
    await(ph_server_is_settled(server));
    expect("POST /v2/repository/index", "", 200, part);
    stop();
    drop_server(NULL);
    write_speculation("");
}

static void what_cannot_be_served_is_not_loaded(void **state)
{
    (void)state;
    char wrong[700];
    expect_not_loaded("  num_neighbours: 65\n", "num_neighbours");
    expect_not_loaded("  neighbours: 5\n", "unknown key");
    snprintf(wrong, sizeof wrong, "  feature_log: %s/config.yaml\n", student);
    expect_not_loaded(wrong, "is no log of 9 columns of pairs");
    char command[1200];
    snprintf(command, sizeof command, "sed -i s/1048576/1000000000000000/ %s/ads/serve.yaml", repository);
    write_speculation("");
    assert_int_equal(system(command), 0);
    assert_ok(ph_server_create(&options, &server));
    assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
    is_running = true;
    await(ph_server_is_settled(server));
    expect("POST /v2/repository/index", "", 200, "does not fit");
    stop();
    write_speculation("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_read_what_the_teacher_said_before),
        TEST(the_log_has_what_was_served),
        TEST(deletions_reach_the_cache),
        TEST(requests_do_without_worker_and_teacher),
        TEST(another_version_of_the_student_keeps_the_cache),
        TEST(bad_requests_are_refused),
        TEST(metadata_names_what_clients_send),
        TEST(a_teacher_need_not_read_user_and_item),
        TEST(what_cannot_be_served_is_not_loaded),
    };
    return cmocka_run_group_tests(tests, make_all, NULL);
}
