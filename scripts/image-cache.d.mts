export const BUSYBOX: string;
export const DEBIAN: string;
export const FAILED_IMAGES: string;
export function whyNoImage(name: string): string | undefined;
export function ensureArchive(name: string, onProgress?: (phase: string) => void): Promise<string>;
