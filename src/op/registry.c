/* The table of all operators, made from ops.def. */
#include "op/registry.h"

#include <string.h>

static const struct ph__registered_op registry[] = {
#define X(name, no_gradient) {&ph__op_##name, no_gradient},
#include "op/ops.def"
#undef X
};

size_t ph__registry_count(void)
{
    return sizeof registry / sizeof registry[0];
}

struct ph__registered_op ph__registry_at(size_t index)
{
    return registry[index];
}

const struct ph__op *ph__op_find(const char *name)
{
    for (size_t i = 0; i < ph__registry_count(); i++)
        if (strcmp(registry[i].op->name, name) == 0)
            return registry[i].op;
    return NULL;
}
