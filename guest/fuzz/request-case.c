/* One guest, one stream of requests, all of its answers. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

static unsigned long answers[256], streams, whole;

static void check_answer(bool signals_known, uint8_t type, const uint8_t *body, uint32_t length) {
  bool good = type == ANS_STARTED || type == ANS_ENDED ? length == 0
              : type == ANS_ACCEPTED                     ? length == 0 || length == 6
              : type == ANS_QUERY                        ? length > 4 && length <= 516
              : type == ANS_STDOUT || type == ANS_STDERR ? length > 0 && length <= DATA_BYTES
              : type == ANS_EXIT                         ? length == 6 && body[0] <= 1
              : type == ANS_LEFT_OUT                     ? length == 16
              : type == ANS_FAIL                         ? length >= 4 && length <= 260
              : type == ANS_RESULT                       ? length <= MAX_BODY
              : type == ANS_STDIN_CREDIT                 ? length == 4 && load_u32(body) <= 256u << 10
                                                         : type == ANS_HELLO && length == 6;
  if (!good) broken("an answer of type %u with %u bytes", type, length);
  if (type == ANS_EXIT && body[0] == 0 && load_u32(body + 1) == SANITIZER_EXIT) broken("a process of the guest was ended by a sanitizer");
  if (signals_known && type == ANS_EXIT && body[0] == 1 && load_u32(body + 1) == SIGSEGV) broken("a process of the guest crashed");
  answers[type]++;
}

void observe_answers(struct observed *seen) {
  while (queue_length(&seen->bytes) >= HEADER_BYTES) {
    const uint8_t *header = seen->bytes.data + seen->bytes.start;
    uint32_t length = load_u32(header);
    if (length > MAX_BODY || load_u32(header + 4) != seen->sequence) broken("an answer that is out of order");
    if (queue_length(&seen->bytes) < HEADER_BYTES + length) return;
    check_answer(seen->signals_known, header[8], header + HEADER_BYTES, length);
    seen->sequence++;
    seen->last = load_u32(header + 9) == LAST_CALL || seen->last;
    queue_take(&seen->bytes, HEADER_BYTES + length);
  }
}

/* Sends in parts of random size and reads meanwhile, until the guest has ended or was silent for a while. */
static void talk(int fd, struct queue *requests, bool signals_known, int patience) {
  struct observed seen = {.signals_known = signals_known};
  for (;;) {
    bool sending = queue_length(requests) > 0;
    struct pollfd ready = {.fd = fd, .events = (short)(POLLIN | (sending ? POLLOUT : 0))};
    int most = sending ? 1000 * CASE_SECONDS : seen.last ? patience : signals_known ? 2000 : 50;
    if (poll(&ready, 1, most) <= 0) break;
    if (ready.revents & POLLIN) {
      ssize_t got = recv(fd, queue_room(&seen.bytes, DATA_BYTES), DATA_BYTES, MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) break;
      if (got > 0) seen.bytes.end += (size_t)got;
      observe_answers(&seen);
    } else if (ready.revents & POLLOUT) {
      size_t part = 1 + random_below(one_in(4) ? 20 : 8192);
      if (part > queue_length(requests)) part = queue_length(requests);
      ssize_t sent = send(fd, requests->data + requests->start, part, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) break;
      if (sent > 0) queue_take(requests, (size_t)sent);
    } else {
      break;
    }
  }
  if (seen.last) whole++;
  free(seen.bytes.data);
}

static int wait_bounded(pid_t pid) {
  int status;
  for (int64_t end = now_ms() + 1000 * CASE_SECONDS; now_ms() < end; usleep(200))
    if (waitpid(pid, &status, WNOHANG) == pid) return status;
  kill(pid, SIGABRT);
  broken("the guest does not end");
}

void request_case(void) {
  int channel[2];
  struct queue requests = {0};
  bool signals_known = make_requests(&requests);
  int patience = (int)random_below(30);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0) broken("no channel: %s", strerror(errno));
  pid_t pid = fork();
  if (pid == 0) {
    close(channel[0]);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    exit(serve(channel[1], channel[1], "root", false, false));
  }
  if (pid < 0) broken("no process: %s", strerror(errno));
  close(channel[1]);
  talk(channel[0], &requests, signals_known, patience);
  streams++;
  close(channel[0]);
  free(requests.data);
  int status = wait_bounded(pid);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) broken("the guest ended with status %#x", (unsigned)status);
  if (waitpid(-1, &status, WNOHANG) >= 0 || errno != ECHILD) broken("the guest left a process behind");
}

void report_requests(void) {
  printf("streams %lu, answered to the last %lu\n", streams, whole);
  for (int type = ANS_HELLO; type <= ANS_QUERY; type++) printf("answers of type %#x: %lu\n", (unsigned)type, answers[type]);
}
