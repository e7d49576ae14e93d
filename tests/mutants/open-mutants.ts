import { SandboxError } from "../../contracts/errors.js";
import type { Limits, NetworkRule } from "../../contracts/types.js";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import { change } from "../support/change.js";
import type { OpenMutant } from "./opened.js";

type Mutate = OpenMutant["mutate"];

/** Opens with other options than it was asked for. */
function withOptions(alter: (opts: SandboxOptions) => SandboxOptions): Mutate {
  return (open) => (opts) => open(alter(opts));
}

/** Gives something else for a sandbox that is reopened, or for a second handle. */
function reopened(alter: (again: Sandbox, opened: readonly Sandbox[]) => Sandbox): Mutate {
  return (open) => {
    const opened: Sandbox[] = [];
    return async (opts) => {
      const sandbox = await open(opts);
      if (opts.id !== undefined) return alter(sandbox, opened);
      opened.push(sandbox);
      return sandbox;
    };
  };
}

function withoutRequests(rule: string | NetworkRule): string | NetworkRule {
  if (typeof rule === "string") return rule;
  const { host, port } = rule;
  return { host, ...(port !== undefined && { port }) };
}

function without(limit: keyof Limits): Mutate {
  return withOptions(({ limits, ...opts }) => ({ ...opts, limits: { ...limits, [limit]: undefined } }));
}

/** Mutants of `openSandbox`: names, second handles, what is kept, where it works, limits. */
export const openMutants: readonly OpenMutant[] = [
  {
    name: "gives one name to two sandboxes",
    caught: "names.find",
    because: /^a second one with the name: expected conflict/,
    mutate: (open) => {
      const taken = new Set<string>();
      return ({ name, ...opts }) => {
        if (name === undefined || taken.has(name)) return open(opts);
        taken.add(name);
        return open({ ...opts, name });
      };
    },
  },
  {
    name: "forgets the labels",
    caught: "names.find",
    because: /^its name and labels: expected/,
    mutate: withOptions(({ labels: _, ...opts }) => opts),
  },
  {
    name: "cuts labels that are too long",
    caught: "names.invalid",
    because: /^the labels .*x{20}.*: expected invalid_argument/,
    mutate: withOptions((opts) => {
      const cut = Object.entries(opts.labels ?? {}).map(([key, value]) => [key, value.slice(0, 255)]);
      return opts.labels === undefined ? opts : { ...opts, labels: Object.fromEntries(cut) as Record<string, string> };
    }),
  },
  {
    name: "tears a sandbox down with its second handle",
    caught: "names.second-handle",
    because: /^The sandbox \w+ was torn down/,
    mutate: reopened((handle, opened) =>
      change(handle, {
        async teardown() {
          await handle.teardown();
          await opened.find(({ id }) => id === handle.id)?.teardown();
        },
      }),
    ),
  },
  {
    name: "ignores the options of a second handle",
    caught: "names.second-handle",
    because: /^another maxOutput: expected conflict/,
    mutate: withOptions(({ maxOutput, ...opts }) =>
      opts.id === undefined && maxOutput !== undefined ? { ...opts, maxOutput } : opts,
    ),
  },
  {
    name: "answers through a handle whose sandbox is gone",
    caught: "names.handle-ends",
    because: /^the handle after the owner's teardown: expected closed/,
    mutate: (open) => {
      let last: Awaited<ReturnType<Sandbox["exec"]>> | undefined;
      return async (opts) => {
        const sandbox = await open(opts);
        const exec = async (given: Parameters<Sandbox["exec"]>[0]): ReturnType<Sandbox["exec"]> => {
          const made = sandbox.exec(given).catch((error: unknown) => {
            if (last === undefined) throw error;
            return last;
          });
          last = await made;
          return last;
        };
        return opts.id === undefined ? sandbox : change(sandbox, { exec: exec as Sandbox["exec"] });
      };
    },
  },
  {
    name: "keeps only the work directory",
    caught: "keep.all",
    because: /cat: .*No such file|what it was made with/,
    mutate: withOptions((opts) => (opts.keep === "all" ? { ...opts, keep: true } : opts)),
  },
  {
    name: "does not say which variables are missing",
    caught: "keep.env-names",
    because: /^heard \[\]/,
    mutate: withOptions(({ onEvent: _, ...opts }) => opts),
  },
  {
    name: "keeps the values of variables",
    caught: "keep.env-names",
    because: /^heard |^the values of this call only: expected/,
    mutate: (open) => {
      let kept: SandboxOptions["env"] = {};
      return (opts) => {
        kept = { ...kept, ...opts.env };
        return open(opts.id === undefined ? opts : { ...opts, env: kept });
      };
    },
  },
  {
    name: "works where it likes",
    caught: "workdir.place",
    because: /^workDir: expected/,
    mutate: withOptions(({ workDir: _, ...opts }) => opts),
  },
  {
    name: "takes another place for a kept sandbox",
    caught: "workdir.kept",
    because: /^another place: expected invalid_argument/,
    mutate: withOptions(({ workDir, ...opts }) =>
      opts.id === undefined && workDir !== undefined ? { ...opts, workDir } : opts,
    ),
  },
  {
    name: "puts a fork somewhere else",
    caught: "workdir.fork",
    because: /^workDir: expected/,
    mutate: (open) => async (opts) => {
      const sandbox = await open(opts);
      const fork = async (): Promise<Sandbox> =>
        await open({ snapshot: await sandbox.snapshot(), workDir: "/elsewhere" });
      return change(sandbox, { fork: fork as Sandbox["fork"] });
    },
  },
  {
    name: "puts the files of a snapshot somewhere else",
    caught: "workdir.snapshot",
    because: /^workDir: expected/,
    mutate: withOptions((opts) => (opts.snapshot === undefined ? opts : { ...opts, workDir: "/elsewhere" })),
  },
  {
    name: "forgets the published ports of a kept sandbox",
    caught: "ports.published",
    because: /^the published ports of the reopened one: expected/,
    mutate: reopened((again) => change(again, { published: [] })),
  },
  {
    name: "forgets changed network rules",
    caught: "network.change",
    because: /^reopening it with the old rules: expected invalid_argument/,
    mutate: (open) => async (opts) =>
      change(await open(opts), {
        async setNetwork(network) {
          if ((network as unknown) === "full") throw new SandboxError("unsupported", "full");
          if (network !== "none" && network.allow[0] === "*")
            throw new SandboxError("invalid_argument", "network.allow[0]");
        },
      }),
  },
  {
    name: "takes rules for requests, and allows the whole host",
    caught: "network.rules",
    because: /^what reached the host: expected/,
    mutate: withOptions(({ network, ...opts }) =>
      typeof network === "object"
        ? { ...opts, network: { allow: network.allow.map((rule) => withoutRequests(rule)) } }
        : opts,
    ),
  },
  {
    name: "puts the values of secrets into the environment",
    caught: "secrets.outside",
    because: /^the value is in the environment of a process/,
    mutate: withOptions(({ secrets = {}, ...opts }) => {
      const values = Object.entries(secrets).flatMap(([name, { from = {} }]) =>
        "command" in from ? [[name, from.command.at(-1) ?? ""] as const] : [],
      );
      return { ...opts, env: Object.fromEntries(values) };
    }),
  },
  {
    name: "opens a sandbox without the secret whose value can't be had",
    caught: "secrets.missing",
    because: /^open with a secret from .*: expected unauthenticated/,
    mutate: withOptions(({ secrets: _, ...opts }) => opts),
  },
  {
    name: "does not remove a secret",
    caught: "secrets.change",
    because: /^the variable of a removed secret: expected/,
    mutate: (open) => async (opts) => {
      const sandbox = await open(opts);
      return change(sandbox, {
        async setSecrets(secrets) {
          if (Object.keys(secrets).length > 0) await sandbox.setSecrets(secrets);
        },
      });
    },
  },
  {
    name: "takes a disk limit and enforces none",
    caught: "limits.disk",
    because: /^a command wrote 128 MiB of 32|^open with limits.disk: expected unsupported/,
    mutate: without("disk"),
  },
  {
    name: "takes a memory limit and enforces none",
    caught: "limits.memory",
    because: /^a command took 512 MiB of 128|^open with limits.memory: expected unsupported/,
    mutate: without("memory"),
  },
  {
    name: "lets commands start as many processes as the machine has",
    caught: "limits.pids-default",
    because: /^commands may start/,
    mutate: withOptions((opts) => ({ ...opts, limits: { ...opts.limits, pids: 1_000_000 } })),
  },
];
