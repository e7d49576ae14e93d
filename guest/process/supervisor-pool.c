/* Pooled supervisors: each waits for its next command. */
#include <signal.h>
#include <unistd.h>

#include "../guest.h"

#define POOL_SIZE 32
#define IDLE_SIZE 4 /* more of them are kept only while commands come in such numbers */
#define IDLE_AFTER 200 /* ms */
#define MIN_PROCESS_LIMIT 64 /* with a smaller limit of processes there is no pool */

static struct supervisor pool[POOL_SIZE];
static int count;
static int least; /* how many were never needed since `checked_at` */
static int64_t checked_at;
static bool wanted = true; /* cleared when a pooled supervisor has ended by itself, and set by the next command */
static bool disabled; /* a command that could signal supervisors runs, or did: each command gets a supervisor of its own */

static void close_ends(const struct supervisor *pooled) {
  close(pooled->commands);
  close(pooled->control);
  close(pooled->status);
}

int64_t process_limit = -1;

bool has_few_processes(void) {
  static int64_t limit = -2;
  if (limit == -2) limit = in_container ? cgroup_process_limit() : process_limit;
  return limit >= 0 && limit < MIN_PROCESS_LIMIT;
}

static bool has_pool(void) {
  if (has_few_processes()) disabled = true;
  return !disabled && (in_container || confinement == CONFINE_NAMESPACE);
}

static void kill_pooled(const struct supervisor *pooled) {
  kill(pooled->pid, SIGKILL);
  close_ends(pooled);
}

void pool_fill(void) {
  if (!wanted || count > 0 || !has_pool()) return;
  wanted = start_pooled_supervisor(confinement, &pool[0]) > 0;
  count = wanted;
}

int pool_trim(void) {
  if (count <= IDLE_SIZE) {
    checked_at = 0;
    return -1;
  }
  int64_t now = now_ms();
  if (checked_at != 0 && now - checked_at < IDLE_AFTER) return (int)(checked_at + IDLE_AFTER - now);
  /* The oldest are at the front. */
  int idle = checked_at == 0 || least <= IDLE_SIZE ? 0 : least - IDLE_SIZE;
  for (int i = 0; i < idle; i++) kill_pooled(&pool[i]);
  count -= idle;
  for (int i = 0; i < count; i++) pool[i] = pool[i + idle];
  least = count;
  checked_at = now;
  return count > IDLE_SIZE ? IDLE_AFTER : -1;
}

bool pool_start(const struct command *command, struct supervisor *out) {
  wanted = true;
  if (can_signal_supervisors(command)) disabled = true;
  while (disabled && count > 0) kill_pooled(&pool[--count]);
  if (!command->jailed || !fits_command_message(command)) return false;
  if (count > 0) *out = pool[--count];
  else if (!has_pool() || start_pooled_supervisor(confinement, out) <= 0) return false;
  if (count < least) least = count;
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
    if (count < least) least = count;
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
