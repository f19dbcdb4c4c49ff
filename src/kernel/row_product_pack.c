/* Weights in the layout that the row-invariant product streams through. */
#include "kernel/kernel.h"

size_t ph__row_product_packed_reals(size_t out_features, size_t in_features)
{
    const size_t num_panels = (out_features + PH_ROW_PRODUCT_PANEL - 1) / PH_ROW_PRODUCT_PANEL;
    return num_panels * PH_ROW_PRODUCT_PANEL * in_features;
}

void ph__row_product_pack(size_t out_features, size_t in_features, const ph_real *weight, ph_real *packed)
{
    for (size_t first = 0; first < out_features; first += PH_ROW_PRODUCT_PANEL) {
        for (size_t k = 0; k < in_features; k++) {
            for (size_t j = first; j < first + PH_ROW_PRODUCT_PANEL; j++)
                *packed++ = j < out_features ? weight[j * in_features + k] : 0;
        }
    }
}
