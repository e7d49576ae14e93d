#!/usr/bin/env node
import { main } from "./cli/main.js";

// Standard input may still be open, and must not keep the program alive.
process.exit(await main(process.argv.slice(2)));
