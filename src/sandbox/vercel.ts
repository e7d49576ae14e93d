export * from "./backends/vercel.js";
