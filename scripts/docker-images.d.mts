export const BUSYBOX: string;
export const DEBIAN: string;
export function whyNoImage(name: string): string | undefined;
export function ensureImage(host: string, name: string): Promise<void>;
