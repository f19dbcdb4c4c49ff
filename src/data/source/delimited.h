/* Rows of cells between separators: how the cells of a line meet the columns of an encoder.
 * Whoever has lines – a source over a file, a serving program – matches once and then encodes line by line. */
#ifndef PH_DATA_DELIMITED_H
#define PH_DATA_DELIMITED_H

#include "data/encode/row_encoder.h"
#include "data/source/header.h"

/* The columns that each cell of a line goes to, several when they are made from one; none: it is skipped. */
struct ph__delimited { /* zero-initialised is empty */
    const struct ph_encoder *encoder;
    size_t num_cells;
    size_t *first;                     /* (num_cells + 1) into columns */
    const struct ph__column **columns; /* the encoder's; those of cell i are [first[i], first[i + 1]) */
};

/* By name, in any order. `where` names the file. What the file must not lack: every column but ignored ones, and, where
 * no labels are needed, labels, weight and group. */
ph_status ph__delimited_match_header(struct ph__delimited *delimited, const struct ph_encoder *encoder,
    const struct ph__header *header, bool needs_no_labels, const char *where);

/* By position: the cells are the columns of the file that the encoder was made for, with or without its labels. */
ph_status ph__delimited_match_positions(
    struct ph__delimited *delimited, const struct ph_encoder *encoder, bool has_labels);
void ph__delimited_fini(struct ph__delimited *delimited);

/* How many cells a line has. What a quote that is not closed begins is one cell. */
size_t ph__delimited_count(const struct ph_encoder *encoder, const char *line);

/* Gives the cells of a line, NUL-terminated at line[line_length], to a row that has begun. The line is written over, and stays until the row's
 * commit. PH_ERROR_DATA: what is wrong, without a place. */
ph_status ph__delimited_encode(
    const struct ph__delimited *delimited, struct ph__row_encoder *row, char *line, size_t line_length);

#endif
