/* Supervisors in waiting, each with the process that will be its next command. */
#include <signal.h>
#include <unistd.h>

#include "../guest.h"

#define MOST 4 /* two processes each */
#define FEW 64 /* where there can be no more processes than this, none is taken by one in waiting */

static struct supervisor spares[MOST];
static int count;
static bool wanted; /* from the first command on; and not again at once where one could not be kept alive */
static bool barred; /* a command that could stop them runs, or did: each has a supervisor of its own */

static void forget(const struct supervisor *spare) {
  close(spare->orders);
  close(spare->control);
  close(spare->status);
}

static bool is_tight(void) {
  static int64_t limit = -2;
  if (limit == -2) limit = contained ? process_limit() : -1;
  return limit >= 0 && limit < FEW;
}

void spare_prepare(void) {
  if (!wanted || barred || count > 0 || !(contained || confinement == CONFINE_NAMESPACE)) return;
  if (is_tight()) barred = true;
  wanted = !barred && start_waiting_supervisor(confinement, &spares[0]) > 0;
  count = wanted;
}

static void end(const struct supervisor *spare) {
  kill(spare->pid, SIGKILL);
  forget(spare);
}

bool spare_start(const struct command *command, struct supervisor *out) {
  wanted = true;
  if (is_within_reach(command)) barred = true;
  while (barred && count > 0) end(&spares[--count]);
  if (count == 0 || command->builtin || !command->jailed || !is_small_order(command)) return false;
  *out = spares[--count];
  if (give_order(out->orders, command)) return true;
  end(out); /* it may have half of it */
  return false;
}

bool spare_keep(const struct supervisor *supervisor) {
  if (barred || count == MOST || supervisor->orders < 0 || supervisor->told) return false;
  spares[count++] = *supervisor;
  return true;
}

bool spare_ended(pid_t pid) {
  for (int i = 0; i < count; i++) {
    if (spares[i].pid != pid) continue;
    forget(&spares[i]);
    spares[i] = spares[--count];
    wanted = false;
    return true;
  }
  return false;
}

bool is_spare(pid_t pid) {
  for (int i = 0; i < count; i++)
    if (spares[i].pid == pid) return true;
  return false;
}
