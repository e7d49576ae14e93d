/** The topics of each entry point's page, in order: what a declaration is about follows from the file that it is written in. */
export const apiTopics = {
  index: [
    [
      "Open, list and remove sandboxes",
      /^src\/sandbox\/(?:open|reap|snapshots|import-archive|lifecycle|backends\/\w+\.ts)/,
    ],
    ["A sandbox", /^contracts\/sandbox\.ts/],
    ["Commands, files, limits and networks", /^contracts\/types\.ts/],
    ["Errors", /^contracts\/errors\.ts/],
    ["Executors for chat applications", /^src\/sandbox\/executor/],
    ["Options of single backends", /^src\/sandbox\/backends\//],
    ["Tasks and batches", /^src\/tasks\//],
    ["Container engines", /^contracts\/container-engine/],
    ["Backends", /^(?:contracts|src\/sandbox)\//],
    ["Small tools", /^src\/util\//],
  ],
  harness: [
    ["Run a blueprint", /^src\/harness\/(?:run\/|engine\.ts|types\/(?:run-types|exit-codes))/],
    ["Stored runs", /^src\/harness\/store\//],
    ["Blueprints", /^src\/harness\/(?:blueprint\/|needs|types\/blueprint)/],
    ["Nodes", /^src\/harness\/(?:nodes|node-types\/(?:node-base|context))/],
    ["Agents", /^src\/harness\/(?:agents|node-types\/agent)/],
    ["Reports and events", /^src\/harness\/(?:report\/|github\/|node-types\/)/],
  ],
  "sandbox/backend": [
    ["The contract", /^contracts\//],
    ["The guest", /^src\/sandbox\/guest/],
    ["Git", /^src\/sandbox\/git/],
    ["Snapshots in the ledger", /^src\/ledger/],
  ],
};

/** The names of long pages that the import line shows. */
export const MAIN_NAMES = [
  "openSandbox",
  "SandboxError",
  "listSandboxes",
  "runHarness",
  "defineBlueprint",
  "runConformance",
  "GuestDriver",
  "createOperations",
];
