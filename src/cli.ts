#!/usr/bin/env node
import { main } from "./cli/main.js";
import { leave } from "./cli/terminal.js";

// Standard input may still be open, and must not keep the program alive.
leave(await main(process.argv.slice(2)));
