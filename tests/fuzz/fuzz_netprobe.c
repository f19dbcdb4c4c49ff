/* Bodies of the probe's messages: the first byte chooses which, the rest is the body. What is accepted is
 * written as it was read, and its marks give no negative bandwidth. */
#include <math.h>
#include <string.h>

#include "comm/probe/probe_measure.h"
#include "support/fuzz_support.h"

static void check_marks(const struct ph__netprobe_mark *marks)
{
    bool is_steady;
    const double bandwidth = ph__netprobe_bandwidth(marks, &is_steady);
    fuzz_require(isnan(bandwidth) || bandwidth >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char bytes[PH_NETPROBE_MAX_BODY];
    struct ph__wire_writer writer;
    union {
        struct ph__netprobe_ask ask;
        struct ph__netprobe_answer answer;
        struct ph__netprobe_proof proof;
        struct ph__netprobe_arrived arrived;
    } message; /* the largest ones */
    if (size < 1)
        return 0;
    const enum ph__netprobe_kind kind = 1 + data[0] % (PH_NETPROBE_NUM_KINDS - 1);
    data++;
    size--;
    if (ph__netprobe_get(kind, data, size, &message) != PH_OK)
        return 0;
    if (kind == PH_NETPROBE_ASK)
        fuzz_require(memchr(message.ask.address, '\0', sizeof message.ask.address) != NULL);
    if (kind == PH_NETPROBE_ANSWER) {
        fuzz_require(memchr(message.answer.error, '\0', sizeof message.answer.error) != NULL);
        fuzz_require(!(ph__netprobe_joint_bandwidth(&message.answer, 1) < 0));
        check_marks(message.answer.marks);
    }
    if (kind == PH_NETPROBE_ARRIVED)
        check_marks(message.arrived.marks);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__netprobe_put(&writer, kind, &message);
    fuzz_require(writer.fault == NULL && writer.used == size && memcmp(bytes, data, size) == 0);
    return 0;
}
