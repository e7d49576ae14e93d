import { SandboxError } from "../../../../contracts/errors.js";
import { shellQuote } from "../../../util/shell.js";
import type { RemoteSandbox } from "./client.js";
import { diagnose, statusOf, toFailure } from "./failure.js";
import { type GuestSession, type Place, startGuest, uploadGuest } from "./guest-session.js";
import { assertNetwork, type NetworkSettings, refusedNetwork } from "./network-settings.js";
import type { Source } from "./options.js";

/** What a new sandbox should contain. */
export interface Contents {
  readonly id: string;
  readonly source?: Source | undefined;
  readonly branch?: string | undefined;
  /** Absent: a folder in the home directory. */
  readonly workDir?: string | undefined;
  readonly token?: string | undefined;
  /** Applied after the repository was cloned. */
  readonly network: NetworkSettings;
}

/** The user name for a clone with a token. The service passes both on to the remote and stores neither. */
export const GIT_USER = "git";

/** Fills a new sandbox: the default branch of the repository, the branch of the run on it, the guest. */
export async function bootstrap(
  remote: RemoteSandbox,
  contents: Contents,
): Promise<{ place: Place; guest: GuestSession }> {
  const { source, network } = contents;
  const place = await findPlace(remote, contents);
  if (contents.workDir !== undefined) await makePlace(remote, contents.workDir);
  const work = [uploadGuest(remote, place)];
  if (source !== undefined) work.push(clone(remote, place, source, contents));
  // Wait for both before throwing: the sandbox must not be deleted while one of them still runs.
  const failed = (await Promise.allSettled(work)).find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  if (source !== undefined && Object.keys(network).length > 0) await restrict(remote, network);
  return { place, guest: await startGuest(remote, place) };
}

/** Makes a work directory where the user may not: the images of the service let the user become root. */
async function makePlace(remote: RemoteSandbox, workDir: string): Promise<void> {
  const path = shellQuote([workDir]);
  const asRoot = `sudo -n mkdir -p ${path} && sudo -n chown "$(id -u):$(id -g)" ${path}`;
  const script = `(mkdir -p ${path} && [ -w ${path} ]) 2>/dev/null || { ${asRoot}; }`;
  let made: { exitCode: number; result: string };
  try {
    made = await remote.process.executeCommand(script);
  } catch (error) {
    throw await diagnose(remote, error, "the work directory");
  }
  if (made.exitCode === 0) return;
  const said = made.result.trim();
  throw new SandboxError("permission_denied", `Daytona: workDir "${workDir}" could not be made: ${said}`, {
    hint: "name a folder that the user of the image can make",
  });
}

async function findPlace(remote: RemoteSandbox, { id, source, workDir }: Contents): Promise<Place> {
  try {
    const home = (await remote.getUserHomeDir()) ?? "/home/daytona";
    const own = `${home}/workspace/${source?.name ?? id}`;
    return { home, workDir: workDir ?? own, folder: `${home}/.glovebox-${id}` };
  } catch (error) {
    throw await diagnose(remote, error, "the home directory");
  }
}

async function clone(remote: RemoteSandbox, { workDir }: Place, source: Source, contents: Contents): Promise<void> {
  const { token, branch } = contents;
  const credentials = token === undefined ? [undefined, undefined] : [GIT_USER, token];
  try {
    await remote.git.clone(source.url, workDir, undefined, undefined, ...credentials);
  } catch (error) {
    throw explainClone(error, source, token !== undefined);
  }
  if (branch !== undefined) await makeBranch(remote, workDir, branch);
}

/** On a clean tree this also checks out the branch. */
async function makeBranch(remote: RemoteSandbox, workDir: string, branch: string): Promise<void> {
  try {
    await remote.git.createBranch(workDir, branch);
  } catch (error) {
    const { currentBranch } = await remote.git.status(workDir).catch(() => ({ currentBranch: undefined }));
    // The branch that was cloned may be the one that the run should work on.
    if (currentBranch !== branch) throw await diagnose(remote, error, `branch "${branch}" could not be made`);
  }
}

async function restrict(remote: RemoteSandbox, network: NetworkSettings): Promise<void> {
  try {
    await remote.updateNetworkSettings(network);
  } catch (error) {
    throw refusedNetwork(error, network);
  }
  assertNetwork(remote, network);
}

function explainClone(error: unknown, { owner, name }: Source, hasToken: boolean): SandboxError {
  const failure = toFailure(error, `${owner}/${name} could not be cloned`);
  if (![401, 403, 404].includes(statusOf(error) ?? 0)) return failure;
  const hint = hasToken ? "check that the token may read the repository" : "a private repository needs GITHUB_TOKEN";
  return new SandboxError(failure.code, failure.message, { cause: error, hint });
}
