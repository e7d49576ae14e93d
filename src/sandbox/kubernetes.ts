export * from "./backends/kubernetes.js";
