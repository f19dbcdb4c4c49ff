/* All operators by name, from ops.def: for inspection and for tests that go through every operator. */
#ifndef PH_OP_REGISTRY_H
#define PH_OP_REGISTRY_H

#include "graph/op.h"

#define X(name, no_gradient) extern const struct ph__op ph__op_##name;
#include "op/ops.def"
#undef X

struct ph__registered_op {
    const struct ph__op *op;
    const char *no_gradient; /* why the operator has no gradient rule; NULL: it has one */
};

size_t ph__registry_count(void);
struct ph__registered_op ph__registry_at(size_t index); /* in the order of ops.def */
const struct ph__op *ph__op_find(const char *name);     /* NULL: no such operator */

#endif
