import { listSandboxes, type SandboxInfo } from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import type { Invocation } from "../invocation.js";
import { namingOf } from "../sandbox-options.js";
import { formatTable } from "../terminal.js";

/** `glovebox ls`. */
export async function run({ flags, screen }: Invocation): Promise<number> {
  const only = flags.text("backend");
  const naming = namingOf(flags);
  const isFiltered = only !== undefined || Object.keys(naming).length > 0;
  const sandboxes = (await listSandboxes(naming)).filter(({ backend }) => only === undefined || backend === only);
  if (flags.has("json")) await screen.printJson(sandboxes);
  else if (flags.has("quiet")) await screen.print(referencesOf(sandboxes, flags.has("names")));
  else if (sandboxes.length === 0) {
    await screen.printNote(
      isFiltered ? "there is no such sandbox; glovebox ls lists them all" : "there are no sandboxes",
    );
  } else {
    const columns = COLUMNS.filter(({ of, isRare }) => isRare !== true || sandboxes.some((each) => of(each) !== ""));
    const rows = sandboxes.map((sandbox) => columns.map(({ of }) => toInertLine(of(sandbox))));
    const head = columns.map(({ title }) => screen.style.bold(title));
    await screen.print(formatTable([head, ...rows]));
  }
  return 0;
}

interface Column {
  readonly title: string;
  /** Whether it is shown only if a sandbox has something there. */
  readonly isRare?: boolean;
  of(sandbox: SandboxInfo): string;
}

const COLUMNS: readonly Column[] = [
  { title: "ID", of: ({ id }) => id },
  { title: "NAME", isRare: true, of: ({ name = "" }) => name },
  { title: "STATE", of: useOf },
  { title: "BACKEND", of: ({ backend = "" }) => backend },
  { title: "CREATED", of: ({ createdAt = "" }) => createdAt },
  { title: "EXPIRES", of: ({ expiresAt = "" }) => expiresAt },
  { title: "DIRECTORY", of: ({ hostDir, workDir = "" }) => hostDir ?? workDir },
  {
    title: "LABELS",
    isRare: true,
    of: ({ labels = {} }) =>
      Object.entries(labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(","),
  },
];

function referencesOf(sandboxes: readonly SandboxInfo[], withNames: boolean): string {
  const named = sandboxes.flatMap(({ id, name }) => (withNames && name !== undefined ? [id, name] : [id]));
  return named.map((each) => `${each}\n`).join("");
}

function useOf({ state, alive }: SandboxInfo): string {
  if (state === "damaged") return "damaged";
  if (alive) return "in use";
  return state === "kept" ? "kept" : "left over";
}
