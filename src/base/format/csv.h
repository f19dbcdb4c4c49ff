/* Cells of CSV files by RFC 4180. Commas and ends of lines are the caller's. */
#ifndef PH_BASE_CSV_H
#define PH_BASE_CSV_H

#include "base/file/stream.h"

ph_status ph__csv_write_text(struct ph_writer *writer, const char *text); /* quoted */
ph_status ph__csv_write_number(struct ph_writer *writer, double number);  /* nothing where it is not finite */

#endif
