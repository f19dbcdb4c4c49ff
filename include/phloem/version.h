/* The version of the library: of the header that a program was compiled with, and of the library that it runs
 * with. */
#ifndef PHLOEM_VERSION_H
#define PHLOEM_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* Semantic versioning; while the major version is 0, a minor version may change the API. */
#define PH_VERSION_MAJOR 0
#define PH_VERSION_MINOR 1
#define PH_VERSION_PATCH 0

/* The version of the library at run time, "major.minor.patch"; static. */
const char *ph_version(void);

#ifdef __cplusplus
}
#endif
#endif
