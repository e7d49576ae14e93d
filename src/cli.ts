#!/usr/bin/env node
import { leave } from "./cli/leave.js";
import { main } from "./cli/main.js";

// Standard input may still be open, and must not keep the program alive.
leave(await main(process.argv.slice(2)));
