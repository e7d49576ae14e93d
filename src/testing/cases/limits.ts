import type { Limits } from "../../../contracts/types.js";
import { check, equal, includes, refuses, within } from "../assert.js";
import { finishes, script, scriptArgv, until } from "../script.js";
import type { ConformanceCase } from "../types.js";

const MIB = 1024 * 1024;
/** Far more than any build needs, and less than the process ids of a machine. */
const MOST_PIDS = 16_384;

/** Skips a backend that can't enforce the limit, and checks that it refuses the option. */
function enforced(limits: Limits): Pick<ConformanceCase, "options" | "needs" | "refused"> {
  const [name] = Object.keys(limits) as (keyof Limits)[];
  return {
    options: { limits },
    needs: (capabilities) =>
      name && capabilities.limits.includes(name) ? undefined : `capabilities.limits does not have ${name}`,
    async refused({ open }) {
      const error = await refuses("unsupported", `open with limits.${name}`, () => open({ limits }));
      includes(error.message, `${name}`, "the message names the limit");
    },
  };
}

export const limitCases: readonly ConformanceCase[] = [
  {
    id: "limits.memory",
    title: "too much memory",
    requirement:
      "A command over the memory limit is killed, with `oomKilled` if the backend can tell; smaller ones run.",
    ...enforced({ memory: 128 * MIB }),
    async run({ sandbox }) {
      const take = (mib: number) =>
        finishes(sandbox, { argv: ["dd", "if=/dev/zero", "of=/dev/null", `bs=${mib * MIB}`, "count=1"] });
      equal((await take(8)).exitCode, 0, "exit code of a command that takes 8 MiB of 128");
      const large = await take(512);
      check(large.exitCode !== 0, "a command took 512 MiB of 128");
      if (large.exitCode === 137) check(large.oomKilled !== false, "it was killed for memory, but oomKilled is false");
      equal((await take(8)).exitCode, 0, "exit code of the next command");
    },
  },
  {
    id: "limits.pids",
    title: "too many processes",
    requirement: "A fork bomb fails at the limit; files can be used meanwhile, and the sandbox works afterwards.",
    ...enforced({ pids: 40 }),
    async run({ sandbox }) {
      await sandbox.writeFile("file", "x");
      const text =
        "i=0; while [ $i -lt 200 ]; do sleep 20 >/dev/null 2>&1 & i=$((i+1)); echo $i > count; done; : > all; sleep 20";
      const child = await sandbox.spawn({ argv: scriptArgv(text), timeout: 60_000 });
      await until("it starts", async () => (Number(await sandbox.readFile("count")) > 5 ? true : undefined));
      equal(await within(15_000, "readFile", sandbox.readFile("file")), "x", "a file meanwhile");
      const crowd = sandbox.exec({ argv: ["true"] }).then(
        ({ exitCode }) => exitCode,
        () => undefined,
      );
      await within(30_000, "an exec meanwhile", crowd);
      await Promise.race([
        within(60_000, "wait", child.wait()),
        until("it gives up", () => gaveUp(sandbox.stat("all"))),
      ]).catch(() => undefined);
      await child.kill("SIGKILL");
      await within(30_000, "wait", child.wait());
      equal(await sandbox.stat("all"), null, "the mark that 200 processes were started");
      check(Number(await sandbox.readFile("count")) < 60, "more processes were started than the limit allows");
    },
  },
  {
    id: "limits.pids-default",
    title: "a limit on processes without asking",
    requirement:
      "Where the number of processes can be limited, it is, even if nobody asks; a command can see the limit.",
    needs: ({ isolation, limits }) => {
      if (isolation === "none") return 'capabilities.isolation is "none": nobody counts the processes';
      return limits.includes("pids") ? undefined : "capabilities.limits does not have pids";
    },
    async run({ sandbox }) {
      // The limit of a user's processes, and that of a control group; `max` and `unlimited` are none.
      const text =
        "while read -r first second most rest; do [ \"$first $second\" = 'Max processes' ] && echo $most; done < /proc/self/limits; " +
        "for file in /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max; do [ ! -r $file ] || cat $file; done";
      const limits = (await script(sandbox, text)).split("\n").filter((line) => /^\d+$/.test(line));
      const least = Math.min(...limits.map(Number));
      check(least <= MOST_PIDS, `commands may start ${least} processes; expected at most ${MOST_PIDS}`);
    },
  },
  {
    id: "limits.cpus",
    title: "too much CPU time",
    requirement: "A busy command gets no more than its share of a core.",
    ...enforced({ cpus: 0.25 }),
    async run({ sandbox }) {
      // Four at once, so that they would exceed their share even on a busy machine.
      const text =
        "busy() { while [ $(date +%s) -lt $1 ]; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; done; }; " +
        "end=$(($(date +%s)+3)); for n in 1 2 3 4; do busy $end & done; wait; times";
      const result = await finishes(sandbox, { argv: scriptArgv(text) });
      const times = [...result.stdout.matchAll(/(\d+)m([\d.]+)s/g)];
      check(times.length >= 4, `times printed ${JSON.stringify(result.stdout)}`);
      const used = times.reduce((sum, [, m, s]) => sum + Number(m) * 60 + Number(s), 0) * 1_000;
      check(used <= result.durationMs * 0.5, `it used ${used} ms of ${result.durationMs} ms, with a quarter allowed`);
    },
  },
  {
    id: "limits.disk",
    title: "too many bytes",
    requirement: "Writing more than the disk limit fails; less does not.",
    ...enforced({ disk: 32 * MIB }),
    async run({ sandbox }) {
      const write = (mib: number, file: string) =>
        finishes(sandbox, { argv: ["dd", "if=/dev/zero", `of=${file}`, "bs=1048576", `count=${mib}`] });
      equal((await write(4, "small")).exitCode, 0, "exit code of a command that writes 4 MiB of 32");
      check((await write(128, "large")).exitCode !== 0, "a command wrote 128 MiB of 32");
      await sandbox.deleteFile("large");
      equal((await write(4, "small")).exitCode, 0, "exit code after room was made");
    },
  },
];

async function gaveUp(all: Promise<unknown>): Promise<true | undefined> {
  return (await all) === null ? undefined : true;
}
