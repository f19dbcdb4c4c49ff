/* Folders: tests, creates, locks and lists them. Errors name the path. */
#ifndef PH_BASE_DIRECTORY_H
#define PH_BASE_DIRECTORY_H

#include <stdbool.h>

#include "phloem/status.h"

/* Tells whether the path is a folder, or a link to one. */
bool ph__directory_exists(const char *path);

/* Creates the folder and its parents; an existing folder is fine. PH_ERROR_USAGE when a file has the name of
 * one of them, else PH_ERROR_DISK. */
ph_status ph__directory_create(const char *path);

/* Creates the folder; one that is there must be empty, so that nothing is overwritten: PH_ERROR_USAGE. */
ph_status ph__directory_create_empty(const char *path);

/* Locks a folder until unlock or until the process ends, however it ends. PH_ERROR_USAGE when another holder,
 * in this process or another, has the lock. On a file system without locks, *lock_out is -1 and nothing is
 * locked. */
ph_status ph__directory_lock(const char *path, int *lock_out);
void ph__directory_unlock(int lock); /* -1: does nothing */

/* Calls `visit` with the name of each entry but "." and "..", in no order. `visit` may remove that entry; its
 * failure ends the visit and is returned. A missing folder has no entries. PH_ERROR_USAGE when the path is
 * not a folder, PH_ERROR_DISK when not all names could be read: some may have been visited by then. */
ph_status ph__directory_visit(
    const char *path, ph_status (*visit)(void *argument, const char *name), void *argument);

#endif
