import { join } from "node:path";
import { prepare, root } from "./prepare.mjs";
import { endAllOnInterrupt, run } from "./processes.mjs";

endAllOnInterrupt();
try {
  await prepare();
} catch {
  process.exit(1);
}
for (const [name, ...args] of [["demo"], ["repair", "--keep"]]) {
  const { code } = await run(process.execPath, [join(root, "dist", "examples", `${name}.js`), ...args], { cwd: root });
  if (code !== 0) process.exit(code);
}
