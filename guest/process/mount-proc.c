/* The /proc of a command in a jail. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "../guest.h"

bool commands_are_root;

static const unsigned long plain = MS_NOSUID | MS_NODEV | MS_NOEXEC;

/* The kernel lets nobody mount a /proc who does not see a whole one already, and bubblewrap covers the parts that root can write. So
 * root's jail has that of its outside, too, and the guest hides it, for itself and for commands, before anything else. */
bool hide_outer_proc(void) {
  if (!commands_are_root) return true;
  if (unshare(CLONE_NEWNS) == 0 && mount("tmpfs", OUTER_PROC, "tmpfs", plain | MS_RDONLY, "size=4k,mode=0") == 0) return true;
  dprintf(2, "glovebox: cannot hide %s: %s\n", OUTER_PROC, strerror(errno));
  return false;
}

/* A /proc that shows only this call's processes. /proc/sys is read-only: parts of it belong to the sandbox's namespaces and could
 * be written. To root belongs much more of it, so it gets all of it read-only. */
bool mount_proc(void) {
  if (commands_are_root) return mount("proc", "/proc", "proc", plain | MS_RDONLY, NULL) == 0;
  return mount("proc", "/proc", "proc", plain, NULL) == 0 && mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) == 0 &&
         mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | plain, NULL) == 0;
}
