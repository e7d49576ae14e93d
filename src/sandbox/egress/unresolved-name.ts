import type { NetworkPolicy } from "../../../contracts/types.js";

/** What programs print when a name has no address: Node, the C library, curl and git, Go, Rust, Python, Java. */
const UNRESOLVED =
  /EAI_AGAIN|ENOTFOUND|name resolution|could not resolve host|name or service not known|no such host|failed to lookup address|nodename nor servname|UnknownHostException|bad address '/i;

/** Whether the output of a failed command says that a name could not be resolved. */
export function saysUnresolved(output: string): boolean {
  return UNRESOLVED.test(output);
}

/**
 * What to do when a name could not be resolved because of the network rule; undefined where every host may be reached. The name itself is not
 * repeated: whoever printed it may be lying.
 */
export function networkHint(network: NetworkPolicy | undefined): string | undefined {
  if (network === undefined || network === "full") return undefined;
  const isClosed = network === "none" || network.allow.length === 0;
  const what = isClosed
    ? "the network of the sandbox is closed"
    : "the sandbox reaches only the hosts that it was given";
  return `${what}: --network allow=<host> opens it for a host that you name, --network full for all`;
}
