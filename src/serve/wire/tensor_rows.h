/* Rows of tensors: the inputs of a request, encoded row by row as training encoded its data. An input is a
 * column by its name; a list is col__values and col__offsets, with col__weights where it is weighted (Merlin
 * systems#388); or one input `lines` has rows as text, in the format of the training data. */
#ifndef PH_SERVE_TENSOR_ROWS_H
#define PH_SERVE_TENSOR_ROWS_H

#include "serve/session.h"
#include "serve/wire/wire_tensor.h"

/* Source of one column of the session. */
struct ph__tensor_column {
    const struct ph__tensor *values;  /* NULL: the column is absent, and its cells are blank */
    const struct ph__tensor *offsets; /* (rows + 1), of a list; NULL: one value a row */
    const struct ph__tensor *weights; /* as many as values; NULL: all 1 */
    const unsigned char *floats;      /* (rows) of values that go into rows as they are; NULL: they do not */
};

struct ph__tensor_rows {
    size_t num_rows;
    const struct ph__tensor *lines;    /* (num_rows); NULL: columns */
    struct ph__tensor_column *columns; /* those of the session; in the arena */
};

/* Tells whether a tensor of this name belongs to one of these columns. */
bool ph__tensor_rows_has(const struct ph__name_index *columns, struct ph__bytes name);

/* Matches tensors with a session's columns; both are borrowed while rows are encoded. PH_ERROR_DATA names the
 * tensor and says what does not fit. */
ph_status ph__tensor_rows_match(const struct ph_session *session, const struct ph__tensor *tensors,
    size_t num_tensors, struct ph__arena *arena, struct ph__tensor_rows *rows_out);

/* Encodes row `row` behind those in the context. PH_ERROR_DATA names row and column. Any number of threads
 * may encode rows at once, each with a context of its own. */
ph_status ph__tensor_rows_encode(const struct ph__tensor_rows *rows, const struct ph_session *session,
    struct ph__context *context, size_t row);

#endif
