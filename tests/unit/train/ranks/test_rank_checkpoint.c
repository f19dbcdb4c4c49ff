/* Checkpoints that ranks write together: what stands at their name when one of them fails, and a rank alone
 * in their place; and how ranks wait for what one of them reads. */
#include "train/ranks/rank_checkpoint.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_names.h"
#include "support/staged_messages.h"
#include "support/thread_ranks.h"

enum { RANKS = 3, SHARE = 2, ROWS = RANKS * SHARE };

/* Each rank has some rows of one table, all of them the same number. */
struct writing {
    const char *path;
    ph_real number;
    size_t last_rows; /* of the last rank; fewer than its share: some are nowhere */
};

static ph_status write_rows(struct ph__ranks *ranks, const struct writing *writing, size_t num_rows)
{
    const ph_real numbers[ROWS] = {
        writing->number, writing->number, writing->number, writing->number, writing->number, writing->number};
    struct ph_tensor rows = {
        .name = "t", .dtype = PH_REAL, .shape = {2, {num_rows, 1}}, .data = (void *)(uintptr_t)numbers};
    struct ph__tensor_list list = {0};
    if (ranks->comm != NULL) {
        rows.first_row = ranks->rank * SHARE;
        rows.whole = (struct ph_shape){2, {ROWS, 1}};
    }
    ph_status status = ph__tensor_list_add(&list, &rows);
    if (status == PH_OK)
        status = ph__rank_checkpoint_write(ranks, writing->path, &list, NULL);
    ph__tensor_list_fini(&list);
    return status;
}

static ph_status write_as_rank(struct ph_comm *comm, void *context)
{
    const struct writing *writing = context;
    PH_TRY(staged_messages_demand(comm));
    struct ph__plan_table table = {.name = "t", .kind = PH_SHARD_ROW_WISE};
    struct ph__plan plan = {.tables = &table, .num_tables = 1};
    struct ph__ranks ranks = {.comm = comm, .rank = ph_comm_rank(comm), .world_size = RANKS, .plan = &plan};
    PH_TRY(ph__name_index_add(&plan.names, table.name));
    const ph_status status = write_rows(&ranks, writing, ranks.rank + 1 < RANKS ? SHARE : writing->last_rows);
    ph__plan_fini(&plan);
    return status;
}

static void write_by_ranks(const char *path, ph_real number)
{
    struct writing writing = {path, number, SHARE};
    thread_ranks_run(&(struct thread_ranks){.world_size = RANKS}, write_as_rank, &writing, NULL);
}

static void fail_by_ranks(const char *path, ph_real number)
{
    struct writing writing = {path, number, SHARE - 1};
    struct thread_rank_end ends[RANKS];
    thread_ranks_run(&(struct thread_ranks){.world_size = RANKS}, write_as_rank, &writing, ends);
    for (size_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_BUG);
        assert_non_null(strstr(ends[rank].text, "t[5:6,0:1] is missing"));
    }
}

static ph_status write_alone(const char *path, ph_real number)
{
    struct ph__ranks alone = {.world_size = 1};
    return write_rows(&alone, &(struct writing){path, number, ROWS}, ROWS);
}

/* What stands there is whole, and of this number. */
static void expect_number(const char *path, ph_real number)
{
    ph_real numbers[ROWS] = {0};
    const struct ph_tensor whole = {.name = "t", .dtype = PH_REAL, .shape = {2, {ROWS, 1}}, .data = numbers};
    struct ph__folder *folder;
    assert_ok(ph__folder_open(path, &folder));
    assert_ok(ph__folder_check_seals(folder, 0, 1));
    assert_ok(ph__folder_load(folder, 1, &whole));
    ph__folder_close(folder);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(numbers[i] == number);
}

/* "PATH.tmp" and so on; in one of two places. */
static const char *behind(const char *path, const char *ending)
{
    static char text[1100];
    snprintf(text, sizeof text, "%s%s", path, ending);
    return text;
}

static void what_stands_there_stays_where_ranks_fail(void **state)
{
    (void)state;
    const char *path = test_path("again");
    write_by_ranks(path, 1);
    fail_by_ranks(path, 2);
    expect_number(path, 1);
    write_by_ranks(path, 3);
    expect_number(path, 3);
    assert_false(ph__file_exists(behind(path, ".tmp")));
}

static void ranks_take_the_place_of_a_file(void **state)
{
    (void)state;
    const char *path = test_path("file");
    assert_ok(write_alone(path, 1));
    fail_by_ranks(path, 2);
    expect_number(path, 1);
    write_by_ranks(path, 3);
    expect_number(path, 3);
    assert_true(ph__directory_exists(path) && !ph__file_exists(behind(path, ".tmp")));
}

/* Where it cannot write a file, the folder stays. */
static void a_rank_alone_takes_the_place_of_ranks(void **state)
{
    (void)state;
    const char *path = test_path("folder");
    if (access("/dev/full", W_OK) != 0)
        skip();
    write_by_ranks(path, 1);
    assert_int_equal(symlink("/dev/full", behind(path, ".tmp.tmp")), 0);
    assert_int_equal(symlink("/dev/full", behind(path, ".tmp")), 0);
    assert_int_equal(write_alone(path, 2), PH_ERROR_DISK);
    expect_number(path, 1);
    assert_int_equal(unlink(behind(path, ".tmp")), 0);
    (void)unlink(behind(path, ".tmp.tmp"));
    assert_ok(write_alone(path, 3));
    expect_number(path, 3);
    assert_false(ph__directory_exists(path) || ph__file_exists(behind(path, ".tmp")));
}

/* ---- reading ---- */

/* Each rank has one table as a whole; the last one, reading, has perhaps none. */
struct reading {
    const char *path;
    bool is_written, is_last_known;
};

static ph_status pass_table(struct ph__ranks *ranks, const struct reading *reading)
{
    static const char *const names[RANKS] = {"a", "b", "c"};
    ph_real number = (ph_real)ranks->rank;
    const struct ph_tensor table = {
        .name = names[ranks->rank], .dtype = PH_REAL, .shape = {2, {1, 1}}, .data = &number};
    struct ph__tensor_list list = {0};
    ph_status status = PH_OK;
    if (ranks->rank + 1 < RANKS || reading->is_last_known)
        status = ph__tensor_list_add(&list, &table);
    if (status == PH_OK)
        status = reading->is_written ? ph__rank_checkpoint_read(ranks, reading->path, &list)
                                     : ph__rank_checkpoint_write(ranks, reading->path, &list, NULL);
    ph__tensor_list_fini(&list);
    RANK_CHECK(status != PH_OK || number == (ph_real)ranks->rank);
    return status;
}

static ph_status pass_table_as_rank(struct ph_comm *comm, void *context)
{
    struct ph__plan_table tables[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    struct ph__plan plan = {.tables = tables, .num_tables = RANKS};
    struct ph__ranks ranks = {.comm = comm, .rank = ph_comm_rank(comm), .world_size = RANKS, .plan = &plan};
    ph_status status = PH_OK;
    for (size_t i = 0; i < RANKS && status == PH_OK; i++)
        status = ph__name_index_add(&plan.names, tables[i].name);
    if (status == PH_OK)
        status = pass_table(&ranks, context);
    ph__plan_fini(&plan);
    return status;
}

static void what_no_rank_wants_is_refused_by_all(void **state)
{
    (void)state;
    const struct thread_ranks ranks = {.world_size = RANKS};
    struct reading reading = {.path = test_path("surplus"), .is_last_known = true};
    struct thread_rank_end ends[RANKS];
    thread_ranks_run(&ranks, pass_table_as_rank, &reading, NULL);
    reading.is_written = true;
    thread_ranks_run(&ranks, pass_table_as_rank, &reading, NULL);
    reading.is_last_known = false;
    thread_ranks_run(&ranks, pass_table_as_rank, &reading, ends);
    for (size_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_CHECKPOINT);
        assert_non_null(strstr(ends[rank].text, "the model has no tensor 'c'"));
    }
}

/* ---- slow disks ---- */

/* How long a byte takes to be read, by whichever rank; 0: no longer than ever. */
static atomic_uint slow_ns;
static atomic_ullong num_slow_bytes;

/* In the C library's place, for all that is linked into this program. */
ssize_t pread(int descriptor, void *bytes, size_t size, off_t offset)
{
    const unsigned ns = atomic_load(&slow_ns);
    const ssize_t count = syscall(SYS_pread64, descriptor, bytes, size, offset);
    if (ns > 0 && count > 0) {
        const uint64_t all_ns = (uint64_t)count * ns;
        atomic_fetch_add(&num_slow_bytes, (unsigned long long)count);
        nanosleep(&(struct timespec){(time_t)(all_ns / 1000000000), (long)(all_ns % 1000000000)}, NULL);
    }
    return count;
}

enum { LONG_ROWS = 96, LONG_COLUMNS = 1 << 15, LONG_BYTES = LONG_ROWS * LONG_COLUMNS * sizeof(ph_real) };

/* A table that the first rank has alone. */
struct long_reading {
    const char *path;
    ph_real *numbers; /* (LONG_ROWS, LONG_COLUMNS) */
    char digits[65];
};

static ph_status pass_long_table(struct ph__ranks *ranks, const struct long_reading *reading,
    ph_status (*pass)(struct ph__ranks *ranks, const char *path, struct ph__tensor_list *list))
{
    const struct ph_tensor table = {
        .name = "t", .dtype = PH_REAL, .shape = {2, {LONG_ROWS, LONG_COLUMNS}}, .data = reading->numbers};
    struct ph__tensor_list list = {0};
    ph_status status = ranks->rank == 0 ? ph__tensor_list_add(&list, &table) : PH_OK;
    if (status == PH_OK)
        status = pass(ranks, reading->path, &list);
    ph__tensor_list_fini(&list);
    return status;
}

static ph_status write_list(struct ph__ranks *ranks, const char *path, struct ph__tensor_list *list)
{
    return ph__rank_checkpoint_write(ranks, path, list, NULL);
}

static ph_status read_list(struct ph__ranks *ranks, const char *path, struct ph__tensor_list *list)
{
    return ph__rank_checkpoint_read(ranks, path, list);
}

static ph_status read_as_rank(struct ph_comm *comm, void *context)
{
    struct ph__ranks ranks = {.comm = comm, .rank = ph_comm_rank(comm), .world_size = RANKS};
    return pass_long_table(&ranks, context, read_list);
}

static ph_status digest_as_rank(struct ph_comm *comm, void *context)
{
    const struct long_reading *reading = context;
    struct ph__ranks ranks = {.comm = comm, .rank = ph_comm_rank(comm), .world_size = RANKS};
    char digits[65];
    PH_TRY(ph__rank_checkpoint_digest(&ranks, reading->path, digits));
    RANK_CHECK(strcmp(digits, reading->digits) == 0);
    return PH_OK;
}

/* As long as it takes to read the table, ranks would not wait. */
static void run_slowly(thread_rank_run *run, struct long_reading *reading)
{
    const struct thread_ranks ranks = {.world_size = RANKS, .options = {.timeout_seconds = 1}};
    atomic_store(&num_slow_bytes, 0);
    atomic_store(&slow_ns, 1500000000 / LONG_BYTES);
    thread_ranks_run(&ranks, run, reading, NULL);
    atomic_store(&slow_ns, 0);
    assert_true(num_slow_bytes >= LONG_BYTES);
}

/* It is in one file, whose seal one rank checks. */
static void ranks_wait_for_the_one_that_reads_for_long(void **state)
{
    (void)state;
    struct long_reading reading = {.path = test_path("long"), .numbers = malloc(LONG_BYTES)};
    struct ph__ranks alone = {.world_size = 1};
    struct ph__folder *folder;
    assert_non_null(reading.numbers);
    for (size_t i = 0; i < LONG_ROWS * LONG_COLUMNS; i++)
        reading.numbers[i] = (ph_real)(i % 1000);
    assert_ok(pass_long_table(&alone, &reading, write_list));
    assert_ok(ph__folder_open(reading.path, &folder));
    assert_ok(ph__folder_digest(folder, NULL, reading.digits));
    ph__folder_close(folder);
    run_slowly(digest_as_rank, &reading);
    memset(reading.numbers, 0, LONG_BYTES);
    run_slowly(read_as_rank, &reading);
    for (size_t i = 0; i < LONG_ROWS * LONG_COLUMNS; i++)
        assert_true(reading.numbers[i] == (ph_real)(i % 1000));
    free(reading.numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_there_stays_where_ranks_fail),
        cmocka_unit_test(ranks_take_the_place_of_a_file),
        cmocka_unit_test(what_no_rank_wants_is_refused_by_all),
        cmocka_unit_test(a_rank_alone_takes_the_place_of_ranks),
        cmocka_unit_test(ranks_wait_for_the_one_that_reads_for_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
