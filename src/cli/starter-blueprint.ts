/** A blueprint to begin with: it runs as it is, and shows where an agent goes. */
export function starterBlueprint(name: string): string {
  return `version: 1
name: ${name}
description: What this blueprint is for, in one sentence.

# Hosts that commands may reach, for example to install packages. Without any, there is no network.
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

  # The harness runs the checks itself; an agent's word does not count.
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
