/* A process can change limits and scheduling of others of its user, and send them signals. So a command can do this to its supervisor,
 * and the next command would inherit it or run out of what is left. */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../guest.h"

#define IOPRIO_WHO_PROCESS 1

/* As sched_getattr(2) fills it in. */
struct scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t niceness;
  uint32_t priority;
  uint64_t runtime, deadline, period;
  uint32_t least_utilization, most_utilization;
};

struct state {
  struct rlimit limits[RLIM_NLIMITS];
  struct scheduling scheduling;
  cpu_set_t processors;
  long io_priority;
  sigset_t pending; /* all signals are blocked: those that were sent wait for ever, and count towards a limit of the user */
};

static struct state initial;

static void read_state(struct state *state) {
  memset(state, 0, sizeof *state);
  for (int i = 0; i < RLIM_NLIMITS; i++) getrlimit(i, &state->limits[i]);
  syscall(SYS_sched_getattr, 0, &state->scheduling, sizeof state->scheduling, 0);
  sched_getaffinity(0, sizeof state->processors, &state->processors);
  state->io_priority = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
  sigpending(&state->pending);
  sigdelset(&state->pending, SIGCHLD);
}

void remember_supervisor_state(void) { read_state(&initial); }

bool is_supervisor_unchanged(void) {
  struct state now;
  read_state(&now);
  return memcmp(&now, &initial, sizeof now) == 0;
}
