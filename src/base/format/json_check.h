/* Whether a document is what its text says: for json.c, which reads documents. */
#ifndef PH_BASE_JSON_CHECK_H
#define PH_BASE_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/format/json.h"

/* `json` was read from the text without an error. False: memory was lacking on the way, and it has lost something. */
bool ph__json_is_text(const struct ph_json *json, const char *text, size_t size);

#endif
