import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { BodyWriter, encodeFrame, REQUEST } from "../../../src/sandbox/guest/frames.js";
import { describeUnless } from "../../support/describe-unless.js";
import { greetingOf, type LinkedGuest, startLinkedGuest } from "../../support/guest/linked-guest.js";
import { processesWith, uniqueSeconds } from "../../support/guest/plain-guest.js";

const reason = process.getuid?.() === 0 ? undefined : "only root can make the namespaces of a container";
const MIB = 1 << 20;

function letterOf(number: number, bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(16);
  head.writeUInt32LE(number);
  head.writeUInt32LE(8 + bytes.length, 4);
  return Buffer.concat([head, bytes]);
}

function path(name: string): Uint8Array[] {
  return new BodyWriter().string(name).pieces;
}

describeUnless(reason, "a channel of connections that break", {}, () => {
  let guest: LinkedGuest | undefined;
  afterEach(async () => {
    await guest?.stop();
    guest = undefined;
  });

  test("carries commands, and tells what the image has in its environment", async () => {
    guest = await startLinkedGuest();
    const { channel, run, stream } = guest.connect();
    expect(await channel.hello).toMatchObject({ complaint: "" });
    expect(await run(["sh", "-c", "id -u; exit 3"])).toMatchObject({ stdout: "65534\n", exitCode: 3 });
    expect(stream.environment).toMatchObject({ MARK: "of the image" });
  });

  test("loses nothing and doubles nothing while every connection is cut", async () => {
    guest = await startLinkedGuest();
    const { channel, start } = guest.connect();
    await channel.hello;
    const content = randomBytes(24 * MIB);
    const child = await start(["sh", "-c", "echo ran >> runs; cat"], { stdin: "pipe" });
    const back = createHash("sha256");
    let length = 0;
    let cuts = 0;
    const reading = (async () => {
      for await (const chunk of child.stdout) {
        back.update(chunk);
        // Every 3 MiB: in the middle of what is on its way in both directions.
        if (Math.floor((length + chunk.length) / (3 * MIB)) > Math.floor(length / (3 * MIB))) cuts += guest?.cut() ?? 0;
        length += chunk.length;
      }
    })();
    for (let at = 0; at < content.length; at += 64 << 10) await child.writeStdin(content.subarray(at, at + (64 << 10)));
    await child.closeStdin();
    await reading;
    expect(await child.wait()).toMatchObject({ exitCode: 0 });
    expect(length).toBe(content.length);
    expect(back.digest("hex")).toBe(createHash("sha256").update(content).digest("hex"));
    expect(cuts).toBeGreaterThan(3);
    expect(readFileSync(join(guest.root, "runs"), "utf8")).toBe("ran\n");
  });

  test("a letter that comes twice is taken once", async () => {
    guest = await startLinkedGuest();
    const relay = guest.relay();
    const order = new BodyWriter().u8(0).u16(0).u16(0).u32(0).string("");
    order.strings(["/bin/sh", "-c", "echo ran >> runs; echo done >> done"]).strings([]);
    const letter = letterOf(0, encodeFrame(0, REQUEST.start, 1, order.pieces));
    relay.stdin?.write(Buffer.concat([greetingOf(randomBytes(32), 0), letter, letter]));
    const { root } = guest;
    await expect.poll(() => existsSync(join(root, "done"))).toBe(true);
    // A second frame with the same number would have ended the guest.
    relay.stdin?.write(Buffer.concat([letter, letterOf(1, encodeFrame(1, REQUEST.stat, 2, path("runs")))]));
    await expect.poll(() => relay.exitCode ?? readFileSync(join(root, "runs"), "utf8")).toBe("ran\n");
    relay.stdin?.end();
    expect((await once(relay, "exit"))[0]).toBe(0);
    expect(readFileSync(join(root, "runs"), "utf8")).toBe("ran\n");
    const again = await Promise.race([guest.ended, Promise.resolve("serves")]);
    expect(again).toBe("serves");
  });

  test("commands that run while there is no connection go on, and are not started again", async () => {
    guest = await startLinkedGuest();
    const { channel, start } = guest.connect();
    await channel.hello;
    const running = await Promise.all(
      Array.from({ length: 20 }, (_, index) => start(["sh", "-c", `echo ${index} >> runs; sleep 1; exit ${index}`])),
    );
    guest.cut();
    const exits = await Promise.all(running.map((each) => each.wait()));
    expect(exits.map(({ exitCode }) => exitCode)).toEqual(Array.from({ length: 20 }, (_, index) => index));
    const runs = readFileSync(join(guest.root, "runs"), "utf8").trim().split("\n").map(Number);
    expect(runs.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index));
  });

  test("no command inside can take it over", async () => {
    guest = await startLinkedGuest();
    const { channel, run, start, greeting } = guest.connect();
    await channel.hello;
    // 4: the guest has closed the connection without a word, although it is the right token.
    const attack = await start([guest.program, "relay", "attach"], { stdin: "pipe" });
    await attack.writeStdin(greeting());
    expect(await attack.wait()).toMatchObject({ exitCode: 4 });
    expect(await run(["sh", "-c", `cat ${guest.program}`])).toMatchObject({ exitCode: 1, stdout: "" });
    const { stderr } = await run(["sh", "-c", "cat /proc/1/environ; cat /proc/1/mem; ls /proc/1/fd"]);
    expect(stderr.match(/Permission denied/g)).toHaveLength(3);
    expect(await run(["kill", "-9", "1"])).toMatchObject({ exitCode: 0 });
    expect(await run(["true"])).toMatchObject({ exitCode: 0 });
  });

  test("whoever does not have the token is refused, and disturbs nobody", async () => {
    guest = await startLinkedGuest();
    const { channel, start, greeting } = guest.connect();
    await channel.hello;
    const child = await start(["sh", "-c", "read line; echo $line"], { stdin: "pipe" });
    const stranger = guest.relay();
    stranger.stdin?.write(Buffer.concat([Buffer.alloc(32, 7), greeting().subarray(32)]));
    expect((await once(stranger, "exit"))[0]).toBe(4);
    await child.writeStdin(Buffer.from("still here\n"));
    expect(await child.wait()).toMatchObject({ exitCode: 0 });
  });

  test("ends with everything that runs when nobody has been heard for the lease", async () => {
    guest = await startLinkedGuest({ lease: 2 });
    const { channel, start } = guest.connect({ patience: 4_000 });
    await channel.hello;
    const seconds = uniqueSeconds();
    const child = await start(["sh", "-c", `setsid sleep ${seconds} & sleep ${seconds}`]);
    await expect.poll(() => processesWith(seconds).length).toBeGreaterThan(1);
    const waiting = child.wait().then(
      () => "ended",
      ({ code }: { code: string }) => code,
    );
    guest.part();
    expect(await guest.ended).toBe(0);
    await expect.poll(() => processesWith(seconds)).toEqual([]);
    expect(await waiting).toBe("backend_lost");
  });

  test("a kept one ends its commands, and serves the next host with its files", async () => {
    guest = await startLinkedGuest({ how: "kept" });
    const first = guest.connect();
    await first.channel.hello;
    const seconds = uniqueSeconds();
    await first.start(["sh", "-c", `echo kept > file; setsid sleep ${seconds} & sleep ${seconds}`]);
    await expect.poll(() => processesWith(seconds).length).toBeGreaterThan(1);
    await first.link.finish();
    first.channel.close();
    await expect.poll(() => processesWith(seconds)).toEqual([]);
    const second = guest.connect();
    await second.channel.hello;
    expect(await second.run(["cat", "file"])).toMatchObject({ stdout: "kept\n" });
  });

  test("a kept one whose host has died takes the next one after the lease", async () => {
    guest = await startLinkedGuest({ how: "kept", lease: 2 });
    const first = guest.connect();
    await first.channel.hello;
    const seconds = uniqueSeconds();
    await first.start(["sleep", seconds]);
    first.channel.close();
    const second = guest.connect();
    await second.channel.hello;
    expect(processesWith(seconds)).toEqual([]);
    expect(await second.run(["true"])).toMatchObject({ exitCode: 0 });
  });

  test("a kept one that has started over runs nothing again for a host that comes back", async () => {
    guest = await startLinkedGuest({ how: "kept", lease: 2 });
    let hears = true;
    const { channel, start } = guest.connect({ patience: 8_000, hears: () => hears });
    await channel.hello;
    // From here on everything that the guest says is lost: the host does not know what became of its command.
    hears = false;
    const seconds = uniqueSeconds();
    const outcome = start(["sh", "-c", `echo ran >> runs; exec sleep ${seconds}`]).then(
      () => "started",
      ({ code }: { code: string }) => code,
    );
    await expect.poll(() => processesWith(seconds).length).toBeGreaterThan(0);
    guest.part();
    await expect.poll(() => processesWith(seconds)).toEqual([]);
    hears = true;
    guest.rejoin();
    expect(await outcome).toBe("backend_lost");
    expect(readFileSync(join(guest.root, "runs"), "utf8")).toBe("ran\n");
  });

  test("a warm one belongs to the first host that comes, and ends when its lease is over", async () => {
    guest = await startLinkedGuest({ how: "warm", lease: 2 });
    const first = guest.connect({ patience: 4_000 });
    await first.channel.hello;
    expect(await first.run(["sh", "-c", "echo mine > file; cat file"])).toMatchObject({ stdout: "mine\n" });
    const second = guest.relay();
    second.stdin?.write(Buffer.concat([randomBytes(32), first.greeting().subarray(32)]));
    expect((await once(second, "exit"))[0]).toBe(4);
    expect(await first.run(["true"])).toMatchObject({ exitCode: 0 });
    first.channel.close();
    expect(await guest.ended).toBe(0);
  });

  test("a warm one whose first host keeps it starts over with its files when the lease is over, and stays kept", async () => {
    guest = await startLinkedGuest({ how: "warm", lease: 2 });
    const seconds = uniqueSeconds();
    for (const content of ["first", "second"]) {
      const host = guest.connect({ keeps: content === "first" });
      await host.channel.hello;
      expect(processesWith(seconds)).toEqual([]);
      if (content === "second") expect(await host.run(["cat", "file"])).toMatchObject({ stdout: "first\n" });
      await host.start(["sh", "-c", `echo ${content} > file; exec sleep ${seconds}`]);
      await expect.poll(() => processesWith(seconds).length).toBeGreaterThan(0);
      host.channel.close();
      await expect.poll(() => processesWith(seconds)).toEqual([]);
    }
    const third = guest.connect();
    await third.channel.hello;
    expect(await third.run(["cat", "file"])).toMatchObject({ stdout: "second\n" });
  });

  test("a connection that nobody reads costs no processor, and ends with the next one", {
    timeout: 60_000,
  }, async () => {
    guest = await startLinkedGuest();
    const token = randomBytes(32);
    const stalled = guest.relay();
    const order = new BodyWriter().u8(0).u16(0).u16(0).u32(0).string("");
    order.strings(["/bin/sh", "-c", "echo ran >> runs; exec yes"]).strings([]);
    const credit = new BodyWriter().u8(1).u32(4 * MIB).pieces;
    const letters = [encodeFrame(0, REQUEST.start, 1, order.pieces), encodeFrame(1, REQUEST.credit, 1, credit)];
    stalled.stdin?.write(Buffer.concat([greetingOf(token, 0), ...letters.map((bytes, at) => letterOf(at, bytes))]));
    const { root } = guest;
    await expect.poll(() => existsSync(join(root, "runs"))).toBe(true);
    const before = guest.used();
    // The host is there, and says so for longer than the guest is silent.
    for (let beat = 0; beat < 6; beat++) {
      await delay(2_000);
      stalled.stdin?.write(letterOf(0xffff_ffff, Buffer.alloc(0)));
    }
    expect(guest.used() - before).toBeLessThan(1_500);
    guest.relay().stdin?.write(greetingOf(token, 0));
    // It can't pass on what it has, and nobody wants that any more.
    expect((await once(stalled, "exit"))[0]).toBe(0);
  });

  test("host and guest say in silence that they are there", { timeout: 40_000 }, async () => {
    guest = await startLinkedGuest({ lease: 8 });
    const { channel, run } = guest.connect();
    await channel.hello;
    expect(await run(["sleep", "18"])).toMatchObject({ exitCode: 0 });
    expect(channel.isClosed).toBe(false);
    expect(existsSync(guest.root)).toBe(true);
  });
});
