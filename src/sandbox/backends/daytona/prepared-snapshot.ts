import { SandboxError } from "../../../../contracts/errors.js";
import { connect, type Daytona, loadSdk } from "./client.js";
import { statusOf, toFailure } from "./failure.js";
import { readAccount } from "./options.js";

/** Snapshots that can be built, each with the commands that build it. */
const RECIPES: Readonly<Record<string, readonly string[]>> = {
  "harness-node22": [
    "apt-get update && apt-get install -y --no-install-recommends ca-certificates curl git gnupg && rm -rf /var/lib/apt/lists/*",
    "curl -fsSL https://deb.nodesource.com/setup_22.x | bash - && apt-get install -y nodejs",
    "npm install -g pnpm @anthropic-ai/claude-code @openai/codex",
    "curl -fsSL https://cli.github.com/packages/githubcli-archive-keyring.gpg -o /usr/share/keyrings/githubcli.gpg" +
      ' && echo "deb [signed-by=/usr/share/keyrings/githubcli.gpg] https://cli.github.com/packages stable main"' +
      " > /etc/apt/sources.list.d/github-cli.list && apt-get update && apt-get install -y gh",
  ],
};
/** The names of the snapshots that can be built. */
export const SNAPSHOTS: readonly string[] = Object.keys(RECIPES);
const FAILED: ReadonlySet<string> = new Set(["error", "build_failed"]);
const RESOURCES = { cpu: 2, memory: 4, disk: 16 };

/** Builds a prepared snapshot at the service, for `daytona: { snapshot: name }`; false if it already exists. */
export async function buildSnapshot(name: string, onLog?: (line: string) => void): Promise<boolean> {
  const commands = RECIPES[name];
  if (commands === undefined) {
    throw new SandboxError("invalid_argument", `There is no recipe for a snapshot "${name}"`, {
      hint: `known: ${SNAPSHOTS.join(", ")}`,
    });
  }
  const account = readAccount({});
  const { Image } = await loadSdk();
  const { client, close } = await connect(account);
  try {
    const state = await stateOf(client, name);
    if (state === "active") return false;
    if (state === "inactive") {
      await client.snapshot.activate(name);
      return false;
    }
    if (state !== undefined && !FAILED.has(state)) throw underWay(name, state);
    // The leftovers of a failed build block the next one.
    if (state !== undefined) await client.snapshot.delete(name);
    const image = Image.debianSlim("3.12").runCommands(...commands);
    await client.snapshot.create(
      { name, image, resources: RESOURCES },
      { ...(onLog && { onLogs: onLog }), timeout: 0 },
    );
    return true;
  } catch (error) {
    throw toFailure(error, `snapshot ${name} could not be built`);
  } finally {
    await close();
  }
}

async function stateOf(client: Daytona, name: string): Promise<string | undefined> {
  try {
    return (await client.snapshot.get(name)).state;
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

function underWay(name: string, state: string): SandboxError {
  return new SandboxError("conflict", `The snapshot ${name} is ${state}: somebody else is building it`, {
    hint: "try again when it is done",
  });
}
