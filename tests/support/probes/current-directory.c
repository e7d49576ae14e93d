/* Prints the current directory as the kernel itself names it: libc would hide a name that is not reachable. With two names, swaps them
 * for ever instead. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc == 3) {
    puts("swapping");
    fflush(stdout);
    while (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) == 0) continue;
    perror("renameat2");
    return 1;
  }
  char name[4096];
  if (syscall(SYS_getcwd, name, sizeof name) < 0) {
    perror("getcwd");
    return 1;
  }
  puts(name);
  return 0;
}
