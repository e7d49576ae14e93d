export { endProgram } from "./terminal/end-program.js";
export { Interruption } from "./terminal/interruption.js";
export { columnsOf, drawLiveLine } from "./terminal/live-line.js";
export type { Output } from "./terminal/output.js";
export { RawTerminal } from "./terminal/raw-terminal.js";
export { Screen } from "./terminal/screen.js";
export { CollectingSink, createSink, type Sink } from "./terminal/sink.js";
export { createStyle, type Style } from "./terminal/style.js";
export { formatTable } from "./terminal/table.js";
