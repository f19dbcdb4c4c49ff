/* The library's version, as the build states it (project VERSION in CMakeLists.txt). Any thread. */
#include "phloem/version.h"

const char *ph_version(void)
{
    return PH_VERSION;
}

int ph_api_version(void)
{
    return PH_API_VERSION;
}
