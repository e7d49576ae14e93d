export { assertGh } from "./github/gh-client.js";
export { type GitHubHost, gitHubHost, repositoryAt } from "./github/github-host.js";
export { toInertReferences } from "./github/inert-references.js";
export { commitMessageOf, pullRequestBody, pullRequestTitle } from "./github/pull-request-text.js";
export { pushAndCreatePR, withoutSecrets } from "./github/push-and-create-pr.js";
