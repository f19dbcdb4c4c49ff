/* Rows of a table in each format (enum ph_row_format): their bytes, encoding and decoding.
 *
 * A row lies without gaps, its numbers first:
 *   fp32         dim ph_real
 *   fp16, bf16   dim words of 16 bits
 *   bf16_split   the same; the low words (float16.h) are in an array of their own
 *   int8         dim bytes q, then float scale, float offset: number d is scale * q_d + offset
 *   int4         (dim + 1) / 2 bytes, the even number of a pair in the lower four bits,
 *                then scale and offset as halves
 * The layouts of int8 and int4 are fbgemm's. Bytes of zeros are a row of zeros in every format. Multi-byte
 * values are in the machine's order and need no alignment.
 *
 * Words of 16 bits keep NaN and infinity, and too large a number becomes infinity. In int8 and int4 one such
 * number makes its whole row read as NaN. So does a row of int4 beyond the range of halves, and one of int8
 * whose numbers lie further apart than the largest float. */
#ifndef PH_TENSOR_ROW_FORMAT_H
#define PH_TENSOR_ROW_FORMAT_H

#include <stdbool.h>

#include "phloem/status.h"
#include "phloem/tensor.h"

/* Parses the name of a format. PH_ERROR_USAGE, naming `what` and all formats, for an unknown one. */
ph_status ph__row_format_parse(const char *what, const char *text, enum ph_row_format *format_out);

size_t ph__row_bytes(enum ph_row_format format, size_t dim);

/* Returns the bytes of all rows and of the low words, which lie behind the rows. */
size_t ph__table_bytes(enum ph_row_format format, size_t rows, size_t dim);

/* Returns true when update operators can change such rows. */
bool ph__row_format_is_learnt(enum ph_row_format format);

/* Returns the format, or fp32 where rows of this dim would not be smaller (int8 and int4 of few numbers). */
enum ph_row_format ph__row_format_fitting(enum ph_row_format format, size_t dim);

/* Encodes (rows, dim) into rows * ph__row_bytes(format, dim) bytes, each number the nearest. The caller
 * rounds to nearest (base/thread/cpu.h). low gets the low words, (rows, dim), of bf16_split; NULL: unwanted,
 * or another format. */
void ph__rows_encode(
    enum ph_row_format format, size_t rows, size_t dim, const ph_real *numbers, void *encoded, uint16_t *low);

/* Decodes number `d` of a row, without its low word. */
ph_real ph__row_number(enum ph_row_format format, size_t dim, const void *row, size_t d);

#endif
