import { separateSuite } from "./tests/support/run/separate-suite.js";

/** `npm run test:agents`: the real coding agents, against a scripted model. */
export default separateSuite("tests/agents/*.agents.ts");
