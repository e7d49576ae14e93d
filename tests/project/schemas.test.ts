import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { reportSchema } from "../../src/harness/report/report-schema.js";
import { BLUEPRINT_SCHEMA } from "../../src/harness.js";
import { NETWORK_EVENT_SCHEMA } from "../../src/sandbox/egress/traffic/network-event.js";
import { CONFIG_SCHEMA } from "../../src/sandbox/settings/config-schema.js";
import { POLICY_SCHEMA } from "../../src/sandbox/settings/policy-schema.js";
import { TASK_FILE_SCHEMA } from "../../src/tasks/task-file.js";
import { type JsonSchema, toJsonSchema } from "../../src/util/schema.js";

const PUBLISHED: Readonly<Record<string, JsonSchema>> = {
  blueprint: BLUEPRINT_SCHEMA,
  config: toJsonSchema(CONFIG_SCHEMA),
  "network-event": toJsonSchema(NETWORK_EVENT_SCHEMA),
  policy: toJsonSchema(POLICY_SCHEMA),
  report: toJsonSchema(reportSchema),
  "task-file": toJsonSchema(TASK_FILE_SCHEMA),
};

/** `npm run schemas` writes what is missing here. */
test.each(Object.entries(PUBLISHED))("schemas/%s.schema.json is what the code prints", (name, schema) => {
  const file = fileURLToPath(new URL(`../../schemas/${name}.schema.json`, import.meta.url));
  if (process.env["UPDATE_SCHEMAS"] === "1") writeFileSync(file, `${JSON.stringify(schema, undefined, 2)}\n`);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(schema);
});
