/* Says the name of each of the given files whenever any process of the machine opens it. */
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int watch = inotify_init1(0);
  for (int i = 1; i < argc; i++)
    if (inotify_add_watch(watch, argv[i], IN_OPEN) < 0) return 1;
  puts("watching");
  fflush(stdout);
  char events[4096] __attribute__((aligned(8)));
  for (ssize_t length; (length = read(watch, events, sizeof events)) > 0;)
    for (char *at = events; at < events + length;) {
      const struct inotify_event *event = (const struct inotify_event *)at;
      if (event->mask & IN_OPEN) printf("%s\n", argv[event->wd]);
      fflush(stdout);
      at += sizeof *event + event->len;
    }
  return 0;
}
