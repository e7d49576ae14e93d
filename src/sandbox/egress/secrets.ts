export { type OpenSecrets, openSecrets } from "./secrets/open-secrets.js";
