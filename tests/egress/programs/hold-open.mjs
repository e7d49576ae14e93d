// Asks for the same page many times at once, says when every answer has started, and prints all of them when they have ended.
const [url, count] = process.argv.slice(2);
const headers = { "x-api-key": process.env.TEST_KEY };
let started = 0;
const ask = async () => {
  const { body } = await fetch(url, { headers });
  let text = "";
  for await (const chunk of body) {
    if (text === "" && ++started === Number(count)) console.log("all started");
    text += Buffer.from(chunk).toString();
  }
  return text;
};
const answers = await Promise.all(Array.from({ length: Number(count) }, ask));
console.log(JSON.stringify([...new Set(answers)]));
