export { AttachedStream } from "./docker/attached-stream.js";
export { type OutputPiece, readOutput } from "./docker/demultiplexer.js";
export { type Endpoint, type EndpointChoice, findEndpoint } from "./docker/endpoint.js";
export { Engine, type EngineCall } from "./docker/engine.js";
export { EngineError } from "./docker/engine-error.js";
export { type ProgressLine, readJsonLines, readProgress } from "./docker/progress.js";
