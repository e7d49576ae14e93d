import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createDaytonaSandbox } from "../../../src/sandbox/backends/daytona.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { type FakeDaytona, startFakeDaytona } from "../../fakes/daytona/server.js";
import { type GitServer, serveGit } from "../git/server.js";
import { createRepository, createScratch, git } from "../scratch.js";

/** A Daytona, and a GitHub with the private repository `acme/widgets`, both on this machine. */
export interface DaytonaService {
  readonly service: FakeDaytona;
  readonly github: GitServer;
  /** The bare repository that is served. */
  readonly origin: string;
  readonly token: string;
  /** Every request to GitHub's API, with what it was authorised by. */
  readonly apiCalls: { url: string; authorization: string | undefined }[];
  /** Opens a sandbox there. */
  open(opts?: SandboxOptions): Promise<Sandbox>;
  /** Opens one with the repository. */
  openRepo(opts?: SandboxOptions): Promise<Sandbox>;
  close(): Promise<void>;
}

/** Starts both; the environment points to them until `close`. */
export async function startDaytonaService(): Promise<DaytonaService> {
  const scratch = createScratch();
  const token = "ghp_0123456789abcdefghij";
  const work = createRepository(join(scratch.path, "work"));
  const origin = join(scratch.path, "remotes", "acme", "widgets.git");
  git(scratch.path, "clone", "--quiet", "--bare", work, origin);
  git(origin, "config", "http.receivepack", "true");
  const github = await serveGit(join(scratch.path, "remotes"), token);
  const apiCalls: DaytonaService["apiCalls"] = [];
  const api = createServer((request, response) => {
    apiCalls.push({ url: request.url ?? "", authorization: request.headers.authorization });
    // What is private is not there for whoever may not see it.
    const isAllowed =
      request.headers.authorization === `Bearer ${token}` && request.headers["user-agent"] !== undefined;
    const isKnown = isAllowed && request.url === "/repos/acme/widgets";
    response.writeHead(isKnown ? 200 : 404, { "Content-Type": "application/json" });
    response.end(JSON.stringify(isKnown ? { default_branch: "main" } : { message: "Not Found" }));
  });
  const apiUrl = await listen(api);
  const restore = setEnv({ GITHUB_SERVER_URL: github.origin, GITHUB_API_URL: apiUrl, DAYTONA_API_KEY: undefined });
  const service = await startFakeDaytona();
  const open = (opts?: SandboxOptions): Promise<Sandbox> => openAt(service, opts);
  return {
    ...{ service, github, origin, token, apiCalls, open },
    openRepo: (opts) => open({ repo: "acme/widgets", branch: "run-1", githubToken: token, ...opts }),
    close: async () => {
      restore();
      await service.close();
      await github.close();
      await new Promise((resolve) => api.close(resolve));
      scratch.remove();
    },
  };
}

/** Opens a sandbox at a service. */
export function openAt({ apiUrl, apiKey }: FakeDaytona, opts: SandboxOptions = {}): Promise<Sandbox> {
  return createDaytonaSandbox({ ...opts, daytona: { apiUrl, apiKey, ...opts.daytona } });
}

/** A service of its own, for tests that run side by side. */
export interface OwnService extends AsyncDisposable {
  readonly service: FakeDaytona;
  open(opts?: SandboxOptions): Promise<Sandbox>;
}

/** Starts a service that no other test sees. */
export async function ownService(): Promise<OwnService> {
  const service = await startFakeDaytona();
  return { service, open: (opts) => openAt(service, opts), [Symbol.asyncDispose]: () => service.close() };
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Sets variables; gives the function that sets them back. */
export function setEnv(values: Record<string, string | undefined>): () => void {
  const before = Object.fromEntries(Object.keys(values).map((key) => [key, process.env[key]]));
  const apply = (all: Record<string, string | undefined>): void => {
    for (const [key, value] of Object.entries(all)) {
      if (value === undefined) delete process.env[key];
      else process.env[key] = value;
    }
  };
  apply(values);
  return () => apply(before);
}
