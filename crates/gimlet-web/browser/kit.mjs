// What the browser tests stand on: a project with a home of its own, the real binary that serves it, and Chromium.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const BROWSER = "/usr/bin/chromium";
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

export const [, , binary, modules, out] = process.argv.map((path, at) => (at > 1 ? resolve(path) : path));
const require = createRequire(join(modules ?? "/", "node_modules", "here.js"));

/** The browser. Without one the tests fail: nothing else shows that the page works. */
export async function browser() {
  if (!existsSync(BROWSER)) throw new Error(`there is no browser at ${BROWSER}`);
  const { chromium } = require("playwright-core");
  return chromium.launch({ executablePath: BROWSER, args: FLAGS });
}

export const axe = () => readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const BEFORE = "def add(a, b):\n    return a - b\n";

/** A repository with a fault, and a home for its runs. */
export class Project {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "gimlet-page-"));
    this.root = join(this.folder, "calc");
    this.home = join(this.folder, "home");
    mkdirSync(this.root);
    mkdirSync(this.home);
    writeFileSync(join(this.home, "config.toml"), "[gate]\nenabled = false\n");
    this.write("calc.py", BEFORE);
    this.write("README.md", "# Calc\n\nAdds numbers.\n");
    const git = (...args) => execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.org", ...args], { cwd: this.root });
    git("init", "--quiet");
    git("add", ".");
    git("commit", "--quiet", "--message", "first");
  }

  env() {
    return { PATH: process.env.PATH, GIMLET_HOME: this.home, NO_COLOR: "1" };
  }

  write(name, text) {
    writeFileSync(join(this.root, name), text);
  }

  read(name) {
    return readFileSync(join(this.root, name), "utf8");
  }

  say(...args) {
    return execFileSync(binary, args, { cwd: this.root, env: this.env(), encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  }

  /** A model that plays these replies, one a turn. */
  model(name, replies) {
    const path = join(this.folder, `${name}.json`);
    writeFileSync(path, JSON.stringify({ order: "turns", reply: replies }));
    return `scripted/${path}`;
  }

  /** Replies that fix the fault by a patch, with the very id that this patch has. */
  fix(...last) {
    const args = { intent: "Add", file_path: "calc.py", original_content: "    return a - b\n", new_content: "    return a + b\n" };
    const { patch_id } = JSON.parse(this.say("tools", "call", "propose_patch", JSON.stringify(args)));
    const thinking = "The function is called add and subtracts.";
    return [
      { thinking, text: "I read the code.", calls: [{ name: "read_file", args: { path: "calc.py" } }], usage: { input: 300, output: 20 } },
      { text: "It **subtracts**.", calls: [{ name: "propose_patch", args }], usage: { input: 500, output: 60 } },
      { calls: [{ name: "apply_patch", args: { patch_id } }], usage: { input: 620, output: 15 } },
      ...(last.length ? last : [{ text: "Fixed: `add` adds.\n\n```python\ndef add(a, b):\n    return a + b\n```" }]),
    ];
  }
}

/** The server. */
export class Site {
  static async start(project, port = 0) {
    const site = new Site();
    const args = ["serve", "--json", "--listen", `127.0.0.1:${port}`];
    site.child = spawn(binary, args, { cwd: project.root, env: project.env(), stdio: ["ignore", "pipe", "inherit"] });
    const first = await new Promise((done, failed) => {
      let text = "";
      site.child.stdout.on("data", (data) => { text += data; if (text.includes("\n")) done(text.split("\n")[0]); });
      site.child.on("exit", (code) => failed(new Error(`gimlet serve ended with ${code}`)));
    });
    Object.assign(site, JSON.parse(first));
    site.port = Number(new URL(site.address).port);
    site.token = readFileSync(join(project.home, "serve.token"), "utf8").trim();
    return site;
  }

  async api(method, path, body) {
    const headers = { authorization: `Bearer ${this.token}` };
    const answer = await fetch(`${this.address}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  async begin(task, model) {
    return (await this.api("POST", "/runs", { task, model })).run;
  }

  async end(signal = "SIGKILL") {
    const gone = new Promise((done) => this.child.on("exit", done));
    this.child.removeAllListeners("exit");
    this.child.on("exit", () => {});
    this.child.kill(signal);
    await Promise.race([gone, new Promise((done) => setTimeout(done, 300))]);
  }
}

/** A way to a server on which every connection breaks again and again. */
export async function brokenWay(site, every) {
  const open = new Set();
  const server = createServer((near) => {
    const far = createConnection(site.port, "127.0.0.1");
    const own = server.address().port;
    near.on("data", (data) => far.write(Buffer.from(data.toString("latin1").replaceAll(`127.0.0.1:${own}`, `127.0.0.1:${site.port}`), "latin1")));
    far.on("data", (data) => near.write(data));
    for (const [one, other] of [[near, far], [far, near]]) {
      one.on("close", () => other.destroy());
      one.on("error", () => other.destroy());
    }
    open.add(near);
    near.on("close", () => open.delete(near));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  let cuts = 0;
  const cutting = setInterval(() => { for (const socket of open) { socket.destroy(); cuts += 1; } }, every);
  return {
    address: `http://127.0.0.1:${server.address().port}`,
    cuts: () => cuts,
    end: () => { clearInterval(cutting); server.close(); for (const socket of open) socket.destroy(); },
  };
}

export async function until(what, there, patience = 30000) {
  const begun = Date.now();
  for (;;) {
    const found = await there();
    if (found) return found;
    if (Date.now() - begun > patience) throw new Error(`${what}: it does not come`);
    await new Promise((done) => setTimeout(done, 30));
  }
}

export function equal(got, wanted, what) {
  if (got !== wanted) throw new Error(`${what}: ${JSON.stringify(got)} is not ${JSON.stringify(wanted)}`);
}

export function holds(is, what) {
  if (!is) throw new Error(what);
}
