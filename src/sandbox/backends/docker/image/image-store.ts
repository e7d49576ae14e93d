import { createHash } from "node:crypto";
import { SandboxError } from "../../../../../contracts/errors.js";
import { createLimit } from "../../../../util/limit.js";
import type { Engine } from "../engine/engine.js";
import { type BuildContext, type BuildRequest, openContext } from "./build-context.js";
import { buildImage } from "./build-image.js";
import { findImage, type ImageConfig } from "./image-config.js";
import { pullImage } from "./pull-image.js";

/** Says of a built image what it was made of, so that it is built again exactly when that has changed. */
export const CONTENT_LABEL = "glovebox.content";

/** Pulls and builds at one time. */
const AT_ONCE = 6;

/** An image to be had: built when it says how, else pulled; after its parent. */
export interface ImageOrder {
  readonly tag: string;
  readonly build?: BuildRequest;
  readonly parent?: ImageOrder;
}

/** What happens to an image. */
export interface ImageEvent {
  readonly type: "image-pull" | "image-build" | "image-ready";
  readonly image: string;
  readonly message: string;
  readonly progress?: { readonly current: number; readonly total: number };
}

/** How images are had. */
export interface StoreOptions {
  /** Never pull or build: what is not there, or not up to date, is an error. */
  verifyOnly?: boolean;
  onEvent?(event: ImageEvent): void;
}

/** Gets images, each one once however often and by however many it is asked for at one time. */
export class ImageStore {
  readonly #engine: Engine;
  readonly #opts: StoreOptions;
  readonly #limit = createLimit(AT_ONCE);
  readonly #flights = new Map<string, Promise<ImageConfig>>();

  constructor(engine: Engine, opts: StoreOptions = {}) {
    this.#engine = engine;
    this.#opts = opts;
  }

  /** Makes sure that an image is there and up to date. What failed is tried again by the next call. */
  ensure(order: ImageOrder, signal?: AbortSignal): Promise<ImageConfig> {
    const known = this.#flights.get(order.tag);
    if (known !== undefined) return known;
    const flight = this.#get(order, signal);
    this.#flights.set(order.tag, flight);
    flight.catch(() => this.#flights.delete(order.tag));
    return flight;
  }

  async #get(order: ImageOrder, signal: AbortSignal | undefined): Promise<ImageConfig> {
    const parent = order.parent === undefined ? undefined : await this.ensure(order.parent, signal);
    const image = await this.#limit(() =>
      order.build === undefined ? this.#pulled(order.tag, signal) : this.#built(order.build, parent, signal),
    );
    this.#opts.onEvent?.({ type: "image-ready", image: order.tag, message: `${order.tag} is ready` });
    return image;
  }

  async #pulled(tag: string, signal: AbortSignal | undefined): Promise<ImageConfig> {
    const present = await findImage(this.#engine, tag, signal);
    if (present !== undefined) return present;
    if (this.#opts.verifyOnly === true) throw missing(tag, `docker pull ${tag}`);
    const tell = (message: string, progress?: ImageEvent["progress"]): void =>
      this.#opts.onEvent?.({ type: "image-pull", image: tag, message, ...(progress && { progress }) });
    tell(`pulling ${tag}`);
    await pullImage(this.#engine, tag, { signal, onProgress: (progress) => tell(`pulling ${tag}`, progress) });
    return await this.#found(tag, signal);
  }

  async #built(
    build: BuildRequest,
    parent: ImageConfig | undefined,
    signal: AbortSignal | undefined,
  ): Promise<ImageConfig> {
    const { tag } = build;
    const context = await openContext(build);
    const content = await contentOf(build, context, parent);
    const present = await findImage(this.#engine, tag, signal);
    const has = present?.labels[CONTENT_LABEL];
    if (present !== undefined && has === content) return present;
    if (this.#opts.verifyOnly === true) {
      if (present === undefined) throw missing(tag, `docker build -t ${tag} ${build.contextPath}`);
      // An image that somebody else has built does not say what it was made of.
      if (has === undefined) return present;
      throw new SandboxError("conflict", `The image "${tag}" is there, but not as it would be built now`, {
        backend: "docker",
        retryable: false,
        hint: "build it again, or leave verifyOnly out",
      });
    }
    const tell = (message: string): void => this.#opts.onEvent?.(buildEvent(tag, message));
    tell(`building ${tag}`);
    await buildImage(this.#engine, build, context, { signal, labels: { [CONTENT_LABEL]: content }, onLine: tell });
    return await this.#found(tag, signal);
  }

  async #found(tag: string, signal: AbortSignal | undefined): Promise<ImageConfig> {
    const image = await findImage(this.#engine, tag, signal);
    if (image !== undefined) return image;
    throw new SandboxError("unavailable", `The image "${tag}" is gone again`, { backend: "docker" });
  }
}

function buildEvent(image: string, line: string): ImageEvent {
  const [, current, total] = /^Step (\d+)\/(\d+) : /.exec(line) ?? [];
  const progress = { current: Number(current), total: Number(total) };
  return { type: "image-build", image, message: line, ...(total !== undefined && { progress }) };
}

/** A name for everything that decides what comes out of a build. */
async function contentOf(build: BuildRequest, context: BuildContext, parent: ImageConfig | undefined): Promise<string> {
  const args = Object.entries(build.buildArgs ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const parts = [
    await context.digest(),
    context.dockerfile,
    args,
    parent?.id ?? "",
    build.parentTag ?? "",
    build.cacheKey ?? "",
  ];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

function missing(tag: string, hint: string): SandboxError {
  return new SandboxError("not_found", `The image "${tag}" is not there, and nothing is pulled or built (verifyOnly)`, {
    backend: "docker",
    hint,
  });
}
