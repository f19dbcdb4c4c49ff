#include "store/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/test_support.h"

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static unsigned char *read_all(const char *path, size_t *size_out)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    unsigned char *bytes = calloc(1, 4096);
    assert_non_null(bytes);
    *size_out = fread(bytes, 1, 4095, file);
    fclose(file);
    return bytes;
}

/* Two single bytes and two floats: floats first, then by name, whatever order they are given in. */
static void the_bytes_are_those_of_the_format(void **state)
{
    (void)state;
    uint8_t one = 'A', two = 'B';
    float numbers[2] = {1, -2};
    const struct ph_tensor tensors[] = {
        {.name = "zwei", .dtype = PH_U8, .shape = {1, {1}}, .data = &two},
        {.name = "eins", .dtype = PH_U8, .shape = {0, {0}}, .data = &one},
        {.name = "floats", .dtype = PH_F32, .shape = {2, {1, 2}}, .data = numbers},
    };
    const char *metadata[] = {"model", "LR", NULL};
    const char *path = path_of("bytes.safetensors");
    assert_ok(ph__safetensors_write(path, 3, tensors, metadata));

    size_t size;
    unsigned char *bytes = read_all(path, &size);
    const size_t length = bytes[0] + (size_t)bytes[1] * 256;
    for (size_t i = 2; i < 8; i++)
        assert_int_equal(bytes[i], 0);
    assert_int_equal(length % 8, 0);
    assert_int_equal(size, 8 + length + 10);
    static const unsigned char data[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 'A', 'B'};
    assert_memory_equal(bytes + 8 + length, data, sizeof data);
    const char *header = (const char *)bytes + 8;
    assert_int_equal(header[0], '{');
    assert_non_null(strstr(header, "__metadata__"));
    assert_true(strstr(header, "\"floats\"") < strstr(header, "\"eins\""));
    assert_true(strstr(header, "\"eins\"") < strstr(header, "\"zwei\""));
    free(bytes);
}

static void a_written_file_is_read_back(void **state)
{
    (void)state;
    double wide[3] = {1.5, -0.0, 1e300};
    int64_t integers[2] = {INT64_MIN, INT64_MAX};
    const struct ph_tensor tensors[] = {
        {.name = "a \"quoted\" name\n", .dtype = PH_F64, .shape = {1, {3}}, .data = wide},
        {.name = "integers", .dtype = PH_I64, .shape = {2, {2, 1}}, .data = integers},
        {.name = "empty", .dtype = PH_F32, .shape = {2, {0, 9}}, .data = NULL},
    };
    const char *path = path_of("back.safetensors");
    assert_ok(ph__safetensors_write(path, 3, tensors, NULL));
    struct ph__safetensors *file;
    assert_ok(ph__safetensors_open(path, &file));
    double wide_back[3];
    int64_t integers_back[2];
    assert_ok(ph__safetensors_read(file, ph__safetensors_find(file, tensors[0].name), wide_back));
    assert_ok(ph__safetensors_read(file, ph__safetensors_find(file, "integers"), integers_back));
    assert_memory_equal(wide, wide_back, sizeof wide);
    assert_memory_equal(integers, integers_back, sizeof integers);
    assert_int_equal(ph__safetensors_tensor(file, ph__safetensors_find(file, "empty")).shape.dims[1], 9);
    ph__safetensors_close(file);
}

/* The seal was made by sha256sum, of the same file with zeros in its place, the checksum by Python's
 * xxhash. */
static void the_seal_is_the_first_key_and_the_sum_of_the_file(void **state)
{
    (void)state;
    uint8_t byte = 'A';
    const struct ph_tensor tensor = {.name = "a", .dtype = PH_U8, .shape = {1, {1}}, .data = &byte};
    const char *metadata[] = {"model", "LR", NULL};
    const char *path = path_of("sealed.safetensors");
    assert_ok(ph__safetensors_write(path, 1, &tensor, metadata));
    static const char expected[] =
        "{\"__metadata__\":{\"sha256\":\"da3d0f73d5ad66dca3fd10c3b2c7bb09804b82704e7264536287a107dcc3bd1a\","
        "\"model\":\"LR\",\"tensor_checksums\":\"d0d496e05c553485\"},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    size_t size;
    unsigned char *bytes = read_all(path, &size);
    assert_memory_equal(bytes + 8, expected, sizeof expected - 1);
    free(bytes);
    struct ph__safetensors *file;
    assert_ok(ph__safetensors_open(path, &file));
    assert_true(ph__safetensors_is_sealed(file));
    assert_ok(ph__safetensors_check_seal(file, &(struct ph__meanwhile){0}));
    uint64_t checksum;
    assert_true(ph__safetensors_checksum(file, 0, &checksum));
    assert_int_equal(checksum, 0xd0d496e05c553485);
    ph__safetensors_close(file);
}

static void two_tensors_of_one_name_are_refused(void **state)
{
    (void)state;
    uint8_t byte = 0;
    float number = 0;
    const struct ph_tensor tensors[] = {{.name = "a", .dtype = PH_U8, .shape = {0, {0}}, .data = &byte},
        {.name = "b", .dtype = PH_U8, .shape = {0, {0}}, .data = &byte},
        {.name = "a", .dtype = PH_F32, .shape = {0, {0}}, .data = &number}};
    const char *path = path_of("twice.safetensors");
    assert_fails(ph__safetensors_write(path, 3, tensors, NULL), PH_ERROR_BUG, "'a'");
    assert_int_not_equal(access(path, F_OK), 0);
}

static void an_unwritable_folder_is_named(void **state)
{
    (void)state;
    uint8_t byte = 0;
    const struct ph_tensor tensor = {.name = "a", .dtype = PH_U8, .shape = {0, {0}}, .data = &byte};
    const char *path = path_of("no/such/folder.safetensors");
    assert_fails(ph__safetensors_write(path, 1, &tensor, NULL), PH_ERROR_DISK, "no/such/folder");
    if (geteuid() == 0)
        return; /* permissions bind nobody else */
    assert_int_equal(mkdir(path_of("closed"), 0500), 0);
    path = path_of("closed/a.safetensors");
    assert_fails(ph__safetensors_write(path, 1, &tensor, NULL), PH_ERROR_DISK, "closed/a");
}

/* The temporary file is a link to a device that is always full. */
static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        test_skip("/dev/full cannot be written here");
    uint8_t old = 1;
    uint8_t *large = calloc(1, 1 << 20);
    const struct ph_tensor small = {.name = "a", .dtype = PH_U8, .shape = {0, {0}}, .data = &old};
    const struct ph_tensor tensor = {.name = "a", .dtype = PH_U8, .shape = {1, {1 << 20}}, .data = large};
    char path[512], temporary[520];
    snprintf(path, sizeof path, "%s", path_of("full.safetensors"));
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    assert_ok(ph__safetensors_write(path, 1, &small, NULL));
    assert_int_equal(symlink("/dev/full", temporary), 0);
    assert_fails(ph__safetensors_write(path, 1, &tensor, NULL), PH_ERROR_DISK, path);
    unlink(temporary);
    struct ph__safetensors *file;
    assert_ok(ph__safetensors_open(path, &file));
    assert_int_equal(ph__safetensors_tensor(file, 0).shape.num_dims, 0);
    ph__safetensors_close(file);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_of_the_format),
        cmocka_unit_test(a_written_file_is_read_back),
        cmocka_unit_test(the_seal_is_the_first_key_and_the_sum_of_the_file),
        cmocka_unit_test(two_tensors_of_one_name_are_refused),
        cmocka_unit_test(an_unwritable_folder_is_named),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
