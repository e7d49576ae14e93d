import { describe, test } from "vitest";
import { createVercelSandbox, vercel } from "../../../../src/sandbox/backends/vercel.js";
import { removeSandbox } from "../../../../src/sandbox.js";
import { testConformance } from "../../../support/test-conformance.js";
import { whyNotAtVercel } from "../../../support/vercel/harness.js";

/** The same cases against the service itself; it costs money, so it has to be asked for. */
const reason = whyNotAtVercel(process.env);

if (reason === undefined) {
  testConformance(
    {
      backend: "vercel-live",
      skips: {
        ...vercel.conformance?.skips,
        "network.none-interfaces": "the machine has an interface; what leaves by it is denied outside of it",
      },
      open: (opts = {}) => createVercelSandbox(opts),
      remove: removeSandbox,
    },
    undefined,
    { concurrent: true },
  );
} else {
  describe("conformance of vercel-live", () => {
    test("all cases", ({ skip }) => {
      skip(reason);
    });
  });
}
