/* The smallest program over the library: prints the versions that it was compiled with and runs with, and an
 * example of an error. */
#include <stdio.h>

#include "phloem/status.h"
#include "phloem/version.h"

int main(void)
{
    printf("compiled with phloem %d.%d.%d, running with %s\n", PH_VERSION_MAJOR, PH_VERSION_MINOR,
        PH_VERSION_PATCH, ph_version());

    ph_status status = ph_fail(PH_ERROR_USAGE, "the example was asked for %d errors", 1);
    printf("status %d (%s): %s\n", status, ph_status_message(status), ph_error_text());
    return status == PH_ERROR_USAGE ? 0 : 1;
}
