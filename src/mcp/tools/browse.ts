import * as is from "../../util/schema.js";
import { type AnswerStyle, bounded } from "../answer.js";
import { defineTool, READS, type Tool } from "../tool.js";
import { firstThatFit } from "./first-that-fit.js";

const SEARCH_TIME = 30_000;

interface ListInput {
  path?: string;
}
interface SearchInput {
  pattern: string;
  path?: string;
  glob?: string;
  literal?: boolean;
}

/** The tools that look around: `file_list` and `file_search`. */
export function browseTools(style: AnswerStyle): Tool[] {
  return [
    defineTool<ListInput>({
      name: "file_list",
      title: "List a directory",
      description: "List the entries of a directory with their kinds and sizes.",
      input: is.object<ListInput>({ path: is.noted(is.path, { description: "Default: the work directory." }) }),
      output: {
        type: "object",
        required: ["entries"],
        properties: {
          entries: {
            type: "array",
            items: {
              type: "object",
              properties: { name: { type: "string" }, type: { type: "string" }, size: { type: "integer" } },
            },
          },
          truncated: { type: "boolean" },
        },
      },
      isText: false,
      hints: READS,
      usesSandbox: true,
      async run({ path = "." }, call) {
        const sandbox = await call.sandbox();
        const all = await sandbox.listDirectory(path, { details: true, signal: call.signal });
        const listed = all.map(({ name, type, size }) => ({ name, type, size }));
        // As JSON they take more room than as text.
        const entries = firstThatFit(listed, (entry) => Buffer.byteLength(JSON.stringify(entry)) + 1, style.maxOutput);
        const lines = entries.map(({ name, type, size }) =>
          type === "file" ? `${name}  ${size}` : `${name}${MARKS[type]}`,
        );
        const more = all.length - entries.length;
        const text = lines.join("\n") + (more > 0 ? `\n[${more} more; exec with ls -A shows all]` : "");
        return { text: bounded(text || "it is empty", style), fields: { entries, truncated: more > 0 } };
      },
    }),
    defineTool<SearchInput>({
      name: "file_search",
      title: "Search in files",
      description: "Search the files of a directory for a regular expression (grep -E). Answers with path:line:text.",
      input: is.object<SearchInput>({
        pattern: is.required(is.noted(is.text, { description: "An extended regular expression." })),
        path: is.noted(is.path, { description: "A directory or file. Default: the work directory." }),
        glob: is.noted(is.text, { description: "Only files with names like this, for example *.ts." }),
        literal: is.noted(is.flag, { description: "Take the pattern as it is, not as an expression.", default: false }),
      }),
      output: {
        type: "object",
        required: ["matches"],
        properties: { matches: { type: "string" }, truncated: { type: "boolean" } },
      },
      isText: false,
      hints: READS,
      usesSandbox: true,
      async run({ pattern, path = ".", glob, literal = false }, call) {
        const sandbox = await call.sandbox();
        const options = ["-rnI", literal ? "-F" : "-E", ...(glob === undefined ? [] : [`--include=${glob}`])];
        const { exitCode, stdout, stderr, truncated, timedOut } = await sandbox.exec({
          argv: ["grep", ...options, "-e", pattern, "--", path],
          timeout: SEARCH_TIME,
          maxOutput: style.maxOutput,
          signal: call.signal,
        });
        const note = timedOut ? "\n[the search took too long]" : exitCode > 1 ? `\n${stderr}` : "";
        const matches = bounded(stdout, style);
        return {
          text: (matches || "nothing found") + bounded(note, style),
          fields: { matches, truncated: truncated.stdout || timedOut },
        };
      },
    }),
  ];
}

const MARKS = { directory: "/", symlink: " (link)", other: " (other)", file: "" };
