import { separateSuite } from "./tests/support/run/separate-suite.js";

/** `npm run test:batch`: thousands of tasks, and drivers that are killed. */
export default separateSuite("tests/batch/*.batch.ts");
