/* The calls under way: starting them, and the requests about them. call-events.c has their output and their end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "call.h"

#define KILL_PATIENCE 500 /* ms until a supervisor that was asked to kill everything is killed itself */

struct call *calls;
static unsigned call_count;

void close_fd(int *fd) {
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
  call->in = call->out = call->err = call->supervisor.control = call->supervisor.status = call->supervisor.commands = -1;
  call->credit[1] = call->credit[2] = WINDOW;
  call->outputs[1].pass = call->outputs[2].pass = KEEP_ALL;
  call->deadline = call->oom_kills_before = call->undo_parent = -1;
  call->next = calls;
  calls = call;
  call_count++;
  return call;
}

void call_free(struct call *call) {
  for (struct call **at = &calls; *at; at = &(*at)->next)
    if (*at == call) {
      *at = call->next;
      call_count--;
      break;
    }
  close_fd(&call->in);
  if (call->err != call->out) close_fd(&call->err);
  close_fd(&call->out);
  close_fd(&call->supervisor.commands);
  close_fd(&call->supervisor.control);
  close_fd(&call->supervisor.status);
  close_fd(&call->undo_parent);
  if (call->file) pending_discard(call->file);
  free(call->listing);
  free(call->file);
  free(call->outputs[1].ring);
  free(call->outputs[2].ring);
  free(call->input.data);
  free(call);
}

static void answer_left_out(const struct call *call) {
  uint64_t out = left_out(&call->outputs[1]), err = left_out(&call->outputs[2]);
  if (out == 0 && err == 0) return;
  uint8_t body[16];
  write_u64(body, out);
  write_u64(body + 8, err);
  answer(ANS_LEFT_OUT, call->id, body, sizeof body);
}

void call_finish(struct call *call) {
  if (call->start_error) {
    answer_fail(call->id, call->start_error, "the command");
    call_free(call);
    return;
  }
  answer_left_out(call);
  uint8_t body[6] = {(uint8_t)(call->ending.signaled != 0)};
  write_u32(body + 1, (uint32_t)call->ending.code);
  body[5] = call->timed_out ? EXIT_TIMED_OUT : 0;
  if (call->oom_kills_before >= 0) body[5] |= cgroup_oom_kills() > call->oom_kills_before ? EXIT_OOM_KNOWN | EXIT_OOM : EXIT_OOM_KNOWN;
  answer(ANS_EXIT, call->id, body, sizeof body);
  call_free(call);
}

static void set_ends(struct call *call, const struct ends *ours) {
  call->in = ours->in;
  call->out = ours->out;
  call->err = ours->err;
}

int call_start(struct call *call, struct command *command, bool with_stdin, uint16_t cols, uint16_t rows, uint32_t deadline) {
  struct ends ours;
  int error = cols > 0 ? open_terminal(command, cols, rows, &ours) : open_pipes(command, with_stdin, &ours);
  if (error) return error;
  set_ends(call, &ours);
  call->terminal = command->terminal;
  if (command->as) {
    const int streams[] = {command->in, command->out, command->err};
    chown_streams(streams, 3, command->as);
    call->oom_kills_before = cgroup_oom_kills();
  }
  error = pool_start(command, &call->supervisor) ? 0 : start_command(command, confinement, &call->supervisor);
  close_command_ends(command);
  if (error) return error;
  if (deadline) call->deadline = now_ms() + deadline;
  return 0;
}

/* A worker has its three streams, the directory and no other descriptor: an open end of another call's pipe would keep that call
 * waiting. */
static void become_worker(const struct command *pipes, int (*work)(int directory), int directory, int other) {
  const int fds[] = {pipes->in, pipes->out, pipes->err, directory, other};
  if (!arrange_descriptors(fds, other < 0 ? WORKER_OTHER : WORKER_OTHER + 1)) _exit(EMFILE);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  /* In a container it needs the guest's capabilities: the files may belong to any user. */
  if (jailed && !in_container && drop_privileges() != 0) _exit(EPERM);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  _exit(work(3));
}

int call_start_worker(struct call *call, int (*work)(int directory), int directory, int other) {
  struct command pipes = {.cwd = -1};
  struct ends ours;
  int error = open_pipes(&pipes, true, &ours);
  if (error) return error;
  set_ends(call, &ours);
  pid_t pid = fork();
  if (pid == 0) become_worker(&pipes, work, directory, other);
  error = pid < 0 ? -errno : 0;
  close_command_ends(&pipes);
  if (error) return error;
  call->worker = true;
  call->supervisor.pid = pid;
  return 0;
}

void call_undo_by_removing(struct call *call, int parent, const char *name) {
  call->undo_parent = parent;
  memcpy(call->undo_name, name, strlen(name) + 1);
}

static const char *undone;
static int remove_undone(int parent) { return remove_tree(parent, undone); }

void undo_work(struct call *call) {
  int parent = call->undo_parent;
  undone = call->undo_name;
  pid_t pid = fork();
  /* It neither reads nor writes, so any descriptor does for its streams. */
  if (pid == 0) become_worker(&(struct command){.in = parent, .out = parent, .err = parent}, remove_undone, parent, -1);
  if (pid > 0) call->supervisor.pid = pid;
  else remove_tree(parent, undone);
  close_fd(&call->undo_parent);
}

void calls_undo(void) {
  bool alone = getpid() != 1; /* there, all descendants have been killed by now */
  for (struct call *call = calls; call; call = call->next) {
    if (call->file) pending_discard(call->file);
    if (call->undo_parent < 0) continue;
    if (!alone) kill(-1, SIGKILL);
    while (!alone && waitpid(-1, NULL, 0) > 0) continue;
    alone = true;
    remove_tree(call->undo_parent, call->undo_name);
  }
}

void call_keep_output(struct call *call, uint32_t out, uint32_t err) {
  const uint32_t kept[] = {0, out, err};
  for (int stream = 1; stream <= 2; stream++) {
    call->outputs[stream].pass = kept[stream];
    call->outputs[stream].tail = kept[stream] / 2;
  }
}

void call_await_entry(struct call *call) { call->entering = true; }

void call_read_file(struct call *call, int fd, uint64_t most) {
  call->out = fd;
  call->reading = true;
  call->read_left = most;
}

void call_list(struct call *call, int directory, struct listing *listing, const uint8_t *first, size_t length) {
  call_read_file(call, directory, UINT64_MAX);
  call->listing = listing;
  call->credit[1] -= (uint32_t)length;
  answer(ANS_STDOUT, call->id, first, length);
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

/* Writes what the reader takes at once, and closes what nobody reads any more. Returns how much that was. */
static size_t write_input(struct call *call, const uint8_t *bytes, size_t length) {
  size_t done = 0;
  while (call->in >= 0 && done < length) {
    ssize_t wrote = write(call->in, bytes + done, length - done);
    if (wrote > 0) {
      done += (size_t)wrote;
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      if (call->connection && errno == ECONNRESET) call->read_error = errno; /* the kernel says it once */
      close_fd(&call->in);
    }
  }
  if (done > 0) give_credit(call, done);
  return done;
}

/* Writes as much as the pipe takes. If the reader has closed the pipe, input is dropped and credited, so that the sender is not
 * blocked. */
void flush_input(struct call *call) {
  if (call->reach.state != REACH_DONE) return;
  if (call->in >= 0 && queue_length(&call->input) > 0) {
    queue_take(&call->input, write_input(call, call->input.data + call->input.start, queue_length(&call->input)));
    if (call->in >= 0 && queue_length(&call->input) > 0) return;
  }
  if (call->in < 0 && queue_length(&call->input) > 0) {
    give_credit(call, queue_length(&call->input));
    queue_take(&call->input, queue_length(&call->input));
  }
  if (!call->input_ended || call->terminal || call->in < 0) return;
  if (call->connection) shutdown(call->in, SHUT_WR);
  close_fd(&call->in);
}

static void end_file(struct call *call, int error) {
  if (error) answer_fail(call->id, -error, "write");
  else answer(ANS_RESULT, call->id, NULL, 0);
  call_free(call);
}

bool call_stdin(struct call *call, const uint8_t *bytes, size_t length) {
  if (call->file) {
    int error = pending_append(call->file, bytes, length);
    if (error) end_file(call, error);
    else give_credit(call, length);
    return true;
  }
  if (queue_length(&call->input) + length > INPUT_WINDOW) return false;
  /* What the reader takes at once need not be stored. */
  if (queue_length(&call->input) == 0 && call->in >= 0 && call->reach.state == REACH_DONE) {
    size_t wrote = write_input(call, bytes, length);
    bytes += wrote;
    length -= wrote;
  }
  queue_append(&call->input, bytes, length);
  flush_input(call);
  return true;
}

void call_stdin_end(struct call *call) {
  if (call->file) {
    end_file(call, pending_commit(call->file));
    return;
  }
  static const uint8_t end_of_line_input = 4;
  if (call->terminal && !call->input_ended) queue_append(&call->input, &end_of_line_input, 1);
  call->input_ended = true;
  flush_input(call);
}

void call_kill(struct call *call) {
  if (call->supervisor.pid == 0) return;
  if (call->worker) {
    kill(call->supervisor.pid, SIGKILL);
    return;
  }
  kill_supervised(&call->supervisor, confinement);
  /* Without a namespace the command can stop its supervisor, which then reacts to nothing. */
  if (!call->killed) call->kill_at = now_ms() + KILL_PATIENCE;
  call->killed = true;
}

void call_signal(struct call *call, int number) {
  if (call->reach.state != REACH_DONE) {
    answer_fail(call->id, ECANCELED, "the port");
    call_free(call);
    return;
  }
  if (call->reach.port) reset_connection(call);
  if (call->reading || call->file || call->connection) {
    call->ending = (struct ending){.signaled = 1, .code = number};
    call_finish(call);
  } else if (number == SIGKILL || call->worker) {
    call_kill(call);
  } else if (!call->ended) {
    uint8_t byte = (uint8_t)number;
    call->supervisor.control_used = true;
    if (write(call->supervisor.control, &byte, 1) != 1 && errno == EAGAIN) call_kill(call);
  }
}

void call_credit(struct call *call, int stream, uint32_t bytes) {
  if (call->credit[stream] <= UINT32_MAX - bytes) call->credit[stream] += bytes;
}

void call_resize(struct call *call, uint16_t cols, uint16_t rows) {
  struct winsize size = {.ws_col = cols, .ws_row = rows};
  if (call->terminal && call->out >= 0) ioctl(call->out, TIOCSWINSZ, &size);
}

