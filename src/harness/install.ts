export { openCommitFiles } from "./install/commit-files.js";
export type { InstallPlan, InstallStep } from "./install/install-step.js";
export { planInstall } from "./install/plan-install.js";
export { registriesOf, toolNames } from "./install/registries-of.js";
export { userConfig } from "./install/user-config.js";
