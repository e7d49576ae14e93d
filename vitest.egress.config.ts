import { separateSuite } from "./tests/support/run/separate-suite.js";

/** `npm run test:egress`: real clients, with a key that is not inside, and as much as they can send. */
export default separateSuite("tests/egress/*.egress.ts");
