import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDaggerSandbox } from "../../../../src/sandbox/backends/dagger.js";
import { deleteSnapshot } from "../../../../src/sandbox.js";
import { createDaggerHarness } from "../../../support/dagger/harness.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";
import { testConformanceAtOnce } from "../../../support/test-conformance.js";

// A real engine is not ours to start: one that somebody has opened a session with is used.
if (process.env["DAGGER_SESSION_PORT"] && process.env["DAGGER_SESSION_TOKEN"]) {
  let scratch: Scratch;
  beforeAll(() => {
    scratch = createScratch();
  });
  afterAll(() => scratch.remove());
  const { backend, open, remove, skips } = createDaggerHarness("dagger-live", () => ({}));
  testConformanceAtOnce({ backend, open, ...(remove && { remove }), ...(skips && { skips }) }, 4);

  describe("what only an engine can show", { timeout: 300_000 }, () => {
    test.each([["exit 128"], ["exit 191"], ["kill -9 $$"]])("%s keeps the files", async (how) => {
      await using sandbox = await createDaggerSandbox({ dagger: { linger: 0 } });
      await sandbox.shell(`echo kept > file; echo kept > /etc/kept; ${how}`);
      expect((await sandbox.shell("cat file /etc/kept")).stdout).toBe("kept\nkept\n");
    });

    test("identical commands are run again", async () => {
      await using sandbox = await createDaggerSandbox({ dagger: { linger: 0 } });
      const argv = ["cat", "/proc/sys/kernel/random/uuid"];
      const said = [await sandbox.exec({ argv }), await sandbox.exec({ argv })].map(({ stdout }) => stdout);
      expect(new Set(said).size).toBe(2);
    });

    test("a snapshot is brought back as a whole, as if its session had ended", async () => {
      const setup = [["sh", "-c", "mkdir -p /opt/d; echo one > /opt/one; echo two > /opt/d/two"]];
      const first = await createDaggerSandbox({ dagger: { setup } });
      await first.shell("echo x > f; echo own > /etc/own; chmod 600 /etc/own; echo changed > /opt/one; rm -r /opt/d");
      const id = await first.snapshot();
      // The last sandbox of a process takes the session's memory of containers with it.
      await first.teardown();
      await using second = await createDaggerSandbox({});
      await second.restore(id);
      expect((await second.shell("cat f /etc/own /opt/one; stat -c %a /etc/own; ls /opt")).stdout).toBe(
        "x\nown\nchanged\n600\none\n",
      );
      await deleteSnapshot(id);
    });

    test("a service is reached by its host name", async () => {
      await using sandbox = await createDaggerSandbox({ image: "busybox:stable" });
      const argv = ["sh", "-c", "echo hello > index.html; exec busybox httpd -f -p 8080"];
      await using _web = await sandbox.spawn({ argv, service: { hostname: "web", ports: [8080] } });
      expect((await sandbox.shell("busybox wget -q -O - http://web:8080/")).stdout).toBe("hello\n");
    });
  });
} else {
  const reason = "no Dagger engine is reachable (DAGGER_SESSION_PORT and DAGGER_SESSION_TOKEN name none)";
  test("conformance of dagger-live", ({ skip }) => skip(reason));
}
