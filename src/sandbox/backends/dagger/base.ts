import type { Container, Service } from "@dagger.io/dagger";
import { guestBinary } from "../../guest.js";
import type { DaggerOptions } from "./dagger-options.js";
import { daggerError } from "./failure.js";
import { cancellable } from "./fetch.js";
import { GUEST_PATH, HOST_ALIAS } from "./guest-call.js";
import { flattened, MAX_OWN_LAYERS, withLayers } from "./layer-count.js";
import type { Recipe } from "./recipe.js";
import type { Session } from "./session.js";

/** The default image: small, and with a shell. */
export const DEFAULT_IMAGE = "debian:stable-slim";
/** The guest and the work directory. */
const PREPARED_LAYERS = 2;
/** The work directory of a sandbox. */
export const WORK_DIR = "/work";

/** A service that listens next to a sandbox. */
export interface Reachable {
  readonly service: Service;
  readonly ports: readonly number[];
}

/** What a sandbox starts from. */
export interface DaggerBase {
  readonly container: Container;
  /** The image with its digest: the same files tomorrow, even if the tag has moved by then. */
  readonly image: string;
  /** The variables of every command: those of the image, HOME and LANG. */
  readonly env: Readonly<Record<string, string>>;
  /** Services by host name, with the ports they answer on. */
  readonly services: ReadonlyMap<string, Reachable>;
}

/** Builds the container that a sandbox starts from, in an order that an engine can cache well. */
export async function buildBase(
  session: Session,
  { image, workDir = WORK_DIR }: Pick<Recipe, "image" | "workDir">,
  opts: DaggerOptions,
  signal: AbortSignal,
): Promise<DaggerBase> {
  const { client, listener } = session;
  return await cancellable(signal, async () => {
    try {
      const pulled = await client.container().from(image).sync();
      // An engine no longer knows the image of a container that was changed.
      const reference = await pulled.imageRef();
      const { setup = [] } = opts;
      const prepared = prepare(session, pulled, setup);
      const [platform, user, variables] = await Promise.all([
        prepared.platform(),
        prepared.user(),
        variablesOf(prepared),
      ]);
      const owner = user === "" ? {} : { owner: user };
      let container = prepared
        .withFile(GUEST_PATH, client.host().file(guestBinary(archOf(platform))), { permissions: 0o755 })
        .withDirectory(workDir, client.directory(), owner)
        .withWorkdir(workDir);
      const services = startableServices(session, opts);
      for (const [name, { service }] of services) container = container.withServiceBinding(name, service);
      for (const [name, uri] of Object.entries(opts.secrets ?? {})) {
        container = container.withSecretVariable(name, client.secret(uri));
      }
      container = await container.withServiceBinding(HOST_ALIAS, listener.service).sync();
      withLayers(container, (setup.length % MAX_OWN_LAYERS) + PREPARED_LAYERS);
      return { container, image: reference, env: { ...defaultEnv(user), ...variables }, services };
    } catch (error) {
      throw daggerError(error, `The Dagger engine could not prepare the image "${image}"`);
    }
  });
}

/** Runs the commands that prepare an image. */
function prepare(session: Session, image: Container, setup: NonNullable<DaggerOptions["setup"]>): Container {
  return setup.reduce((container, args, index) => {
    const next = container.withExec([...args]);
    return (index + 1) % MAX_OWN_LAYERS === 0 ? flattened(session, next) : next;
  }, image);
}

function startableServices({ client }: Session, opts: DaggerOptions): DaggerBase["services"] {
  return new Map(
    Object.entries(opts.services ?? {}).map(([name, { image, args, env = {}, ports = [] }]) => {
      let container = client.container().from(image);
      for (const [key, value] of Object.entries(env)) container = container.withEnvVariable(key, value);
      for (const port of ports) container = container.withExposedPort(port);
      const service = container.asService(args === undefined ? { useEntrypoint: true } : { args: [...args] });
      return [name, { service, ports }];
    }),
  );
}

async function variablesOf(container: Container): Promise<Record<string, string>> {
  const variables = await container.envVariables();
  const pairs = variables.map(async (variable) => [await variable.name(), await variable.value()] as const);
  return Object.fromEntries(await Promise.all(pairs));
}

function defaultEnv(user: string): Record<string, string> {
  const name = user.split(":")[0] ?? "";
  const isRoot = name === "" || name === "root" || name === "0";
  const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  return { PATH, HOME: isRoot ? "/root" : /^\d+$/.test(name) ? "/tmp" : `/home/${name}`, LANG: "C.UTF-8" };
}

/** Node's name for `linux/amd64` and the like. */
function archOf(platform: string): string {
  const name = platform.split("/")[1] ?? "";
  return name === "amd64" ? "x64" : name;
}
