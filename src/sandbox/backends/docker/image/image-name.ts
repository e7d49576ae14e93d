import { IMAGE_REFERENCE, MAX_IMAGE_REFERENCE } from "../../../../util/image-reference.js";
import { matching, type Schema } from "../../../../util/schema.js";

/** What a registry or an engine takes for an image: its name, or its id. */
export const imageName: Schema<string> = matching(
  new RegExp(`^(?:${IMAGE_REFERENCE}|sha256:[0-9a-f]{64})$`),
  "the name of an image, such as debian:bookworm-slim",
  { maxLength: MAX_IMAGE_REFERENCE },
);
