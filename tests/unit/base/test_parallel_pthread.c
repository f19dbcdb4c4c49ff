/* The pthread team, whichever one this build uses: its source is compiled into the test, ahead of the library's. */
#include "base/parallel_pthread.c"

#include "parallel_cases.h"

int main(void)
{
    return run_parallel_cases("pthread");
}
