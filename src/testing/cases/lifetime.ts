import type { SandboxEvent } from "../../../contracts/types.js";
import type { SandboxOptions } from "../../sandbox/types.js";
import { check, equal, includes, refuses, within } from "../assert.js";
import type { ConformanceCase } from "../types.js";

const TTL = 4_000;
const IDLE = 2_000;
const DAYS_30 = 30 * 24 * 3_600_000;

export const lifetimeCases: readonly ConformanceCase[] = [
  {
    id: "lifetime.ttl",
    title: "the end of a ttl",
    requirement: "At its `ttl` a sandbox is removed, even a kept one: running calls and later ones are `closed`.",
    async run({ open }) {
      const start = performance.now();
      const sandbox = await open({ ttl: TTL, keep: true });
      const running = await refuses("closed", "exec at the end", () => sandbox.exec({ argv: ["sleep", "60"] }));
      check(performance.now() - start >= TTL, "it ended before its ttl");
      includes(running.message, "ttl", "the error of the call that ran");
      await within(60_000, "teardown", sandbox.teardown());
      const later = await refuses("closed", "exec after the end", () => sandbox.exec({ argv: ["true"] }));
      includes(later.message, "ttl", "the error of a later call");
      await refuses("not_found", "reopening it", () => open({ id: sandbox.id }));
    },
  },
  {
    id: "lifetime.idle",
    title: "an idle sandbox",
    requirement: "After `idleTimeout` without a call or a process the sandbox is closed; a kept one can be reopened.",
    async run({ open, defer, harness }) {
      let closed: (event: SandboxEvent) => void = () => undefined;
      const ended = new Promise<SandboxEvent>((resolve) => {
        closed = resolve;
      });
      const onEvent = (event: SandboxEvent): void => {
        if (event.type === "teardown") closed(event);
      };
      const sandbox = await open({ idleTimeout: IDLE, keep: true, onEvent });
      defer(async () => {
        if (harness.remove !== undefined) return await harness.remove(sandbox.id);
        return await (await harness.open({ id: sandbox.id, keep: false })).teardown();
      });
      await sandbox.writeFile("file", "kept");
      const { exitCode } = await sandbox.exec({ argv: ["sleep", `${(2 * IDLE) / 1_000}`] });
      equal(exitCode, 0, "a command that runs longer than the idle timeout");
      includes((await within(60_000, "the end of an idle sandbox", ended)).message, "idleTimeout", "the event");
      const later = await refuses("closed", "a call after the end", () => sandbox.readFile("file"));
      includes(later.message, "idleTimeout", "the error");
      const again = await open({ id: sandbox.id, idleTimeout: DAYS_30 });
      equal(await again.readFile("file"), "kept", "the file in the reopened sandbox");
      await within(60_000, "teardown", again.teardown());
    },
  },
  {
    id: "lifetime.invalid",
    title: "times that are none",
    requirement:
      "A `ttl` or `idleTimeout` of zero, below, in fractions, as text or above 30 days is `invalid_argument`.",
    async run({ open }) {
      for (const name of ["ttl", "idleTimeout"] as const) {
        for (const value of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "1h", DAYS_30 + 1]) {
          const options: object = { [name]: value };
          const error = await refuses("invalid_argument", `${name} ${value}`, () => open(options as SandboxOptions));
          includes(error.message, name, "the error");
        }
      }
      await refuses("invalid_argument", "a ttl for a sandbox that is made", () => open({ id: "some-sandbox", ttl: 1 }));
    },
  },
];
