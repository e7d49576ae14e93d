import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type {
  ContainerEngine,
  ContainerRequest,
  EngineContainer,
  EngineImage,
  ImageOptions,
  ImageRequest,
  NetworkRequest,
} from "../../contracts/container-engine.js";
import { SandboxError } from "../../contracts/errors.js";
import { createLocalSandbox } from "../../src/sandbox/local.js";
import type { DriverProcess, Sandbox } from "../../src/sandbox/types.js";

/** The one directory that is a volume in every image. */
export const VOLUME = "data";

/**
 * A container engine without Docker: a container is a sandbox of this machine, an image is a folder, and a build copies its
 * context over the files of its parent. A network is only a name.
 */
export class FolderEngine implements ContainerEngine {
  readonly name = "folders";
  /** Every call that changes something, in order. */
  readonly calls: string[] = [];
  /** Folders by the id or the name of an image. */
  readonly images: Map<string, string> = new Map();
  readonly networks: Map<string, NetworkRequest> = new Map();
  readonly containers: Map<string, { request: ContainerRequest; sandbox: Sandbox }> = new Map();
  /** Containers that are frozen now. */
  readonly frozen: Set<string> = new Set();
  /** The names of containers in the order in which they have to start; what it throws is refused. */
  arrange?: NonNullable<ContainerEngine["arrange"]>;
  /** Whether the command of the image mattered, for each image that was asked for. */
  readonly asked: [tag: string, isRun: boolean][] = [];
  /** The next call whose line starts with this fails, once. */
  failOn: string | undefined;
  readonly #place: string;
  #made = 0;

  constructor(place: string) {
    this.#place = place;
  }

  async ensureImage({ tag, build, parentId, isRun }: ImageRequest, { onProgress }: ImageOptions): Promise<EngineImage> {
    this.asked.push([tag, isRun]);
    if (build === undefined) throw new SandboxError("not_found", `There is no image "${tag}" to pull`);
    this.#note(`build ${tag} on ${parentId ?? "nothing"}`);
    onProgress(`copying ${build.contextPath}`, { current: 1, total: 1 });
    const folder = this.#newFolder();
    if (parentId !== undefined) cpSync(this.#folderOf(parentId), folder, { recursive: true });
    cpSync(build.contextPath, folder, { recursive: true });
    const id = `id-of-${tag}`;
    this.images.set(id, folder);
    const volumes = [VOLUME];
    return { id, env: { FROM_IMAGE: tag }, entrypoint: [], cmd: [], workingDir: "", user: "", volumes };
  }

  async createNetwork(request: NetworkRequest): Promise<string> {
    this.#note(`network of ${request.members}`);
    const id = `network-${++this.#made}`;
    this.networks.set(id, request);
    return id;
  }

  async startContainer(request: ContainerRequest): Promise<EngineContainer> {
    const { hostname, image, env, name } = request;
    this.#note(`start ${hostname}`);
    const sandbox = await createLocalSandbox({ env });
    await sandbox.refreshFromHost(this.#folderOf(image), ".");
    const id = `container-${++this.#made}`;
    this.containers.set(name, { request, sandbox });
    return {
      id,
      sandbox,
      start: (argv) => startProcess(sandbox, argv),
      commit: async (target) => {
        this.#note(`commit ${hostname} while ${this.frozen.size} of ${this.containers.size} are frozen`);
        const folder = this.#newFolder();
        await sandbox.exportDirectory(".", join(folder, "files"));
        rmSync(join(folder, "files", VOLUME), { recursive: true, force: true });
        this.images.set(target, join(folder, "files"));
      },
      copyFrom: async (origin, path) => {
        this.#note(`copy ${path} of ${hostname}`);
        const folder = await origin.sandbox.exportDirectory(path, join(this.#newFolder(), "files"));
        await sandbox.refreshFromHost(folder, path);
      },
      frozen: async (work) => {
        this.frozen.add(id);
        return await work().finally(() => this.frozen.delete(id));
      },
      remove: async () => {
        this.#note(`remove ${hostname}`);
        await this.removeContainer(name);
      },
    };
  }

  async removeContainer(name: string): Promise<void> {
    await this.containers.get(name)?.sandbox.teardown();
    this.containers.delete(name);
  }

  async removeNetwork(name: string): Promise<void> {
    const id = this.networks.has(name) ? name : [...this.networks].find(([, request]) => request.name === name)?.[0];
    this.networks.delete(id ?? "");
  }

  async removeImage(name: string): Promise<void> {
    this.images.delete(name);
  }

  async sweep(): Promise<void> {
    this.#note("sweep");
  }

  close(): void {
    this.#note("close");
  }

  #note(call: string): void {
    this.calls.push(call);
    if (this.failOn === undefined || !call.startsWith(this.failOn)) return;
    this.failOn = undefined;
    throw new Error(`${call}: the folder is on fire`);
  }

  #newFolder(): string {
    mkdirSync(this.#place, { recursive: true });
    return mkdtempSync(join(this.#place, "folder-"));
  }

  #folderOf(image: string): string {
    const folder = this.images.get(image);
    if (folder === undefined) throw new SandboxError("not_found", `There is no image "${image}"`);
    return folder;
  }
}

async function startProcess(sandbox: Sandbox, argv: readonly string[]): Promise<DriverProcess> {
  const started = await sandbox.spawn({ argv });
  const nothing = async (): Promise<void> => undefined;
  return {
    stdout: started.stdout,
    stderr: started.stderr,
    kill: (signal) => started.kill(signal),
    wait: () => started.wait(),
    writeStdin: nothing,
    closeStdin: nothing,
  };
}
