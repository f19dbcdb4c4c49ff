/* Packs weights into the layout that the row-invariant product streams through. */
#include "kernel/kernel.h"
#include "tensor/float16.h"

enum { PANEL = PH_ROW_PRODUCT_PANEL };

size_t ph__row_product_packed_bytes(size_t out_features, size_t in_features, bool is_bf16)
{
    const size_t num_panels = (out_features + PANEL - 1) / PANEL;
    return num_panels * PANEL * in_features * (is_bf16 ? sizeof(uint16_t) : sizeof(ph_real));
}

/* Returns the place of output j, in numbers: words hold 0 and 16, 1 and 17, ... */
static size_t place_in_words(size_t j)
{
    return j < PANEL / 2 ? 2 * j : 2 * (j - PANEL / 2) + 1;
}

void ph__row_product_pack(size_t out_features, size_t in_features, bool is_transposed, bool is_bf16,
    const ph_real *weight, void *packed)
{
    const size_t out_stride = is_transposed ? 1 : in_features, in_stride = is_transposed ? out_features : 1;

    ph_real *reals = packed;
    uint16_t *words = packed;
    size_t at = 0;
    for (size_t first = 0; first < out_features; first += PANEL) {
        for (size_t k = 0; k < in_features; k++) {
            for (size_t j = first; j < first + PANEL; j++, at++) {
                const ph_real value = j < out_features ? weight[j * out_stride + k * in_stride] : 0;
                if (is_bf16)
                    words[at - j % PANEL + place_in_words(j % PANEL)] = ph__bfloat_from_float((float)value);
                else
                    reals[at] = value;
            }
        }
    }
}
