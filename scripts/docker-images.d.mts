export { BUSYBOX, DEBIAN, whyNoImage } from "./image-cache.d.mts";
export function ensureImage(host: string, name: string, onProgress?: (phase: string) => void): Promise<void>;
