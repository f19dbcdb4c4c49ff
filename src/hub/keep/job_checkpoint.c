/* Writes and reads checkpoints of jobs; see job_checkpoint.h. */
#include "hub/keep/job_checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/sum/checksum.h"
#include "hub/layout/optimizer_slots.h"
#include "store/tensor_list.h"

/* ---- paths ---- */

#define MAX_NAME_BYTES 200 /* before the ending: file systems have 255 in all */
#define CUT_BYTES 160

static bool is_plain(const char *name, size_t i)
{
    const unsigned char byte = (unsigned char)name[i];
    return byte > ' ' && byte != 0x7f && byte != '/' && byte != '%' && byte != '~' && (byte != '.' || i > 0);
}

static void escape(const char *name, char escaped_out[3 * PH_HUB_MAX_NAME + 1])
{
    char *next = escaped_out;
    for (size_t i = 0; name[i] != '\0'; i++) {
        if (is_plain(name, i))
            *next++ = name[i];
        else
            next += sprintf(next, "%%%02x", (unsigned char)name[i]);
    }
    *next = '\0';
}

ph_status ph__job_checkpoint_path(const char *folder, const char *service, char **path_out)
{
    char escaped[3 * PH_HUB_MAX_NAME + 1], sum[18] = "";
    escape(service, escaped);
    if (strlen(escaped) > MAX_NAME_BYTES) {
        snprintf(sum, sizeof sum, "~%016llx", (unsigned long long)ph__checksum(service, strlen(service)));
        escaped[CUT_BYTES] = '\0';
    }
    if (asprintf(path_out, "%s/%s%s" PH_CHECKPOINT_ENDING, folder, escaped, sum) < 0)
        return ph__out_of_memory("the path of a checkpoint");
    return PH_OK;
}

ph_status ph__job_checkpoint_remove(const char *path)
{
    if (unlink(path) == 0)
        return ph__file_sync_name(path);
    return errno == ENOENT ? PH_OK : ph_fail(PH_ERROR_DISK, "%s: cannot remove: %s", path, strerror(errno));
}

#define PROGRESS_BYTES (12 + 4 * PH_HUB_MAX_OPTIMIZERS)

/* ---- bytes as digits ---- */

/* Returns NULL without memory. */
static char *digits_of(struct ph__arena *arena, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char *text = ph__arena_alloc(arena, 2 * size + 1);
    for (size_t i = 0; text != NULL && i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    if (text != NULL)
        text[2 * size] = '\0';
    return text;
}

static int value_of(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Returns NULL if the text is not hexadecimal digits of at most max_bytes, or without memory. */
static unsigned char *bytes_of(struct ph__arena *arena, const char *text, size_t max_bytes, size_t *size_out)
{
    const size_t length = strlen(text);
    if (length % 2 != 0 || length / 2 > max_bytes)
        return NULL;
    unsigned char *bytes = ph__arena_alloc(arena, length / 2 + 1);
    for (size_t i = 0; bytes != NULL && i < length / 2; i++) {
        const int high = value_of(text[2 * i]), low = value_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return NULL;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    *size_out = length / 2;
    return bytes;
}

/* ---- metadata ---- */

struct texts { /* live in an arena */
    const char *service, *keys, *progress;
    char sum[17];
};

void ph__job_checkpoint_sum(const char *service, const char *keys, const char *progress, char digits_out[17])
{
    const uint64_t sums[] = {ph__checksum(service, strlen(service)), ph__checksum(keys, strlen(keys)),
        ph__checksum(progress, strlen(progress))};
    snprintf(digits_out, 17, "%016" PRIx64, ph__checksum(sums, sizeof sums));
}

static const char *service_digits(struct ph__arena *arena, const struct ph__service_settings *settings)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_service(&writer, &settings->service, &settings->share);
    return digits_of(arena, bytes, writer.used);
}

static const char *keys_digits(struct ph__arena *arena, const struct ph__snapshot *snapshot)
{
    const size_t capacity = snapshot->num_keys * PH_HUB_KEY_BYTES;
    unsigned char *bytes = ph__arena_alloc(arena, capacity + 1);
    struct ph__wire_writer writer;
    if (bytes == NULL)
        return NULL;
    ph__wire_writer_init(&writer, bytes, capacity);
    for (size_t i = 0; i < snapshot->num_keys; i++) {
        const struct ph_hub_key key = {.num_elements = snapshot->keys[i].num_elements,
            .dtype = snapshot->keys[i].dtype,
            .optimizer = snapshot->keys[i].optimizer};
        ph__put_keys(&writer, &key, 1);
    }
    return digits_of(arena, bytes, writer.used);
}

static const char *progress_digits(struct ph__arena *arena, const struct ph__snapshot *snapshot)
{
    unsigned char bytes[PROGRESS_BYTES];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__wire_put_u64(&writer, snapshot->iteration);
    ph__wire_put_u32(&writer, snapshot->layout != NULL ? (uint32_t)snapshot->layout->chunk_bytes : 0);
    for (size_t i = 0; i < snapshot->settings.service.num_optimizers; i++)
        ph__wire_put_f32(&writer, snapshot->learning_rates[i]);
    return digits_of(arena, bytes, writer.used);
}

static ph_status make_texts(
    struct ph__arena *arena, const struct ph__snapshot *snapshot, struct texts *texts_out)
{
    texts_out->service = service_digits(arena, &snapshot->settings);
    texts_out->keys = keys_digits(arena, snapshot);
    texts_out->progress = progress_digits(arena, snapshot);
    if (texts_out->service == NULL || texts_out->keys == NULL || texts_out->progress == NULL)
        return ph__out_of_memory("a checkpoint of service '%s'", snapshot->settings.name);
    ph__job_checkpoint_sum(texts_out->service, texts_out->keys, texts_out->progress, texts_out->sum);
    return PH_OK;
}

/* ---- tensors ---- */

static ph_status add_tensor(
    struct ph__tensor_list *list, size_t key, const char *what, size_t num_elements, float *data)
{
    const struct ph_tensor tensor = {.name = ph__arena_printf(&list->arena, "key.%zu.%s", key, what),
        .dtype = PH_F32,
        .shape = {.num_dims = 1, .dims = {num_elements}},
        .data = data};
    return tensor.name != NULL ? ph__tensor_list_add(list, &tensor) : PH_ERROR_MEMORY;
}

static ph_status list_tensors(
    const struct ph__snapshot *snapshot, int64_t *versions, struct ph__tensor_list *list)
{
    const struct ph_tensor tensor = {.name = "versions",
        .dtype = PH_I64,
        .shape = {.num_dims = 1, .dims = {snapshot->layout->sizes.num_chunks}},
        .data = versions};
    PH_TRY(ph__tensor_list_add(list, &tensor));
    for (size_t i = 0; i < snapshot->num_keys; i++) {
        const struct ph__key_place *place = &snapshot->layout->keys[i];
        const struct ph_hub_optimizer *optimizer =
            &snapshot->settings.optimizers[snapshot->keys[i].optimizer];
        if (place->num_elements == 0)
            continue;
        PH_TRY(add_tensor(list, i, "weight", place->num_elements, snapshot->weights + place->first_weight));
        if (ph__optimizer_has_m(optimizer))
            PH_TRY(add_tensor(list, i, "m", place->num_elements, snapshot->m + place->first_weight));
        if (ph__optimizer_has_s(optimizer))
            PH_TRY(add_tensor(list, i, "s", place->num_elements, snapshot->s + place->first_weight));
    }
    return PH_OK;
}

/* (num_chunks) */
static ph_status allocate_versions(const struct ph__snapshot *snapshot, int64_t **versions_out)
{
    *versions_out = calloc(snapshot->layout->sizes.num_chunks, sizeof **versions_out);
    return *versions_out != NULL ? PH_OK : ph__out_of_memory("a checkpoint");
}

/* ---- writing ---- */

static ph_status write_file(
    const char *path, const struct ph__snapshot *snapshot, struct ph__tensor_list *list)
{
    struct texts texts;
    char iteration[21];
    PH_TRY(make_texts(&list->arena, snapshot, &texts));
    snprintf(iteration, sizeof iteration, "%" PRIu64, snapshot->iteration);
    const char *const metadata[] = {"format", PH_CHECKPOINT_FORMAT, "name", snapshot->settings.name,
        "iteration", iteration, "service", texts.service, "keys", texts.keys, "progress", texts.progress,
        "sum", texts.sum, NULL};
    return ph__safetensors_write(path, list->count, list->tensors, metadata);
}

ph_status ph__job_checkpoint_write(const char *path, const struct ph__snapshot *snapshot)
{
    struct ph__tensor_list list = {0};
    int64_t *versions = NULL;
    ph_status status = PH_OK;
    if (snapshot->num_keys > 0) {
        PH_TRY(allocate_versions(snapshot, &versions));
        for (size_t i = 0; i < snapshot->layout->sizes.num_chunks; i++)
            versions[i] = (int64_t)snapshot->chunks[i].version;
        status = list_tensors(snapshot, versions, &list);
    }
    if (status == PH_OK)
        status = write_file(path, snapshot, &list);
    ph__tensor_list_fini(&list);
    free(versions);
    return status;
}

/* ---- reading ---- */

static ph_status get_text(
    const struct ph__safetensors *file, const char *path, const char *key, const char **text_out)
{
    *text_out = ph__safetensors_metadata(file, key);
    return *text_out != NULL ? PH_OK
                             : ph_fail(PH_ERROR_CHECKPOINT, "%s: metadata '%s' is missing", path, key);
}

static ph_status get_texts(const struct ph__safetensors *file, const char *path, struct texts *texts_out)
{
    const char *format = ph__safetensors_metadata(file, "format"), *sum;
    if (format == NULL || strcmp(format, PH_CHECKPOINT_FORMAT) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: not the checkpoint of a hub's job in the format '%s'", path,
            PH_CHECKPOINT_FORMAT);
    PH_TRY(get_text(file, path, "service", &texts_out->service));
    PH_TRY(get_text(file, path, "keys", &texts_out->keys));
    PH_TRY(get_text(file, path, "progress", &texts_out->progress));
    PH_TRY(get_text(file, path, "sum", &sum));
    ph__job_checkpoint_sum(texts_out->service, texts_out->keys, texts_out->progress, texts_out->sum);
    if (strcmp(sum, texts_out->sum) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: damaged: the checksum of its metadata does not match", path);
    return PH_OK;
}

static ph_status parse_texts(
    struct ph__arena *arena, const struct texts *texts, struct ph__job_checkpoint_head *head_out)
{
    size_t service_size, keys_size, progress_size;
    struct ph__wire_reader reader;
    const unsigned char *service = bytes_of(arena, texts->service, PH_HUB_MAX_BODY, &service_size);
    const unsigned char *keys =
        bytes_of(arena, texts->keys, PH_LAYOUT_MAX_KEYS * PH_HUB_KEY_BYTES, &keys_size);
    const unsigned char *progress = bytes_of(arena, texts->progress, PROGRESS_BYTES, &progress_size);
    if (service == NULL || keys == NULL || progress == NULL)
        return ph_fail(PH_ERROR_CHECKPOINT, "metadata are not hexadecimal digits");
    PH_TRY(ph__get_service(service, service_size, &head_out->settings));
    head_out->num_keys = keys_size / PH_HUB_KEY_BYTES;
    ph__wire_reader_init(&reader, progress, progress_size);
    head_out->iteration = ph__wire_get_u64(&reader);
    head_out->chunk_bytes = ph__wire_get_u32(&reader);
    for (size_t i = 0; i < head_out->settings.service.num_optimizers; i++)
        head_out->learning_rates[i] = ph__wire_get_f32(&reader);
    PH_TRY(ph__wire_reader_finish(&reader, "progress"));
    if (head_out->chunk_bytes % PH_ALIGNMENT != 0 || head_out->chunk_bytes > PH_HUB_MAX_CHUNK_BYTES)
        return ph_fail(PH_ERROR_CHECKPOINT, "chunks of %zu bytes: must be a multiple of %d up to %u",
            head_out->chunk_bytes, PH_ALIGNMENT, PH_HUB_MAX_CHUNK_BYTES);
    return PH_OK;
}

static ph_status read_head(const struct ph__safetensors *file, const char *path, struct ph__arena *arena,
    struct texts *texts_out, struct ph__job_checkpoint_head *head_out)
{
    *head_out = (struct ph__job_checkpoint_head){0};
    PH_TRY(get_texts(file, path, texts_out));
    const ph_status status = parse_texts(arena, texts_out, head_out);
    return status == PH_OK ? PH_OK : ph_fail(PH_ERROR_CHECKPOINT, "%s: %s", path, ph_error_text());
}

ph_status ph__job_checkpoint_read_head(const char *path, struct ph__job_checkpoint_head *head_out)
{
    struct ph__safetensors *file;
    struct ph__arena arena = {0};
    struct texts texts;
    PH_TRY(ph__safetensors_open(path, &file));
    const ph_status status = read_head(file, path, &arena, &texts, head_out);
    ph__arena_fini(&arena);
    ph__safetensors_close(file);
    return status;
}

static ph_status check_job(const char *path, const struct ph__job_checkpoint_head *head,
    const struct texts *found, const struct texts *wanted, const struct ph__snapshot *snapshot)
{
    const struct ph__hub_share *share = &head->settings.share, *own = &snapshot->settings.share;
    if (share->hub != own->hub || share->num_hubs != own->num_hubs)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: holds the part of hub %u of %u, not of hub %u of %u", path,
            share->hub + 1u, share->num_hubs, own->hub + 1u, own->num_hubs);
    if (strcmp(found->service, wanted->service) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the checkpoint of service '%s' has other settings", path,
            snapshot->settings.name);
    if (strcmp(found->keys, wanted->keys) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the checkpoint of service '%s' has other keys", path,
            snapshot->settings.name);
    if (head->chunk_bytes != snapshot->layout->chunk_bytes)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the checkpoint has other chunks, of %zu bytes", path,
            head->chunk_bytes);
    return PH_OK;
}

static ph_status read_matching_head(const char *path, struct ph__arena *arena,
    const struct ph__snapshot *snapshot, struct ph__job_checkpoint_head *head_out)
{
    struct ph__safetensors *file;
    struct texts found, wanted;
    PH_TRY(make_texts(arena, snapshot, &wanted));
    PH_TRY(ph__safetensors_open(path, &file));
    ph_status status = read_head(file, path, arena, &found, head_out);
    if (status == PH_OK)
        status = check_job(path, head_out, &found, &wanted, snapshot);
    ph__safetensors_close(file);
    return status;
}

static ph_status read_tensors(const char *path, struct ph__snapshot *snapshot, int64_t *versions)
{
    struct ph__tensor_list list = {0};
    ph_status status = list_tensors(snapshot, versions, &list);
    if (status == PH_OK)
        status = ph__tensor_list_load(&list, path);
    ph__tensor_list_fini(&list);
    return status;
}

ph_status ph__job_checkpoint_read(const char *path, struct ph__snapshot *snapshot)
{
    struct ph__job_checkpoint_head head;
    struct ph__arena arena = {0};
    int64_t *versions;
    ph_status status = read_matching_head(path, &arena, snapshot, &head);
    ph__arena_fini(&arena);
    PH_TRY(status);
    PH_TRY(allocate_versions(snapshot, &versions));
    status = read_tensors(path, snapshot, versions);
    for (size_t i = 0; status == PH_OK && i < snapshot->layout->sizes.num_chunks; i++)
        snapshot->chunks[i] = (struct ph__snapshot_chunk){.version = (uint64_t)versions[i],
            .learning_rate = head.learning_rates[snapshot->keys[snapshot->layout->chunks[i].key].optimizer]};
    free(versions);
    if (status == PH_OK)
        memcpy(snapshot->learning_rates, head.learning_rates, sizeof head.learning_rates);
    snapshot->iteration = head.iteration;
    return status;
}
