import { separateSuite } from "./tests/support/run/separate-suite.js";

/** `npm run test:machines`: the readme and the tutorial as a newcomer types them, on a fresh Debian and on other runtimes. */
export default separateSuite("tests/machines/*.machines.ts");
