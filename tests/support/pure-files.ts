/** Tests that start nothing and leave nothing: they share processes, each of which would take longer to start than they do. */
export const PURE_FILES: readonly string[] = [
  ...["agent-drivers", "agent-frames", "architecture", "bad-input", "bad-input-methods", "blueprint-docs"],
  ...["blueprint-load", "blueprint-read", "blueprint-schema", "cli-parse", "daytona-bad-input", "docker-client"],
  ...["egress-addresses", "egress-blocked", "egress-fuzz", "egress-malformed", "egress-policy", "egress-proxy"],
  ...["egress-server-name", "expression", "github-util", "harness-events", "harness-text", "inert-text", "options"],
  ...["output-collector", "patch-lines", "path", "portable-files", "portable-optional", "portable-spawn", "registry"],
  ...["sanitize", "shell-quote", "source-url", "tar", "tar-hostile-names", "tar-hostile-shape", "task-file"],
  ...["task-managers"],
].map((name) => `tests/${name}.test.ts`);
