/* The functions that stand before MPI's: one for each that names a communicator, made from mpi_calls.def.
 *
 * Fortran programs call MPICH's functions for C, which the ones below precede, but for attributes. Open MPI's
 * Fortran calls the second names (PMPI_), so Fortran's functions are preceded, too: `mpi_send_` of mpif.h and
 * of the module mpi, `mpi_send_f08_` of mpi_f08. They pass on addresses, the lengths of texts, and nothing
 * else. Their successors are found when they are called first, since programs in C have none. */
#include <dlfcn.h>
#include <mpi.h>
#if !PH_MPICH
#include <mpi-ext.h>
#endif
#include <stdio.h>
#include <stdlib.h>

#include "preload/reorder.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* what MPI deprecates, programs still call */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"      /* Fortran's functions have none */

/* Parameters a1, a2, ... of given types; and what passes them on. */
#define PARAMS_1(A) A a1
#define PARAMS_2(A, B) PARAMS_1(A), B a2
#define PARAMS_3(A, B, C) PARAMS_2(A, B), C a3
#define PARAMS_4(A, B, C, D) PARAMS_3(A, B, C), D a4
#define PARAMS_5(A, B, C, D, E) PARAMS_4(A, B, C, D), E a5
#define PARAMS_6(A, B, C, D, E, F) PARAMS_5(A, B, C, D, E), F a6
#define PARAMS_7(A, B, C, D, E, F, G) PARAMS_6(A, B, C, D, E, F), G a7
#define PARAMS_8(A, B, C, D, E, F, G, H) PARAMS_7(A, B, C, D, E, F, G), H a8
#define PARAMS_9(A, B, C, D, E, F, G, H, I) PARAMS_8(A, B, C, D, E, F, G, H), I a9
#define PARAMS_10(A, B, C, D, E, F, G, H, I, J) PARAMS_9(A, B, C, D, E, F, G, H, I), J a10
#define PARAMS_11(A, B, C, D, E, F, G, H, I, J, K) PARAMS_10(A, B, C, D, E, F, G, H, I, J), K a11
#define PARAMS_12(A, B, C, D, E, F, G, H, I, J, K, L) PARAMS_11(A, B, C, D, E, F, G, H, I, J, K), L a12
#define ARGUMENTS_1 a1
#define ARGUMENTS_2 ARGUMENTS_1, a2
#define ARGUMENTS_3 ARGUMENTS_2, a3
#define ARGUMENTS_4 ARGUMENTS_3, a4
#define ARGUMENTS_5 ARGUMENTS_4, a5
#define ARGUMENTS_6 ARGUMENTS_5, a6
#define ARGUMENTS_7 ARGUMENTS_6, a7
#define ARGUMENTS_8 ARGUMENTS_7, a8
#define ARGUMENTS_9 ARGUMENTS_8, a9
#define ARGUMENTS_10 ARGUMENTS_9, a10
#define ARGUMENTS_11 ARGUMENTS_10, a11
#define ARGUMENTS_12 ARGUMENTS_11, a12

/* ---- C ---- */

static MPI_Comm swap(MPI_Comm comm)
{
    return comm == MPI_COMM_WORLD ? ph__reorder.world : comm;
}

#define WRAP(name, comm, n, ...)             \
    EXPORT int name(PARAMS_##n(__VA_ARGS__)) \
    {                                        \
        a##comm = swap(a##comm);             \
        return P##name(ARGUMENTS_##n);       \
    }

#define COUNT int
#define DISPL int
#define CALL(name, lower, comm, n, ...) WRAP(MPI_##name, comm, n, __VA_ARGS__)
#define EXTENSION(name, lower, comm, n, ...) WRAP(MPIX_##name, comm, n, __VA_ARGS__)
#define NAME(name)
#include "preload/mpi_calls.def"
#undef COUNT
#undef DISPL

#if PH_MPICH
#define COUNT MPI_Count
#define DISPL MPI_Aint
#define CALL(...)
#define LARGE(name, lower, comm, n, ...) WRAP(MPI_##name##_c, comm, n, __VA_ARGS__)
#define NAME(name)
#include "preload/mpi_calls.def"
#else /* removed from mpi.h, and kept in the library for older programs */
#undef MPI_Errhandler_get
#undef MPI_Errhandler_set
#define PMPI_Errhandler_get PMPI_Comm_get_errhandler
WRAP(MPI_Errhandler_get, 1, 2, MPI_Comm, MPI_Errhandler *)
#endif

EXPORT int MPI_Init(int *argc, char ***argv)
{
    ph__reorder_check_library();
    const int code = PMPI_Init(argc, argv);
    if (code == MPI_SUCCESS)
        ph__reorder_start();
    return code;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    ph__reorder_check_library();
    const int code = PMPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS)
        ph__reorder_start();
    return code;
}

EXPORT int MPI_Comm_compare(MPI_Comm one, MPI_Comm other, int *result)
{
    return PMPI_Comm_compare(swap(one), swap(other), result);
}

EXPORT int MPI_Intercomm_create(
    MPI_Comm local, int local_leader, MPI_Comm peers, int remote_leader, int tag, MPI_Comm *comm)
{
    return PMPI_Intercomm_create(swap(local), local_leader, swap(peers), remote_leader, tag, comm);
}

/* Errors of calls that name no communicator are the plain world's. */
EXPORT int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    const int code = PMPI_Comm_set_errhandler(comm, handler);
    return code != MPI_SUCCESS || comm != MPI_COMM_WORLD ? code
                                                         : PMPI_Comm_set_errhandler(swap(comm), handler);
}

EXPORT int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler handler)
{
    return MPI_Comm_set_errhandler(comm, handler);
}

/* Returns true for attributes that MPI itself sets. MPICH gives each a second key, the next number, for
 * Fortran. */
static bool is_predefined(int keyval)
{
    const int keyvals[] = {
        MPI_TAG_UB, MPI_HOST, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_APPNUM, MPI_UNIVERSE_SIZE, MPI_LASTUSEDCODE};
    for (size_t i = 0; i < sizeof keyvals / sizeof *keyvals; i++)
        if (keyval == keyvals[i] || (PH_MPICH && keyval == keyvals[i] + 1))
            return true;
    return false;
}

/* Returns true when the plain world must be asked: duplicates of the reordered one lack what duplicates of
 * the plain one inherit. */
static bool is_plain(int keyval)
{
    return ph__reorder.world != MPI_COMM_WORLD && is_predefined(keyval);
}

EXPORT int MPI_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *is_set)
{
    comm = is_plain(keyval) && comm != MPI_COMM_NULL ? MPI_COMM_WORLD : swap(comm);
    return PMPI_Comm_get_attr(comm, keyval, value, is_set);
}

EXPORT int MPI_Attr_get(MPI_Comm comm, int keyval, void *value, int *is_set)
{
    return MPI_Comm_get_attr(comm, keyval, value, is_set);
}

/* ---- Fortran: all parameters are addresses; ierror comes last, and then the lengths of texts ---- */

#define WORDS_0 void *a1
#define WORDS_1 WORDS_0, void *a2
#define WORDS_2 WORDS_1, void *a3
#define WORDS_3 WORDS_2, void *a4
#define WORDS_4 WORDS_3, void *a5
#define WORDS_5 WORDS_4, void *a6
#define WORDS_6 WORDS_5, void *a7
#define WORDS_7 WORDS_6, void *a8
#define WORDS_8 WORDS_7, void *a9
#define WORDS_9 WORDS_8, void *a10
#define WORDS_10 WORDS_9, void *a11
#define WORDS_11 WORDS_10, void *a12
#define WORDS_12 WORDS_11, void *a13
#define PASS_0 a1
#define PASS_1 ARGUMENTS_2
#define PASS_2 ARGUMENTS_3
#define PASS_3 ARGUMENTS_4
#define PASS_4 ARGUMENTS_5
#define PASS_5 ARGUMENTS_6
#define PASS_6 ARGUMENTS_7
#define PASS_7 ARGUMENTS_8
#define PASS_8 ARGUMENTS_9
#define PASS_9 ARGUMENTS_10
#define PASS_10 ARGUMENTS_11
#define PASS_11 ARGUMENTS_12
#define PASS_12 ARGUMENTS_12, a13

/* Parameters with the lengths of the texts, of the functions that have texts. */
#define WITH_LENGTHS_2 3
#define WITH_LENGTHS_3 4
#define WITH_LENGTHS_5 6
#define WITH_LENGTHS_8 10
#define WITH_LENGTHS_9 11

static void *swap_fortran(void *comm)
{
    const MPI_Fint *handle = comm;
    return *handle == ph__reorder.fortran_plain ? &ph__reorder.fortran_world : comm;
}

static void *swap_for_attribute(void *comm, const void *keyval)
{
    return is_plain(*(const MPI_Fint *)keyval) ? &ph__reorder.fortran_plain : swap_fortran(comm);
}

/* Libraries that a program has loaded by itself are not found behind this one. */
static void *find_next(const char *name)
{
    void *next = dlsym(RTLD_NEXT, name);
    for (int i = 0; i < 3 && next == NULL; i++) {
        static const char *const libraries[] = {
            "libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "libmpichfort.so.12"};
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        next = library != NULL ? dlsym(library, name) : NULL;
    }
    if (next == NULL) {
        fprintf(stderr, "phloem: no library of the program has %s: link it with its MPI's Fortran library\n",
            name);
        abort();
    }
    return next;
}

#define PRECEDE(name, n, before, after)                             \
    EXPORT void name(WORDS_##n)                                     \
    {                                                               \
        static _Atomic(void *) found;                               \
        if (found == NULL)                                          \
            found = find_next(#name);                               \
        void (*const next)(WORDS_##n) = (void (*)(WORDS_##n))found; \
        before;                                                     \
        next(PASS_##n);                                             \
        after;                                                      \
    }
#define FORTRAN(name, n, before, after)      \
    PRECEDE(mpi_##name##_, n, before, after) \
    PRECEDE(mpi_##name##_f08_, n, before, after)
#define CALL(name, lower, comm, n, ...) FORTRAN(lower, n, a##comm = swap_fortran(a##comm), )
#define TEXT(name, lower, comm, n, ...) FORTRAN(lower, WITH_LENGTHS_##n, a##comm = swap_fortran(a##comm), )
#define EXTENSION(name, lower, comm, n, ...)                       \
    PRECEDE(mpix_##lower##_, n, a##comm = swap_fortran(a##comm), ) \
    PRECEDE(mpix_##lower##_f08_, n, a##comm = swap_fortran(a##comm), )
#define NAME(name)
#include "preload/mpi_calls.def"

FORTRAN(init, 0, ph__reorder_check_library(), ph__reorder_start())
FORTRAN(init_thread, 2, ph__reorder_check_library(), ph__reorder_start())
FORTRAN(comm_compare, 3, a1 = swap_fortran(a1); a2 = swap_fortran(a2), )
FORTRAN(intercomm_create, 6, a1 = swap_fortran(a1); a3 = swap_fortran(a3), )
FORTRAN(comm_set_errhandler, 2, next(a1, a2, a3); a1 = swap_fortran(a1), )
FORTRAN(errhandler_set, 2, next(a1, a2, a3); a1 = swap_fortran(a1), )
FORTRAN(comm_get_attr, 4, a1 = swap_for_attribute(a1, a2), )
FORTRAN(attr_get, 4, a1 = swap_for_attribute(a1, a2), )
#if !PH_MPICH
FORTRAN(errhandler_get, 2, a1 = swap_fortran(a1), )
FORTRAN(win_allocate_cptr, 6, a4 = swap_fortran(a4), )
FORTRAN(win_allocate_shared_cptr, 6, a4 = swap_fortran(a4), )
#endif
