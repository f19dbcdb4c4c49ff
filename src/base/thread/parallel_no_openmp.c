/* A build without OpenMP: the thread sanitizer's, whose tool does not know libgomp, and others that multiply
 * without oneDNN. */
#include "base/thread/parallel_team.h"

const struct ph__team_functions *const ph__team_openmp = NULL;

size_t ph__parallel_set_library_threads(size_t num_threads)
{
    (void)num_threads;
    return 1;
}
