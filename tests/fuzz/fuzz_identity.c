/* What weights say of the model that they are of: what is accepted makes settings whose own text makes the
 * same ones. */
#include <string.h>

#include "data/data_options.h"
#include "model/model_options.h"
#include "serve/model_identity.h"
#include "support/fuzz_support.h"

/* The identity of the model that the text tells of, NULL when it is refused. */
static const char *tell_again(const char *text, struct ph__arena *arena)
{
    struct ph_data_settings data;
    struct ph__model_section model;
    struct ph__section sections[1 + PH_NUM_MODEL_SECTIONS] = {{&ph__data_options, &data}};
    const size_t num_sections = 1 + ph__model_sections(&model, sections + 1);
    const char *const *sets = NULL;
    const char *again = NULL;
    size_t num_sets = 0;
    const ph_status status = ph__model_identity_sets("weights", text, arena, &sets, &num_sets);
    fuzz_require(status == PH_OK || status == PH_ERROR_CHECKPOINT);
    if (status != PH_OK)
        return NULL;
    fuzz_require(ph__config_read(NULL, sets, num_sets, sections, num_sections, arena) == PH_OK);
    fuzz_require(ph__model_section_finish(&model, NULL, arena) == PH_OK);
    fuzz_require(ph__model_identity(&model.settings, data.reading.negative_rate, arena, &again) == PH_OK);
    return again;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ph__arena arena = {0};
    char *text = ph__arena_alloc(&arena, size + 1);
    fuzz_require(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    const char *first = tell_again(text, &arena);
    if (first != NULL) {
        const char *second = tell_again(first, &arena);
        fuzz_require(second != NULL && strcmp(first, second) == 0);
    }
    ph__arena_fini(&arena);
    return 0;
}
