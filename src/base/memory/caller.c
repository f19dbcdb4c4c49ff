#include "base/memory/caller.h"

#include <stdio.h>

void ph__buffer_set(struct ph_buffer buffer, const char *text)
{
    if (buffer.text != NULL)
        snprintf(buffer.text, buffer.size, "%s", text);
}
