// Reaps as any other process would and prints the report.
const [, , directory, options = "{}"] = process.argv;
const { reap } = await import(`${directory}/src/sandbox/reap.js`);
const { removed, kept, failed } = await reap(JSON.parse(options));
console.log(JSON.stringify({ removed, kept, failed: failed.map(({ id, error }) => `${id}: ${error.message}`) }));
