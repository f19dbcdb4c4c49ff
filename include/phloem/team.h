/* Teams: groups of threads that compute a node of a graph together. */
#ifndef PHLOEM_TEAM_H
#define PHLOEM_TEAM_H

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of teams. Results depend neither on the kind nor on the number of threads, unless
 * ph_backend_options.is_fast gives that up. */
enum ph_team_kind {
    PH_TEAM_PTHREAD, /* threads of this library: idle ones sleep soon, and fewer compute while other processes
                        keep a core busy */
    PH_TEAM_OPENMP,  /* threads of libgomp, which a matrix library can use by itself. GOMP_SPINCOUNT and
                        OMP_WAIT_POLICY in the environment say how long idle ones spin */
};

#ifdef __cplusplus
}
#endif

#endif
