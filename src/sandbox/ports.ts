export { PortRelay } from "./ports/port-relay.js";
