#include "serve/probability.h"

#include <math.h>

double ph__sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
