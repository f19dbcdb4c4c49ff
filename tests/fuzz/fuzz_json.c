/* JSON: what is read and written again is the same text when it is read and written once more. No text looks
 * like one that there was no memory for. */
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "support/fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ph__json *json = NULL;
    char *texts[2] = {NULL, NULL};
    const int indent = (int)(size % 3);
    const ph_status status = ph__json_parse((const char *)data, size, "input", PH_ERROR_DATA, &json);
    fuzz_require(status != PH_ERROR_MEMORY);
    if (status != PH_OK)
        return 0;
    fuzz_require(ph__json_text(json, indent, &texts[0]) == PH_OK);
    ph__json_destroy(json);
    fuzz_require(ph__json_parse(texts[0], strlen(texts[0]), "text", PH_ERROR_DATA, &json) == PH_OK);
    fuzz_require(ph__json_text(json, indent, &texts[1]) == PH_OK);
    ph__json_destroy(json);
    fuzz_require(strcmp(texts[0], texts[1]) == 0);
    free(texts[0]);
    free(texts[1]);
    return 0;
}
