import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { DriverExit, StartSpec } from "../../../src/sandbox/types.js";
import { openPlainGuest, type PlainGuest, until } from "../../support/guest/plain-guest.js";

let plain: PlainGuest;
beforeEach(async () => {
  plain = await openPlainGuest();
});
afterEach(() => plain.stop());

const COUNTED = 6_888_896;
const whole = Buffer.from(Array.from({ length: 1_000_000 }, (_, n) => `${n + 1}\n`).join(""));

/** What came of a command's outputs, and how it ended. */
async function given(argv: readonly string[], kept: StartSpec["kept"]): Promise<[Buffer, Buffer, DriverExit]> {
  const process = await plain.start(argv, { ...(kept && { kept }) });
  const all = async (stream: AsyncIterable<Uint8Array>): Promise<Buffer> => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return Buffer.concat(chunks);
  };
  return await Promise.all([all(process.stdout), all(process.stderr), process.wait()]);
}

describe("an output that nobody follows", () => {
  // Around what fits one frame, the window of a stream, and the most that a guest holds.
  test.each([0, 1, 2, 1_001, 65_535, 131_073, 600_000, 1 << 20, 4 << 20])(
    "of which %i bytes are kept comes without what lies between head and tail",
    async (kept) => {
      const [stdout, stderr, exit] = await given(["seq", "1000000"], { stdout: kept, stderr: kept });
      const last = Math.floor(kept / 2);
      const left = Math.max(0, COUNTED - kept - last);
      expect(exit).toEqual({ exitCode: 0, ...(left > 0 && { leftOut: { stdout: left, stderr: 0 } }) });
      expect(stderr).toHaveLength(0);
      const expected = left === 0 ? whole : Buffer.concat([whole.subarray(0, kept), whole.subarray(COUNTED - last)]);
      expect(stdout.equals(expected)).toBe(true);
    },
  );

  test("is given whole where more is kept than a guest holds, or only the other one is not followed", async () => {
    for (const kept of [{ stdout: (4 << 20) + 1 }, { stderr: 10 }, {}]) {
      const [stdout, , exit] = await given(["seq", "1000000"], kept);
      expect([stdout.length, exit]).toEqual([COUNTED, { exitCode: 0 }]);
    }
  });

  test("does not hide the end of the other", async () => {
    const script = "seq 1000000 >&2; seq 1000000; echo out; echo err >&2; exit 3";
    const [stdout, stderr, exit] = await given(["sh", "-c", script], { stdout: 100, stderr: 300 });
    const left = { stdout: COUNTED + 4 - 150, stderr: COUNTED + 4 - 450 };
    expect(exit).toEqual({ exitCode: 3, leftOut: left });
    expect(stdout.subarray(-12).toString()).toBe("1000000\nout\n");
    expect(stderr.subarray(-12).toString()).toBe("1000000\nerr\n");
  });

  test("comes with its end when the command is killed, and when a child goes on with it", async () => {
    const kept = { stdout: 1_000, stderr: 1_000 };
    const process = await plain.start(["sh", "-c", "seq 100000; echo last; echo there > there; sleep 60"], { kept });
    await until(() => readable(`${plain.root}/there`));
    await process.kill("SIGKILL");
    let text = "";
    for await (const chunk of process.stdout) text += Buffer.from(chunk);
    expect(text.endsWith("100000\nlast\n")).toBe(true);
    expect(await process.wait()).toMatchObject({ signal: "SIGKILL", leftOut: { stdout: 588_895 + 5 - 1_500 } });

    const [stdout, , exit] = await given(["sh", "-c", "seq 100000; sleep 60 & echo last"], kept);
    expect(stdout.subarray(-12).toString()).toBe("100000\nlast\n");
    expect(exit.leftOut?.stdout).toBe(588_895 + 5 - 1_500);
  });

  test("comes with its end also while another call's process holds its pipe open", async () => {
    const script = "while [ ! -e go ]; do sleep 0.01; done; exec 9>/proc/$(cat go)/fd/1; echo > held; sleep 60";
    const holder = await plain.start(["sh", "-c", script]);
    const giver = ["sh", "-c", "echo $$ > tmp; mv tmp go; until [ -e held ]; do sleep 0.01; done; seq 100000"];
    const [stdout, , exit] = await given(giver, { stdout: 1_000 });
    expect(stdout.subarray(-13).toString()).toBe("99999\n100000\n");
    expect(exit).toEqual({ exitCode: 0, leftOut: { stdout: 588_895 - 1_500, stderr: 0 } });
    await holder.kill("SIGKILL");
    await holder.wait();
  });

  test("does not hold the command up, and takes no memory of the guest", async () => {
    const flood = await plain.start(["sh", "-c", "head -c 300000000 /dev/zero; echo > done"], {
      kept: { stdout: 200_000 },
    });
    await until(() => readable(`${plain.root}/done`));
    const pages = Number(readFileSync(`/proc/${plain.pid}/statm`, "utf8").split(" ")[1]);
    expect(pages * 4096).toBeLessThan(8 << 20);
    let length = 0;
    for await (const chunk of flood.stdout) length += chunk.length;
    expect([length, (await flood.wait()).leftOut?.stdout]).toEqual([300_000, 300_000_000 - 300_000]);
  });
});

function readable(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}
