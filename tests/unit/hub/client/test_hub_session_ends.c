/* Why a worker's connection ended, as the log and the other workers hear it. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/hub_turns.h"

struct trial {
    struct ph_hub_server *server;
    int log[2]; /* a pipe */
    int worker;
    char text[65536];
};

static void begin(struct trial *trial)
{
    assert_int_equal(pipe2(trial->log, O_NONBLOCK), 0);
    trial->server = hub_turns_begin((struct ph_hub_server_options){.log_descriptor = trial->log[1]});
    trial->worker = hub_turns_connect(trial->server, true);
    hub_turns_join(trial->server, trial->worker, 0);
}

/* Whether the log has said this since the last look. */
static void look(struct trial *trial)
{
    hub_turns_take(trial->server);
    const ssize_t size = read(trial->log[0], trial->text, sizeof trial->text - 1);
    trial->text[size > 0 ? size : 0] = '\0';
}

static void end(struct trial *trial)
{
    ph_hub_server_destroy(trial->server);
    close(trial->log[0]);
    close(trial->log[1]);
}

static void assert_failed(const struct trial *trial, const char *reason, uint64_t num_broken)
{
    const char *failed = strstr(trial->text, "event=worker_failed job=job rank=0 reason=\"");
    assert_non_null(failed);
    failed = strchr(failed, '"') + 1;
    if (strncmp(failed, reason, strlen(reason)) != 0)
        fail_msg("'%s' instead of '%s'", failed, reason);
    assert_int_equal(trial->server->counts.broken_connections, num_broken);
    assert_int_equal(strstr(trial->text, "event=connection_broken") != NULL, num_broken > 0);
    assert_int_equal(trial->server->counts.ended_workers, 1);
}

static void a_worker_that_closes_has_ended(void **state)
{
    (void)state;
    struct trial trial;
    begin(&trial);
    close(trial.worker);
    look(&trial);
    assert_failed(&trial, "the process has ended", 0);
    end(&trial);
}

static void a_worker_that_makes_no_sense_is_told_so(void **state)
{
    (void)state;
    struct trial trial;
    struct ph__answer answer;
    begin(&trial);
    hub_turns_put(trial.worker, 999, NULL, 0);
    look(&trial);
    assert_failed(&trial, "a message of type 999", 1);
    assert_true(hub_turns_answer(trial.worker, &answer)); /* that to its join was another frame */
    assert_int_equal(answer.status, PH_OK);               /* to its CREATE */
    assert_true(hub_turns_answer(trial.worker, &answer));
    assert_non_null(strstr(answer.text, "a message of type 999"));
    close(trial.worker);
    end(&trial);
}

/* What cannot even be received, and its sender gone when it is looked at: the first reason counts. */
static void a_connection_that_cannot_be_received_from_is_told_so(void **state)
{
    (void)state;
    struct trial trial;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = "";
    begin(&trial);
    struct iovec byte = {.iov_base = "", .iov_len = 1};
    struct msghdr header = {
        .msg_iov = &byte, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    *rights = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(rights), &trial.worker, sizeof(int));
    assert_int_equal(sendmsg(trial.worker, &header, MSG_NOSIGNAL), 1);
    close(trial.worker);
    look(&trial);
    assert_failed(&trial, "the peer sent descriptors that were not asked for", 1);
    end(&trial);
}

/* Both come at once. */
static void who_leaves_and_closes_has_left(void **state)
{
    (void)state;
    struct trial trial;
    begin(&trial);
    hub_turns_put(trial.worker, PH_FRAME_LEAVE, NULL, 0);
    close(trial.worker);
    look(&trial);
    assert_non_null(strstr(trial.text, "event=worker_left job=job rank=0"));
    assert_int_equal(trial.server->counts.ended_workers, 0);
    assert_null(trial.server->sessions);
    end(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_closes_has_ended),
        cmocka_unit_test(a_worker_that_makes_no_sense_is_told_so),
        cmocka_unit_test(a_connection_that_cannot_be_received_from_is_told_so),
        cmocka_unit_test(who_leaves_and_closes_has_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
