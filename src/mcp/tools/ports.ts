import * as is from "../../util/schema.js";
import { defineTool, type Tool } from "../tool.js";

interface PortInput {
  port: number;
  wait_ms?: number;
}

const LONGEST = 30_000;

/** The tool `port_url`: the address of a server in the sandbox. */
export function portTools(): Tool[] {
  return [
    defineTool<PortInput>({
      name: "port_url",
      title: "Address of a port",
      description: "Give the URL at which the user's machine reaches a server in the sandbox.",
      input: is.object<PortInput>({
        port: is.required(is.port),
        wait_ms: is.noted(is.whole(0, LONGEST), {
          description: "Wait this long for the server to accept connections.",
          default: 0,
        }),
      }),
      output: { type: "object", required: ["url"], properties: { url: { type: "string" }, port: { type: "integer" } } },
      isText: false,
      hints: { readOnly: false, destructive: false, idempotent: true, openWorld: true },
      usesSandbox: true,
      async run({ port, wait_ms: wait = 0 }, call) {
        const sandbox = await call.sandbox();
        const url = await sandbox.url(port);
        if (wait > 0) await sandbox.waitForPort(port, { timeout: wait, signal: call.signal });
        return { text: url, fields: { url, port } };
      },
    }),
  ];
}
