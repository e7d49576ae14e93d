import { describeEndToEnd } from "./support/end-to-end.js";
import { createLocalHarness } from "./support/local-harness.js";

describeEndToEnd("local", undefined, async () => {
  const { host } = createLocalHarness("local", () => ({}));
  return {
    options: { sandboxType: "local" },
    hasGit: true,
    sever: async (sandbox) => await host?.sever?.(sandbox as never),
  };
});
