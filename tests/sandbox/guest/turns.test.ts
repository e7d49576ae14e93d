import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openPlainGuest, type PlainGuest } from "../../support/guest/plain-guest.js";

let plain: PlainGuest;
beforeEach(async () => {
  plain = await openPlainGuest();
});
afterEach(() => plain.stop());

const STREAMS = 8;
const MEASURED = 32 << 20;

/** Reads all of them at once, until one has given so much; what each has given by then. */
async function readUntilOneHas(bytes: number, streams: readonly AsyncIterable<Uint8Array>[]): Promise<number[]> {
  const given = streams.map(() => 0);
  const readOne = async (stream: AsyncIterable<Uint8Array>, at: number): Promise<void> => {
    for await (const chunk of stream) {
      given[at] = (given[at] ?? 0) + chunk.length;
      if (given.some((each) => each >= bytes)) return;
    }
  };
  await Promise.race(streams.map(readOne));
  return given;
}

describe("streams that together fill the channel take turns", () => {
  test("outputs of commands, the oldest no less than the newest", async () => {
    const floods = [];
    for (let n = 0; n < STREAMS; n++) floods.push(await plain.start(["head", "-c", "10G", "/dev/zero"]));
    const given = await readUntilOneHas(
      MEASURED,
      floods.map(({ stdout }) => stdout),
    );
    expect(Math.min(...given)).toBeGreaterThan(MEASURED / 8);
    await Promise.all(floods.map((flood) => flood.kill("SIGKILL")));
  });

  test("files that are read", async () => {
    writeFileSync(join(plain.root, "large"), "");
    truncateSync(join(plain.root, "large"), 4 * MEASURED);
    const opened = Array.from({ length: STREAMS }, () => plain.files.readStream("large", { start: 0 }));
    const streams = (await Promise.all(opened)).flatMap((stream) => stream ?? []);
    expect(streams).toHaveLength(STREAMS);
    const given = await readUntilOneHas(MEASURED, streams);
    expect(Math.min(...given)).toBeGreaterThan(MEASURED / 8);
  });
});
