/* Plan files: what is read, what is refused with its line, and that what is written is read back as it was.
 */
#include "unit/plan/plan_fixture.h"

#include <string.h>

#include "base/file/file.h"
#include "base/file/stream.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct ph__topology four_ranks = {4, 2};
static const struct ph__table_facts tables[] = {
    {"embedding.user", 100, 16, 1, 1, 64, 4, 4, 0, NULL, false, NULL, NULL},
    {"embedding.item", 50, 16, 1, 1, 64, 4, 4, 0, NULL, false, NULL, NULL},
    {"linear.user", 100, 1, 1, 1, 4, 4, 4, 0, NULL, false, NULL, NULL},
    {"linear.item", 50, 1, 1, 1, 4, 4, 4, 0, NULL, false, NULL, NULL},
};

static ph_status read_text(const char *text, struct ph__plan *plan_out)
{
    return ph__plan_read(test_write_file("plan.yaml", text), &four_ranks, tables, COUNT(tables), plan_out);
}

static void expect_table(const struct ph__plan *plan, size_t index, enum ph__shard_kind kind,
    const uint32_t *places, size_t num_places)
{
    const struct ph__plan_table *table = &plan->tables[index];
    assert_string_equal(table->name, tables[index].name);
    assert_int_equal(table->kind, kind);
    assert_int_equal(table->num_places, num_places);
    for (size_t i = 0; i < num_places; i++)
        assert_int_equal(table->places[i], places[i]);
}

static void a_plan_says_what_it_wants_to_decide(void **state)
{
    (void)state;
    struct ph__plan plan;
    assert_ok(read_text("version: 1\n"
                        "world_size: 4\n"
                        "ranks_per_host: 2\n"
                        "tables:\n"
                        "  embedding.user: {kind: row_wise, ranks: [3, 0]}\n"
                        "  embedding.item:\n"
                        "    host: 1\n"
                        "    kind: table_row_wise\n"
                        "  \"linear.*\": {kind: data_parallel}\n",
        &plan));
    expect_table(&plan, 0, PH_SHARD_ROW_WISE, (uint32_t[]){3, 0}, 2);
    expect_table(&plan, 1, PH_SHARD_TABLE_ROW_WISE, (uint32_t[]){1}, 1);
    expect_table(&plan, 2, PH_SHARD_DATA_PARALLEL, NULL, 0);
    expect_table(&plan, 3, PH_SHARD_DATA_PARALLEL, NULL, 0);
    assert_int_equal(plan.num_shards, 4);
    ph__plan_fini(&plan);
}

static void names_go_before_patterns_and_patterns_by_their_order(void **state)
{
    (void)state;
    struct ph__plan plan;
    assert_ok(read_text("version: 1\nworld_size: 4\n"
                        "default: {kind: table_wise, rank: 3}\n"
                        "tables:\n"
                        "  \"*.user\": {kind: row_wise}\n"
                        "  \"embedding.*\": {kind: column_wise, ranks: [2, 1]}\n"
                        "  embedding.user: {kind: grid, hosts: [1]}\n",
        &plan));
    expect_table(&plan, 0, PH_SHARD_GRID, (uint32_t[]){1}, 1);
    expect_table(&plan, 1, PH_SHARD_COLUMN_WISE, (uint32_t[]){2, 1}, 2);
    expect_table(&plan, 2, PH_SHARD_ROW_WISE, (uint32_t[]){0, 1, 2, 3}, 4);
    expect_table(&plan, 3, PH_SHARD_TABLE_WISE, (uint32_t[]){3}, 1);
    ph__plan_fini(&plan);
}

static void expect_refusal(const char *text, const char *part)
{
    struct ph__plan plan = {.num_tables = 77};
    assert_fails(read_text(text, &plan), PH_ERROR_CONFIG, part);
    assert_int_equal(plan.num_tables, 77);
}

#define HEAD "version: 1\nworld_size: 4\n"
#define REST "default: {kind: row_wise}\n"

static void what_is_wrong_is_refused_with_its_line(void **state)
{
    (void)state;
    expect_refusal("world_size: 4\n" REST, "plan.yaml:1: missing key 'version'");
    expect_refusal("version: 1\n" REST, "plan.yaml:1: missing key 'world_size'");
    expect_refusal(
        "version: 2\nworld_size: 4\n" REST, "plan.yaml:1: version 2 of the format is unknown: must be 1");
    expect_refusal("version: 1\nworld_size: 8\n" REST,
        "plan.yaml:2: the plan is for a world_size of 8, but this job has 4");
    expect_refusal(HEAD "ranks_per_host: 4\n" REST,
        "plan.yaml:3: the plan is for a ranks_per_host of 4, but this job has 2");
    expect_refusal("version: 1\nworld_size: many\n" REST, "plan.yaml:2: world_size: must be an integer");
    expect_refusal(HEAD REST "tabels: {}\n", "plan.yaml:4: unknown key 'tabels'; did you mean 'tables'?");
    expect_refusal(HEAD REST "tables: 3\n", "plan.yaml:4: tables: must be a mapping");
    expect_refusal(HEAD REST "tables: [3]\n", "plan.yaml:4: tables: must be a mapping");
    expect_refusal(HEAD "default: row_wise\n", "plan.yaml:3: default: must be a mapping");
    expect_refusal(HEAD "default:\n", "plan.yaml:3: default: missing key 'kind'");
    expect_refusal(HEAD REST REST, "the key 'default' is given twice");
}

static void a_wrong_line_of_a_table_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *part;
    } cases[] = {
        {"embedding.usr: {kind: row_wise}", "unknown table 'embedding.usr'; did you mean 'embedding.user'?"},
        {"\"wide.*\": {kind: row_wise}", "unknown table 'wide.*'"},
        {"embedding.user: row_wise", "tables.embedding.user: must be a mapping, such as {kind: row_wise}"},
        {"embedding.user: {}", "tables.embedding.user: missing key 'kind'"},
        {"embedding.user: {ranks: [1]}", "tables.embedding.user: missing key 'kind'"},
        {"embedding.user: {kind: rowwise}", "unknown kind 'rowwise'; did you mean 'row_wise'?"},
        {"embedding.user: {kind: [row_wise]}", "tables.embedding.user.kind: must be a word"},
        {"embedding.user: {kind: row_wise, rnks: [1]}", "unknown key 'rnks'; did you mean 'ranks'?"},
        {"embedding.user: {kind: row_wise, rank: 1}",
            "tables.embedding.user: row_wise takes 'ranks', not 'rank'"},
        {"embedding.user: {kind: data_parallel, hosts: [1]}",
            "data_parallel puts the table on all ranks: remove 'hosts'"},
        {"embedding.user: {kind: row_wise, ranks: 1}", "tables.embedding.user.ranks: must be a list"},
        {"embedding.user: {kind: row_wise, ranks: []}", "tables.embedding.user.ranks: must be a list"},
        {"embedding.user: {kind: table_wise, rank: [1]}", "tables.embedding.user.rank: must be one number"},
        {"embedding.user: {kind: table_wise, rank: 1, ranks: [1]}", "the table has a place already"},
        {"embedding.user: {kind: row_wise, ranks: [1, x]}", "user.ranks[1]: must be an integer"},
        {"embedding.user: {kind: row_wise, ranks: [1, -1]}", "user.ranks[1]: must be the number of a rank"},
        {"embedding.user: {kind: row_wise, ranks: [1, 2, 1]}", "rank 1 is named twice"},
        {"embedding.user: {kind: row_wise, ranks: [4]}", "rank 4 does not exist: the last is 3"},
        {"embedding.user: {kind: table_row_wise, host: 2}", "host 2 does not exist: the last is 1"},
        {"\"linear.*\": {kind: column_wise, ranks: [0, 1]}",
            "2 ranks are too many for the 1 columns of 'linear.user': at most one for every 4 columns"},
        {"embedding.user: {kind: row_wise}\n  embedding.user: {kind: row_wise}", "is given twice"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512], part[256];
        snprintf(text, sizeof text, HEAD REST "tables:\n  %s\n", cases[i].line);
        expect_refusal(text, cases[i].part);
        snprintf(part, sizeof part, "plan.yaml:%d: ", strstr(cases[i].line, "\n") != NULL ? 6 : 5);
        expect_refusal(text, part);
    }
}

/* But for tables of so few columns that nothing is cut. */
static void columns_that_stay_together_are_not_cut(void **state)
{
    (void)state;
    static const char *const kinds[] = {"column_wise", "table_column_wise", "grid"};
    struct ph__table_facts whole[COUNT(tables)];
    for (size_t i = 0; i < COUNT(tables); i++) {
        whole[i] = tables[i];
        whole[i].has_whole_rows = true;
    }
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char text[256];
        struct ph__plan plan;
        snprintf(text, sizeof text, HEAD "default: {kind: %s}\n", kinds[i]);
        const char *path = test_write_file("plan.yaml", text);
        assert_fails(ph__plan_read(path, &four_ranks, whole, COUNT(tables), &plan), PH_ERROR_CONFIG,
            "plan.yaml:3: the columns of 'embedding.user' cannot be cut");
        assert_ok(ph__plan_read(path, &four_ranks, whole + 2, COUNT(tables) - 2, &plan));
        ph__plan_fini(&plan);
    }
}

static void tables_without_a_line_are_named(void **state)
{
    (void)state;
    expect_refusal(HEAD "tables:\n  embedding.user: {kind: row_wise}\n",
        "plan.yaml:3: missing tables: 'embedding.item', 'linear.user', 'linear.item'; add a line for each, "
        "or 'default'");
    expect_refusal(HEAD, "plan.yaml:1: missing tables: 'embedding.user'");
    expect_refusal("", "plan.yaml:1: missing key 'version'");
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    struct ph__plan plan;
    assert_fails(ph__plan_read(test_path("none.yaml"), &four_ranks, tables, COUNT(tables), &plan),
        PH_ERROR_CONFIG, "none.yaml");
}

/* ---- written ---- */

static const char *write_plan(const struct ph__plan *plan, const char *name)
{
    struct ph__writer *writer;
    const char *path = test_path(name);
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__plan_write(plan, writer));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    return path;
}

static void expect_same(const struct ph__plan *a, const struct ph__plan *b)
{
    assert_int_equal(a->num_tables, b->num_tables);
    for (size_t i = 0; i < a->num_tables; i++) {
        assert_string_equal(a->tables[i].name, b->tables[i].name);
        assert_int_equal(a->tables[i].kind, b->tables[i].kind);
        assert_int_equal(a->tables[i].num_places, b->tables[i].num_places);
        if (a->tables[i].num_places > 0)
            assert_memory_equal(a->tables[i].places, b->tables[i].places,
                a->tables[i].num_places * sizeof *a->tables[i].places);
        assert_int_equal(a->tables[i].bytes, b->tables[i].bytes);
    }
    assert_int_equal(a->num_shards, b->num_shards);
    if (a->num_shards > 0)
        assert_memory_equal(a->shards, b->shards, a->num_shards * sizeof *a->shards);
}

static void a_written_plan_is_read_back_as_it_was(void **state)
{
    (void)state;
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    static const char *const odd_names[] = {
        "a b", "x.y.kind", "*", "\"q\": {", "linear.*", "[0]", "\xc3\xa9 #"};
    for (size_t trial = 0; trial < 200; trial++) {
        struct ph__plan plan, again;
        draw_topology(&drawing);
        draw_tables(&drawing, 30);
        for (size_t i = 0; i < drawing.num_tables && i < COUNT(odd_names) && trial % 2 == 0; i++)
            drawing.tables[i].name = odd_names[i];
        draw_choices(&drawing);
        build_drawn(&drawing, &plan);
        const char *path = write_plan(&plan, "written.yaml");
        assert_ok(ph__plan_read(path, &drawing.topology, drawing.tables, drawing.num_tables, &again));
        expect_same(&plan, &again);
        ph__plan_fini(&plan);
        ph__plan_fini(&again);
    }
}

/* Fields have the names that people's data give them. */
static void long_names_are_read_back_or_refused(void **state)
{
    (void)state;
    char names[4][PH_PLAN_MAX_NAME + 2];
    struct ph__table_facts long_tables[COUNT(tables)];
    struct ph__plan plan, again;
    const size_t lengths[] = {168, 169, PH_PLAN_MAX_NAME, PH_PLAN_MAX_NAME};
    memcpy(long_tables, tables, sizeof tables);
    for (size_t i = 0; i < COUNT(tables); i++) {
        memset(names[i], i < 3 ? 1 : 'n', lengths[i]); /* a character that takes six where it is written */
        names[i][lengths[i]] = '\0';
        long_tables[i].name = names[i];
    }
    const char *path = test_write_file("long.yaml", HEAD "default: {kind: row_wise, ranks: [0, 1, 3]}\n");
    assert_ok(ph__plan_read(path, &four_ranks, long_tables, COUNT(tables), &plan));
    path = write_plan(&plan, "long.yaml");
    assert_ok(ph__plan_read(path, &four_ranks, long_tables, COUNT(tables), &again));
    expect_same(&plan, &again);
    plan.tables[3].name = strcat(names[3], "n");
    assert_fails(
        ph__plan_save(&plan, path), PH_ERROR_CONFIG, "must have at most 960 bytes, and this one has 961");
    ph__plan_fini(&plan);
    ph__plan_fini(&again);
}

static void a_written_plan_reads_well(void **state)
{
    (void)state;
    struct ph__plan plan;
    struct ph__arena arena = {0};
    assert_ok(read_text(HEAD "tables:\n"
                             "  \"linear.*\": {kind: data_parallel}\n"
                             "  embedding.item: {kind: table_wise, rank: 1}\n"
                             "  embedding.user: {kind: row_wise, ranks: [0, 1, 3]}\n",
        &plan));
    char *text;
    size_t size;
    assert_ok(ph__file_read(&arena, write_plan(&plan, "well.yaml"), 4096, &text, &size));
    assert_string_equal(text, "# Which rank holds which rows and columns of which table.\n"
                              "version: 1\nworld_size: 4\nranks_per_host: 2\ntables:\n"
                              "  # 6.6 KiB, ranks: 0-1, 3\n"
                              "  \"embedding.user\": {kind: row_wise, ranks: [0, 1, 3]}\n"
                              "  # 3.3 KiB, ranks: 1\n"
                              "  \"embedding.item\": {kind: table_wise, rank: 1}\n"
                              "  # 800 B each, ranks: all\n"
                              "  \"linear.user\": {kind: data_parallel}\n"
                              "  # 400 B each, ranks: all\n"
                              "  \"linear.item\": {kind: data_parallel}\n");
    ph__arena_fini(&arena);
    ph__plan_fini(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_says_what_it_wants_to_decide),
        cmocka_unit_test(names_go_before_patterns_and_patterns_by_their_order),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
        cmocka_unit_test(a_wrong_line_of_a_table_is_refused),
        cmocka_unit_test(columns_that_stay_together_are_not_cut),
        cmocka_unit_test(tables_without_a_line_are_named),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(a_written_plan_is_read_back_as_it_was),
        cmocka_unit_test(long_names_are_read_back_or_refused),
        cmocka_unit_test(a_written_plan_reads_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
