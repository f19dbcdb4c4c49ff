#include "base/memory/caller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "phloem/version.h"

#define MOST_NEW_BYTES 4096 /* growth in newer versions: a larger size is garbage, not to be read */

static ph_status read_size(const void *given, size_t own_size, const char *name, size_t *size_out)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size || size > own_size + MOST_NEW_BYTES)
        return ph_fail(
            PH_ERROR_USAGE, "struct %s: .size is %zu: set it to sizeof(struct %s)", name, size, name);
    *size_out = size;
    return PH_OK;
}

ph_status ph__options_copy(void *own, size_t own_size, const void *given, const char *name)
{
    size_t size = 0;
    memset(own, 0, own_size);
    if (given != NULL) {
        PH_TRY(read_size(given, own_size, name, &size));
        memcpy(own, given, ph__min(size, own_size));
    }
    memcpy(own, &own_size, sizeof own_size);
    for (size_t i = own_size; i < size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return ph_fail(PH_ERROR_USAGE,
                "struct %s: byte %zu is not zero, but the struct of phloem %s has only %zu bytes: use a "
                "newer library, or set new members to zero",
                name, i, ph_version(), own_size);
    return PH_OK;
}

ph_status ph__options_give(const void *own, size_t own_size, void *given_out, const char *name)
{
    size_t size;
    PH_TRY(read_size(given_out, own_size, name, &size));
    memcpy((char *)given_out + sizeof size, (const char *)own + sizeof size,
        ph__min(size, own_size) - sizeof size);
    return PH_OK;
}

void ph__buffer_set(struct ph_buffer buffer, const char *text)
{
    if (buffer.text != NULL)
        snprintf(buffer.text, buffer.size, "%s", text);
}

void ph_text_free(char *text)
{
    free(text);
}
