/* The version of the library: at compile time, of its header, and at run time. */
#ifndef PHLOEM_VERSION_H
#define PHLOEM_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* Semantic versioning; while the major version is 0, a minor version may change the API. */
#define PH_VERSION_MAJOR 0
#define PH_VERSION_MINOR 1
#define PH_VERSION_PATCH 0

/* Returns the version of the library at run time, "major.minor.patch"; static. */
const char *ph_version(void);

/* Counts incompatible changes of the API: functions that were removed, or whose parameters, structs or
 * meaning changed otherwise than by new members at the end. A program that loads the library at run time
 * compares the number at that time with that of its header. */
#define PH_API_VERSION 1
int ph_api_version(void);

#ifdef __cplusplus
}
#endif
#endif
