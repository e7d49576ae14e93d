import type { Finding } from "../../../../contracts/finding.js";
import { isInstalled } from "../../../machine/is-installed.js";
import { connect, loadSdk } from "./client.js";
import { toFailure } from "./failure.js";
import { type Account, readAccount } from "./options.js";

const TIMEOUT = 10_000;

const SIZES: Finding = {
  name: "limits",
  status: "limited",
  detail: "none of a sandbox's own: the service has sizes in whole cores and GiB",
  fix: "daytona: { resources: { cpu, memory, disk } }",
};

/** Checks whether the SDK is installed, and whether the service accepts the account. */
export async function probeDaytona(): Promise<Finding[]> {
  const account = findAccount();
  try {
    // Without an account it is not needed.
    if ("apiUrl" in account || !isInstalled("@daytona/sdk")) await loadSdk();
  } catch (error) {
    const { message, hint } = error as { message: string; hint?: string };
    return [{ name: "package", status: "missing", detail: message, ...(hint && { fix: hint }) }];
  }
  const found: Finding = { name: "package", status: "ok", detail: "@daytona/sdk is installed" };
  return [found, "apiUrl" in account ? await checkAccount(account) : account, SIZES];
}

function findAccount(): Account | Finding {
  try {
    return readAccount({});
  } catch (error) {
    const { message, code } = error as { message: string; code?: string };
    const fix =
      code === "unauthenticated" ? "export DAYTONA_API_KEY=… (https://app.daytona.io/dashboard/keys)" : undefined;
    return { name: "account", status: "missing", detail: message, ...(fix && { fix }) };
  }
}

async function checkAccount(account: Account): Promise<Finding> {
  const { client, close } = await connect(account);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${TIMEOUT} ms`)), TIMEOUT);
  });
  try {
    await Promise.race([client.list({ limit: 1 }).next(), late]);
    return { name: "account", status: "ok", detail: `${account.apiUrl} accepts the key` };
  } catch (error) {
    const { message, hint } = toFailure(error, `${account.apiUrl} does not accept the account`);
    return { name: "account", status: "missing", detail: message, ...(hint && { fix: hint }) };
  } finally {
    clearTimeout(timer);
    await close();
  }
}
