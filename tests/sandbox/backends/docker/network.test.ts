import { beforeEach, expect, test } from "vitest";
import { createNetwork } from "../../../../src/sandbox/backends/docker/engine/network.js";
import { useScriptedEngine } from "../../../support/docker/scripted-engine.js";

let warning: string;
let asked: string[];
let wanted: { IPAM: { Config: { Subnet: string; Gateway: string }[] }; Options: object };
beforeEach(() => {
  warning = "";
  asked = [];
});

const engine = useScriptedEngine((request, response) => {
  asked.push(`${request.method} ${request.url?.replace(/^\/v[\d.]+/, "")}`);
  let body = "";
  request.on("data", (chunk: Buffer) => {
    body += chunk.toString("utf8");
  });
  request.on("end", () => {
    if (request.method === "DELETE") return response.writeHead(204).end();
    wanted = JSON.parse(body);
    return response.writeHead(201).end(JSON.stringify({ Id: "a1", Warning: warning }));
  });
});

const INTERNAL = { name: "one", internal: true, members: 3, labels: {} };
const numberOf = (address = ""): number => address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);

test("an internal network has no address of the host, and names the first address of its range as the gateway", async () => {
  expect(await createNetwork(engine(), INTERNAL)).toBe("a1");
  const [range] = wanted.IPAM.Config;
  const [first, bits] = range?.Subnet.split("/") ?? [];
  expect(bits).toBe("28");
  expect(numberOf(range?.Gateway)).toBe(numberOf(first) + 1);
  expect(wanted.Options).toEqual({ "com.docker.network.bridge.inhibit_ipv4": "true" });
  expect(asked).toEqual(["POST /networks/create"]);
});

test("an engine that does not know how to keep the host out is refused, and the network is removed", async () => {
  warning = '"com.docker.network.bridge.inhibit_ipv4: true" is not a recognized option';
  await expect(createNetwork(engine(), INTERNAL)).rejects.toMatchObject({ code: "unsupported" });
  expect(asked).toEqual(["POST /networks/create", "DELETE /networks/a1"]);
});

test("any other warning of an engine is no failure", async () => {
  warning = "Network with name one already exists";
  expect(await createNetwork(engine(), { ...INTERNAL, internal: false })).toBe("a1");
  expect(wanted.Options).toEqual({});
});
