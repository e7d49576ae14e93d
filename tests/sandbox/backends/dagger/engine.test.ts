import { existsSync, readFileSync } from "node:fs";
import { buildSchema, isObjectType } from "graphql";
import { describe, expect, test } from "vitest";
import { startDaggerEngine } from "../../../fakes/dagger/engine.js";
import { SCHEMA } from "../../../fakes/dagger/schema.js";
import { useDaggerPlace } from "../../../support/dagger/place.js";

const place = useDaggerPlace();
const BASE = 'container { from (address: "debian:stable-slim")';

interface Answer {
  status: number;
  data: unknown;
  message: string;
}

/** Asks the stand-in as the SDK would, or as nobody should. */
async function ask(query: string, { port, token } = place.engine): Promise<Answer> {
  const authorization = `Basic ${Buffer.from(`${token}:`).toString("base64")}`;
  const response = await fetch(`http://127.0.0.1:${port}/query`, {
    method: "POST",
    headers: { authorization },
    body: JSON.stringify({ query }),
  });
  const { data, errors = [] } = (await response.json()) as { data: unknown; errors?: { message: string }[] };
  return { status: response.status, data, message: errors.map(({ message }) => message).join("; ") };
}

/** The last value of an answer that is a single chain. */
function leaf({ data, message }: Answer): string {
  if (message !== "") throw new Error(message);
  let at = data;
  while (typeof at === "object" && at !== null) [at] = Object.values(at);
  return String(at);
}

const idOf = async (chain: string): Promise<string> => leaf(await ask(chain));

describe("the schema of the stand-in", () => {
  const schema = buildSchema(SCHEMA);

  test("has only fields that the installed SDK knows, with the arguments that it sends", () => {
    const entry = new URL("api/client.gen.js", import.meta.resolve("@dagger.io/dagger"));
    const classes = readFileSync(entry, "utf8").split(/^export class /m);
    let compared = 0;
    for (const type of Object.values(schema.getTypeMap()).filter(isObjectType)) {
      if (type.name.startsWith("__")) continue;
      const name = type.name === "Query" ? "Client" : type.name;
      const text = classes.find((one) => one.startsWith(`${name} extends`)) ?? "";
      const known = new Map(
        [...text.matchAll(/\.select\("(\w+)"(?:, \{([^}]*))?/g)].map(([, field = "", args = ""]) => [field, args]),
      );
      for (const field of Object.values(type.getFields())) {
        const args = known.get(field.name);
        expect(args, `${type.name}.${field.name}`).toBeDefined();
        const own = field.args.map((arg) => arg.name);
        // What is optional comes from an object of options, whose names are in the comments.
        for (const arg of (args ?? "")
          .split(/[\s,]+/)
          .filter((word) => /^\w+$/.test(word) && !/^(opts|metadata)$/.test(word))) {
          if (arg !== "__metadata") expect(own, `${type.name}.${field.name}`).toContain(arg);
        }
        compared += 1;
      }
    }
    expect(compared).toBeGreaterThan(150);
  });

  test.each([
    ["no query", "{ container { from(", "Syntax Error"],
    [
      "an unknown field",
      `{ ${BASE} { withNothing { sync } } } }`,
      'Cannot query field "withNothing" on type "Container"',
    ],
    ["a missing argument", "{ container { from { sync } } }", 'argument "address" of type "String!" is required'],
    ["an unknown argument", '{ container { from (address: "x", tag: "y") { sync } } }', 'Unknown argument "tag"'],
    ["a wrong type", "{ container { from (address: 7) { sync } } }", "String cannot represent a non string value: 7"],
    ["a text for an enum", `{ ${BASE} { withExec (args: ["true"], expect: "ANY") { sync } } } }`, "ReturnType"],
    ["an unknown value of an enum", `{ ${BASE} { withExec (args: ["true"], expect: SOME) { sync } } } }`, "SOME"],
    ["an object without its fields", "{ container }", "must have a selection of subfields"],
    ["a type that a node cannot be", '{ node (id: "x") { ... on Nothing { id } } }', 'Unknown type "Nothing"'],
  ])("%s is refused before anything is done", async (_, query, word) => {
    const before = place.engine.graph.ran.length;
    const { status, message } = await ask(query);
    expect({ status, message }).toEqual({ status: 422, message: expect.stringContaining(word) });
    expect(place.engine.graph.ran.length).toBe(before);
  });

  test("an id is one of the type that is asked for, and an argument that would have no effect is refused", async () => {
    const directory = await idOf("{ directory { id } }");
    const wrong = await ask(`{ ${BASE} { withFile (path: "/x", source: "${directory}") { sync } } } }`);
    expect(wrong.message).toContain("expected an ID of File for source, got one of Directory");
    expect((await ask('{ node (id: "aGFuZGxlOjk5OTk5") { id } }')).message).toContain("missing shared result");
    const ignored = await ask(
      `{ ${BASE} { withDirectory (path: "/x", source: "${directory}", exclude: ["*"]) { sync } } } }`,
    );
    expect(ignored.message).toContain("no argument exclude of Container.withDirectory");
  });
});

describe("the graph of the stand-in", () => {
  test("an image is known by its digest, until the container is changed", async () => {
    const reference = leaf(await ask(`{ ${BASE} { imageRef } } }`));
    expect(reference).toMatch(/^docker\.io\/library\/debian:stable-slim@sha256:[0-9a-f]{64}$/);
    expect(leaf(await ask(`{ container { from (address: "${reference}") { imageRef } } }`))).toBe(reference);
    const other = `${reference.slice(0, -64)}${"0".repeat(64)}`;
    expect((await ask(`{ container { from (address: "${other}") { sync } } }`)).message).toContain("not found");
    const changes = [
      'withEnvVariable (name: "A", value: "b")',
      'withExec (args: ["true"])',
      'withWorkdir (path: "/x")',
    ];
    for (const change of changes) {
      const { message } = await ask(`{ ${BASE} { ${change} { imageRef } } } }`);
      expect(message).toContain("only be retrieved immediately after the 'Container.From' call");
    }
  });

  test("a container removes path after path, a directory all at once, and a mount has 440 layers at most", async () => {
    const paths = JSON.stringify(Array.from({ length: 450 }, (_, index) => `/none-${index}`));
    const { message } = await ask(`{ ${BASE} { withoutFiles (paths: ${paths}) { sync } } } }`);
    expect(message).toContain("mount options is too long");
    const rootfs = `${BASE} { rootfs { withoutFiles (paths: ${paths})`;
    expect(leaf(await ask(`{ ${rootfs} { id } } } } }`))).toMatch(/./);
  });

  test.each([
    ["/d/*", "/d", []],
    ["/d/a*", "/d", ["*", "b", "x*"]],
    ["/*/a?", "/d", ["*", "a", "a*b", "b", "x*"]],
    ["/d/a?", "/d", ["*", "a", "a*b", "ab", "b", "x*"]],
    ["/d/[*]", "/d", ["a", "a*b", "ab", "b", "x*"]],
    ["/d/x\\*", "/d", ["*", "a", "a*b", "ab", "b", "x*"]],
    ["/d", "/d", undefined],
  ])("without %s", async (pattern, directory, left) => {
    const files = ["*", "a", "a*b", "ab", "b", "x*"].map((name) => `'${name}'`).join(" ");
    const made = `${BASE} { withExec (args: ["sh", "-c", ${JSON.stringify(`mkdir /d; cd /d; touch ${files}`)}])`;
    const gone = `${made} { withoutFile (path: ${JSON.stringify(pattern)})`;
    const answer = await ask(`{ ${gone} { directory (path: "${directory}") { entries } } } } } }`);
    if (left === undefined) expect(answer.message).toContain("ENOENT");
    else
      expect(answer.data).toMatchObject({
        container: { from: { withExec: { withoutFile: { directory: { entries: left } } } } },
      });
  });

  test("a container, a service beside it and this machine have networks of their own", async ({ skip }) => {
    if (!existsSync("/usr/bin/busybox")) skip("not run: there is no busybox to serve with");
    const serve = 'args: ["sh", "-c", "echo hello > index.html; exec busybox httpd -f -p 8080"]';
    const id = await idOf(`{ ${BASE} { withExposedPort (port: 8080) { asService (${serve}) { start } } } } }`);
    const look = async (url: string): Promise<string> => {
      const args = JSON.stringify(["sh", "-c", `busybox wget -q -O - http://${url}/ || echo none`]);
      const bound = `${BASE} { withServiceBinding (alias: "web", service: "${id}")`;
      return leaf(await ask(`{ ${bound} { withExec (args: ${args}) { stdout } } } } }`));
    };
    expect(await look("web:8080")).toBe("hello\n");
    expect(await look("127.0.0.1:8080")).toBe("none\n");
    expect(await look(`127.0.0.1:${place.engine.port}`)).toBe("none\n");
  });

  test("a service that listens on its own loopback alone is never healthy", async ({ skip }) => {
    if (!existsSync("/usr/bin/busybox")) skip("not run: there is no busybox to serve with");
    await using engine = await startDaggerEngine({ healthyWithin: 500 });
    const serve = 'args: ["busybox", "httpd", "-f", "-p", "127.0.0.1:8080"]';
    const service = `${BASE} { withExposedPort (port: 8080) { asService (${serve}) { start } } } }`;
    expect((await ask(`{ ${service} }`, engine)).message).toContain("port 8080 did not answer");
  });

  test("process 1 has the environment of a command, unless none is wanted", async () => {
    const look = 'args: ["sh", "-c", "cat /proc/1/environ | tr \'\\\\0\' \' \'; cat /proc/1/comm"]';
    const run = (more: string): string =>
      `{ ${BASE} { withEnvVariable (name: "OWN", value: "seen") { withExec (${look}${more}) { stdout } } } } }`;
    expect(leaf(await ask(run("")))).toMatch(/OWN=seen .*\.init\n$/);
    expect(leaf(await ask(run(", noInit: true")))).toMatch(/OWN=seen .*sh\n$/);
  });
});
