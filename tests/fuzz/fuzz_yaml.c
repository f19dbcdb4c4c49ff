/* YAML, as far as configs need it: nodes whose texts, keys and lines are what the header promises. */
#include <string.h>

#include "base/format/yaml.h"
#include "support/fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ph__arena arena = {0};
    struct ph__yaml_node *nodes = NULL;
    size_t num_nodes = 0;
    if (ph__yaml_read(&arena, fuzz_file(0, data, size), &nodes, &num_nodes) == PH_OK)
        for (size_t i = 0; i < num_nodes; i++) {
            fuzz_require(strlen(nodes[i].key) <= PH_YAML_PATH_MAX);
            fuzz_require((nodes[i].text != NULL) == (nodes[i].kind == PH_YAML_SCALAR));
            fuzz_require(nodes[i].line >= 1 && nodes[i].line <= size + 1);
            fuzz_require(nodes[i].num_items <= size);
        }
    ph__arena_fini(&arena);
    return 0;
}
