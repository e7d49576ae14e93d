/* By the system call and with the kernel's own header, because musl knows statx only since 1.2.5. glibc's <sys/stat.h> defines the same
 * names, so neither is included here. */
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../guest.h"

bool is_mount_point(int parent, const char *name) {
  struct statx found;
  if (syscall(SYS_statx, parent, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &found) != 0) return false;
  return found.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}
