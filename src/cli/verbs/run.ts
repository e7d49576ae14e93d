import { readFileSync } from "node:fs";
import type { NetworkPolicy } from "../../../contracts/types.js";
import { formatSecrets, type HarnessOptions, type InstallStep, prepareRun, runHarness } from "../../harness.js";
import { entryText } from "../../sandbox/host.js";
import { WORKSPACE } from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import { showCommand } from "../../util/shell.js";
import { parseWord, UsageError } from "../commands.js";
import type { Flags, Invocation } from "../invocation.js";
import { networkOf } from "../network-flag.js";
import { limitsOf, withRunDefaults } from "../runs/run-options.js";
import { namingOf, secretsOf } from "../sandbox-options.js";
import { tokenFor } from "../token.js";
import { environmentFailure, followRun } from "./run-view/follow-run.js";

/** `glovebox run <blueprint>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, screen } = invocation;
  try {
    const options = await withRunDefaults(await withSecrets(invocation, await optionsOf(invocation)));
    if (!flags.has("dry-run")) return await followRun(invocation, (more) => runHarness({ ...options, ...more }));
    const { plan, blueprint, warnings } = await prepareRun(options);
    const nodes = blueprint.nodes.map(({ id, kind }) => ({ id, kind }));
    const { installs = [], copies = [] } = plan;
    const { repo, branch, backend, baseCommit, push, sandbox } = plan;
    if (flags.has("json"))
      await screen.printJson({
        blueprint: blueprint.name,
        repo,
        branch,
        backend,
        baseCommit,
        push,
        sandbox,
        ...(copies.length > 0 && { copies }),
        ...(plan.secrets && { secrets: plan.secrets }),
        installs,
        nodes,
        warnings,
      });
    else {
      const lines = [
        `${blueprint.name} on ${repo} (${baseCommit?.slice(0, 12) ?? "its default branch"}), sandbox ${backend}`,
        `  network: ${describeNetwork(sandbox.network)}`,
        ...(plan.secrets === undefined ? [] : [`  secrets: ${formatSecrets(plan.secrets)}`]),
        ...copies.map((path) => `  copy in ${path}`),
        ...installs.map(describeInstall),
        ...nodes.map(({ id, kind }, at) => `  ${at + 1}. ${id} (${kind})`),
        push ? `then push ${branch} and open a pull request` : `then keep the changes in the run's directory`,
        ...warnings.map((warning) => `warning: ${warning}`),
      ];
      await screen.print(`${lines.map(toInertLine).join("\n")}\n`);
    }
    return 0;
  } catch (error) {
    return await environmentFailure(invocation, error, "run");
  }
}

function describeNetwork(network: NetworkPolicy = "none"): string {
  if (typeof network === "string") return network;
  const { allow, deny = [] } = network;
  return [...allow.map(entryText), ...deny.map((entry) => `not ${entryText(entry)}`)].join(", ");
}

function describeInstall({ run: argv, lockfile, reach }: InstallStep): string {
  const from = lockfile === undefined ? "" : ` (${lockfile})`;
  const hosts = reach.length === 0 ? "" : `; until it is done, it reaches ${reach.join(", ")}`;
  return `  install: ${showCommand(argv)}${from}${hosts}`;
}

async function optionsOf({ flags, operands }: Invocation): Promise<HarnessOptions> {
  const blueprint = operands[0] ?? flags.text("blueprint");
  if (blueprint === undefined) throw new UsageError("run needs a blueprint", "glovebox blueprints lists the names");
  if (operands[0] !== undefined && flags.has("blueprint")) {
    throw new UsageError("the blueprint is given twice", "remove --blueprint");
  }
  const repo = flags.text("repo") ?? ".";
  const limits = limitsOf(flags);
  const inputs = Object.fromEntries(flags.texts("input").map(parseInput));
  const image = flags.text("image");
  const sandbox = {
    ...(image !== undefined && { image }),
    ...text(flags, "work-dir", "workDir"),
    ...namingOf(flags),
  };
  return {
    blueprint,
    repo,
    intent: intentOf(flags),
    push: flags.has("push"),
    draft: flags.has("draft"),
    trust: flags.has("trust"),
    ...(flags.has("push-on") && {
      pushOn: parseWord("--push-on", flags.text("push-on") ?? "", ["success", "limit", "always"]),
    }),
    ...(flags.has("pr-with") && { prWith: parseWord("--pr-with", flags.text("pr-with") ?? "", ["rest", "gh"]) }),
    ...(flags.has("keep") && { keep: parseWord("--keep", flags.text("keep") ?? "", ["never", "failed", "always"]) }),
    ...text(flags, "backend", "sandboxType"),
    ...text(flags, "run-id", "runId"),
    ...text(flags, "spec", "specPath"),
    ...text(flags, "ref", "ref"),
    ...text(flags, "branch", "branch"),
    ...text(flags, "base", "base"),
    ...text(flags, "agent", "agent"),
    ...text(flags, "model", "model"),
    ...text(flags, "from", "from"),
    ...text(flags, "until", "until"),
    ...text(flags, "out", "out"),
    ...(await networkOf(flags)),
    ...(flags.has("no-install") && { install: false }),
    ...(flags.has("copy") && { copy: flags.texts("copy") }),
    ...(Object.keys(sandbox).length > 0 && { sandbox }),
    preferredWorkDir: WORKSPACE,
    ...(Object.keys(inputs).length > 0 && { inputs }),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...tokenFor(repo, process.env),
  };
}

async function withSecrets({ flags }: Invocation, options: HarnessOptions): Promise<HarnessOptions> {
  return flags.has("secret") ? { ...options, sandbox: { ...options.sandbox, ...(await secretsOf(flags)) } } : options;
}

function intentOf(flags: Flags): string {
  const [intent, file] = [flags.text("intent"), flags.text("intent-file")];
  if (intent !== undefined && file !== undefined) {
    throw new UsageError("--intent and --intent-file exclude each other", "remove one of them");
  }
  if (intent !== undefined) return intent;
  if (file === undefined) throw new UsageError("run needs --intent <text>", 'for example -m "fix the login"');
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new UsageError(`cannot read --intent-file ${file}: ${(error as Error).message}`, "name a text file");
  }
}

function parseInput(text: string): [string, string] {
  const separator = text.indexOf("=");
  if (separator > 0) return [text.slice(0, separator), text.slice(separator + 1)];
  throw new UsageError(`--input takes name=value, not "${text}"`, "for example --input issue=12");
}

function text<K extends string>(flags: Flags, flag: string, option: K): { [P in K]?: string } {
  const value = flags.text(flag);
  return value === undefined ? {} : ({ [option]: value } as { [P in K]?: string });
}
