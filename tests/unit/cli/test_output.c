#include "support/test_support.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file/file.h"
#include "cli/output.h"

static const char *path_of(const char *name)
{
    static char paths[4][512];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder(), name);
    return path;
}

static void make(const char *name)
{
    test_write_text(path_of(name), "x\n");
}

static void file_that_is_read_is_spared(void **state)
{
    (void)state;
    make("rows.csv");
    make("other.csv");
    unlink(path_of("linked.csv"));
    assert_int_equal(symlink(path_of("rows.csv"), path_of("linked.csv")), 0);
    assert_fails(cli_output_spare_input(path_of("rows.csv"), path_of("rows.csv")), PH_ERROR_USAGE,
        "would overwrite the input ");
    assert_fails(cli_output_spare_input(path_of("linked.csv"), path_of("rows.csv")), PH_ERROR_USAGE,
        "would overwrite the input ");
    assert_ok(cli_output_spare_input(path_of("other.csv"), path_of("rows.csv")));
    assert_ok(cli_output_spare_input(path_of("new.csv"), path_of("rows.csv")));
    assert_ok(cli_output_spare_input("/dev/null", "/dev/null"));
}

static void file_that_is_read_is_spared_by_the_temporary_one(void **state)
{
    (void)state;
    make("late.csv.tmp");
    assert_fails(cli_output_spare_input(path_of("late.csv"), path_of("late.csv.tmp")), PH_ERROR_USAGE,
        "late.csv.tmp: choose another name");
}

static void every_file_of_a_pattern_is_spared(void **state)
{
    (void)state;
    make("part-0.csv");
    make("part-1.csv");
    assert_fails(cli_output_spare_input(path_of("part-1.csv"), path_of("part-*.csv")), PH_ERROR_USAGE,
        "part-1.csv: choose another name");
    assert_ok(cli_output_spare_input(path_of("part-2.csv"), path_of("part-*.csv")));
    assert_fails(cli_output_spare_input(path_of("x.csv"), path_of("none-*.csv")), PH_ERROR_DATA, "none-*");
}

static void every_array_of_a_set_is_spared(void **state)
{
    (void)state;
    make("P_labels.npy");
    make("P_dense.npy");
    make("Q_sparse.npy");
    const char *const inputs[] = {"P", "P_labels.npy", "?_labels.npy"};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        assert_fails(cli_output_spare_input(path_of("P_dense.npy"), path_of(inputs[i])), PH_ERROR_USAGE,
            "P_dense.npy: choose another name");
    assert_fails(
        cli_output_spare_input(path_of("Q_sparse.npy"), path_of("Q")), PH_ERROR_USAGE, "Q_sparse.npy");
    assert_ok(cli_output_spare_input(path_of("P_dense.npy"), path_of("Q")));
}

static void files_of_a_model_are_spared(void **state)
{
    (void)state;
    make("model.safetensors");
    make("model.onnx");
    assert_fails(cli_output_spare_model(path_of("model.safetensors"), test_folder()), PH_ERROR_USAGE,
        "model.safetensors: choose another name");
    assert_ok(cli_output_spare_model(path_of("model.onnx"), test_folder()));
}

/* Weights that several ranks have written. */
static void files_of_a_model_in_a_folder_are_spared(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path_of("ranks"), 0700), 0);
    assert_int_equal(mkdir(path_of("ranks/model.safetensors"), 0700), 0);
    make("ranks/model.safetensors/part-00001-of-00001.safetensors");
    assert_fails(cli_output_spare_model(
                     path_of("ranks/model.safetensors/part-00001-of-00001.safetensors"), path_of("ranks")),
        PH_ERROR_USAGE, "part-00001-of-00001.safetensors: choose another name");
    assert_ok(cli_output_spare_model(path_of("ranks/model.onnx"), path_of("ranks")));
}

static void trial_makes_the_file_or_leaves_it_as_it_is(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    make("there.json");
    unlink(path_of("made.json"));
    unlink(path_of("fifo"));
    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    assert_ok(cli_output_try(path_of("there.json")));
    assert_ok(ph__file_read(&arena, path_of("there.json"), 100, &text, &size));
    assert_string_equal(text, "x\n");
    assert_ok(cli_output_try(path_of("made.json")));
    assert_true(ph__file_exists(path_of("made.json")));
    assert_ok(cli_output_try(path_of("fifo")));
    assert_fails(cli_output_try(path_of("nowhere/x.json")), PH_ERROR_DISK, "nowhere/x.json: cannot write");
    assert_fails(cli_output_try(test_folder()), PH_ERROR_USAGE, "must be a file, not a folder");
    ph__arena_fini(&arena);
}

/* It cannot be opened by its name, neither now nor once the work is done. */
static void a_socket_is_refused_at_once(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/socket", test_folder());
    const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(descriptor >= 0);
    assert_int_equal(bind(descriptor, (const struct sockaddr *)&address, sizeof address), 0);
    assert_fails(cli_output_try(address.sun_path), PH_ERROR_DISK, "socket: cannot write");
    close(descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_that_is_read_is_spared),
        cmocka_unit_test(file_that_is_read_is_spared_by_the_temporary_one),
        cmocka_unit_test(every_file_of_a_pattern_is_spared),
        cmocka_unit_test(every_array_of_a_set_is_spared),
        cmocka_unit_test(files_of_a_model_are_spared),
        cmocka_unit_test(files_of_a_model_in_a_folder_are_spared),
        cmocka_unit_test(trial_makes_the_file_or_leaves_it_as_it_is),
        cmocka_unit_test(a_socket_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
