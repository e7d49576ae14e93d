import process from "node:process";

const [url, size] = process.argv.slice(2);
const body = Number(size) > 0 ? new Uint8Array(Number(size)) : undefined;
const headers = { "x-api-key": process.env.TEST_KEY };
const answer = await fetch(url, { method: body ? "POST" : "GET", headers, body });
process.stdout.write(await answer.text());
