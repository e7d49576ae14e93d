import { toSandboxError } from "../../../../contracts/errors.js";
import type { Finding } from "../../../../contracts/finding.js";
import { isInstalled } from "../../../machine/is-installed.js";
import type { Sandbox, SandboxOptions } from "../../types.js";
import { sessionOf } from "./endpoint.js";
import { findCli } from "./find-cli.js";
import { loadSdk } from "./load-sdk.js";

const INSTALL = "install the Dagger CLI (https://docs.dagger.io/install), or run under `dagger run`";

/** Checks everything that the Dagger backend needs: the package, a session or the program that starts one, and an engine. */
export async function probeDagger(open: (opts: SandboxOptions) => Promise<Sandbox>): Promise<Finding[]> {
  const session = await attempt("session", async () => {
    const found = sessionOf(process.env);
    if (found !== undefined) return `the environment names one at port ${found.port}`;
    return `started by ${findCli(undefined)}`;
  });
  const sdk = await attempt("package", async () => {
    // It only has to work where it can be used.
    if (session.status === "ok" || !isInstalled("@dagger.io/dagger")) await loadSdk();
    return "@dagger.io/dagger is installed";
  });
  const findings = [sdk, session];
  const isReady = findings.every(({ status }) => status === "ok");
  if (isReady && sessionOf(process.env) !== undefined) {
    findings.push(
      await attempt("engine", async () => {
        await using sandbox = await open({});
        const { exitCode } = await sandbox.exec({ argv: ["true"] });
        return `a command in ${sandbox.workDir} ended with ${exitCode}`;
      }),
    );
  } else if (isReady) {
    const detail = "not tested: that would start an engine, which takes minutes and keeps running";
    findings.push({ name: "engine", status: "unused", detail, fix: "dagger run glovebox doctor" });
  }
  const fix = "use the local or docker backend where that matters";
  return [
    ...findings,
    { name: "network", status: "limited", detail: 'only "full": an engine has no setting for it', fix },
    { name: "limits", status: "limited", detail: "none: an engine can't limit a container", fix },
  ];
}

async function attempt(name: string, look: () => Promise<string>): Promise<Finding> {
  try {
    return { name, status: "ok", detail: await look() };
  } catch (error) {
    const { message, hint } = toSandboxError(error);
    return { name, status: "missing", detail: message, fix: hint ?? INSTALL };
  }
}
