#!/usr/bin/env node
// Starts the program of the package for this platform, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const name = `gimlet-agent-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/gimlet`);
} catch {
  console.error(`error: the package ${name} is not installed`);
  console.error("hint: gimlet runs on Linux; npm leaves the package out with --omit=optional. On Windows use WSL.");
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`error: ${program}: ${error.message}`);
  process.exit(1);
});
// A terminal sends these to the child as well, which decides what they mean.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
