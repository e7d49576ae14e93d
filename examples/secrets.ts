import { strict as assert } from "node:assert";
import { openSandbox, SandboxError } from "glovebox";

process.env["WEATHER_API_KEY"] ??= "wk-0123456789-not-a-real-one";
// #region secrets
const sandbox = await openSandbox({
  backend: "local",
  network: { allow: ["api.weather.example"] },
  secrets: { WEATHER_API_KEY: { hosts: ["api.weather.example"], header: "x-api-key" } },
});
const { stdout } = await sandbox.shell("echo $WEATHER_API_KEY");
console.log(stdout); // glovebox, and 32 letters and digits
// #endregion secrets
try {
  assert.match(stdout, /^glovebox\w{32}\n$/);
  const seen = await sandbox.shell("env; cat /proc/1/environ 2>/dev/null");
  assert.ok(!seen.stdout.includes(process.env["WEATHER_API_KEY"]), "the value is inside");
  process.env["MAPS_API_KEY"] ??= "mk-0123456789-not-a-real-one";
  // #region later
  await sandbox.setNetwork({ allow: ["api.weather.example", "api.maps.example"] });
  await sandbox.setSecrets({
    WEATHER_API_KEY: { hosts: ["api.weather.example"], header: "x-api-key" },
    MAPS_API_KEY: { hosts: ["api.maps.example"], header: "authorization" },
  });
  const later = await sandbox.shell("echo $WEATHER_API_KEY; echo $MAPS_API_KEY");
  // #endregion later
  assert.match(later.stdout, /^(glovebox\w{32}\n){2}$/);
  assert.ok(later.stdout.startsWith(stdout), "a secret that stays has another placeholder");
} finally {
  await sandbox.teardown();
}

// A secret needs hosts that the network rule allows, and a value, before anything is made.
for (const [name, host] of [
  ["WEATHER_API_KEY", "evil.example"],
  ["NO_SUCH_KEY", "api.weather.example"],
] as const) {
  const refused = await openSandbox({
    backend: "local",
    network: { allow: ["api.weather.example"] },
    secrets: { [name]: { hosts: [host] } },
  }).catch((error: unknown) => error);
  assert.ok(refused instanceof SandboxError, `${name} for ${host} was not refused`);
  console.log(`${refused.code}: ${refused.message}`);
}
console.log("a placeholder inside, the value outside, two refusals");
