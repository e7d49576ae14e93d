import { afterAll, beforeAll, expect, test } from "vitest";
import { createDockerSandbox } from "../../../../src/sandbox/backends/docker.js";
import { egressInternals } from "../../../../src/sandbox/egress/open-egress.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { type Origin, startOrigin } from "../../../support/egress/origin.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";

const NAME = "api.example.com";
let origin: Origin;

describeUnless(whyNoDocker(BUSYBOX), "network rules, in a container", {}, () => {
  beforeAll(async () => {
    await useEngine(BUSYBOX);
    origin = await startOrigin();
    egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: () => true };
  }, SET_UP_LIMIT);
  afterAll(() => {
    origin?.close();
    delete egressInternals.route;
  });

  test("let through what they allow, and nothing else", async () => {
    const network = { allow: [{ host: NAME, port: origin.port, methods: ["GET"], paths: ["/v1/**"] }] };
    await using sandbox = await createDockerSandbox({ image: BUSYBOX, network });
    const get = async (path: string): Promise<string> => {
      const argv = ["wget", "-q", "-O", "-", `http://${NAME}:${origin.port}${path}`];
      const { stdout, stderr } = await sandbox.exec({ argv });
      return stdout + stderr;
    };
    expect(await get("/v1/x")).toBe("hello GET    ");
    expect(await get("/v2/x")).toContain("403");
    const place = `${NAME}:${origin.port}`;
    const script = `printf 'DELETE http://${place}/v1/x HTTP/1.1\\r\\nHost: ${place}\\r\\n\\r\\n' | nc 127.0.0.1 3128`;
    expect((await sandbox.shell(script)).stdout).toMatch(/^HTTP\/1\.1 403 /);
    expect(origin.requests.map(({ method, url }) => `${method} ${url}`)).toEqual(["GET /v1/x"]);
  });
});
