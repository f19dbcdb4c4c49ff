/* Where plugins lie: beside the program or the library that asks, which is a build, or where both were installed, wherever
 * that has been moved to. $PHLOEM_PLUGINS names another folder, instead of all these. */
#ifndef PH_COMM_PLUGIN_FILE_H
#define PH_COMM_PLUGIN_FILE_H

#include "base/memory/arena.h"
#include "phloem/status.h"

/* The path of the first that is there; *path_out NULL: there is none, and *folders_out names those that were looked
 * through. Both owned by the arena. */
ph_status ph__plugin_find(
    struct ph_arena *arena, const char *file, const char **path_out, const char **folders_out);

#endif
