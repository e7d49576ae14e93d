import { separateSuite } from "./tests/support/run/separate-suite.js";

/** `npm run test:kubernetes`: the kubernetes backend on a real cluster, and what can happen to one. */
export default separateSuite("tests/kubernetes/*.kubernetes.ts");
