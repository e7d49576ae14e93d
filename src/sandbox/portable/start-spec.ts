import { SandboxError } from "../../../contracts/errors.js";
import type { SpawnOptions } from "../../../contracts/types.js";
import { nearestName } from "../../util/nearest.js";
import { assertCapabilities } from "../capabilities.js";
import type { StartSpec } from "../types.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";
import { resolveInside } from "./sandbox-path.js";
import { checkCommandSize } from "./validate.js";

/** How many milliseconds after the portable part the driver kills on its own. */
const SECOND_LINE = 500;

/** What `toStartSpec` needs from a checked call. */
export type Command = Pick<SpawnOptions, "argv" | "cwd" | "env" | "user" | "killGrace" | "pty" | "service" | "output">;

/** Turns a checked call into what a driver starts. Throws for what is not allowed or can't be enforced. */
export function toStartSpec(
  state: OpenSandboxState,
  command: Command,
  stdin: StartSpec["stdin"],
  timeout: number | undefined,
): StartSpec {
  const { argv, user, pty, service, output } = command;
  assertAllowed(state, argv[0] ?? "");
  // A terminal is one stream anyway.
  const combined = output === "combined" && pty === undefined;
  if (user !== undefined || pty !== undefined || combined) {
    assertCapabilities({ user, pty, ...(combined && { output }) }, state.driver.capabilities, state.driver.backend);
  }
  if (service !== undefined && state.driver.startsServices !== true) {
    throw new SandboxError(
      "unsupported",
      `The ${state.driver.backend} backend can't enforce service ("${service.hostname}")`,
      {
        hint: "omit it: the processes of a sandbox reach each other over its loopback",
      },
    );
  }
  const cwd = command.cwd === undefined ? state.cwd : resolveInside(state, command.cwd, "cwd");
  const env = command.env === undefined ? state.env : { ...state.env, ...command.env };
  checkCommandSize(argv, env);
  return {
    argv: [...argv],
    cwd,
    ...(state.paths === "sandbox" && { anywhere: true }),
    env,
    stdin,
    ...(timeout === undefined ? undefined : { timeout: timeout + (command.killGrace ?? 0) + SECOND_LINE }),
    ...(user === undefined ? undefined : { user }),
    ...(combined ? { combined } : undefined),
    ...(pty === undefined ? undefined : { pty: { cols: pty.cols, rows: pty.rows } }),
    ...(service === undefined ? undefined : { service: { hostname: service.hostname, ports: [...service.ports] } }),
  };
}

function assertAllowed(state: OpenSandboxState, program: string): void {
  const { allow } = state;
  if (allow === undefined || allow.has(program)) return;
  const nearest = nearestName(program, allow);
  throw new SandboxError("command_not_allowed", `The program "${program}" is not in the allowlist of this sandbox`, {
    hint: nearest === undefined ? "programs are compared by their exact name" : `did you mean "${nearest}"?`,
  });
}
