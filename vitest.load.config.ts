import { separateSuite } from "./tests/support/run/separate-suite.js";

/** `npm run test:load`: deadlines on a machine that is busy with other work. Runs alone. */
export default separateSuite("tests/load/*.load.ts");
