import { join } from "node:path";
import { root } from "./prepare.mjs";
import { endAllOnInterrupt, run } from "./processes.mjs";
import { createScratch, environmentIn } from "./scratch.mjs";

/** Runs vitest with these arguments, with its temporary files in memory if possible. */
const { memory, inMemory, clean } = createScratch();
endAllOnInterrupt(clean);
const vitest = [process.execPath, join(root, "node_modules", "vitest", "vitest.mjs"), ...process.argv.slice(2)];
const [program, ...args] = inMemory(vitest);
const isWhole = process.argv.slice(3).every((word) => word.startsWith("-"));
const env = { ...environmentIn(memory), ...(isWhole && { GLOVEBOX_TEST_ALL: "1" }) };
const { code } = await run(program, args, { cwd: root, env });
clean();
process.exitCode = code;
