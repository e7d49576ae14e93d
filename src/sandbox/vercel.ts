export type * from "./backends/vercel/vercel-options.js";
export * from "./backends/vercel.js";
