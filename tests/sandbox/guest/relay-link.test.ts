import { once } from "node:events";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { createLink, type Link, type LinkConnection } from "../../../src/sandbox/guest/relay-link.js";
import { RelayStream } from "../../../src/sandbox/guest/relay-stream.js";

/** A connection whose other side the test plays. */
class Connection implements LinkConnection {
  readonly input: PassThrough = new PassThrough();
  readonly written: Buffer[] = [];

  write(bytes: Uint8Array): void {
    this.written.push(Buffer.from(bytes));
  }

  async end(): Promise<void> {}
  destroy(): void {
    this.input.destroy();
  }
  ref(): void {}
  unref(): void {}

  /** Greets, and says which letter is next. */
  greet(next: number): void {
    const greeting = Buffer.alloc(8);
    greeting.writeUInt32LE(4);
    greeting.writeUInt32LE(2, 4);
    this.input.write(greeting);
    this.acknowledge(next);
  }

  acknowledge(next: number): void {
    const piece = Buffer.alloc(16);
    piece.writeUInt32LE(next, 4);
    this.input.write(piece);
  }

  /** The numbers and contents of the letters, after the greeting of 40 bytes. */
  letters(): [number, string][] {
    return this.written.slice(1).map((letter) => [letter.readUInt32LE(0), letter.subarray(16).toString()]);
  }
}

function openLink(): { connections: Connection[]; stream: RelayStream<Uint8Array>; link: Link } {
  const connections: Connection[] = [];
  const link = createLink({
    verdict: () => undefined,
    async connect() {
      const made = new Connection();
      connections.push(made);
      return made;
    },
  });
  const stream = new RelayStream(link, { patience: 10_000 });
  stream.on("error", () => undefined).resume();
  return { connections, stream, link };
}

async function nth(connections: Connection[], count: number): Promise<Connection> {
  await expect.poll(() => connections.length).toBe(count);
  return connections[count - 1] as Connection;
}

test("letters that the guest has not confirmed come again with the next connection, and no others", async () => {
  const { connections, stream } = openLink();
  const first = await nth(connections, 1);
  first.greet(0);
  for (const text of ["one", "two", "three"]) {
    stream.write(Buffer.from(text));
    await expect.poll(() => first.letters().at(-1)?.[1]).toBe(text);
  }
  first.acknowledge(1);
  await new Promise((resolve) => setImmediate(resolve));
  first.destroy();
  const second = await nth(connections, 2);
  // It has the second one, too: only the confirmation was lost.
  second.greet(2);
  await expect.poll(() => second.letters()).toEqual([[2, "three"]]);
  expect(second.written[0]?.subarray(0, 32)).toEqual(first.written[0]?.subarray(0, 32));
  stream.destroy();
});

test("nothing is sent before the guest has said which letter is next", async () => {
  const { connections, stream } = openLink();
  const first = await nth(connections, 1);
  stream.write(Buffer.from("early"));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(first.written).toHaveLength(1);
  first.greet(0);
  await expect.poll(() => first.letters()).toEqual([[0, "early"]]);
  stream.destroy();
});

test("a guest that confirms nothing gets no more than some megabytes", async () => {
  const { connections, stream } = openLink();
  const first = await nth(connections, 1);
  first.greet(0);
  for (let n = 0; n < 32; n++) stream.write(Buffer.alloc(1 << 20));
  const sent = (): number => first.written.reduce((sum, { length }) => sum + length, 0);
  await expect.poll(sent).toBeGreaterThan(4 << 20);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(sent()).toBeLessThan(5 << 20);
  expect(stream.writableNeedDrain).toBe(true);
  first.acknowledge(1_000);
  await expect.poll(sent).toBeGreaterThan(8 << 20);
  stream.destroy();
});

test("each sandbox has a token of its own", async () => {
  const [one, other] = [openLink(), openLink()];
  const tokens = await Promise.all([one, other].map(async ({ connections }) => (await nth(connections, 1)).written[0]));
  expect(tokens[0]?.subarray(0, 32).equals(tokens[1]?.subarray(0, 32) as Buffer)).toBe(false);
  for (const { stream } of [one, other]) {
    const closed = once(stream, "close");
    stream.destroy();
    await closed;
  }
});
