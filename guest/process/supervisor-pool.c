/* Pooled supervisors, each with a process that is ready to become the next command. */
#include <signal.h>
#include <unistd.h>

#include "../guest.h"

#define POOL_SIZE 4 /* two processes each */
#define MIN_PROCESS_LIMIT 64 /* with a smaller limit of processes there is no pool */

static struct supervisor pool[POOL_SIZE];
static int count;
static bool wanted; /* set by the first command; cleared when a pooled supervisor has ended by itself */
static bool disabled; /* a command that could signal supervisors runs, or did: each command gets a supervisor of its own */

static void close_ends(const struct supervisor *pooled) {
  close(pooled->commands);
  close(pooled->control);
  close(pooled->status);
}

static bool has_few_processes(void) {
  static int64_t limit = -2;
  if (limit == -2) limit = in_container ? cgroup_process_limit() : -1;
  return limit >= 0 && limit < MIN_PROCESS_LIMIT;
}

void pool_fill(void) {
  if (!wanted || disabled || count > 0 || !(in_container || confinement == CONFINE_NAMESPACE)) return;
  if (has_few_processes()) disabled = true;
  wanted = !disabled && start_pooled_supervisor(confinement, &pool[0]) > 0;
  count = wanted;
}

static void kill_pooled(const struct supervisor *pooled) {
  kill(pooled->pid, SIGKILL);
  close_ends(pooled);
}

bool pool_start(const struct command *command, struct supervisor *out) {
  wanted = true;
  if (can_signal_supervisors(command)) disabled = true;
  while (disabled && count > 0) kill_pooled(&pool[--count]);
  if (count == 0 || command->builtin || !command->jailed || !fits_command_message(command)) return false;
  *out = pool[--count];
  if (send_command(out->commands, command)) return true;
  kill_pooled(out); /* it may have got a part of the message */
  return false;
}

bool pool_return(const struct supervisor *supervisor) {
  if (disabled || count == POOL_SIZE || supervisor->commands < 0 || supervisor->control_used) return false;
  pool[count++] = *supervisor;
  return true;
}

bool pool_child_ended(pid_t pid) {
  for (int i = 0; i < count; i++) {
    if (pool[i].pid != pid) continue;
    close_ends(&pool[i]);
    pool[i] = pool[--count];
    wanted = false;
    return true;
  }
  return false;
}

bool is_pooled(pid_t pid) {
  for (int i = 0; i < count; i++)
    if (pool[i].pid == pid) return true;
  return false;
}
