import { execFile } from "node:child_process";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { describeUnless } from "../../../support/describe-unless.js";
import { DEBIAN, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { installPackage, whyNoPackage } from "../../../support/run/installed-package.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../../..", import.meta.url));
const FILTER = "--security-opt seccomp=unconfined";
const PROC = "--security-opt systempaths=unconfined";
const LINE = `docker run ${FILTER} ${PROC}`;
const USER = "--user 1000:1000";
const VOLUME = "-v /tmp -e GLOVEBOX_HOME=/tmp/glovebox";
const CONFINED = "CapEff:0000000000000000 CapBnd:0000000000000000 NoNewPrivs:1 Seccomp:2";

/** What `tests/children/in-container.mjs` prints. */
interface Found {
  opened: {
    said?: string[];
    forked?: string;
    changed?: string[];
    limits?: string[];
    code?: string;
    message?: string;
    hint?: string;
  };
  doctor: {
    works: boolean;
    sections: { name: string; findings: { name: string; status: string; detail: string; fix?: string }[] }[];
  };
  exit: number;
}

function whyNot(): string | undefined {
  if (!(process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, "docker")))) {
    return "not installed: docker, the command";
  }
  // The container has the programs of this machine in place of its own.
  const missing = ["/usr/bin/bwrap", "/usr/bin/git"].filter((path) => !existsSync(path));
  if (missing.length > 0) return `missing: ${missing.join(", ")}`;
  return whyNoDocker(DEBIAN) ?? whyNoPackage();
}

describeUnless(whyNot(), "the installed package in a container", { timeout: 300_000 }, () => {
  let app: string;
  beforeAll(async () => {
    app = installPackage().place;
    chmodSync(app, 0o755); // for the other users of a container
    await useEngine(DEBIAN);
  }, SET_UP_LIMIT);

  /** Opens a sandbox in a container that is started with these options. */
  async function inContainer(options: string, ...workspace: string[]): Promise<Found> {
    const children = join(root, "tests", "children");
    const args = [
      "run",
      "--rm",
      "--network",
      "none",
      "-e",
      "MARKER=secret",
      "-v",
      "/usr:/usr:ro",
      "-v",
      `${app}:/app:ro`,
    ];
    const node = process.execPath.startsWith("/usr/") ? process.execPath : "/node/bin/node";
    if (node === "/node/bin/node") args.push("-v", `${dirname(dirname(process.execPath))}:/node:ro`);
    args.push("-v", `${children}:/children:ro`, ...options.split(" ").filter(Boolean), DEBIAN);
    const { stdout } = await run("docker", [...args, node, "/children/in-container.mjs", "/app", ...workspace]);
    return JSON.parse(stdout) as Found;
  }

  function findings(
    { doctor }: Found,
    part = "local",
  ): Record<string, { status: string; detail: string; fix?: string }> {
    const section = doctor.sections.find(({ name }) => name === part);
    return Object.fromEntries((section?.findings ?? []).map((finding) => [finding.name, finding]));
  }

  test.concurrent.each<[string, string, string]>([
    ["default", "", LINE],
    ["without capabilities", "--cap-drop ALL", `${LINE} ${USER}`],
    ["without capabilities and filters", `--cap-drop ALL ${FILTER} ${PROC}`, `${LINE} ${USER}`],
    ["without a filter only", FILTER, LINE],
    ["with the whole /proc only", PROC, LINE],
    ["with SYS_ADMIN", "--cap-add SYS_ADMIN", `${LINE} ${USER}`],
    ["with SYS_ADMIN, without filters, on an overlay", `--cap-add SYS_ADMIN ${FILTER} ${PROC}`, `${LINE} ${USER}`],
    ["of user 1000", USER, LINE],
  ])("a container %s: none opens, and error and doctor name the same command", async (_name, options, line) => {
    const found = await inContainer(options);
    expect(found.opened).toMatchObject({ code: "no_isolation" });
    expect(found.opened.hint).toMatch(`start the container with: ${line}`);
    expect(found.opened.hint?.slice("start the container with: ".length).split(";")[0]).toBe(line);
    const { container, "self-test": selfTest } = findings(found);
    expect(container).toMatchObject({ status: "missing", fix: found.opened.hint });
    expect(selfTest).toMatchObject({ status: "missing", fix: found.opened.hint });
    expect([found.doctor.works, found.exit]).toEqual([false, 1]);
  });

  test.concurrent.each<[string, string, string]>([
    ["of user 1000", `${FILTER} ${PROC} ${USER}`, "user"],
    [
      "of a user without a name, without capabilities",
      `${FILTER} ${PROC} --user 4321 --cap-drop ALL --security-opt no-new-privileges`,
      "user",
    ],
    [
      "with the filter of this package",
      `--security-opt seccomp=${join(root, "docs", "container-seccomp.json")} ${PROC} ${USER} --cap-drop ALL`,
      "user",
    ],
    ["of root", `${FILTER} ${PROC}`, "bare-root"],
    [
      "of root with the one capability that it needs",
      `--cap-drop ALL --cap-add SETFCAP ${FILTER} ${PROC}`,
      "bare-root",
    ],
    ["of root with SYS_ADMIN, on a volume", `--cap-add SYS_ADMIN ${FILTER} ${PROC} ${VOLUME}`, "root"],
    // What --privileged gives, as far as every machine has it to give.
    [
      "of root with almost all, on a volume",
      `--cap-add ALL --cap-drop SYS_RESOURCE ${FILTER} ${PROC} ${VOLUME}`,
      "root",
    ],
  ])("a container %s: one opens, confined, and doctor agrees", async (_name, options, who) => {
    const found = await inContainer(options);
    expect(found.opened).toMatchObject({ said: ["1000", CONFINED], forked: "made\n" });
    const { container, user, "self-test": selfTest, "idmapped mounts": mounts, limits } = findings(found);
    expect(container).toMatchObject({ status: "ok" });
    expect(selfTest).toMatchObject({ status: "ok" });
    expect([found.doctor.works, found.exit]).toEqual([true, 0]);
    const { state } = findings(found, "machine");
    if (options.includes("4321"))
      expect(state).toMatchObject({ status: "limited", detail: expect.stringContaining("/tmp/glovebox-4321") });
    expect(user?.status).toBe(who === "bare-root" ? "limited" : undefined);
    expect(mounts?.status).toBe(who === "root" ? "ok" : "unused");
    expect(found.opened.limits).toEqual(who === "bare-root" ? [] : ["pids"]);
    expect(limits?.status).toBe("limited");
  });

  test.concurrent.each([
    ["worktree", ""],
    ["copy", ""],
    ["overlay", VOLUME],
  ])("a repository in the container's root's sandbox: %s", async (workspace, options) => {
    const { opened } = await inContainer(`${FILTER} ${PROC} ${options}`, workspace);
    expect(opened).toMatchObject({ said: ["1000", CONFINED], forked: "made\n", changed: ["file"] });
  });

  test("an overlay on the container's own overlay: refused, with the options to add", async () => {
    const { opened } = await inContainer(`${FILTER} ${PROC}`, "overlay");
    expect(opened).toMatchObject({ code: "no_isolation", hint: expect.stringContaining(`add ${VOLUME}`) });
  });

  test("the documents name the same options", () => {
    const faq = readFileSync(join(root, "docs", "faq.md"), "utf8");
    expect(faq).toContain(`${LINE} ${USER}`);
    expect(faq).toContain(VOLUME);
  });
});
