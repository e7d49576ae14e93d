import type { Finding } from "../../../../contracts/finding.js";
import { type Container, findContainer } from "../../../machine/container.js";
import { type Standing, standing } from "../../../machine/standing.js";
import { containerHint } from "../../jail.js";

/** What a container around this process means for sandboxes in it; nothing outside of one. `opens` is whether one could be opened. */
export function containerFindings(
  opens: boolean,
  container: Container | undefined = findContainer(),
  who: Standing = standing(),
): Finding[] {
  if (container === undefined) return [];
  const { engine, isFiltered, hasMaskedProc, profile } = container;
  const facts = [
    engine === "unknown" ? "a container" : `a container of ${engine}`,
    isFiltered ? "with a seccomp filter" : "without a seccomp filter",
    hasMaskedProc ? "parts of /proc hidden" : "/proc whole",
    ...(profile === undefined ? [] : [`AppArmor profile ${profile}`]),
  ].join(", ");
  const found: Finding = opens
    ? { name: "container", status: "ok", detail: facts }
    : { name: "container", status: "missing", detail: facts, fix: containerHint(container) };
  if (!opens || who !== "bare-root") return [found];
  const detail = "commands run as the container's root, without capabilities; their number is not limited";
  return [found, { name: "user", status: "limited", detail, fix: "start the container with --user 1000:1000" }];
}
