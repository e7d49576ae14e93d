/* The calls under way: their pipes, their flow control, their deadlines, their end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "agent.h"

#define WINDOW (256u << 10)   /* bytes that may be under way without being asked for again, per stream */
#define IDLE_DRAIN 300        /* a finished command's output is read until it was silent this long, */
#define MAX_DRAIN 2000        /* or this long in all, when a background child holds it open */

struct call {
  uint32_t id;
  struct supervisor supervisor; /* pid 0 when there is none or it is gone */
  bool builtin, ended, timed_out, input_ended, terminal, reading;
  struct ending ending;
  int in, out, err;
  uint32_t credit[3];
  struct queue input;
  int64_t deadline, quiet_since, ended_at;
  struct pending_file *file;
  struct call *next;
};

enum role { ROLE_OUT, ROLE_ERR, ROLE_IN, ROLE_STATUS };
struct watch {
  struct call *call;
  enum role role;
};

static struct call *calls;
static unsigned call_count;
static struct watch watches[MAX_CALLS * POLLS_PER_CALL];

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

struct call *call_find(uint32_t id) {
  struct call *call = calls;
  while (call && call->id != id) call = call->next;
  return call;
}

struct call *call_new(uint32_t id) {
  if (call_count >= MAX_CALLS) return NULL;
  struct call *call = calloc(1, sizeof *call);
  if (!call) return NULL;
  call->id = id;
  call->in = call->out = call->err = call->supervisor.control = call->supervisor.status = -1;
  call->credit[1] = call->credit[2] = WINDOW;
  call->deadline = -1;
  call->next = calls;
  calls = call;
  call_count++;
  return call;
}

void call_drop(struct call *call) {
  for (struct call **at = &calls; *at; at = &(*at)->next)
    if (*at == call) {
      *at = call->next;
      call_count--;
      break;
    }
  close_fd(&call->in);
  if (call->err != call->out) close_fd(&call->err);
  close_fd(&call->out);
  close_fd(&call->supervisor.control);
  close_fd(&call->supervisor.status);
  if (call->file) files_abandon(call->file);
  free(call->file);
  free(call->input.data);
  free(call);
}

static void finish(struct call *call) {
  uint8_t body[6] = {(uint8_t)(call->ending.signaled != 0)};
  write_u32(body + 1, (uint32_t)call->ending.code);
  body[5] = call->timed_out;
  answer(ANS_EXIT, call->id, body, sizeof body);
  call_drop(call);
}

static void take_ends(struct call *call, const struct ends *ours) {
  call->in = ours->in;
  call->out = ours->out;
  call->err = ours->err;
}

int call_start(struct call *call, struct command *command, bool with_stdin, uint16_t cols, uint16_t rows, uint32_t deadline) {
  struct ends ours;
  int error = cols > 0 ? open_terminal(command, cols, rows, &ours) : open_pipes(command, with_stdin, &ours);
  if (error) return error;
  take_ends(call, &ours);
  call->terminal = command->terminal;
  error = start_command(command, confinement, &call->supervisor);
  close_command_ends(command);
  if (error) return error;
  if (deadline) call->deadline = now_ms() + deadline;
  return 0;
}

int call_start_builtin(struct call *call, int (*builtin)(void)) {
  struct command pipes = {.cwd = -1};
  struct ends ours;
  int error = open_pipes(&pipes, true, &ours);
  if (error) return error;
  take_ends(call, &ours);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(pipes.in, 0);
    dup2(pipes.out, 1);
    dup2(pipes.err, 2);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (jailed && drop_privileges() != 0) _exit(EPERM);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    _exit(builtin());
  }
  error = pid < 0 ? -errno : 0;
  close_command_ends(&pipes);
  if (error) return error;
  call->builtin = true;
  call->supervisor.pid = pid;
  return 0;
}

void call_read_file(struct call *call, int fd) {
  call->out = fd;
  call->reading = true;
}

void call_write_file(struct call *call, const struct pending_file *file) {
  call->file = malloc(sizeof *file);
  if (!call->file) _exit(70);
  *call->file = *file;
}

static void give_credit(struct call *call, size_t bytes) {
  uint8_t body[4];
  write_u32(body, (uint32_t)bytes);
  answer(ANS_STDIN_CREDIT, call->id, body, sizeof body);
}

/* Writes what the pipe takes. Who stopped reading gets no more, and the sender is not held up. */
static void flush_input(struct call *call) {
  while (call->in >= 0 && queue_length(&call->input) > 0) {
    ssize_t wrote = write(call->in, call->input.data + call->input.start, queue_length(&call->input));
    if (wrote > 0) {
      queue_take(&call->input, (size_t)wrote);
      give_credit(call, (size_t)wrote);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      close_fd(&call->in);
    }
  }
  if (call->in < 0 && queue_length(&call->input) > 0) {
    give_credit(call, queue_length(&call->input));
    queue_take(&call->input, queue_length(&call->input));
  }
  if (call->input_ended && !call->terminal) close_fd(&call->in);
}

static void end_file(struct call *call, int error) {
  if (error) answer_fail(call->id, -error, "write");
  else answer(ANS_RESULT, call->id, NULL, 0);
  call_drop(call);
}

void call_stdin(struct call *call, const uint8_t *bytes, size_t length) {
  if (call->file) {
    int error = files_append(call->file, bytes, length);
    if (error) end_file(call, error);
    else give_credit(call, length);
    return;
  }
  queue_append(&call->input, bytes, length);
  flush_input(call);
}

void call_stdin_end(struct call *call) {
  if (call->file) {
    end_file(call, files_commit(call->file));
    return;
  }
  static const uint8_t end_of_line_input = 4;
  if (call->terminal && !call->input_ended) queue_append(&call->input, &end_of_line_input, 1);
  call->input_ended = true;
  flush_input(call);
}

static void kill_call(struct call *call) {
  if (call->supervisor.pid == 0) return;
  if (call->builtin) kill(call->supervisor.pid, SIGKILL);
  else kill_supervised(&call->supervisor, confinement);
}

void call_signal(struct call *call, int number) {
  if (call->reading || call->file) {
    call->ending = (struct ending){.signaled = 1, .code = number};
    finish(call);
  } else if (number == SIGKILL || call->builtin) {
    kill_call(call);
  } else if (!call->ended) {
    uint8_t byte = (uint8_t)number;
    if (write(call->supervisor.control, &byte, 1) != 1 && errno == EAGAIN) kill_call(call);
  }
}

void call_credit(struct call *call, int stream, uint32_t bytes) {
  if (call->credit[stream] <= UINT32_MAX - bytes) call->credit[stream] += bytes;
}

void call_resize(struct call *call, uint16_t cols, uint16_t rows) {
  struct winsize size = {.ws_col = cols, .ws_row = rows};
  if (call->terminal && call->out >= 0) ioctl(call->out, TIOCSWINSZ, &size);
}

/* Moves what one stream has to the channel, as far as credit goes; false when the stream has ended. */
static bool pump(struct call *call, int fd, int stream) {
  static uint8_t bytes[DATA_BYTES];
  for (int rounds = 0; rounds < 8 && call->credit[stream] > 0 && !channel_is_full(); rounds++) {
    size_t room = call->credit[stream] < sizeof bytes ? call->credit[stream] : sizeof bytes;
    ssize_t got = read(fd, bytes, room);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    call->credit[stream] -= (uint32_t)got;
    call->quiet_since = now_ms();
    answer(stream == 1 ? ANS_STDOUT : ANS_STDERR, call->id, bytes, (size_t)got);
    if ((size_t)got < room && !call->reading) return true;
  }
  return true;
}

static void command_ended(struct call *call, struct ending ending) {
  if (call->ended) return;
  call->ended = true;
  call->ending = ending;
  call->ended_at = call->quiet_since = now_ms();
}

static void read_status(struct call *call) {
  struct ending ending;
  ssize_t got = read(call->supervisor.status, &ending, sizeof ending);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  close_fd(&call->supervisor.status);
  if (got == sizeof ending) command_ended(call, ending);
}

/* Ends the call when all of it has ended; otherwise says how long, in ms, until it must be looked at again, or -1. */
static int settle(struct call *call, int64_t now) {
  if (call->reading) {
    if (call->out >= 0) return call->credit[1] > 0 && !channel_is_full() ? 0 : -1;
    finish(call);
    return -1;
  }
  if (call->file) return -1;
  if (call->supervisor.pid == 0) {
    if (call->out < 0 && call->err < 0) finish(call);
    return -1;
  }
  if (!call->ended) {
    if (call->deadline < 0) return -1;
    if (now < call->deadline) return (int)(call->deadline - now);
    call->timed_out = true;
    call->deadline = -1;
    kill_call(call);
    return -1;
  }
  if (call->builtin) return -1;
  int64_t until = call->out < 0 && call->err < 0 ? now : call->quiet_since + IDLE_DRAIN;
  if (until > call->ended_at + MAX_DRAIN) until = call->ended_at + MAX_DRAIN;
  if (now < until) return (int)(until - now);
  if (call->ended_at != INT64_MIN) kill_call(call);
  call->ended_at = INT64_MIN; /* once is enough */
  return -1;
}

static bool is_supervisor(pid_t pid) {
  for (struct call *call = calls; call; call = call->next)
    if (call->supervisor.pid == pid) return true;
  return false;
}

void calls_child_ended(pid_t pid, int status) {
  for (struct call *call = calls; call; call = call->next) {
    if (call->supervisor.pid != pid) continue;
    call->supervisor.pid = 0;
    struct ending killed = {.signaled = 1, .code = SIGKILL};
    struct ending own = {.signaled = WIFSIGNALED(status), .code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)};
    if (call->supervisor.status >= 0) read_status(call);
    /* A supervisor that failed before it had a command says so by 125; otherwise its command died with it. */
    command_ended(call, call->builtin || (WIFEXITED(status) && own.code != 0) ? own : killed);
    close_fd(&call->in);
    break;
  }
  /* Who kills a supervisor from inside hands its children to us: they end here, generation by generation. */
  if (confinement == CONFINE_SUBREAPER) kill_children(is_supervisor);
}

size_t calls_poll(struct pollfd *fds, size_t room, int *timeout) {
  size_t count = 0;
  int64_t now = now_ms();
  bool full = channel_is_full();
  struct call *next;
  for (struct call *call = calls; call; call = next) {
    next = call->next;
    if (call->reading && call->out >= 0 && !pump(call, call->out, 1)) close_fd(&call->out);
    int wait = settle(call, now);
    if (wait >= 0 && (*timeout < 0 || wait < *timeout)) *timeout = wait;
  }
  for (struct call *call = calls; call; call = call->next) {
    const struct {
      int fd;
      bool wanted;
      short events;
      enum role role;
    } polls[POLLS_PER_CALL] = {
        {call->out, !call->reading && call->credit[1] > 0 && !full, POLLIN, ROLE_OUT},
        {call->err, call->credit[2] > 0 && !full, POLLIN, ROLE_ERR},
        {call->in, queue_length(&call->input) > 0, POLLOUT, ROLE_IN},
        {call->supervisor.status, true, POLLIN, ROLE_STATUS},
    };
    for (int i = 0; i < POLLS_PER_CALL && count < room; i++) {
      if (polls[i].fd < 0 || !polls[i].wanted) continue;
      fds[count] = (struct pollfd){.fd = polls[i].fd, .events = polls[i].events};
      watches[count++] = (struct watch){.call = call, .role = polls[i].role};
    }
  }
  return count;
}

void calls_ready(const struct pollfd *fds, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!fds[i].revents) continue;
    struct call *call = watches[i].call;
    switch (watches[i].role) {
      case ROLE_OUT:
        if (call->out >= 0 && !pump(call, call->out, 1)) close_fd(&call->out);
        break;
      case ROLE_ERR:
        if (call->err >= 0 && !pump(call, call->err, 2)) close_fd(&call->err);
        break;
      case ROLE_IN:
        flush_input(call);
        break;
      case ROLE_STATUS:
        read_status(call);
        break;
    }
  }
}
