/* Cutting a line into cells, in place. */
#ifndef PH_DATA_CELL_H
#define PH_DATA_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/encode/text_hash.h"

/* A cell in double quotes from `start` (behind the opening one) on: doubled quotes become one. Returns its
 * length and sets *end to the character behind the closing quote; SIZE_MAX when there is no closing quote. */
static inline size_t ph__cell_unquote(char *start, char **end)
{
    char *write = start;
    for (char *read = start; *read != '\0'; read++) {
        if (*read == '"') {
            if (read[1] != '"') {
                *end = read + 1;
                return (size_t)(write - start);
            }
            read++;
        }
        *write++ = *read;
    }
    return SIZE_MAX;
}

/* The first separator at or behind `at`, or `end`: eight bytes at a time. A byte of `word` that equals the separator is zero
 * after the exclusive or, and the lowest zero byte is where the subtraction first borrows into a byte's high bit. */
static inline char *ph__cell_end(char *at, char *end, char separator)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    const uint64_t pattern = ones * (unsigned char)separator;
    for (; end - at >= 8; at += 8) {
        uint64_t different = ph__text_full_word(at) ^ pattern;
        uint64_t zeros = (different - ones) & ~different & highs;
        if (zeros != 0)
            return at + __builtin_ctzll(zeros) / 8;
    }
    while (at < end && *at != separator)
        at++;
    return at;
}

/* Cuts the cell at *cursor off and moves *cursor behind its separator, to NULL after the line's last cell.
 * The cell is NUL-terminated in place. False when a quote is not closed or text follows it; then the line is
 * spoilt. */
static inline bool ph__cell_next(
    char **cursor, char *line_end, char separator, bool has_quotes, char **cell_out, size_t *length_out)
{
    char *cell = *cursor;
    char *end = cell;
    if (has_quotes && *cell == '"') {
        cell++;
        *length_out = ph__cell_unquote(cell, &end);
        if (*length_out == SIZE_MAX || (*end != separator && end != line_end))
            return false;
    } else {
        end = ph__cell_end(cell, line_end, separator);
        *length_out = (size_t)(end - cell);
    }
    *cursor = end == line_end ? NULL : end + 1;
    cell[*length_out] = '\0';
    *cell_out = cell;
    return true;
}

#endif
