import type { ContainerEngine, EngineImage } from "../../contracts/container-engine.js";
import { createLimit } from "../util/limit.js";
import type { EmitTaskEvent } from "./emit.js";
import type { ImageStep } from "./image-plan.js";

/** How many images are pulled or built at the same time. */
const AT_ONCE = 6;

/** Makes sure that an image exists and is up to date. After a failure the next call tries again. */
export type ImageStore = (step: ImageStep, signal: AbortSignal) => Promise<EngineImage>;

/** Prepares the images of a batch: each one once, however many callers ask for it at the same time. */
export function createImageStore(engine: ContainerEngine, verifyOnly: boolean, emit: EmitTaskEvent): ImageStore {
  const limit = createLimit(AT_ONCE);
  const images = new Map<string, { image: Promise<EngineImage>; isRun: boolean }>();
  const prepare: ImageStore = async ({ tag, build, parent, isRun }, signal) => {
    const parentId = parent && (await ensure(parent, signal)).id;
    const request = { tag, isRun, ...(build && { build }), ...(parentId !== undefined && { parentId }) };
    const type = build === undefined ? "image-pull" : "image-build";
    const onProgress = (message: string, progress?: { current: number; total: number }): void =>
      emit(type, message, { image: tag, ...(progress && { progress }) });
    const image = await limit(() => engine.ensureImage(request, { verifyOnly, signal, onProgress }));
    emit("image-ready", `${tag} is ready`, { image: tag });
    return image;
  };
  const ensure: ImageStore = (step, signal) => {
    const known = images.get(step.tag);
    if (known !== undefined && (known.isRun || !step.isRun)) return known.image;
    // An engine is never asked twice at once for one tag.
    const before = known?.image.catch(() => undefined);
    const image = before === undefined ? prepare(step, signal) : before.then(() => prepare(step, signal));
    const made = { image, isRun: step.isRun };
    images.set(step.tag, made);
    image.catch(() => {
      if (images.get(step.tag) === made) images.delete(step.tag);
    });
    return image;
  };
  return ensure;
}
