/* A process can change limits and scheduling of others of its user. So a command can change its supervisor's, and the next
 * command would inherit them. */
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../guest.h"

#define IOPRIO_WHO_PROCESS 1

struct state {
  struct rlimit limits[RLIM_NLIMITS];
  struct sched_param parameters;
  cpu_set_t processors;
  long io_priority;
  int policy, niceness;
};

static struct state initial;

static void read_state(struct state *state) {
  memset(state, 0, sizeof *state);
  for (int i = 0; i < RLIM_NLIMITS; i++) getrlimit(i, &state->limits[i]);
  /* musl's wrappers refuse these two. */
  state->policy = (int)syscall(SYS_sched_getscheduler, 0);
  syscall(SYS_sched_getparam, 0, &state->parameters);
  sched_getaffinity(0, sizeof state->processors, &state->processors);
  state->io_priority = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
  state->niceness = getpriority(PRIO_PROCESS, 0);
}

void remember_supervisor_state(void) { read_state(&initial); }

bool is_supervisor_unchanged(void) {
  struct state now;
  read_state(&now);
  return memcmp(&now, &initial, sizeof now) == 0;
}
