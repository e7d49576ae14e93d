/** What the kinds of nodes are written in: reports, events, agents and the context of a run. */
export type * from "./node-types/agent-types.js";
export type * from "./node-types/context-types.js";
export type * from "./node-types/event-types.js";
export type * from "./node-types/node-base.js";
export type * from "./node-types/report-types.js";
