import { describeEndToEnd } from "../support/harness/end-to-end.js";
import { createLocalHarness } from "../support/local/harness.js";

describeEndToEnd("local", undefined, async () => {
  const { host, census } = createLocalHarness("local", () => ({}));
  return {
    options: { sandboxType: "local" },
    hasGit: true,
    left: async () => (await census?.()) ?? ["?"],
    sever: async (sandbox) => await host?.sever?.(sandbox as never),
  };
});
