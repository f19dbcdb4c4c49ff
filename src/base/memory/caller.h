/* What callers of the library hand over: buffers for texts (phloem/options.h). */
#ifndef PH_BASE_CALLER_H
#define PH_BASE_CALLER_H

#include "phloem/options.h"

/* Writes the text, cut to fit, into a buffer that is there. */
void ph__buffer_set(struct ph_buffer buffer, const char *text);

#endif
