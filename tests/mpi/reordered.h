/* A program that calls every function of MPI that names a communicator, and checks that MPI_COMM_WORLD is the
 * reordered one. The oracle knows nothing of the preloaded library: the program's arguments say which rank
 * should be where, and PMPI functions on the true world make a communicator of that order by hand. Once for
 * each MPI. */
#ifndef TESTS_MPI_REORDERED_H
#define TESTS_MPI_REORDERED_H

#include <mpi.h>
#include <stdbool.h>

enum { MOST = 4096 };

struct reordered {
    int rank, size; /* that ranks should have */
    int *former;    /* the former rank of each */
    MPI_Comm oracle;
};

extern struct reordered job;

/* Ends the job with the place and the text when something is not so. */
void reordered_check(bool is_so, const char *file, int line, const char *text);
#define CHECK(condition) reordered_check((condition), __FILE__, __LINE__, #condition)
#define MUST(call) CHECK((call) == MPI_SUCCESS)

void check_collectives(void);
void check_neighbours(void);
void check_messages(void);
void check_communicators(void);

#endif
