/* To be preloaded: an MPI whose end never comes, as where a rank dies in the middle of it. */
#include <unistd.h>

int MPI_Finalize(void);

int MPI_Finalize(void)
{
    for (;;)
        pause();
}
