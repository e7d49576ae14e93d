/** Puts every comment on lines of its own; the bundler leaves some beside the code of their neighbours. */
export function splitComments(code) {
  return code.replaceAll(/([;{}]) *\/\*\*/g, "$1\n/**").replaceAll(/\*\/(?=[^\s])/g, "*/\n");
}

/** Breaks the lines of comments so that none is longer than `width`. */
export function fillComments(code, width) {
  return code.replaceAll(/^( *)\/\*\*([\s\S]*?)\*\//gm, (_, indent, inside) => {
    const words = inside
      .split("\n")
      .map((line) => line.replace(/^\s*\* ?/, "").trim())
      .join(" ")
      .split(/\s+/)
      .filter(Boolean);
    const line = `${indent}/** ${words.join(" ")} */`;
    if (line.length <= width) return line;
    const lines = fill(words, width - indent.length - 3);
    return `${indent}/**\n${lines.map((each) => `${indent} * ${each}`).join("\n")}\n${indent} */`;
  });
}

function fill(words, width) {
  const lines = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && `${last} ${word}`.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
