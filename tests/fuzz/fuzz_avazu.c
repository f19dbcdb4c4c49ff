/* Avazu's CSV: a time that becomes three features, 22 columns of ids. */
#include "support/fuzz_rows.h"

#define TRAIN                                                                                          \
    "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,app_category,"    \
    "device_id,device_ip,device_model,device_type,device_conn_type,C14,C15,C16,C17,C18,C19,C20,C21\n"  \
    "10000094181510,0,14102100,1005,0,1fbe01fe,f3845767,28905ebd,ecad2386,7801e8d9,07d7df22,a99f214a," \
    "ddd2926e,44956a24,1,2,15706,320,50,1722,0,35,-1,79\n"

static struct fuzz_schema schemas[] = {
    {.yaml = "data: {format: avazu, encoding: hash, rows: 1000}\n", .train = TRAIN},
    {.yaml = "data: {format: avazu, max_bad_rows: 1}\n", .train = TRAIN},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_rows(schemas, sizeof schemas / sizeof schemas[0], data, size);
    return 0;
}
