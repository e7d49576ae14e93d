export { forwardStream } from "./http2/forward-stream.js";
export { OriginSession } from "./http2/origin-session.js";
export { serveHttp2 } from "./http2/serve-http2.js";
export { readStreamHead } from "./http2/stream-head.js";
