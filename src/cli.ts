#!/usr/bin/env node
import { main } from "./cli/main.js";
import { leave } from "./cli/terminal.js";

// An open standard input must not keep the program alive.
leave(await main(process.argv.slice(2)));
