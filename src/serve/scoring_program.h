/* The program that scores: entry "forward", output "logits" (B,T). */
#ifndef PH_SERVE_SCORING_PROGRAM_H
#define PH_SERVE_SCORING_PROGRAM_H

#include "phloem/graph.h"
#include "phloem/model.h"

/* distribution: over which ranks it is spread (graph/distribution.h); NULL: over none. */
ph_status ph__scoring_program_build(const struct ph_model_settings *model,
    const struct ph_model_features *features, enum ph_precision precision,
    const struct ph_distribution *distribution, struct ph_program **program_out);

/* The same in fp32, each operator as the model put it: for export. */
ph_status ph__scoring_program_build_unfused(const struct ph_model_settings *model,
    const struct ph_model_features *features, struct ph_program **program_out);

#endif
