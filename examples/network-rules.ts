import { strict as assert } from "node:assert";
// #region rules
import { openSandbox } from "glovebox";

const sandbox = await openSandbox({
  backend: "local",
  network: {
    allow: [
      { host: "api.example.com", methods: ["GET"], paths: ["/v1/**"] },
      { host: "git.example.com", git: "fetch", paths: ["/our-team/*"] },
    ],
    deny: [{ host: "api.example.com", paths: ["/v1/admin/**"] }],
  },
});
try {
  const refused = await sandbox.exec("curl", ["-sS", "-X", "DELETE", "https://api.example.com/v1/models/1"]);
  console.log(refused.stdout);
  // #endregion rules
  assert.match(refused.stdout, /do not allow DELETE \/v1\/models\/1/);
  assert.match(refused.stdout, /--network 'allow=DELETE api\.example\.com\/v1\/models\/1'/);
  // #region rules
} finally {
  await sandbox.teardown();
}
// #endregion rules
