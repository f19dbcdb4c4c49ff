/* phloem hub [status|bench|destroy] */
#include <string.h>

#include "cli/hub/hub_parts.h"
#include "cli/verb.h"

ph_status verb_hub(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "status") == 0)
        return cli_hub_status(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "bench") == 0)
        return cli_hub_bench(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "destroy") == 0)
        return cli_hub_destroy(argc - 1, argv + 1);
    return cli_hub_serve(argc, argv);
}
