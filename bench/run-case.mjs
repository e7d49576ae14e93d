import { writeFileSync } from "node:fs";

const [name, file, scratch, ...options] = process.argv.slice(2);
const { measure } = await import(`./cases/${name}.mjs`);
const result = await measure({
  scratch,
  isQuick: options.includes("--quick"),
  withPeers: options.includes("--peers"),
});
writeFileSync(file, JSON.stringify(result));
