/* Bodies of the probe's messages: the first byte chooses which, the rest is the body. Whatever is accepted is
 * written as it was read, and its marks give no negative bandwidth. */
#include <math.h>
#include <string.h>

#include "comm/probe/probe_measure.h"
#include "support/fuzz_support.h"

enum { ASK, ANSWER, MARKS, NUM_KINDS };

static void check_marks(const struct ph__netprobe_mark *marks)
{
    const double bandwidth = ph__netprobe_bandwidth(marks);
    fuzz_require(isnan(bandwidth) || bandwidth >= 0);
    (void)ph__netprobe_is_steady(marks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char bytes[PH_NETPROBE_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__netprobe_ask ask;
    struct ph__netprobe_answer answer;
    struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS];
    if (size < 1)
        return 0;
    const int kind = data[0] % NUM_KINDS;
    data++;
    size--;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    if (kind == ASK && ph__netprobe_get_ask(data, size, &ask) == PH_OK) {
        ph__netprobe_put_ask(&writer, &ask);
    } else if (kind == ANSWER && ph__netprobe_get_answer(data, size, &answer) == PH_OK) {
        fuzz_require(answer.status <= PH_OK && memchr(answer.text, '\0', sizeof answer.text) != NULL);
        fuzz_require(!(ph__netprobe_joint_bandwidth(&answer, 1) < 0));
        check_marks(answer.marks);
        ph__netprobe_put_answer(&writer, &answer);
    } else if (kind == MARKS && ph__netprobe_get_marks(data, size, marks) == PH_OK) {
        check_marks(marks);
        ph__netprobe_put_marks(&writer, marks);
    } else {
        return 0;
    }
    fuzz_require(writer.fault == NULL && writer.used == size);
    fuzz_require(kind == ANSWER || memcmp(bytes, data, size) == 0); /* a text of an answer becomes plain */
    return 0;
}
