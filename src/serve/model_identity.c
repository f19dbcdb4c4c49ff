#include "serve/model_identity.h"

#include <string.h>

#include "base/number.h"
#include "model/model_options.h"

ph_status ph__model_identity(const struct ph_model_settings *settings, double negative_rate,
    struct ph_arena *arena, const char **text_out)
{
    const char *text = NULL;
    char rate[PH_NUMBER_TEXT_BYTES];
    PH_TRY(ph__model_changes(settings, arena, &text));
    if (negative_rate > 0 && negative_rate < 1)
        text = ph__arena_printf(
            arena, "%sdata.negative_rate=%s\n", text, ph__number_format(negative_rate, rate));
    *text_out = text;
    return text != NULL ? PH_OK : PH_ERROR_MEMORY; /* said by the arena */
}

/* The first line of `text` that is none of `other`; its length is 0 when there is none. */
static const char *line_missing(const char *text, const char *other, size_t *length_out)
{
    for (const char *line = text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char *at = other;
        while (*at != '\0' && (strncmp(at, line, length) != 0 || (at[length] != '\n' && at[length] != '\0')))
            at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
        *length_out = length;
        if (*at == '\0')
            return line;
        line += length + (line[length] == '\n');
    }
    *length_out = 0;
    return text;
}

ph_status ph__model_identity_check(const char *path, const char *trained, const char *wanted)
{
    size_t length;
    const char *line = line_missing(trained, wanted, &length);
    if (length > 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: was trained with %.*s, and its config says something else",
            path, (int)length, line);
    line = line_missing(wanted, trained, &length);
    if (length > 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: was not trained with %.*s, which its config says", path,
            (int)length, line);
    return PH_OK;
}
