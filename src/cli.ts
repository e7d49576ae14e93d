#!/usr/bin/env node
import { main } from "./cli/main.js";
import { endProgram } from "./cli/terminal.js";

// An open standard input must not keep the program alive.
endProgram(await main(process.argv.slice(2)));
