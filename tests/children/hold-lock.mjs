// Takes a lock and, as the mode says, keeps it for ever or counts in a file under it.
import { readFileSync, writeFileSync } from "node:fs";

const [, , directory, mode, name, counter, rounds] = process.argv;
const { withLock } = await import(`${directory}/src/machine/lock.js`);

if (mode === "hold") {
  await withLock(name, async () => {
    console.log("held");
    await new Promise((resolve) => setTimeout(resolve, 600_000));
  });
} else {
  const increment = () =>
    withLock(name, async () => {
      const value = Number(readFileSync(counter, "utf8"));
      await new Promise((resolve) => setImmediate(resolve));
      writeFileSync(counter, String(value + 1));
    });
  await Promise.all(Array.from({ length: Number(rounds) }, increment));
}
