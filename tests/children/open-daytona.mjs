// Opens a sandbox at the Daytona of the environment, says its id, and waits to be ended; or tears it down and ends by itself.
const [, , directory, text = "{}", ending = "wait"] = process.argv;
const { createDaytonaSandbox } = await import(`${directory}/src/sandbox/daytona.js`);

const sandbox = await createDaytonaSandbox(JSON.parse(text)).catch(({ code, hint }) => {
  console.log(JSON.stringify({ code, hint }));
  process.exit(1);
});
console.log(JSON.stringify({ id: sandbox.id }));
if (ending === "teardown") await sandbox.teardown();
else setInterval(() => {}, 1_000);
