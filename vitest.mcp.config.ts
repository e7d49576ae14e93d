import { separateSuite } from "./tests/support/run/separate-suite.js";

/** `npm run test:mcp`: the official tests of the protocol, and real clients. */
export default separateSuite("tests/mcp/*.mcp.ts");
