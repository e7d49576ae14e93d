import type { ContainerEngine, EngineImage } from "../../contracts/container-engine.js";
import { createLimit } from "../util/limit.js";
import type { EmitTaskEvent } from "./emit.js";
import type { ImageStep } from "./image-plan.js";

/** How many images are pulled or built at the same time. */
const AT_ONCE = 6;

/** Prepares the images of a batch: each one once, however many callers ask for it at the same time. */
export class ImageStore {
  readonly #engine: ContainerEngine;
  readonly #verifyOnly: boolean;
  readonly #emit: EmitTaskEvent;
  readonly #limit = createLimit(AT_ONCE);
  readonly #images = new Map<string, Promise<EngineImage>>();

  constructor(engine: ContainerEngine, verifyOnly: boolean, emit: EmitTaskEvent) {
    this.#engine = engine;
    this.#verifyOnly = verifyOnly;
    this.#emit = emit;
  }

  /** Makes sure that an image exists and is up to date. After a failure the next call tries again. */
  ensure(step: ImageStep, signal: AbortSignal): Promise<EngineImage> {
    const known = this.#images.get(step.tag);
    if (known !== undefined) return known;
    const image = this.#prepare(step, signal);
    this.#images.set(step.tag, image);
    image.catch(() => this.#images.delete(step.tag));
    return image;
  }

  async #prepare({ tag, build, parent }: ImageStep, signal: AbortSignal): Promise<EngineImage> {
    const parentId = parent && (await this.ensure(parent, signal)).id;
    const request = { tag, ...(build && { build }), ...(parentId !== undefined && { parentId }) };
    const type = build === undefined ? "image-pull" : "image-build";
    const image = await this.#limit(() =>
      this.#engine.ensureImage(request, {
        verifyOnly: this.#verifyOnly,
        signal,
        onProgress: (message, progress) => this.#emit(type, message, { image: tag, ...(progress && { progress }) }),
      }),
    );
    this.#emit("image-ready", `${tag} is ready`, { image: tag });
    return image;
  }
}
