#include "data/prepared/part_format.h"

#include <stdlib.h>
#include <string.h>

#include "base/sum/checksum.h"

static unsigned nibble(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10) & 15u;
}

void ph__part_digest(const char *hex, unsigned char digest_out[PH_ENCODER_DIGEST_BYTES])
{
    for (size_t i = 0; i < PH_ENCODER_DIGEST_BYTES; i++)
        digest_out[i] = (unsigned char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
}

ph_status ph__part_header_create(const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], unsigned char **bytes_out, size_t *num_bytes_out)
{
    size_t num_bytes =
        sizeof(struct ph__part_header) + layout->num_lists * sizeof(struct ph__part_list) + sizeof(uint64_t);
    struct ph__part_header header = {.magic = PH_PART_MAGIC,
        .version = PH_PART_VERSION,
        .header_bytes = (uint32_t)num_bytes,
        .num_fixed_words = (uint32_t)layout->num_fixed_words,
        .num_lists = (uint32_t)layout->num_lists};
    memcpy(header.encoder_digest, digest, sizeof header.encoder_digest);
    unsigned char *bytes = malloc(num_bytes), *end = bytes;
    if (bytes == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a header of %zu bytes", num_bytes);
    memcpy(end, &header, sizeof header);
    end += sizeof header;
    for (size_t l = 0; l < layout->num_lists; l++) {
        struct ph__part_list list = {layout->lists[l].word, layout->lists[l].is_weighted};
        memcpy(end, &list, sizeof list);
        end += sizeof list;
    }
    uint64_t checksum = ph__checksum(bytes, (size_t)(end - bytes));
    memcpy(end, &checksum, sizeof checksum);
    *bytes_out = bytes;
    *num_bytes_out = num_bytes;
    return PH_OK;
}

uint64_t ph__part_footer_checksum(const struct ph__part_footer *footer)
{
    return ph__checksum(footer, offsetof(struct ph__part_footer, checksum));
}
