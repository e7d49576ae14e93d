import { expect, test } from "vitest";
import type { PlannedContainer } from "../../../../contracts/container-engine.js";
import { arrange } from "../../../../src/sandbox/backends/kubernetes/tasks/arrange.js";
import { expectRefused } from "../../../support/refused.js";

const network = { name: "net", internal: true };

function container(hostname: string, more: Partial<PlannedContainer> = {}): PlannedContainer {
  return {
    ...{ name: hostname, hostname, image: "busybox", user: "", workingDir: "", env: {}, limits: {} },
    ...{ isService: hostname !== "agent", command: undefined },
    ...more,
  };
}

/** The services with these variables or commands, and the agent. */
function order(services: Readonly<Record<string, Readonly<Record<string, string>> | string>>): unknown {
  const made = Object.entries(services).map(([name, use]) =>
    container(name, typeof use === "string" ? { command: ["/bin/sh", "-c", use] } : { env: use }),
  );
  return arrange([container("agent"), ...made], network);
}

test("services that don't name each other start at the same time, and the agent after them", () => {
  expect(order({ db: {}, cache: {} })).toEqual([["db", "cache"], ["agent"]]);
  expect(arrange([container("agent")])).toEqual([["agent"]]);
});

test.each([
  ["an address", { URL: "postgres://me:secret@db:5432/x" }],
  ["a URL without a port", { URL: "http://db/path" }],
  ["a name with a port", { BACKENDS: "one=1,db:5432" }],
  ["a variable for a host", { PGHOST: "db" }],
  ["a list of hosts", { KAFKA_BROKERS: "x, db" }],
  ["its command", "sleep 1; psql -h db"],
  ["an address in its command", 'wget "http://db:80/"'],
])("a service that names another in %s starts after it", (_, use) => {
  expect(order({ web: use, db: {} })).toEqual([["db"], ["web"], ["agent"]]);
});

test.each([
  ["a part of a word", { URL: "http://dbx:1", FILE: "/srv/db.txt" }],
  ["a variable for something else", { POSTGRES_DB: "db" }],
])("%s names no service", (_, use) => {
  expect(order({ web: use, db: {} })).toEqual([["web", "db"], ["agent"]]);
});

test("a word in a command that would close a circle is no name", () => {
  expect(order({ app: { PGHOST: "db" }, db: "create app" })).toEqual([["db"], ["app"], ["agent"]]);
});

test("chains are followed, and dots in names are dots", () => {
  expect(order({ a: { NEXT_HOST: "b" }, b: { NEXT_HOST: "c.local" }, "c.local": {} })).toEqual([
    ["c.local"],
    ["b"],
    ["a"],
    ["agent"],
  ]);
  expect(order({ a: { NEXT_HOST: "cxlocal" }, "c.local": {} })).toEqual([["a", "c.local"], ["agent"]]);
});

test.each([
  ["two that need each other", { a: { HOST: "b" }, b: { HOST: "a" } }, '"a" reaches "b"'],
  ["one that needs the agent", { a: { CALLBACK_URL: "http://agent:8080" } }, '"a" reaches "agent"'],
])("%s are refused", async (_, services, what) => {
  await expectRefused((async () => order(services))(), "unsupported", what, "started before it");
});

test("limits and users that a pod can't have are refused", async () => {
  const refused = (more: Partial<PlannedContainer>): Promise<unknown> =>
    (async () => arrange([container("agent", more)], network))();
  await expectRefused(refused({ limits: { pids: 10 } }), "unsupported", "limits.pids 10");
  await expectRefused(refused({ user: "postgres" }), "unsupported", '"postgres"');
  await refused({ user: "999:999", limits: { memory: 1 << 30, cpus: 1 } });
});
