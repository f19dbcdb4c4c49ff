/* Cutting a line into cells, in place. */
#ifndef PH_DATA_CELL_H
#define PH_DATA_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Cuts the cell at *cursor off and moves *cursor behind its separator, to NULL after the line's last cell.
 * The cell is NUL-terminated in place. False when a quote is not closed or text follows it; then the line is
 * spoilt. */
static inline bool ph__cell_next(
    char **cursor, char separator, bool has_quotes, char **cell_out, size_t *length_out)
{
    char *cell = *cursor;
    char *end = cell;
    if (has_quotes && *cell == '"') {
        cell++;
        *length_out = ph__cell_unquote(cell, &end);
        if (*length_out == SIZE_MAX || (*end != separator && *end != '\0'))
            return false;
    } else {
        while (*end != separator && *end != '\0')
            end++;
        *length_out = (size_t)(end - cell);
    }
    *cursor = *end == '\0' ? NULL : end + 1;
    cell[*length_out] = '\0';
    *cell_out = cell;
    return true;
}

#endif
