/* Sessions of graphs: a call is a whole graph, whose nodes are its rows. */
#include "support/test_support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phloem/config.h"
#include "phloem/serve.h"
#include "phloem/train.h"

enum { NUM_NODES = 8, NUM_CLASSES = 2 };

static const char config_text[] =
    "data:\n"
    "  format: graph\n"
    "  train: %s\n"
    "  graph: {edges: %s}\n"
    "  fields:\n"
    "    - {name: node, kind: ignore}\n"
    "    - {name: topic, kind: label, classes: [odd, even]}\n"
    "    - {name: words, kind: id, list: true, encoding: raw, rows: 4}\n"
    "    - {name: neighbours, kind: id, encoding: raw, rows: 100}\n"
    "model: {kind: sage, hidden_units: [5], embedding_init_std: 0.5, sage: {neighbours: neighbours}}\n"
    "train: {epochs: 3, selection: logloss, report: false, tensorboard: false}\n"
    "optimizer: {kind: adam, learning_rate: 0.1}\n";

static struct {
    char folder[600], nodes[512];
} fixture;

/* A ring of nodes with words. */
static int train(void **state)
{
    (void)state;
    char nodes[1024], edges[256], text[4096];
    int length = sprintf(nodes, "node,topic,words\n"), edges_length = 0;
    for (int i = 0; i < NUM_NODES; i++) {
        length += sprintf(nodes + length, "%d,%s,%d|%d\n", i, i % 2 ? "odd" : "even", i % 4, i * 3 % 4);
        edges_length += sprintf(edges + edges_length, "%d,%d\n", i, (i + 1) % NUM_NODES);
    }
    snprintf(fixture.nodes, sizeof fixture.nodes, "%s", test_write_file("nodes.csv", nodes));
    snprintf(fixture.folder, sizeof fixture.folder, "%s.run", fixture.nodes);
    snprintf(text, sizeof text, config_text, fixture.nodes, test_write_file("edges.csv", edges));
    struct ph_config *config = NULL;
    struct ph_train_summary summary;
    const struct ph_train_options options = {.size = sizeof options, .folder = fixture.folder};
    assert_ok(ph_config_from_text(text, "job.yaml", NULL, 0, &config));
    assert_ok(ph_train_config(config, &options, &summary));
    ph_config_destroy(config);
    return 0;
}

static struct ph_session *open_session(size_t max_batch)
{
    const struct ph_session_options options = {.size = sizeof options, .max_batch = max_batch};
    struct ph_session *session = NULL;
    assert_ok(ph_session_open(fixture.folder, &options, &session));
    return session;
}

/* Scores the ring, whose node i is row (i * step) mod NUM_NODES. */
static ph_status score_ring(struct ph_session *session, size_t step, size_t num_rows, float *probabilities)
{
    const size_t words_column = ph_session_find_column(session, "words");
    int64_t words[NUM_NODES][2], neighbours[NUM_NODES][2];
    struct ph_cell cells[NUM_NODES * 2];
    assert_int_equal(ph_session_num_columns(session), 2);
    for (size_t i = 0; i < NUM_NODES; i++) {
        const size_t row = i * step % NUM_NODES;
        words[row][0] = (int64_t)(i % 4);
        words[row][1] = (int64_t)(i * 3 % 4);
        neighbours[row][0] = (int64_t)((i + 1) * step % NUM_NODES);
        neighbours[row][1] = (int64_t)((i + NUM_NODES - 1) * step % NUM_NODES);
        cells[2 * row + words_column] =
            (struct ph_cell){.kind = PH_CELL_INTEGERS, .integers = words[row], .count = 2};
        cells[2 * row + 1 - words_column] =
            (struct ph_cell){.kind = PH_CELL_INTEGERS, .integers = neighbours[row], .count = 2};
    }
    return ph_session_score(session, num_rows, cells, probabilities);
}

static void a_call_is_a_graph_and_gives_probabilities_of_classes(void **state)
{
    (void)state;
    struct ph_session *session = open_session(NUM_NODES);
    float straight[NUM_NODES * NUM_CLASSES], turned[NUM_NODES * NUM_CLASSES];
    assert_int_equal(ph_session_num_tasks(session), NUM_CLASSES);
    assert_ok(score_ring(session, 1, NUM_NODES, straight));
    assert_ok(score_ring(session, 3, NUM_NODES, turned));
    for (size_t i = 0; i < NUM_NODES; i++) {
        const float *row = straight + i * NUM_CLASSES;
        assert_true(fabsf(row[0] + row[1] - 1) < 1e-6F);
        for (size_t t = 0; t < NUM_CLASSES; t++)
            assert_true(fabsf(row[t] - turned[i * 3 % NUM_NODES * NUM_CLASSES + t]) < 1e-6F);
    }
    ph_session_close(session);
}

static void a_graph_is_neither_cut_nor_scored_without_its_nodes(void **state)
{
    (void)state;
    float probabilities[NUM_NODES * NUM_CLASSES];
    struct ph_session *session = open_session(NUM_NODES - 1);
    assert_fails(score_ring(session, 1, NUM_NODES, probabilities), PH_ERROR_USAGE,
        "a graph of 8 nodes cannot be cut into batches of 7 rows: raise max_batch");
    assert_fails(score_ring(session, 1, NUM_NODES - 1, probabilities), PH_ERROR_DATA, "neighbour");
    ph_session_close(session);
}

static void a_session_measures_whole_graphs(void **state)
{
    (void)state;
    struct ph_metrics metrics[NUM_CLASSES];
    struct ph_session *session = open_session(1);
    assert_ok(ph_session_evaluate(session, fixture.nodes, metrics));
    assert_int_equal(metrics[0].num_samples, NUM_NODES);
    assert_true(metrics[0].accuracy >= 0 && isnan(metrics[0].auc));
    ph_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_a_graph_and_gives_probabilities_of_classes),
        cmocka_unit_test(a_graph_is_neither_cut_nor_scored_without_its_nodes),
        cmocka_unit_test(a_session_measures_whole_graphs),
    };
    return cmocka_run_group_tests(tests, train, NULL);
}
