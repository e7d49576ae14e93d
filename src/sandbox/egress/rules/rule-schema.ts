import type { NetworkRule } from "../../../../contracts/types.js";
import * as is from "../../../util/schema.js";
import { invalidArgument, type Schema } from "../../../util/schema.js";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Z-]+$/;

const method = is.and(is.string({ pattern: TOKEN.source }, 'a method in upper case, such as "GET"'), (value, name) => {
  // A server never gets it: it is for proxies.
  if (value === "CONNECT") throw invalidArgument(name, "a method of requests", value);
});

/** A rule as an object. What its fields mean together is checked when it is parsed. */
export const networkRule: Schema<NetworkRule> = is.object<NetworkRule>({
  host: is.required(is.string({ minLength: 1, description: "A name, *.name, or an address." })),
  port: is.noted(is.port, { description: "80 and 443 unless given; in deny, every port." }),
  methods: is.noted(is.list<readonly string[]>(method, { minItems: 1 }, "a list of methods that is not empty"), {
    description: "Methods in upper case. GET includes HEAD.",
  }),
  paths: is.noted(
    is.list<readonly string[]>(
      is.string({ pattern: "^/" }, "a path that starts with a slash"),
      { minItems: 1 },
      "a list of paths that is not empty",
    ),
    { description: "Patterns of paths: * within a segment, ** for any segments." },
  ),
  git: is.noted(is.oneOf("fetch", "push"), { description: "Only what git needs to fetch, or to push." }),
  private: is.noted(is.flag, { description: "The host has a private address." }),
  plain: is.noted(is.flag, { description: "Connections need not use TLS. Needs a port." }),
});
