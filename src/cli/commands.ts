export { COMMANDS } from "./commands/all.js";
export type { CliCommand } from "./commands/command.js";
export { findCommand } from "./commands/find-command.js";
export { type Flag, SANDBOX_FLAGS } from "./commands/flags.js";
export { commandHelp, generalHelp, shortHelp } from "./commands/help-text.js";
export { parseCommandLine, VERSION_FLAGS } from "./commands/parse.js";
export { UsageError } from "./commands/usage-error.js";
export {
  parseCores,
  parseCount,
  parseDuration,
  parseEnv,
  parseLabels,
  parseLifetime,
  parseMount,
  parsePort,
  parseSecrets,
  parseSize,
  parseWord,
} from "./commands/values.js";
