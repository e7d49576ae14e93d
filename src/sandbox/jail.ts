export { findBwrap } from "./jail/find-bwrap.js";
export { containerHint } from "./jail/hint.js";
export { chooseStage, chooseUser } from "./jail/identity.js";
export type { JailBind, JailSpec } from "./jail/jail.js";
export { openLowPorts } from "./jail/low-ports.js";
export { INSIDE_GUEST, type RunningGuest, startJailedGuest, startPlainGuest } from "./jail/start-guest.js";
export { syntheticEtc, systemBinds } from "./jail/system.js";
