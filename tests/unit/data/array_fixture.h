/* What the tests of arrays share: .npy and .npz files made byte by byte, by nothing of what reads them. */
#ifndef PH_TEST_ARRAY_FIXTURE_H
#define PH_TEST_ARRAY_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

#define MAX_ARCHIVE_BYTES 65536

struct bytes {
    unsigned char data[MAX_ARCHIVE_BYTES];
    size_t size;
};

static inline void bytes_add(struct bytes *bytes, const void *data, size_t size)
{
    assert_true(bytes->size + size <= sizeof bytes->data);
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

/* A little-endian number of so many bytes. */
static inline void bytes_add_number(struct bytes *bytes, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++, number >>= 8)
        bytes_add(bytes, &(unsigned char){(unsigned char)number}, 1);
}

/* Version 1.0 with the dictionary as it is given. */
static inline void bytes_add_npy_header(struct bytes *bytes, const char *dictionary)
{
    bytes_add(bytes, "\x93NUMPY\x01\x00", 8);
    bytes_add_number(bytes, strlen(dictionary), 2);
    bytes_add(bytes, dictionary, strlen(dictionary));
}

/* A whole array: shape as Python writes it, "(3, 4)". */
static inline void bytes_add_npy(
    struct bytes *bytes, const char *type, const char *shape, const void *rows, size_t size)
{
    char dictionary[256];
    snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", type,
        shape);
    bytes_add_npy_header(bytes, dictionary);
    bytes_add(bytes, rows, size);
}

/* Into the test's folder; the path stays reachable until the program ends. */
static inline const char *array_file(const char *name, const struct bytes *bytes)
{
    const char *path = test_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes->data, 1, bytes->size, file), bytes->size);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline const char *npy_file(
    const char *name, const char *type, const char *shape, const void *rows, size_t size)
{
    struct bytes bytes = {.size = 0};
    bytes_add_npy(&bytes, type, shape, rows, size);
    return array_file(name, &bytes);
}

/* The CRC-32 of ZIP, bit by bit. */
static inline uint32_t crc_bit_by_bit(const unsigned char *data, size_t size)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

/* An archive in the making. Deflated members are blocks that deflate stores, which needs no compressor. */
struct archive {
    struct bytes bytes, directory;
    size_t num_members;
    bool is_zip64; /* every size and place in Zip64 fields */
};

static inline void deflate_stored(const struct bytes *from, struct bytes *to)
{
    for (size_t at = 0; at < from->size; at += 1000) {
        size_t count = from->size - at < 1000 ? from->size - at : 1000;
        bytes_add_number(to, at + count == from->size ? 1 : 0, 1);
        bytes_add_number(to, count, 2);
        bytes_add_number(to, ~count & 0xffff, 2);
        bytes_add(to, from->data + at, count);
    }
}

static inline void archive_add(
    struct archive *archive, const char *name, const struct bytes *array, bool is_deflated)
{
    struct bytes packed = {.size = 0};
    if (is_deflated)
        deflate_stored(array, &packed);
    else
        bytes_add(&packed, array->data, array->size);
    size_t local_byte = archive->bytes.size, name_bytes = strlen(name), extra = archive->is_zip64 ? 28 : 0;
    uint32_t crc = crc_bit_by_bit(array->data, array->size);
    for (int is_entry = 0; is_entry <= 1; is_entry++) {
        struct bytes *to = is_entry ? &archive->directory : &archive->bytes;
        bytes_add(to, is_entry ? "PK\x01\x02" : "PK\x03\x04", 4);
        bytes_add_number(to, 45, is_entry ? 4 : 2);
        bytes_add_number(to, 0, 2);
        bytes_add_number(to, is_deflated ? 8 : 0, 2);
        bytes_add_number(to, 0, 4);
        bytes_add_number(to, crc, 4);
        bytes_add_number(to, archive->is_zip64 ? 0xffffffffu : packed.size, 4);
        bytes_add_number(to, archive->is_zip64 ? 0xffffffffu : array->size, 4);
        bytes_add_number(to, name_bytes, 2);
        bytes_add_number(to, is_entry ? extra : 0, 2);
        if (is_entry)
            bytes_add_number(to, 0, 10);
        if (is_entry)
            bytes_add_number(to, archive->is_zip64 ? 0xffffffffu : local_byte, 4);
        bytes_add(to, name, name_bytes);
    }
    if (archive->is_zip64) {
        bytes_add_number(&archive->directory, 1, 2);
        bytes_add_number(&archive->directory, 24, 2);
        bytes_add_number(&archive->directory, array->size, 8);
        bytes_add_number(&archive->directory, packed.size, 8);
        bytes_add_number(&archive->directory, local_byte, 8);
    }
    bytes_add(&archive->bytes, packed.data, packed.size);
    archive->num_members++;
}

/* Ends the archive: the directory, and where it is. */
static inline const char *archive_file(struct archive *archive, const char *name)
{
    struct bytes *bytes = &archive->bytes;
    size_t directory_byte = bytes->size, count = archive->num_members;
    bytes_add(bytes, archive->directory.data, archive->directory.size);
    if (archive->is_zip64) {
        size_t end_byte = bytes->size;
        bytes_add(bytes, "PK\x06\x06", 4);
        bytes_add_number(bytes, 44, 8);
        bytes_add_number(bytes, 0, 12);
        bytes_add_number(bytes, count, 8);
        bytes_add_number(bytes, count, 8);
        bytes_add_number(bytes, archive->directory.size, 8);
        bytes_add_number(bytes, directory_byte, 8);
        bytes_add(bytes, "PK\x06\x07", 4);
        bytes_add_number(bytes, 0, 4);
        bytes_add_number(bytes, end_byte, 8);
        bytes_add_number(bytes, 1, 4);
    }
    bytes_add(bytes, "PK\x05\x06", 4);
    bytes_add_number(bytes, 0, 4);
    bytes_add_number(bytes, archive->is_zip64 ? 0xffff : count, 2);
    bytes_add_number(bytes, archive->is_zip64 ? 0xffff : count, 2);
    bytes_add_number(bytes, archive->is_zip64 ? 0xffffffffu : archive->directory.size, 4);
    bytes_add_number(bytes, archive->is_zip64 ? 0xffffffffu : directory_byte, 4);
    bytes_add_number(bytes, 0, 2);
    return array_file(name, bytes);
}

#endif
