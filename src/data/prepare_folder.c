#include "data/prepare_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "data/data_options.h"

/* What lies in a folder. */
struct listing {
    size_t num_entries, num_foreign; /* foreign: without settings they are of no preparation */
    bool has_settings;
};

static void add_entry(struct listing *listing, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return;
    listing->num_entries++;
    if (strcmp(name, PH_PREPARED_SOURCE) == 0)
        listing->has_settings = true;
    else if (strcmp(name, PH_PREPARED_SOURCE ".tmp") != 0) /* cut off by a kill */
        listing->num_foreign++;
}

static ph_status list(const char *folder, struct listing *listing)
{
    DIR *directory = opendir(folder);
    if (directory == NULL)
        return ph_fail(PH_ERROR_DISK, "%s: cannot list the folder: %s", folder, strerror(errno));
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        add_entry(listing, entry->d_name);
    closedir(directory);
    return PH_OK;
}

ph_status ph__prepare_folder_check(const char *folder, bool may_resume)
{
    struct listing listing = {0};
    PH_TRY(list(folder, &listing));
    if (listing.num_foreign > 0 && !listing.has_settings)
        return ph_fail(PH_ERROR_USAGE,
            "%s: is not empty and holds no preparation (no " PH_PREPARED_SOURCE "): --out wants a new folder",
            folder);
    if (listing.num_entries > 0 && !may_resume)
        return ph_fail(PH_ERROR_USAGE, "%s: is not empty; --resume goes on with what is there", folder);
    return PH_OK;
}
