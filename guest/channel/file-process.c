/* File requests with absolute paths. They may concern any path of the sandbox, so they are served with the rights of a command: by a process
 * that has its user, its mounts and its /proc, and no descriptor or memory of the guest. It is this program with the verb serve-files. Requests
 * and answers only pass through here. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../guest.h"

#define FULL (8u << 20)     /* bytes waiting for the process at which no more requests are read */
#define END_PATIENCE 1000   /* ms that it has to end by itself */

static pid_t process;
static int channel = -1;
static struct queue to, from;
static uint32_t to_sequence, from_sequence;
static uint32_t open_calls[MAX_CALLS];
static size_t open_count;

bool only_files;

/* serve-files: on descriptor 3. */
int serve_files_main(void) {
  only_files = true;
  return files_allow_absolute() == 0 ? serve(3, 3, "/", false, false) : 125;
}

bool is_for_file_process(const struct frame *frame) {
  bool is_file = (frame->type >= REQ_READ && frame->type <= REQ_TAR_IN) || (frame->type >= REQ_LIST_ENTRIES && frame->type <= REQ_READ_RANGE);
  if (!is_file || only_files) return false;
  struct reader r = {.at = frame->body, .end = frame->body + frame->length};
  const char *path = read_string(&r);
  return !r.bad && *path == '/';
}

bool is_file_process(pid_t pid) { return process != 0 && pid == process; }

static size_t find_open(uint32_t call) {
  size_t at = 0;
  while (at < open_count && open_calls[at] != call) at++;
  return at;
}

/* The process has gone, or must: its calls fail, and the next request starts another. */
static void lose(void) {
  if (channel >= 0) close(channel);
  channel = -1;
  if (process > 0) kill(process, SIGKILL);
  to.start = to.end = from.start = from.end = 0;
  while (open_count > 0) answer_fail(open_calls[--open_count], EAGAIN, "the files");
}

static int start(void) {
  int ends[2];
  if (process != 0) waitpid(process, NULL, 0); /* it was killed */
  process = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -errno;
  int pid = start_file_process(confinement, ends[1]);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return pid;
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  process = pid;
  channel = ends[0];
  to_sequence = from_sequence = 0;
  return 0;
}

void forward_request(const struct frame *frame) {
  int error = open_count == MAX_CALLS ? -EAGAIN : channel < 0 ? start() : 0;
  if (error) {
    answer_fail(frame->call, -error, "the files");
    return;
  }
  /* Without a namespace of its own, a command of the same user can stop it. */
  if (confinement != CONFINE_NAMESPACE) kill(process, SIGCONT);
  open_calls[open_count++] = frame->call;
  frame_put(&to, &to_sequence, frame->type, frame->call, frame->body, frame->length);
}

bool forward_call_request(const struct frame *frame) {
  if (find_open(frame->call) == open_count) return false;
  frame_put(&to, &to_sequence, frame->type, frame->call, frame->body, frame->length);
  return true;
}

bool file_process_has_room(void) { return queue_length(&to) < FULL; }

struct pollfd file_process_poll(void) {
  short events = (short)((channel_is_full() ? 0 : POLLIN) | (queue_length(&to) > 0 ? POLLOUT : 0));
  return (struct pollfd){.fd = events ? channel : -1, .events = events};
}

/* False when the process sent what it cannot. */
static bool pass_on(const struct frame *frame) {
  if (frame->type == ANS_HELLO) return true;
  size_t at = find_open(frame->call);
  if (at == open_count) return false;
  bool ends = frame->type == ANS_EXIT || frame->type == ANS_FAIL || frame->type == ANS_RESULT;
  if (!ends && frame->type != ANS_STARTED && frame->type != ANS_STDOUT && frame->type != ANS_STDERR && frame->type != ANS_STDIN_CREDIT) return false;
  if (ends) open_calls[at] = open_calls[--open_count];
  answer(frame->type, frame->call, frame->body, frame->length);
  return true;
}

/* 1: there may be more; 0: not now; -1: the process has gone or broke the protocol. */
static int take_answers(void) {
  ssize_t got = read(channel, queue_room(&from, DATA_BYTES), DATA_BYTES);
  if (got < 0) return errno == EAGAIN ? 0 : errno == EINTR ? 1 : -1;
  if (got == 0) return -1;
  from.end += (size_t)got;
  struct frame frame;
  int state;
  while ((state = frame_next(&from, &from_sequence, &frame)) == 1) {
    if (!pass_on(&frame)) return -1;
    queue_take(&from, HEADER_BYTES + frame.length);
  }
  return state == 0 ? 1 : -1;
}

void file_process_ready(short events) {
  if (channel < 0 || !events) return;
  while (queue_length(&to) > 0) {
    ssize_t wrote = write(channel, to.data + to.start, queue_length(&to));
    if (wrote > 0) queue_take(&to, (size_t)wrote);
    else if (errno == EAGAIN) break;
    else if (errno != EINTR) return lose();
  }
  if (events & (POLLIN | POLLHUP | POLLERR) && take_answers() < 0) lose();
}

bool file_process_ended(pid_t pid) {
  if (!is_file_process(pid)) return false;
  process = 0;
  int more = channel < 0 ? -1 : 1;
  while (more > 0) more = take_answers();
  lose();
  return true;
}

void file_process_close(void) {
  if (process == 0) return;
  if (channel >= 0) close(channel);
  channel = -1;
  if (confinement != CONFINE_NAMESPACE) kill(process, SIGCONT);
  const struct timespec pause = {.tv_nsec = 1000000};
  for (int64_t until = now_ms() + END_PATIENCE; now_ms() < until;) {
    if (waitpid(process, NULL, WNOHANG) != 0) break;
    nanosleep(&pause, NULL);
  }
}
