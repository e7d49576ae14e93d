const PART = "[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*";
const HOST = "(?:[A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)*|\\[[0-9a-fA-F:]+\\])(?::[0-9]{1,5})?";

/** What registries and engines take for the name of an image, with or without a tag and a digest. */
export const IMAGE_REFERENCE: string = `(?:${HOST}/)?${PART}(?:/${PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?`;

/** Longest name of an image. */
export const MAX_IMAGE_REFERENCE = 400;
