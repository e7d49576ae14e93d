/* What happens to calls under way: output, deadlines, exits. calls.c starts them and handles requests about them. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "call.h"

#define IDLE_DRAIN 300        /* ms; the output of a command that has exited is read until nothing came for this long, */
#define MAX_DRAIN 2000        /* ms; or for this long in all, when a background child has it open */

enum role { ROLE_OUT, ROLE_ERR, ROLE_IN, ROLE_STATUS };
struct watch {
  struct call *call;
  enum role role;
};

static struct watch watches[MAX_CALLS * POLLS_PER_CALL];

static void pump_out(struct call *call) {
  if (call->out < 0 || pump(call, call->out, 1) != FLOW_ENDED) return;
  close_fd(&call->out);
  if (!call->connection) return;
  /* The other direction of the connection may still be open, unless it was reset. */
  if (call->read_error) close_fd(&call->in);
  else answer(ANS_ENDED, call->id, NULL, 0);
}

static void pump_err(struct call *call) {
  if (call->err >= 0 && pump(call, call->err, 2) == FLOW_ENDED) close_fd(&call->err);
}

/* `error` is an errno: why the command could not be started. */
static void answer_entry(struct call *call, int error) {
  if (!call->entering) return;
  call->entering = false;
  if (error) call->start_error = error;
  else answer(ANS_STARTED, call->id, NULL, 0);
}

static void command_ended(struct call *call, struct ending ending) {
  if (call->ended) return;
  answer_entry(call, call->killed ? 0 : call->start_error ? call->start_error : EAGAIN);
  call->ended = true;
  call->ending = ending;
  call->ended_at = call->quiet_since = now_ms();
}

/* A supervisor that can take another command goes to the pool. Any other one is killed. */
static void release_supervisor(struct call *call) {
  struct supervisor *supervisor = &call->supervisor;
  if (supervisor->pid == 0) return;
  if (!call->killed && pool_return(supervisor)) supervisor->control = supervisor->status = supervisor->commands = -1;
  else kill(supervisor->pid, SIGKILL);
}

static void read_status(struct call *call) {
  struct ending ending;
  ssize_t got = read(call->supervisor.status, &ending, sizeof ending);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got == sizeof ending && ending.signaled == ENDING_FROZEN) {
    call_frozen(call, ending.code == 0);
    read_status(call); /* its end may already be in the pipe, and no further event would announce it */
    return;
  }
  if (got == sizeof ending && ending.signaled == ENDING_ENTERED) {
    answer_entry(call, ending.code);
    read_status(call);
    return;
  }
  if (got == sizeof ending && ending.tree == TREE_GONE_REUSE) release_supervisor(call);
  close_fd(&call->supervisor.status);
  if (got != sizeof ending) return;
  command_ended(call, ending);
  /* No process of the command is left, so the call need not wait for a supervisor that goes on, or for the kernel to remove a
   * namespace. Where processes are few, the next command may need the one that the supervisor still is. */
  bool leave = ending.tree && confinement == CONFINE_NAMESPACE && !has_few_processes();
  if (ending.tree == TREE_GONE_REUSE || leave) call->supervisor.pid = 0;
}

/* Processes that lost their supervisor are killed in rounds, until this many rounds in a row found none. */
#define ORPHAN_ROUNDS 3
static int orphan_rounds, orphan_pause;

static bool is_supervisor(pid_t pid) {
  if (is_pooled(pid) || is_file_process(pid)) return true;
  for (struct call *call = calls; call; call = call->next)
    if (call->supervisor.pid == pid) return true;
  return false;
}

static void expect_orphans(void) {
  orphan_rounds = ORPHAN_ROUNDS;
  orphan_pause = 1;
}

static void kill_orphans(void) {
  if (kill_children(is_supervisor) > 0) {
    orphan_rounds = ORPHAN_ROUNDS;
    if (orphan_pause < 64) orphan_pause *= 2;
  } else {
    orphan_rounds--;
    orphan_pause = 1;
  }
}

/* The file or the connection was read to its end, or to an error. */
static void finish_reading(struct call *call) {
  if (!call->read_error) {
    call_finish(call);
    return;
  }
  answer_fail(call->id, call->read_error, "read");
  call_free(call);
}

/* Everything that the process tree wrote is in the pipe by now. Others that have the pipe open are not waited for. */
static void settle_output(struct call *call, int *fd, int stream) {
  enum flow flow = *fd < 0 ? FLOW_MORE : pump(call, *fd, stream);
  if (flow == FLOW_ENDED || (flow == FLOW_EMPTY && !end_output(&call->outputs[stream]))) close_fd(fd);
}

static int settle_gone(struct call *call) {
  settle_output(call, &call->out, 1);
  settle_output(call, &call->err, 2);
  if ((call->out >= 0 && takes_output(call, 1)) || (call->err >= 0 && takes_output(call, 2))) return 0;
  if (call->out < 0 && call->err < 0 && !(call->orphaned && orphan_rounds > 0)) call_finish(call);
  return -1;
}

static int time_until(int64_t when, int64_t now) { return when - now > INT_MAX ? INT_MAX : when > now ? (int)(when - now) : 0; }

/* Finishes the call if all of it has ended. Otherwise returns the ms until it must be looked at again, or -1. */
static int settle(struct call *call, int64_t now) {
  if (call->reading) {
    if (call->out >= 0) return call->credit[1] > 0 && !channel_is_full() ? 0 : -1;
    finish_reading(call);
    return -1;
  }
  if (call->file) return -1;
  if (call->reach.state != REACH_DONE) return settle_reach(call, now);
  if (call->connection) {
    if (call->out < 0 && call->in < 0) finish_reading(call);
    return -1;
  }
  if (call->supervisor.pid == 0) return settle_gone(call);
  if (call->kill_at) {
    if (now < call->kill_at) return time_until(call->kill_at, now);
    call->kill_at = 0;
    kill(call->supervisor.pid, SIGKILL);
  }
  if (!call->ended) {
    if (call->deadline < 0) return -1;
    if (now < call->deadline) return time_until(call->deadline, now);
    call->timed_out = true;
    call->deadline = -1;
    call_kill(call);
    return call->kill_at ? time_until(call->kill_at, now) : -1;
  }
  if (call->worker || call->killed) return -1;
  int64_t until = call->out < 0 && call->err < 0 ? now : call->quiet_since + IDLE_DRAIN;
  if (until > call->ended_at + MAX_DRAIN) until = call->ended_at + MAX_DRAIN;
  if (now < until) return time_until(until, now);
  call_kill(call);
  return call->kill_at ? time_until(call->kill_at, now) : -1;
}

void calls_child_ended(pid_t pid, int status) {
  /* A command that kills its supervisor makes us the parent of its children. They are killed here, generation by generation. */
  struct call *call = calls;
  while (call && call->supervisor.pid != pid) call = call->next;
  if (call) call->supervisor.pid = 0;
  if (confinement == CONFINE_SUBREAPER && (kill_children(is_supervisor) > 0 || (call && !call->worker && WIFSIGNALED(status)))) expect_orphans();
  if (!call) return;
  call->orphaned = !call->worker && orphan_rounds > 0;
  struct ending killed = {.signaled = 1, .code = SIGKILL};
  struct ending own = {.signaled = WIFSIGNALED(status), .code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)};
  if (call->supervisor.status >= 0) read_status(call);
  /* A supervisor that started its command exits with 0, or is killed together with the command. */
  if (!call->worker && !call->ended && WIFEXITED(status)) call->start_error = own.code == START_FAILED ? EAGAIN : own.code;
  command_ended(call, call->worker ? own : killed);
  if (call->worker && call->undo_parent >= 0 && status != 0) undo_work(call);
  close_fd(&call->in);
}

/* The channel has room for the output of a few calls at a time: whoever has waited longest comes first. */
static void pump_files(void) {
  struct call *first = NULL;
  for (struct call *call = calls; call; call = call->next)
    if (call->reading && (!first || call->sent_at < first->sent_at)) first = call;
  for (struct call *call = first; call; call = call->next)
    if (call->reading) pump_out(call);
  for (struct call *call = calls; call != first; call = call->next)
    if (call->reading) pump_out(call);
}

static size_t first_in_turn(const struct pollfd *fds, size_t count) {
  size_t first = 0;
  uint64_t longest = UINT64_MAX;
  for (size_t i = 0; i < count; i++) {
    if (!fds[i].revents || watches[i].call->sent_at >= longest || watches[i].role > ROLE_ERR) continue;
    longest = watches[i].call->sent_at;
    first = i;
  }
  return first;
}

size_t calls_poll(struct pollfd *fds, size_t room, int *timeout) {
  size_t count = 0;
  int64_t now = now_ms();
  struct call *next;
  if (orphan_rounds > 0) kill_orphans();
  if (orphan_rounds > 0) *timeout = orphan_pause;
  pump_files();
  for (struct call *call = calls; call; call = next) {
    next = call->next;
    int wait = settle(call, now);
    if (wait >= 0 && (*timeout < 0 || wait < *timeout)) *timeout = wait;
  }
  settle_freeze();
  for (struct call *call = calls; call; call = call->next) {
    const struct {
      int fd;
      bool wanted;
      short events;
      enum role role;
    } polls[POLLS_PER_CALL] = {
        {call->out, !call->reading && takes_output(call, 1), POLLIN, ROLE_OUT},
        {call->err, takes_output(call, 2), POLLIN, ROLE_ERR},
        {call->in, queue_length(&call->input) > 0 || call->reach.state != REACH_DONE, POLLOUT, ROLE_IN},
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
  for (size_t turn = 0, first = first_in_turn(fds, count); turn < count; turn++) {
    size_t i = (first + turn) % count;
    if (!fds[i].revents) continue;
    struct call *call = watches[i].call;
    switch (watches[i].role) {
      case ROLE_OUT:
        pump_out(call);
        break;
      case ROLE_ERR:
        pump_err(call);
        break;
      case ROLE_IN:
        if (call->reach.state == REACH_DONE) flush_input(call);
        else call->reach.ready = true;
        break;
      case ROLE_STATUS:
        read_status(call);
        break;
    }
  }
}
