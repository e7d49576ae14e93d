import { openSandbox } from "glovebox";

if (!process.env["DAYTONA_API_KEY"] || !process.env["GITHUB_TOKEN"] || !process.env["GLOVEBOX_EXAMPLE_REPO"]) {
  console.log("not run: set DAYTONA_API_KEY, GITHUB_TOKEN and GLOVEBOX_EXAMPLE_REPO=owner/name");
} else {
  const token = process.env["GITHUB_TOKEN"];
  const repo = process.env["GLOVEBOX_EXAMPLE_REPO"];
  // #region branch
  await using sandbox = await openSandbox({ backend: "daytona", repo, branch: `glovebox-${Date.now()}` });
  const { exitCode, stdout } = await sandbox.shell("ls && git log -1 --format=%s", { timeout: 60_000 });
  console.log(exitCode, stdout);

  await sandbox.writeFile("GLOVEBOX.md", "written in a sandbox at Daytona\n");
  const snapshot = await sandbox.snapshot();
  const { files } = await sandbox.changes();
  console.log(snapshot, files);
  // #endregion branch

  // #region push
  const branch = (await sandbox.exec({ argv: ["git", "branch", "--show-current"] })).stdout.trim();
  const result = await sandbox.pushBranch(branch, token);
  console.log(result?.pushed ? `pushed ${branch}` : `not pushed: ${result?.error}`);
  // #endregion push
}
