/* The main loop: one channel in and out, and the calls. When the channel closes, everything ends. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../guest.h"

#define FULL (512u << 10)     /* bytes waiting for the channel at which no more output is read */
#define OVERFULL (8u << 20)   /* bytes waiting for the channel at which no more requests are read */

enum confinement confinement = CONFINE_SUBREAPER;
bool jailed;

#define LATE_AFTER 10         /* ms that an answer waits for one that it can be sent with */

#define TRIM_AFTER 1000       /* ms without traffic after which large buffers are freed */
#define TAKEN_AT_ONCE (256u << 10) /* bytes of requests that are read at a time */

static struct queue incoming;
static struct replay outgoing; /* on a channel that does not break, what is sent counts as confirmed */
static uint32_t incoming_sequence, outgoing_sequence;
static bool is_busy; /* since the buffers were looked at last */
static int64_t trim_at;
static int64_t late_until; /* all of `outgoing` may wait until then; 0: it must not */

int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void answer(uint8_t type, uint32_t call, const void *body, size_t length) {
  late_until = 0;
  frame_put(&outgoing.bytes, &outgoing_sequence, type, call, body, length);
}

void forget_channel(void) {
  free(incoming.data);
  free(outgoing.bytes.data);
  incoming = outgoing.bytes = (struct queue){0};
}

uint8_t *answer_room(size_t length) { return frame_room(&outgoing.bytes, length); }

void answer_in_room(uint8_t type, uint32_t call, size_t length) {
  late_until = 0;
  frame_put_room(&outgoing.bytes, &outgoing_sequence, type, call, length);
}

void answer_late(uint8_t type, uint32_t call) {
  if (replay_unsent(&outgoing) == 0) late_until = now_ms() + LATE_AFTER;
  frame_put(&outgoing.bytes, &outgoing_sequence, type, call, NULL, 0);
}

void answer_fail(uint32_t call, int error, const char *message) {
  uint8_t body[260];
  size_t length = strnlen(message, 256);
  write_u32(body, (uint32_t)error);
  memcpy(body + 4, message, length);
  answer(ANS_FAIL, call, body, 4 + length);
}

bool channel_is_full(void) { return replay_unsent(&outgoing) >= FULL || queue_length(&outgoing.bytes) >= REPLAY_WINDOW; }

/* How long what is waiting for the channel may still wait, in ms. */
static int lateness(void) {
  if (late_until == 0) return 0;
  int64_t left = late_until - now_ms();
  if (left > 0) return (int)left;
  late_until = 0;
  return 0;
}

static void use(struct queue *queue, size_t length) {
  queue_use(queue, length);
  is_busy = true;
}

/* An idle sandbox does not keep the memory that a busy one needs. Returns the ms until it is time to look again, or -1. */
static int trim_queues(void) {
  if (!queue_is_wide(&incoming) && !queue_is_wide(&outgoing.bytes)) return -1;
  int64_t now = now_ms();
  if (is_busy) trim_at = now + TRIM_AFTER;
  is_busy = false;
  if (now < trim_at) return (int)(trim_at - now);
  queue_trim(&incoming);
  queue_trim(&outgoing.bytes);
  return -1;
}

/* False when the peer is gone. */
static bool flush_channel(int fd) {
  if (linked) {
    link_send(&outgoing);
    return true;
  }
  while (replay_unsent(&outgoing) > 0) {
    ssize_t wrote = write(fd, replay_next(&outgoing), replay_unsent(&outgoing));
    if (wrote > 0) use(&outgoing.bytes, (size_t)wrote);
    else if (errno == EAGAIN) return true;
    else if (errno != EINTR) return false;
  }
  return true;
}

static bool handle_requests(void) {
  struct frame frame;
  int state;
  while ((state = frame_next(&incoming, &incoming_sequence, &frame)) == 1) {
    if (!handle_request(&frame)) return false;
    use(&incoming, HEADER_BYTES + frame.length);
  }
  return state == 0;
}

/* False when the peer is gone or broke the protocol. */
static bool take_requests(int fd) {
  ssize_t got = read(fd, queue_room(&incoming, TAKEN_AT_ONCE), TAKEN_AT_ONCE);
  if (got == 0) return false;
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  incoming.end += (size_t)got;
  return handle_requests();
}

/* Runs the self-test like any command. `complaint` gets what it found, or an empty text. Returns the process to wait for, or 0. */
static pid_t run_self_test(bool pooled, char *complaint, size_t room) {
  int out[2], empty = open("/dev/null", O_RDWR | O_CLOEXEC), cwd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  complaint[0] = 0;
  struct supervisor supervisor;
  int error = empty < 0 || pipe2(out, O_CLOEXEC) != 0 ? -errno : 0;
  struct command test = {.cwd = cwd, .in = empty, .out = out[1], .err = out[1], .jailed = true, .as = in_container ? &default_identity : NULL, .builtin = self_test};
  pooled = pooled && !error && pool_start(&test, &supervisor);
  if (!pooled && !error) error = start_command(&test, confinement, &supervisor);
  if (error) {
    snprintf(complaint, room, "cannot start a command in a PID namespace: %s", strerror(-error));
    return 0;
  }
  close(out[1]);
  close(empty);
  close(cwd);
  size_t length = 0;
  for (ssize_t got; length < room - 1 && (got = read(out[0], complaint + length, room - 1 - length)) > 0;) length += (size_t)got;
  complaint[length] = 0;
  struct ending ending = {.code = -1};
  struct pollfd ready = {.fd = supervisor.status, .events = POLLIN};
  poll(&ready, 1, 5000);
  bool has_ended = read(supervisor.status, &ending, sizeof ending) == sizeof ending;
  if ((!has_ended || ending.signaled || ending.code != 0) && length == 0) snprintf(complaint, room, "the self-test ended with %d", ending.code);
  close(out[0]);
  if (ending.tree == TREE_GONE_REUSE && pool_return(&supervisor)) return 0; /* the first command gets it */
  kill(supervisor.pid, SIGKILL);
  close(supervisor.control);
  close(supervisor.status);
  if (!pooled) return supervisor.pid;
  close(supervisor.commands);
  if (has_ended) return supervisor.pid;
  /* Such a supervisor can't say why it could not start a command, and another one can. It must not pass where this one did not. */
  waitpid(supervisor.pid, NULL, 0);
  pid_t other = run_self_test(false, complaint, room);
  if (complaint[0] == 0) snprintf(complaint, room, "commands cannot be started one after the other");
  return other;
}

static void send_hello(int out, bool with_self_test) {
  char complaint[512] = "";
  pid_t tester = with_self_test ? run_self_test(true, complaint, sizeof complaint) : 0;
  uint8_t body[6 + sizeof complaint];
  size_t length = strlen(complaint);
  write_u32(body, PROTOCOL_VERSION);
  body[4] = (uint8_t)((unsigned)confinement | (EDITION - 1) << 4); /* edition 1 sent zero there */
  body[5] = length == 0;
  memcpy(body + 6, complaint, length);
  answer(ANS_HELLO, 0, body, 6 + length);
  flush_channel(out);
  /* The kernel takes its time to remove a namespace. The host need not wait for it, but the first command does, so that it finds
   * no process of the test. */
  if (tester > 0) waitpid(tester, NULL, 0);
}

static void sooner(int *timeout, int other) {
  if (other >= 0 && (*timeout < 0 || other < *timeout)) *timeout = other;
}

int serve(int in, int out, const char *root, bool with_self_test, bool only_loopback) {
  if (files_open_root(root) != 0) return 125;
  signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  for (int i = 0, ends[] = {in, out}; i < 2 && !linked; i++) {
    fcntl(ends[i], F_SETFL, fcntl(ends[i], F_GETFL) | O_NONBLOCK);
    fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  }
  if (jailed && !in_container) isolate_abstract_sockets();
  self_test_expects(only_loopback);
  send_hello(out, with_self_test);

  enum { LINK = 5, CALLS = LINK + LINK_POLLS };
  static struct pollfd fds[CALLS + MAX_CALLS * POLLS_PER_CALL + MAX_LISTENERS];
  for (;;) {
    int timeout = -1;
    size_t count = calls_poll(fds + CALLS, MAX_CALLS * POLLS_PER_CALL, &timeout);
    bool was_full = channel_is_full();
    int late = lateness();
    if (late == 0 && !flush_channel(out)) break;
    if (count == 0) pool_fill(); /* the next command gets the supervisor of one that ends */
    sooner(&timeout, pool_trim());
    sooner(&timeout, trim_queues());
    if (late > 0) sooner(&timeout, late);
    /* The calls were not polled for output because there was no room. Now there is. */
    if (was_full && !channel_is_full()) timeout = 0;
    bool has_room = replay_unsent(&outgoing) < OVERFULL && file_process_has_room();
    if (linked) {
      int quiet = link_timeout();
      if (quiet < 0) break;
      sooner(&timeout, quiet);
      link_polls(fds + LINK, &outgoing, has_room, late == 0);
    }
    fds[0] = (struct pollfd){.fd = has_room ? in : -1, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = late == 0 && replay_unsent(&outgoing) > 0 ? out : -1, .events = POLLOUT};
    fds[2] = (struct pollfd){.fd = signals, .events = POLLIN};
    fds[3] = resolver_poll();
    fds[4] = file_process_poll();
    struct pollfd *listeners = fds + CALLS + count;
    size_t listener_count = listeners_poll(listeners);
    if (!linked)
      for (int i = LINK; i < CALLS; i++) fds[i].fd = -1;
    if (poll(fds, CALLS + count + listener_count, timeout) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (fds[2].revents) {
      struct signalfd_siginfo info;
      while (read(signals, &info, sizeof info) > 0) continue;
      int status;
      for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (!file_process_ended(pid) && !pool_child_ended(pid)) calls_child_ended(pid, status);
    }
    calls_ready(fds + CALLS, count);
    file_process_ready(fds[4].revents);
    if (fds[3].revents) take_queries();
    listeners_ready(listeners, listener_count);
    if (fds[0].revents && !take_requests(in)) break;
    if (linked && !(link_ready(fds + LINK, &incoming, &outgoing) && handle_requests())) break;
  }
  file_process_close();
  /* When PID 1 exits, the kernel ends everybody. Elsewhere the children have to be killed first. */
  if (getpid() != 1) {
    signal(SIGCHLD, SIG_DFL);
    kill_descendants();
  }
  calls_undo();
  return 0;
}
