import { startFakeDaytona } from "../fakes/daytona/server.js";
import { createDaytonaHarness } from "../support/daytona/harness.js";
import { setEnv } from "../support/daytona/service.js";
import { describeEndToEnd } from "../support/harness/end-to-end.js";

describeEndToEnd("daytona", undefined, async () => {
  const service = await startFakeDaytona();
  const env = { DAYTONA_API_URL: service.apiUrl, DAYTONA_API_KEY: service.apiKey };
  const restore = setEnv(env);
  const { host } = createDaytonaHarness("daytona", service);
  return {
    options: { sandboxType: "daytona", repo: "acme/widgets" },
    hasGit: true,
    env,
    left: async () => [...service.sandboxes.keys()],
    sever: async (sandbox) => await host?.sever?.(sandbox as never),
    close: async () => {
      restore();
      await service.close();
    },
  };
});
