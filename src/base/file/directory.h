/* Folders: asked for, made, kept for one process, looked through. Errors name the path. */
#ifndef PH_BASE_DIRECTORY_H
#define PH_BASE_DIRECTORY_H

#include <stdbool.h>

#include "phloem/status.h"

/* Tells whether the path is a folder, or a link to one. */
bool ph__directory_exists(const char *path);

/* Makes the folder and its parents; fine when it exists. PH_ERROR_USAGE where a file has the name of one of
 * them, else PH_ERROR_DISK. */
ph_status ph__directory_create(const char *path);

/* Keeps a folder for whoever holds the lock, until it is unlocked or the process ends in whatever way.
 * PH_ERROR_USAGE when somebody else holds it, in this process or another. Where the file system has no locks
 * there is none: the lock is -1. */
ph_status ph__directory_lock(const char *path, int *lock_out);
void ph__directory_unlock(int lock); /* -1: nothing happens */

/* Calls `visit` with the name of each entry but "." and "..", in no order; it may remove that entry, and its
 * failure ends the visit and is returned. A missing folder has no entries. PH_ERROR_USAGE for what is no
 * folder, PH_ERROR_DISK when not all names could be read: then some of them may have been visited. */
ph_status ph__directory_visit(
    const char *path, ph_status (*visit)(void *argument, const char *name), void *argument);

#endif
