/** A starter blueprint: it runs unchanged and shows where to add an agent. */
export function starterBlueprint(name: string): string {
  return `version: 1
name: ${name}
description: What this blueprint is for, in one sentence.

# Hosts that commands may reach, for example to install packages. Empty: no network.
sandbox:
  allow: []

limits:
  wall: 30m

nodes:
  - id: look
    kind: command
    run: [git, log, --oneline, "-3"]

  # An agent does the work. It needs its CLI in the sandbox and its key in ANTHROPIC_API_KEY.
  # - id: work
  #   kind: agent
  #   agent: claude-code
  #   prompt: "{{ intent }}"

  # The harness runs the checks itself, whatever the agent reports.
  - id: green
    kind: gate
    checks:
      - id: clean
        run: [git, diff, --check]
    # onFail: { agent: claude-code, max: 2 }
    protect: [".github/**"]

  - id: save
    kind: commit
    message: "{{ intent }}"

expectsChanges: false
`;
}
