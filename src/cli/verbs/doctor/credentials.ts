import type { Finding } from "../../../sandbox.js";

/** For each service the sets of variables of which one is enough. */
const VARIABLES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  daytona: [["DAYTONA_API_KEY"], ["DAYTONA_JWT_TOKEN", "DAYTONA_ORGANIZATION_ID"]],
  vercel: [["VERCEL_OIDC_TOKEN"], ["VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID"]],
  github: [["GITHUB_TOKEN"], ["GH_TOKEN"], ["GLOVEBOX_TOKEN"]],
};

/** Which credentials of a service are there. Names only: no value is ever shown. */
export function credentialFindings(service: string, env: Readonly<Record<string, string | undefined>>): Finding[] {
  const sets = VARIABLES[service];
  if (sets === undefined) return [];
  const complete = sets.find((names) => names.every((name) => env[name]));
  if (complete !== undefined) {
    return [
      { name: "credentials", status: "ok", detail: `${complete.join(", ")} ${complete.length > 1 ? "are" : "is"} set` },
    ];
  }
  const present = sets.flat().filter((name) => env[name]);
  const wanted = sets.map((names) => names.join(" with ")).join(", or ");
  const detail = present.length > 0 ? `only ${present.join(", ")} of what is needed is set` : "none are set";
  return [{ name: "credentials", status: "unused", detail, fix: `set ${wanted}` }];
}
