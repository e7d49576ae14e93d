export { awsKeysFromEnv, type FetchedAwsKeys, makePlaceholderKeys, parseAwsKeys } from "./credentials/aws-keys.js";
export { createAwsSigner } from "./credentials/aws-rewriting.js";
export type { AwsKeys } from "./credentials/aws-signature.js";
export { fetchGoogleToken } from "./credentials/google-key.js";
export { exchangingTokens, withTokens } from "./credentials/oauth-login.js";
export { fetchOauthToken } from "./credentials/oauth-store.js";
export { checkTokenUrl, tokenInternals } from "./credentials/token-endpoint.js";
export { type TokenRoute, tokenRoute } from "./credentials/token-route.js";
export { TokenVault } from "./credentials/token-vault.js";
