import * as is from "../../../../util/schema.js";

/** What the engine takes for an image: its name, or its id. */
export const imageName: is.Schema<string> = is.imageName(
  "the name of an image, such as debian:bookworm-slim",
  "sha256:[0-9a-f]{64}",
);
