/* metrics.jsonl as a report reads it: lines that are none are passed over, and what is read can be shown. */
#include <math.h>

#include "support/fuzz_support.h"
#include "train/folder/metrics_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ph__metrics_file metrics;
    struct ph__calibration_bin groups[20];
    if (ph__metrics_file_read(fuzz_file(0, data, size), &metrics) != PH_OK)
        return 0;
    size_t num_groups = ph__calibration_group(&metrics.calibration, 20, groups);
    fuzz_require(num_groups <= 20);
    for (size_t g = 0; g < num_groups; g++)
        fuzz_require(groups[g].count > 0 && isfinite(groups[g].predicted) && isfinite(groups[g].observed));
    for (size_t i = 0; i < metrics.train.count; i++)
        fuzz_require(!isinf(metrics.train.columns[PH_CURVE_LOSS][i]));
    ph__metrics_file_fini(&metrics);
    return 0;
}
