// Gets the token of a stored login again and again, and prints each.
import { readFile } from "node:fs/promises";

const [, , directory, path, tokenUrl, caFile, rounds] = process.argv;
const { fetchOauthToken, tokenInternals } = await import(`${directory}/src/sandbox/egress/secrets/credentials.js`);
tokenInternals.ca = await readFile(caFile, "utf8");
const read = () => readFile(path, "utf8");
const ask = () =>
  fetchOauthToken("LOGIN", { tokenUrl, clientId: "me" }, { path, read }, { upstreamFor: () => undefined });
for (let round = 0; round < Number(rounds); round++) {
  for (const { value } of await Promise.all([ask(), ask()])) console.log(value);
}
