import { toSandboxError } from "../../../contracts/errors.js";
import type { SandboxOptions } from "../../../contracts/sandbox.js";
import { loadUserConfig, policiesInForce, underPolicy, userConfigPath } from "../../sandbox/host.js";
import {
  backendOf,
  chooseBackend,
  type OpenOptions,
  WORKSPACE,
  withPreferredWorkDir,
  withUserConfig,
} from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import { UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";
import { formatTable } from "../terminal.js";

/** A setting, and where its value comes from. */
interface EffectiveValue {
  readonly name: string;
  readonly value: unknown;
  readonly from: string;
}

const LIMITS = ["memory", "cpus", "pids", "disk"] as const;

/** `glovebox config [path]`: what new sandboxes get unless flags say otherwise. */
export async function run({ flags, operands, screen }: Invocation): Promise<number> {
  const [what] = operands;
  const path = userConfigPath();
  if (what === "path") {
    if (flags.has("json")) await screen.printJson({ path });
    else await screen.print(`${toInertLine(path)}\n`);
    return 0;
  }
  if (what !== undefined) throw new UsageError(`config has no action "${what}"`, "glovebox config, or config path");
  const [config, policies] = [await loadUserConfig(), await policiesInForce()];
  const { values, refused } = await effectiveValues(
    flags.text("backend"),
    config?.path,
    policies.map((each) => each.path),
  );
  if (flags.has("json")) {
    await screen.printJson({ path, exists: config !== undefined, policies, values, ...(refused && { refused }) });
    return refused === undefined ? 0 : 1;
  }
  const { bold, dim, bad } = screen.style;
  const rows = values.map(({ name, value, from }) => [name, toInertLine(shown(value)), dim(toInertLine(from))]);
  const files = [
    `configuration: ${config === undefined ? `none (${path})` : path}`,
    `policy: ${policies.map((each) => each.path).join(", ") || "none"}`,
  ];
  const problem = refused === undefined ? "" : `\n${bad(toInertLine(refused))}\n`;
  const table = formatTable([["setting", "value", "from"].map((title) => bold(title)), ...rows]);
  await screen.print(`${table}\n${files.map(toInertLine).join("\n")}\n${problem}`);
  return refused === undefined ? 0 : 1;
}

async function effectiveValues(
  flag: string | undefined,
  config: string | undefined,
  policies: readonly string[],
): Promise<{ values: EffectiveValue[]; refused?: string }> {
  const asked: OpenOptions = flag === undefined ? {} : { backend: flag };
  const { backend: chosen, ...configured } = await withUserConfig(asked);
  const backend = await backendOf(chosen ?? chooseBackend(process.env));
  const image = configured.image ?? backend.defaultImage;
  const given: SandboxOptions = { ...configured, ...(image !== undefined && { image }) };
  let refused: string | undefined;
  const bounded = await underPolicy(backend, given).catch((error: unknown) => {
    refused = toSandboxError(error).message;
    return given;
  });
  const none = backend.capabilities(bounded).network.includes("none") ? "none" : "full";
  const usual = await withPreferredWorkDir({ ...bounded, backend: backend.name }, WORKSPACE);
  const fromFile = config ?? "built-in";
  const fromPolicy = policies.join(", ");
  const value = (name: string, own: unknown, final: unknown, builtIn: unknown): EffectiveValue => {
    if (own !== undefined) return { name, value: own, from: fromFile };
    if (final !== undefined && final !== builtIn) return { name, value: final, from: fromPolicy };
    return { name, value: builtIn, from: "built-in" };
  };
  const ofBackend = (configured as Readonly<Record<string, object | undefined>>)[backend.name] ?? {};
  const values = [
    { name: "backend", value: backend.name, from: backendSource(flag, chosen, fromFile) },
    value("image", configured.image, bounded.image, backend.defaultImage ?? null),
    value("network", configured.network, bounded.network, backend.defaultNetwork ?? none),
    ...LIMITS.map((name) => value(`limits.${name}`, configured.limits?.[name], bounded.limits?.[name], null)),
    value("workDir", configured.workDir, undefined, usual.workDir ?? null),
    value("paths", configured.paths, undefined, "workdir"),
    value("ttl", configured.ttl, bounded.ttl, null),
    value("idleTimeout", configured.idleTimeout, undefined, null),
    ...Object.entries(ofBackend).map(([name, own]) => value(`${backend.name}.${name}`, own, undefined, null)),
  ];
  return { values, ...(refused !== undefined && { refused }) };
}

function backendSource(flag: string | undefined, chosen: string | undefined, file: string): string {
  if (flag !== undefined) return "--backend";
  if (process.env["GLOVEBOX_BACKEND"]) return "GLOVEBOX_BACKEND";
  if (chosen === undefined) return "built-in";
  return chooseBackend(process.env) === chosen && file === "built-in" ? "the environment" : file;
}

function shown(value: unknown): string {
  if (value === null) return "-";
  return typeof value === "string" ? value : JSON.stringify(value);
}
