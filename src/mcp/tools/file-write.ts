import { SandboxError } from "../../../contracts/errors.js";
import * as is from "../../util/schema.js";
import { CHANGES, defineTool, type Tool } from "../tool.js";

interface FileWriteInput {
  path: string;
  content: string;
  encoding?: "utf8" | "base64";
}

/** The tool `file_write`: writes a file, whole or not at all. */
export function fileWriteTool(): Tool {
  return defineTool<FileWriteInput>({
    name: "file_write",
    title: "Write a file",
    description: "Write a file, replacing what is there. Makes directories as needed.",
    input: is.object<FileWriteInput>({
      path: is.required(is.noted(is.path, { description: "Absolute, or relative to the work directory." })),
      content: is.required(is.string()),
      encoding: is.noted(is.oneOf("utf8", "base64"), { description: "How content is written.", default: "utf8" }),
    }),
    output: {
      type: "object",
      required: ["path", "bytes"],
      properties: { path: { type: "string" }, bytes: { type: "integer" } },
    },
    isText: false,
    hints: { ...CHANGES, idempotent: true },
    usesSandbox: true,
    async run({ path, content, encoding = "utf8" }, call) {
      const bytes = Buffer.from(content, encoding);
      if (encoding === "base64" && bytes.toString("base64").replace(/=+$/, "") !== content.replace(/\s|=+\s*$/g, "")) {
        throw new SandboxError("invalid_argument", "content is not base64", { hint: 'for text use encoding "utf8"' });
      }
      const sandbox = await call.sandbox();
      await sandbox.writeFile(path, bytes, { signal: call.signal });
      return { text: `wrote ${bytes.length} bytes to ${path}`, fields: { path, bytes: bytes.length } };
    },
  });
}
