/* The serial team, whichever one this build uses: its source is compiled into the test, ahead of the library's. */
#include "base/parallel_serial.c"

#include "parallel_cases.h"

int main(void)
{
    return run_parallel_cases("serial");
}
