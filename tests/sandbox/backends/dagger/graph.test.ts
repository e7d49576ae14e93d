import { existsSync } from "node:fs";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { createDaggerSandbox } from "../../../../src/sandbox/backends/dagger.js";
import { deleteSnapshot } from "../../../../src/sandbox.js";
import { startDaggerEngine } from "../../../fakes/dagger/engine.js";
import { sessionOf, useDaggerPlace } from "../../../support/dagger/place.js";
import { expectRefused } from "../../../support/refused.js";

const place = useDaggerPlace();
const { options } = place;
const DEBIAN = "debian:stable-slim";

describe("layers", () => {
  test("a sandbox outlives the layers that an engine can mount", async () => {
    await using sandbox = await createDaggerSandbox(options({ linger: 0 }));
    await sandbox.shell(
      "echo own > /etc/own; chmod 640 /etc/own; ln -s own /etc/link; mkdir -m 700 /srv; rm /etc/group",
    );
    const before = place.engine.graph.ran.length;
    for (let count = 1; count <= 460; count++) await sandbox.writeFile("count", String(count));
    expect(place.engine.graph.ran.length - before).toBe(460);
    const { stdout } = await sandbox.shell("cat count; stat -c ' %a' /etc/own /srv; readlink /etc/link; ls /etc/group");
    expect(stdout).toBe("460 640\n 700\nown\n");
    // A fork and a snapshot go on from as many layers.
    const id = await sandbox.snapshot();
    await using fork = await sandbox.fork();
    await sandbox.restore(id);
    for (const one of [fork, sandbox]) {
      await one.writeFile("count", "more");
      expect(await one.readFile("count")).toBe("more");
    }
    await deleteSnapshot(id);
    expect(layersOf()).toBeLessThan(150);
  });

  test("forks of forks, restored snapshots and a long setup are flattened as well", async () => {
    const setup = Array.from({ length: 250 }, (_, index) => ["sh", "-c", `echo ${index} > /etc/setup`]);
    let sandbox = await createDaggerSandbox(options({ linger: 0, setup }));
    expect(layersOf()).toBeLessThan(150);
    for (let round = 0; round < 4; round++) {
      for (let count = 0; count < 30; count++) await sandbox.writeFile("count", `${round} ${count}`);
      const fork = await sandbox.fork();
      await sandbox.teardown();
      sandbox = fork;
    }
    expect((await sandbox.shell("cat count /etc/setup")).stdout).toBe("3 29249\n");
    expect(layersOf()).toBeLessThan(150);
    await sandbox.teardown();
  });
});

/** How many layers the container that was made last has. */
function layersOf(): number {
  return place.engine.graph.newestLayers;
}

describe("snapshots in another engine", () => {
  test("one with 600 removed files and 600 removed directories is restored", async () => {
    const setup = [
      ["sh", "-c", "mkdir -p /opt; cd /opt; for i in $(seq 600); do echo $i > f$i; mkdir d$i; touch d$i/x; done"],
    ];
    const sandbox = await createDaggerSandbox(options({ setup }));
    await sandbox.shell("cd /opt; rm f*; rm -r d*; touch f7 stays");
    const id = await sandbox.snapshot();
    await sandbox.teardown();
    const second = await startDaggerEngine();
    try {
      await using elsewhere = await createDaggerSandbox(options({ session: sessionOf(second), setup }));
      expect((await elsewhere.shell("ls /opt | wc -l")).stdout.trim()).toBe("1200");
      await elsewhere.restore(id);
      expect((await elsewhere.shell("ls /opt; cat /opt/f7")).stdout).toBe("f7\nstays\n");
    } finally {
      await second.close();
      await deleteSnapshot(id);
    }
  });

  test("names that an engine would take for patterns remove themselves alone", async () => {
    const names = ["*", "a*", "a?", "[ab]", "\\*", "a\\", "**", "{a,b}", "!x", "d*/in"];
    const others = ["a", "ab", "b", "\\", "xx", "[*]", "d/in", "dd/in"];
    const quoted = (all: readonly string[]): string => all.map((name) => `'${name}'`).join(" ");
    const setup = [
      ["sh", "-c", `mkdir -p /opt/d /opt/dd '/opt/d*'; cd /opt; touch ${quoted([...names, ...others, "d*/kept"])}`],
    ];
    const sandbox = await createDaggerSandbox(options({ setup }));
    const look = "cd /opt; find . -type f | LC_ALL=C sort";
    expect((await sandbox.shell(`cd /opt; rm -- ${quoted(names)}`)).exitCode).toBe(0);
    const left = (await sandbox.shell(look)).stdout;
    expect(left.trim().split("\n")).toEqual([...others, "d*/kept"].map((name) => `./${name}`).sort());
    const id = await sandbox.snapshot();
    await sandbox.teardown();
    const second = await startDaggerEngine();
    try {
      await using elsewhere = await createDaggerSandbox(options({ session: sessionOf(second), setup }));
      await elsewhere.restore(id);
      expect((await elsewhere.shell(look)).stdout).toBe(left);
      expect((await elsewhere.shell("touch /opt/new; id -u")).stdout).toBe("0\n");
    } finally {
      await second.close();
      await deleteSnapshot(id);
    }
  });

  test("a tag that has moved gives no other image, with and without setup", async () => {
    for (const setup of [[], [["touch", "/etc/ready"]]]) {
      const kept = await createDaggerSandbox(options({ setup }, { keep: true }));
      const image = (await kept.shell("touch mine; cat /etc/image")).stdout;
      expect(image).toMatch(/^sha256:[0-9a-f]{64}\n$/);
      const id = await kept.snapshot();
      await kept.teardown();
      const later = await startDaggerEngine({ moved: [DEBIAN] });
      try {
        const session = sessionOf(later);
        await using fresh = await createDaggerSandbox(options({ session, setup }));
        expect((await fresh.shell("cat /etc/image")).stdout).not.toBe(image);
        const refusal = fresh.restore(id);
        await expectRefused(refusal, "conflict", `debian:stable-slim@${image.trim()}`);
        const { hint } = await refusal.then(Object, (error: { hint: string }) => error);
        const hinted = /image: "(.*)"/.exec(hint)?.[1] ?? "";
        for (const name of [hinted, `debian@${image.trim()}`]) {
          await using pinned = await createDaggerSandbox(options({ session, setup }, { image: name }));
          await pinned.restore(id);
          expect((await pinned.shell("cat /etc/image; ls")).stdout).toBe(`${image}mine\n`);
        }
        const again = await createDaggerSandbox(options({ session }, { id: kept.id, keep: false }));
        expect((await again.shell("cat /etc/image; ls")).stdout).toBe(`${image}mine\n`);
        await again.teardown();
      } finally {
        await later.close();
        await deleteSnapshot(id);
      }
    }
  });
});

describe("the number of a step", () => {
  test("is spent before a command runs, and no process or file has a secret of ours", async () => {
    await using sandbox = await createDaggerSandbox(options({ linger: 0 }));
    const everything =
      "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; grep -ra GLOVEBOX / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr --exclude=guest --exclude-dir=dev";
    const seen = (await sandbox.shell(everything)).stdout;
    expect(seen).toContain("dial");
    expect(seen).not.toContain("GLOVEBOX_");
    const queries = place.engine.queries.join();
    const numbers = [...queries.matchAll(/name: "GLOVEBOX_STEP",value: "(.*?)"/g)].map(([, number]) => number ?? "");
    expect(numbers.length).toBeGreaterThan(0);
    for (const number of numbers) expect(seen).not.toContain(number);
    // The engine is given no other secret of ours, which it could show to a command.
    expect(queries).not.toContain("setSecret");
  });

  test("of a service is not seen in it either", async ({ skip }) => {
    if (!existsSync("/usr/bin/busybox")) skip("not run: there is no busybox to serve with");
    await using sandbox = await createDaggerSandbox(options());
    const look = "cat /proc/[0-9]*/environ | tr '\\0' '\\n'; echo over; exec busybox httpd -f -p 8080";
    const service = { hostname: "web", ports: [8080] };
    const web = await sandbox.spawn({
      argv: ["sh", "-c", look],
      service,
    });
    let seen = "";
    for await (const chunk of web.stdout) {
      seen += Buffer.from(chunk).toString();
      if (seen.includes("over\n")) break;
    }
    expect(seen).toContain("PATH=");
    expect(seen).not.toContain("GLOVEBOX_");
    await web.kill("SIGKILL");
  });

  test("opens nothing a second time", async () => {
    await using sandbox = await createDaggerSandbox(options({ linger: 0 }));
    await sandbox.exec({ argv: ["true"] });
    const last = place.engine.queries.findLast((query) => query.includes("GLOVEBOX_STEP")) ?? "";
    const number = /name: "GLOVEBOX_STEP",value: "(.*?)"/.exec(last)?.[1] ?? "";
    const port = /"dial","glovebox-host","(\d+)"/.exec(last)?.[1] ?? "";
    expect(number.length).toBeGreaterThan(30);
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(`${number}\n`));
    const answer = await new Promise<string>((resolve) => {
      socket.on("data", () => resolve("served")).on("error", () => undefined);
      socket.on("close", () => resolve("closed"));
    });
    expect(answer).toBe("closed");
  });
});
