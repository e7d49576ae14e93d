export { withAskpass } from "./remote/askpass.js";
export { complaintOf, runRemoteGit } from "./remote/remote-git.js";
export { assertServer, parseHttpUrl, parsePushUrl, type RemoteTarget, shownUrl, toHttps } from "./remote/remote-url.js";
