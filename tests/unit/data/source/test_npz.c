#include "data/source/array_set.h"
#include "unit/data/array_fixture.h"

static const int32_t ids[] = {1, 2, 3, 4, 5, 6};

/* Two members, ids (3, 2) and labels (3). */
static struct archive make_archive(bool is_deflated, bool is_zip64)
{
    struct archive archive = {.is_zip64 = is_zip64};
    struct bytes first = {.size = 0}, second = {.size = 0};
    bytes_add_npy(&first, "<i4", "(3, 2)", ids, sizeof ids);
    bytes_add_npy(&second, "|u1", "(3,)", "\x00\x01\x01", 3);
    archive_add(&archive, "ids.npy", &first, is_deflated);
    archive_add(&archive, "labels.npy", &second, is_deflated);
    return archive;
}

/* Reads the directory and all rows of every member: the status, and the bytes of rows read. */
static ph_status read_all(const char *path, struct bytes *rows)
{
    struct ph__array_set set;
    rows->size = 0;
    ph_status status = ph__array_set_open(&set, path, false);
    for (size_t i = 0; status == PH_OK && i < set.num_arrays; i++) {
        struct ph__array_file *array = &set.arrays[i];
        const unsigned char *row = NULL;
        for (uint64_t k = 0; status == PH_OK && k < array->npy.num_rows; k++) {
            status = ph__array_file_next(array, &row);
            if (status == PH_OK)
                bytes_add(rows, row, array->npy.row_bytes);
        }
    }
    ph__array_set_close(&set);
    return status;
}

static void members_are_found_by_name(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        struct ph__arena arena = {0};
        struct ph__npz npz;
        struct bytes rows;
        struct archive archive = make_archive((variant & 1) != 0, (variant & 2) != 0);
        const char *path = archive_file(&archive, "two.npz");
        assert_ok(ph__npz_read(&arena, path, &npz));
        assert_int_equal(npz.num_members, 2);
        assert_non_null(ph__npz_find(&npz, "ids"));
        assert_int_equal(ph__npz_find(&npz, "labels")->is_deflated, variant & 1);
        assert_null(ph__npz_find(&npz, "ids.npy"));
        assert_ok(read_all(path, &rows));
        assert_int_equal(rows.size, sizeof ids + 3);
        assert_memory_equal(rows.data, ids, sizeof ids);
        assert_memory_equal(rows.data + sizeof ids, "\x00\x01\x01", 3);
        ph__arena_fini(&arena);
    }
}

/* A changed byte may be one that says nothing (a time, a version): then the rows are as they were. */
static void a_changed_byte_is_found_or_says_nothing(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        struct archive archive = make_archive((variant & 1) != 0, (variant & 2) != 0);
        struct bytes rows, good;
        assert_ok(read_all(archive_file(&archive, "good.npz"), &good));
        FILE *file = fopen(test_write_file("changed.npz", ""), "wb+");
        char path[4096];
        snprintf(path, sizeof path, "%s/changed.npz", test_folder());
        size_t num_found = 0;
        for (size_t at = 0; at < archive.bytes.size; at++) {
            archive.bytes.data[at] ^= 0x15;
            rewind(file);
            assert_int_equal(fwrite(archive.bytes.data, 1, archive.bytes.size, file), archive.bytes.size);
            fflush(file);
            archive.bytes.data[at] ^= 0x15;
            if (read_all(path, &rows) != PH_OK) {
                num_found++;
                continue;
            }
            /* a member whose name has changed is still the same bytes */
            assert_int_equal(rows.size, good.size);
            assert_memory_equal(rows.data, good.data, good.size);
        }
        assert_true(num_found > archive.bytes.size / 2);
        fclose(file);
    }
}

static void every_cut_is_found(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        struct archive archive = make_archive((variant & 1) != 0, (variant & 2) != 0);
        struct bytes rows;
        archive_file(&archive, "whole.npz");
        for (size_t size = 0; size < archive.bytes.size; size += 7) {
            struct bytes cut = {.size = size};
            memcpy(cut.data, archive.bytes.data, size);
            char path[4096];
            snprintf(path, sizeof path, "%s/cut.npz", test_folder());
            FILE *file = fopen(path, "wb");
            fwrite(cut.data, 1, size, file);
            fclose(file);
            assert_fails(read_all(path, &rows), PH_ERROR_DATA, "cut.npz: ");
        }
    }
}

static void a_wrong_crc_names_the_member(void **state)
{
    (void)state;
    struct archive archive = make_archive(false, false);
    struct bytes rows;
    for (size_t i = 0; i + 4 <= archive.bytes.size; i++)
        if (memcmp(archive.bytes.data + i, &ids[5], 4) == 0)
            archive.bytes.data[i] = 7;
    assert_fails(read_all(archive_file(&archive, "crc.npz"), &rows), PH_ERROR_DATA, "its CRC does not match");
}

static void unknown_compression_and_encryption_are_refused(void **state)
{
    (void)state;
    struct bytes rows;
    struct archive archive = make_archive(false, false);
    archive.directory.data[10] = 14; /* LZMA */
    assert_fails(read_all(archive_file(&archive, "lzma.npz"), &rows), PH_ERROR_DATA, "method 14");
    archive = make_archive(false, false);
    archive.directory.data[8] = 1;
    assert_fails(read_all(archive_file(&archive, "secret.npz"), &rows), PH_ERROR_DATA, "is encrypted");
}

static void what_is_no_archive_is_refused(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__npz npz;
    struct bytes rows;
    assert_fails(read_all(test_write_file("text.npz", "label,C1\n0,1\n, and more of the same\n"), &rows),
        PH_ERROR_DATA, "not a .npz archive");
    assert_fails(read_all(test_write_file("empty.npz", ""), &rows), PH_ERROR_DATA, "not a .npz archive");
    assert_fails(ph__npz_read(&arena, test_folder(), &npz), PH_ERROR_DATA, "not a file");
    ph__arena_fini(&arena);
}

/* A row may be gone to, stored or deflated; what follows it is the same. */
static void rows_can_be_gone_to(void **state)
{
    (void)state;
    for (int is_deflated = 0; is_deflated <= 1; is_deflated++) {
        struct archive archive = make_archive(is_deflated != 0, false);
        const char *path = archive_file(&archive, "seek.npz");
        for (uint64_t row = 0; row <= 3; row++) {
            struct ph__array_set set;
            const unsigned char *bytes;
            assert_ok(ph__array_set_open(&set, path, false));
            struct ph__array_file *array = &set.arrays[0]; /* ids */
            assert_ok(ph__array_file_seek(array, row));
            for (uint64_t k = row; k < 3; k++) {
                assert_ok(ph__array_file_next(array, &bytes));
                assert_memory_equal(bytes, &ids[2 * k], 8);
            }
            ph__array_set_close(&set);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_by_name),
        cmocka_unit_test(a_changed_byte_is_found_or_says_nothing),
        cmocka_unit_test(every_cut_is_found),
        cmocka_unit_test(a_wrong_crc_names_the_member),
        cmocka_unit_test(unknown_compression_and_encryption_are_refused),
        cmocka_unit_test(what_is_no_archive_is_refused),
        cmocka_unit_test(rows_can_be_gone_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
