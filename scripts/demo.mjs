import { join } from "node:path";
import { prepare, root } from "./prepare.mjs";
import { endAllOnInterrupt, run } from "./processes.mjs";

endAllOnInterrupt();
try {
  await prepare();
} catch {
  process.exit(1);
}
const { code } = await run(process.execPath, [join(root, "dist", "examples", "demo.js")], { cwd: root });
process.exit(code);
