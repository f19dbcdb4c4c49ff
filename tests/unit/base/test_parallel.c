/* The team of this build. */
#include "parallel_cases.h"

int main(void)
{
    return run_parallel_cases(NULL);
}
