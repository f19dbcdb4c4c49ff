#include "support/fuzz_frames.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "net/wire.h"

enum { RECORD_HEAD_BYTES = 3, MAX_HEAD = 32, MAX_DESCRIPTORS = 16, MAX_COUNTED = 256 };

bool fuzz_next_record(const uint8_t **data, size_t *size, struct fuzz_record *record_out)
{
    if (*size < RECORD_HEAD_BYTES)
        return false;
    const size_t wanted = (*data)[1] | (size_t)(*data)[2] << 8, left = *size - RECORD_HEAD_BYTES;
    *record_out = (struct fuzz_record){
        .head = (*data)[0], .body = *data + RECORD_HEAD_BYTES, .size = wanted < left ? wanted : left};
    *data += RECORD_HEAD_BYTES + record_out->size;
    *size -= RECORD_HEAD_BYTES + record_out->size;
    return true;
}

void fuzz_control_head(
    uint16_t type, size_t size, size_t num_descriptors, unsigned char head_out[FUZZ_CONTROL_HEAD_BYTES])
{
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, head_out, FUZZ_CONTROL_HEAD_BYTES);
    ph__wire_put_u32(&writer, (uint32_t)size);
    ph__wire_put_u16(&writer, type);
    ph__wire_put_u16(&writer, (uint16_t)num_descriptors);
}

static void attach(struct msghdr *header, const struct fuzz_frame *frame, char *control, size_t control_bytes)
{
    memset(control, 0, control_bytes);
    header->msg_control = control;
    header->msg_controllen = CMSG_SPACE(frame->num_descriptors * sizeof(int));
    struct cmsghdr *rights = CMSG_FIRSTHDR(header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(frame->num_descriptors * sizeof(int));
    memcpy(CMSG_DATA(rights), frame->descriptors, frame->num_descriptors * sizeof(int));
}

void fuzz_send_frame(int socket, struct ph__frame_key *key, const struct fuzz_frame *frame)
{
    unsigned char bytes[MAX_HEAD + FUZZ_MAX_BODY + PH_FRAME_TAG_BYTES];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_DESCRIPTORS * sizeof(int))];
    size_t used = frame->head_bytes + frame->size;
    fuzz_require(frame->head_bytes <= MAX_HEAD && frame->size <= FUZZ_MAX_BODY);
    fuzz_require(frame->num_descriptors <= MAX_DESCRIPTORS);
    if (frame->head_bytes > 0)
        memcpy(bytes, frame->head, frame->head_bytes);
    if (frame->size > 0)
        memcpy(bytes + frame->head_bytes, frame->body, frame->size);
    if (key != NULL) {
        fuzz_require(ph__frame_mac(key, bytes, frame->head_bytes, bytes + frame->head_bytes, frame->size,
                         bytes + used) == PH_OK);
        bytes[used] ^= frame->has_wrong_tag;
        used += PH_FRAME_TAG_BYTES;
    }
    struct iovec part = {.iov_base = bytes, .iov_len = used};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (frame->num_descriptors > 0)
        attach(&header, frame, control, sizeof control);
    (void)!sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

size_t fuzz_count_descriptors(void)
{
    size_t count = 0;
    for (int descriptor = 0; descriptor < MAX_COUNTED; descriptor++)
        count += fcntl(descriptor, F_GETFD) >= 0;
    return count;
}
