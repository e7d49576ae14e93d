/** The nouns of the harness. Times are milliseconds and sizes are bytes unless a name says otherwise. */
export type * from "./node-types.js";
export type {
  AgentNode,
  AgentSpec,
  AgentTask,
  AgentTaskSpec,
  BlueprintNode,
  CheckSpec,
  CommandNode,
  CommandSpec,
  CommitNode,
  CommitSpec,
  GateCheck,
  GateNode,
  GateRepair,
  GateSpec,
  KindWord,
  NodeKindAlias,
  NodeSpec,
  RepairSpec,
  RunnableSpec,
} from "./nodes.js";
export type * from "./types/blueprint-types.js";
export { EXIT_CODES } from "./types/exit-codes.js";
export type * from "./types/run-types.js";
