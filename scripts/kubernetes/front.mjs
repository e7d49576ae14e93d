import { connect } from "node:net";

/** The path from this machine to the API server, which can be `pass`, `stall` (nothing moves, nothing ends) or `reset`. */
export function createFront(server) {
  const pairs = new Set();
  const waiting = new Set();
  let mode = "pass";

  server.on("connection", (client) => {
    client.on("error", () => client.destroy());
    client.pause();
    if (mode === "pass") join(client);
    else if (mode === "stall") waiting.add(client);
    else client.resetAndDestroy();
  });

  function join(client) {
    const target = connect(6443, "127.0.0.1");
    const pair = [client, target];
    pairs.add(pair);
    move(client, target);
    move(target, client);
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        for (const each of pair) each.destroy();
        pairs.delete(pair);
      });
    }
    client.resume();
  }

  function move(from, to) {
    from.on("data", (piece) => {
      if (!to.write(piece)) from.pause();
    });
    to.on("drain", () => {
      if (mode !== "stall") from.resume();
    });
    from.on("end", () => to.end());
  }

  return {
    get mode() {
      return mode;
    },
    set mode(next) {
      if (!["pass", "stall", "reset"].includes(next)) throw new Error(`mode must be pass, stall or reset, not ${next}`);
      mode = next;
      for (const socket of [...pairs].flat()) {
        if (next === "reset") socket.resetAndDestroy();
        else if (next === "stall") socket.pause();
        else socket.resume();
      }
      if (next === "stall") return;
      for (const client of waiting) {
        if (next === "reset") client.resetAndDestroy();
        else join(client);
      }
      waiting.clear();
    },
  };
}
