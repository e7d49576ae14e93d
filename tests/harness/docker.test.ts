import { BUSYBOX, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { createDockerHarness } from "../support/docker/harness.js";
import { describeEndToEnd } from "../support/harness/end-to-end.js";

describeEndToEnd("docker", whyNoDocker(BUSYBOX), async () => {
  const DOCKER_HOST = await useEngine(BUSYBOX);
  const { host, census } = createDockerHarness("docker", () => ({}));
  return {
    options: { sandboxType: "docker" },
    sandbox: { image: BUSYBOX },
    hasGit: false,
    env: { DOCKER_HOST },
    left: async () => (await census?.()) ?? ["?"],
    sever: async (sandbox) => await host?.sever?.(sandbox as never),
  };
});
