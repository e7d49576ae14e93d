import type { CliCommand } from "./command.js";
import { HELP_FLAG } from "./flags.js";

/** The verb that shows connections. */
export const NET_COMMAND: CliCommand = {
  name: "net",
  summary: "show what a sandbox has reached, and what was blocked",
  operands: "<id|name> | --sets",
  argv: "none",
  operandCount: [0, 1],
  offers: ["sandboxes"],
  flags: [
    { name: "follow", short: "f", help: "show connections as they come, until the sandbox is closed" },
    { name: "sets", help: "list the sets of names that --network allow=@set stands for" },
    { name: "json", help: "print JSON; with --follow, each event as a line" },
    HELP_FLAG,
  ],
  notes: [
    "Works for local and Docker sandboxes with a list of names, from any process of yours. The newest events stay, up",
    "to 2 MiB, as long as the sandbox does; for a log that stays, see exec --audit.",
    "The sets of package managers come from your own configuration of each; no repository can change them.",
  ],
  examples: [
    ["glovebox net 4f2a", "hosts, rules, and how often"],
    ["glovebox net dev --follow", "watch a sandbox of another process"],
    ["glovebox net --sets", "for example @claude-code and @npm"],
  ],
};
