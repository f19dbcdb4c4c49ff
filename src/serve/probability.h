/* From logits to probabilities. */
#ifndef PH_SERVE_PROBABILITY_H
#define PH_SERVE_PROBABILITY_H

double ph__sigmoid(double x);

#endif
