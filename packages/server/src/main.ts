#!/usr/bin/env -S BUN_CONFIG_MAX_HTTP_REQUESTS=65336 bun
import { runProgram } from "./commands/program.ts";

await runProgram(process.argv.slice(2));
