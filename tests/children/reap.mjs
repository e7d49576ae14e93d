// Reaps as any other process would and prints the report.
const { reap } = await import(`${process.argv[2]}/src/sandbox/reap.js`);
const { removed, kept, failed } = await reap();
console.log(JSON.stringify({ removed, kept, failed: failed.map(({ id, error }) => `${id}: ${error.message}`) }));
