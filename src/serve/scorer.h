/* What a scorer tells to other rooms. */
#ifndef PH_SERVE_SCORER_H
#define PH_SERVE_SCORER_H

#include "phloem/serve.h"

/* As they were given; owned by the scorer. */
const struct ph_scorer_options *ph__scorer_options(const struct ph_scorer *scorer);

#endif
