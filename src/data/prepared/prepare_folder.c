#include "data/prepared/prepare_folder.h"

#include <stddef.h>
#include <string.h>

#include "base/file/directory.h"
#include "data/data_options.h"

/* What lies in a folder. */
struct listing {
    size_t num_entries, num_foreign; /* foreign: without settings they are of no preparation */
    bool has_settings;
};

static ph_status add_entry(void *argument, const char *name)
{
    struct listing *listing = argument;
    listing->num_entries++;
    if (strcmp(name, PH_PREPARED_SOURCE) == 0)
        listing->has_settings = true;
    else if (strcmp(name, PH_PREPARED_SOURCE ".tmp") != 0) /* cut off by a kill */
        listing->num_foreign++;
    return PH_OK;
}

ph_status ph__prepare_folder_check(const char *folder, bool may_resume)
{
    struct listing listing = {0};
    PH_TRY(ph__directory_visit(folder, add_entry, &listing));
    if (listing.num_foreign > 0 && !listing.has_settings)
        return ph_fail(PH_ERROR_USAGE,
            "%s: is not empty and holds no preparation (no " PH_PREPARED_SOURCE "): --out wants a new folder",
            folder);
    if (listing.num_entries > 0 && !may_resume)
        return ph_fail(PH_ERROR_USAGE, "%s: is not empty; --resume goes on with what is there", folder);
    return PH_OK;
}
