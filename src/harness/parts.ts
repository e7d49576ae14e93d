/** What the layer above needs of the harness: pages, and which options of a sandbox may be written down. */
export { formatCost, formatDuration, html, REPORT_STYLE } from "./report.js";
export { splitOptions } from "./store.js";
