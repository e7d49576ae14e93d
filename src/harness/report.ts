export {
  formatChanges,
  formatCost,
  formatDuration,
  formatRunCost,
  formatSecrets,
  formatTokens,
} from "./report/format.js";
export { html } from "./report/html.js";
export { codeBlock, inlineCode, markdownTable, plainName } from "./report/markdown.js";
export { reportHtml } from "./report/report-html.js";
export { nextCommands, reportMarkdown } from "./report/report-markdown.js";
export { REPORT_STYLE } from "./report/report-style.js";
