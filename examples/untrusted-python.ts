import { strict as assert } from "node:assert";
import { openSandbox } from "glovebox";

// #region run
/** The result of an untrusted program. */
interface Outcome {
  ok: boolean;
  output: string;
  answer: unknown;
}

/** Runs untrusted Python with one input, and reads the answer that it writes to `answer.json`. */
async function runPython(code: string, input: unknown): Promise<Outcome> {
  await using sandbox = await openSandbox({ network: "none" });
  await sandbox.writeFiles({ "main.py": code, "input.json": JSON.stringify(input) });
  const result = await sandbox.exec("python3", ["-I", "main.py"], { timeout: 10_000, maxOutput: 16 * 1024 });
  const answer = await sandbox.readFile("answer.json");
  return {
    ok: result.exitCode === 0,
    output: result.timedOut ? "it took longer than 10 s" : result.stdout + result.stderr,
    answer: answer === null ? undefined : JSON.parse(answer),
  };
}
// #endregion run

const good = await runPython(
  `
import json
numbers = json.load(open("input.json"))
json.dump({"sum": sum(numbers)}, open("answer.json", "w"))
`,
  [1, 2, 3],
);
if (good.output.includes("python3: ")) {
  console.log("not run: there is no python3 on this machine");
  process.exit();
}
assert.deepEqual(good, { ok: true, output: "", answer: { sum: 6 } });

const bad = await runPython(
  `
import urllib.request
try: print(open("/etc/shadow").read())
except OSError as error: print(type(error).__name__)
urllib.request.urlopen("https://example.com", timeout=5)
`,
  null,
);
assert.equal(bad.ok, false);
assert.match(bad.output, /^FileNotFoundError\n[\s\S]*urlopen error/);
console.log("computed, refused");
