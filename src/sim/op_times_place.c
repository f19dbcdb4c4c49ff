/* The place of this machine's own profile. Two machines never share one, and neither do two settings of one
 * machine under which operators take other times. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/thread/cpu.h"
#include "sim/op_times.h"

enum { NAME_BYTES = 128 };

/* Keeps letters and digits, in lower case, and puts a dash in place of all that stands between them. */
static void simplify(char *name)
{
    char *to = name;
    for (const char *from = name; *from != '\0'; from++) {
        if (isalnum((unsigned char)*from))
            *to++ = (char)tolower((unsigned char)*from);
        else if (to != name && to[-1] != '-')
            *to++ = '-';
    }
    if (to != name && to[-1] == '-')
        to--;
    *to = '\0';
}

static ph_status find_folder(struct ph__arena *arena, const char **folder_out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool has_cache = cache != NULL && cache[0] == '/';
    if (!has_cache && (home == NULL || home[0] == '\0'))
        return ph_fail(PH_ERROR_USAGE, "HOME is not set: give --profile FILE");
    *folder_out =
        has_cache ? ph__path_join(arena, cache, "phloem") : ph__path_join(arena, home, ".cache/phloem");
    return *folder_out != NULL ? PH_OK : PH_ERROR_MEMORY;
}

ph_status ph__op_times_place(const struct ph_backend *backend, struct ph__arena *arena, const char **path_out)
{
    struct utsname system = {0};
    char processor[NAME_BYTES];
    const char *folder, *name;
    enum ph__isa isa = PH_ISA_REF;
    PH_TRY(ph__cpu_isa(&isa));
    PH_TRY(find_folder(arena, &folder));
    PH_TRY(ph__directory_create(folder));
    (void)uname(&system);
    ph__cpu_name(processor, sizeof processor);
    simplify(processor);
    simplify(system.nodename);
    name = ph__arena_printf(arena, "%s/profile-%.60s-%.60s-%s-%zut.json", folder, system.nodename, processor,
        ph__isa_name(isa), ph__team_num_threads(backend->team));
    *path_out = name;
    return name != NULL ? PH_OK : PH_ERROR_MEMORY;
}
