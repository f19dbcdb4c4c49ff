/* A build without OpenMP: for the thread sanitizer, which does not know libgomp, and for builds without
 * oneDNN. */
#include "base/thread/parallel_team.h"

const struct ph__team_functions *const ph__team_openmp = NULL;

size_t ph__parallel_set_library_threads(size_t num_threads)
{
    (void)num_threads;
    return 1;
}
