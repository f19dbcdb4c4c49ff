#include "cli/verb/rank_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

static const char figures[] =
    "{\"transport\": \"Open MPI 4.1.4\", \"hosts\": 2, \"measured_steps\": 10, \"step_seconds\": 0.004,"
    "\"exposed_seconds\": 0.001, \"exposed_share\": 0.25,"
    "\"imbalance\": {\"compute\": 1.5, \"requested_ids\": null, \"held_bytes\": 1.25},"
    "\"of_rank\": [{\"rank\": 0, \"host\": 0, \"own_samples_per_s\": 1234.6, \"step_seconds\": 0.004,"
    " \"exposed_seconds\": 0.001, \"requested_ids\": 300, \"held_bytes\": 2048, \"sent_bytes\": 20480,"
    " \"received_bytes\": 10240},"
    "{\"rank\": 1, \"host\": 1}],"
    "\"operations\": [{\"what\": \"ids\", \"operations\": 40, \"sent_bytes\": 40960,"
    " \"exposed_seconds\": 0.02}]}";

static char *table_of(const char *text)
{
    struct ph__json *json;
    struct ph__writer *writer;
    size_t size;
    assert_ok(ph__json_parse(text, strlen(text), "figures", PH_ERROR_DATA, &json));
    assert_ok(ph__writer_open_memory("table", 1 << 16, &writer));
    assert_ok(cli_rank_table_write(json, writer));
    assert_ok(ph__writer_write(writer, "", 1)); /* which ends the text */
    assert_ok(ph__writer_finish(writer));
    char *table = ph__writer_take(writer, &size);
    ph__writer_close(writer);
    ph__json_destroy(json);
    return table;
}

static void assert_has(const char *table, const char *text)
{
    if (strstr(table, text) == NULL)
        fail_msg("no \"%s\" in:\n%s", text, table);
}

static void figures_become_tables_of_a_step(void **state)
{
    (void)state;
    char *table = table_of(figures);
    assert_has(table, "2 ranks of Open MPI 4.1.4 on 2 hosts: a step of 4.000 ms exposes 1.000 ms of "
                      "communication (25.0%)\n");
    assert_has(table, "computation 1.50, requested ids –, bytes held 1.25\n");
    assert_has(table,
        "|    0 |    0 |          1235 |     4.000 |      1.000 | 25.0% |           300 | 2.0 KiB | "
        "2.0 KiB |  1.0 KiB |\n");
    assert_has(table, "| ids       |     2 | 2.0 KiB |      1.000 |\n");
    free(table);
}

static void what_is_not_known_is_a_dash(void **state)
{
    (void)state;
    char *table = table_of(figures);
    assert_has(table, "|    1 |    1 |             – |         – |          – |     – |             – |");
    free(table);
}

static void what_is_cut_is_counted(void **state)
{
    (void)state;
    char text[8192], *end = text + sprintf(text, "{\"measured_steps\": 1, \"of_rank\": [");
    for (int i = 0; i < 512; i++)
        end += sprintf(end, "%s{\"rank\": %d}", i > 0 ? "," : "", i);
    end += sprintf(end, "], \"operations\": [{}");
    for (int i = 1; i < 12; i++)
        end += sprintf(end, ",{}");
    strcpy(end, "]}");
    char *table = table_of(text);
    assert_has(table, "\n|   63 | ");
    assert_null(strstr(table, "\n|   64 | "));
    assert_has(table, "\nand 448 more, see \"of_rank\" in summary.json\n");
    assert_null(strstr(table, "\"operations\""));
    free(table);
    strcpy(end, ",{}]}");
    table = table_of(text);
    assert_has(table, "\nand 1 more, see \"operations\" in summary.json\n");
    free(table);
}

/* Ranks from 64 on compute for 3 ms and the others for 2 ms, but rank 300 for 4 ms. */
static void of_many_ranks_those_that_compute_longest_are_shown(void **state)
{
    (void)state;
    static char text[65536];
    char *end = text + sprintf(text, "{\"measured_steps\": 1, \"of_rank\": [");
    for (int i = 0; i < 512; i++)
        end += sprintf(end, "%s{\"rank\": %d, \"step_seconds\": 0.005, \"exposed_seconds\": %s}",
            i > 0 ? "," : "", i,
            i == 300 ? "0.001"
            : i < 64 ? "0.003"
                     : "0.002");
    strcpy(end, "]}");
    char *table = table_of(text);
    assert_has(table, "The 64 ranks that compute longest:\n");
    const char *slowest = strstr(table, "\n|  300 | "), *next = strstr(table, "\n|   64 | ");
    assert_non_null(slowest);
    assert_non_null(next);
    assert_true(slowest < next);
    assert_has(table, "\n|  126 | ");
    assert_null(strstr(table, "\n|  127 | "));
    assert_null(strstr(table, "\n|   63 | "));
    assert_has(table, "\nand 448 more, see \"of_rank\" in summary.json\n");
    free(table);
}

static void a_training_without_steps_has_no_numbers_of_them(void **state)
{
    (void)state;
    char *table =
        table_of("{\"transport\": \"MPICH 4.0\", \"hosts\": 1, \"measured_steps\": 0, \"step_seconds\": null,"
                 "\"exposed_seconds\": null, \"exposed_share\": null, \"of_rank\": [{\"rank\": 0}]}");
    assert_has(table, "1 ranks of MPICH 4.0 on 1 host: no step was measured\n");
    assert_null(strstr(table, "nan"));
    free(table);
}

static void a_folder_without_ranks_says_nothing(void **state)
{
    (void)state;
    test_write_file("summary.json", "{\"world_size\": 1}");
    assert_ok(cli_rank_table_print(test_folder()));
    assert_fails(cli_rank_table_print("/no/such/folder"), PH_ERROR_DATA, "/no/such/folder");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_become_tables_of_a_step),
        cmocka_unit_test(what_is_not_known_is_a_dash),
        cmocka_unit_test(what_is_cut_is_counted),
        cmocka_unit_test(of_many_ranks_those_that_compute_longest_are_shown),
        cmocka_unit_test(a_training_without_steps_has_no_numbers_of_them),
        cmocka_unit_test(a_folder_without_ranks_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
