// The page in a real browser, served by the real binary: node test.mjs BINARY FOLDER-WITH-NODE-MODULES FOLDER-FOR-PICTURES
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BEFORE, Project, Site, axe, brokenWay, browser, equal, holds, out, until } from "./kit.mjs";

mkdirSync(out, { recursive: true });
const chromium = await browser();
const project = new Project();
let site = await Site.start(project);
const person = await chromium.newContext({ viewport: { width: 1280, height: 860 } });
const faults = [];

async function tab(context = person) {
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => { if (message.type() === "error" && /Content Security|Refused/.test(message.text())) faults.push(message.text()); });
  return page;
}

let passed = 0;
const failed = [];
async function test(name, body) {
  const begun = Date.now();
  const page = await tab();
  try {
    project.write("calc.py", BEFORE);
    await body(page);
    if (faults.length) throw new Error(faults.splice(0).join("; "));
    passed += 1;
    console.log(`test page: ${name} ... ok (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed.push(name);
    faults.length = 0;
    console.log(`test page: ${name} ... FAILED: ${error.message}`);
    await page.screenshot({ path: join(out, `failed-${failed.length}.png`) }).catch(() => {});
  }
  await page.close();
}

const open = (page, run) => page.goto(`${site.address}/runs/${run}`);
const answered = (page) => page.waitForSelector(".answer");
const asked = (page) => page.waitForSelector(".question .diff");
const state = (page, word) => page.waitForSelector(`#controls .state.${word}`);
const fix = (name, ...last) => project.model(name, project.fix(...last));

async function looks(page, name, options = {}) {
  for (const [scheme, width, kind] of [["light", 1280, "light"], ["dark", 1280, "dark"], ["light", 390, "phone"]]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: width === 390 ? 844 : 860 });
    await page.screenshot({ path: join(out, `${name}-${kind}.png`), ...options });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    holds(!wide, `${name} is wider than a screen of ${width}`);
    await page.evaluate(axe());
    const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    const serious = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    const told = serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target} ${node.any[0]?.message ?? ""}`).slice(0, 3).join(" | ")}`);
    equal(told.join("\n"), "", `${name}, ${kind}: axe`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 860 });
}

await test("a login link lets a browser in, once", async (page) => {
  await page.goto(site.address);
  holds((await page.textContent("main")).includes("gimlet serve"), "nobody is told how to log in");
  await page.goto(site.login);
  await page.waitForURL(`${site.address}/`);
  holds((await page.textContent("main")).includes("Start a task here"), "the empty list does not teach");
  await page.reload();
  const ready = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
  console.log(`  the list can be used after ${ready.toFixed(0)} ms`);
  await looks(page, "empty");
  const other = await chromium.newContext();
  const stranger = await tab(other);
  await stranger.goto(site.login);
  equal(await stranger.title(), "Log in · gimlet", "the used link");
  await other.close();
});

await test("a task is started, watched and approved", async (page) => {
  const model = fix("approve");
  await page.goto(`${site.address}/new`);
  await page.fill("[name=task]", "Why does add subtract?");
  await page.setInputFiles("#choose", { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("It should <b>add</b>.") });
  await page.waitForSelector("#files li");
  await page.click(".task details summary");
  await page.waitForSelector("#choices small");
  await page.fill("[name=model]", model);
  await looks(page, "new");
  await page.click(".task .primary");
  await page.waitForURL(/\/runs\//);
  await asked(page);
  await until("the title counts the question", async () => (await page.title()).startsWith("(1) "));
  holds((await page.textContent("#items")).includes("It should <b>add</b>."), "the attached file is not part of the task");
  await page.waitForSelector(".question .add .hk");
  await looks(page, "question");
  await page.keyboard.press("d");
  await page.waitForSelector(".question table.split", { state: "visible" });
  await page.screenshot({ path: join(out, "question-split.png") });
  await page.keyboard.press("d");
  await page.click(".question [value=approve]");
  await answered(page);
  await state(page, "answered");
  equal(await page.locator(".question").count(), 0, "questions that are left");
  equal(await page.locator(".step").count(), 4, "steps");
  equal(await page.locator(".mark.busy").count(), 0, "calls that seem to be at work");
  equal(project.read("calc.py"), BEFORE.replace("-", "+"), "the file");
  const streamed = await page.textContent("#items");
  await looks(page, "run");
  await page.reload();
  equal(await page.textContent("#items"), streamed, "what was streamed, beside what is loaded");
});

await test("an edited patch is what is approved", async (page) => {
  await open(page, await site.begin("edit it", fix("edit")));
  await asked(page);
  await page.click(".edit summary");
  const patch = await page.inputValue(".edit textarea");
  await page.fill(".edit textarea", "nonsense");
  await page.click("[value=edit]");
  await page.waitForSelector("#toast [role=alert]");
  await page.fill(".edit textarea", patch.replace("+    return a + b", "+    return b + a"));
  await page.click("[value=edit]");
  await answered(page);
  equal(project.read("calc.py"), BEFORE.replace("a - b", "b + a"), "the file");
  holds((await page.textContent("#items")).includes("with an edited patch"), "the page does not tell it");
});

await test("a denial carries words", async (page) => {
  await open(page, await site.begin("deny it", fix("deny", { expect: ["Use sum"], text: "I will." })));
  await asked(page);
  await page.keyboard.press("x");
  await page.keyboard.type("Use sum() instead.");
  await page.keyboard.press("Enter");
  await answered(page);
  holds((await page.textContent("#items")).includes("Denied: Use sum() instead."), "the words are not shown");
  equal(project.read("calc.py"), BEFORE, "the file");
});

await test("a run is spoken to, stopped and resumed", async (page) => {
  const call = (step) => ({ text: `Step ${step}.`, calls: [{ name: "list_files", args: { glob: `${step}*` } }], delay_ms: 1500 });
  const model = project.model("speak", [call(1), call(2), { ...call(3), delay_ms: 30000 }]);
  await open(page, await site.begin("work slowly", model));
  await state(page, "running");
  await page.fill(".composer textarea", "Look at <i>calc.py</i> too.");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".said.person >> text=</i> too.");
  equal(await page.inputValue(".composer textarea"), "", "the field after sending");
  await page.waitForSelector(".step >> nth=2");
  await page.keyboard.press("Escape");
  await page.keyboard.press("s");
  await state(page, "interrupted");
  project.model("speak", [call(1), call(2), { text: "All done." }]);
  await page.click("[data-do=resume]");
  await answered(page);
  holds((await page.textContent(".answer")).includes("All done."), "the answer");
});

await test("a killed server is found again, and the run resumed", async (page) => {
  const run = await site.begin("survive", fix("survive"));
  await open(page, run);
  await asked(page);
  const port = site.port;
  await site.end();
  site = await Site.start(project, port);
  // The browser is still logged in, and the page finds the server by itself.
  await state(page, "crashed");
  await page.click("[data-do=resume]");
  await state(page, "running");
  await until("the question is asked again", () => site.api("GET", "/approvals").then(({ approvals }) => approvals.length));
  await page.locator(".question [value=approve]").last().click();
  await answered(page);
  equal(project.read("calc.py"), BEFORE.replace("-", "+"), "the file");
});

await test("a run is forked, compared and undone", async (page) => {
  const run = await site.begin("fork me", fix("fork"));
  await open(page, run);
  await asked(page);
  await page.keyboard.press("y");
  await answered(page);
  await page.locator('.call > summary:has(code:text-is("apply_patch"))').click();
  await page.click("text=Undo this patch");
  await until("the file is as it was", () => project.read("calc.py") === BEFORE);
  const step = page.locator(".step").nth(1);
  await step.locator(".menu summary").click();
  await step.locator("[name=message]").fill("Think again.");
  await step.locator("button").click();
  await page.waitForURL((url) => url.pathname.startsWith("/runs/") && !url.pathname.endsWith(run));
  holds((await page.textContent("#items")).includes("Think again."), "what was said in the fork");
  await page.click("text=compare");
  await page.waitForSelector("text=What they did");
  await looks(page, "compare");
  await page.goBack();
  await page.waitForSelector("text=forked from");
  await page.goBack();
  await answered(page);
});

await test("two tabs show the same, and the first answer counts", async (page) => {
  const run = await site.begin("twice", fix("twice"));
  const other = await tab();
  await Promise.all([open(page, run), open(other, run)]);
  await Promise.all([asked(page), asked(other)]);
  await other.click(".question [value=approve]");
  await Promise.all([answered(page), answered(other)]);
  equal(await page.locator(".question").count(), 0, "questions that are left in the first tab");
  equal(await page.textContent("#items"), await other.textContent("#items"), "the two tabs");
  await other.close();
});

await test("5,000 events of another process arrive whole over connections that break", async (page) => {
  // A log as another process writes it: the beginning of a real run, and then a reply in 5,000 pieces.
  const real = await site.begin("write much", project.model("short", [{ text: "Short." }]));
  await until("the run", async () => (await site.api("GET", `/runs/${real}`)).status === "answered");
  const { events } = await site.api("GET", `/runs/${real}/events`);
  const begun = events.slice(0, events.findIndex(({ type }) => type === "step.started") + 1);
  const said = events.find(({ type }) => type === "model.message");
  const run = "20260101-000000-abcdef";
  const folder = join(project.home, "runs", run);
  mkdirSync(folder);
  let seq = 0;
  const write = (list) => appendFileSync(join(folder, "log.jsonl"), list.map((event) => JSON.stringify({ ...event, run, seq: ++seq, time: new Date().toISOString() }) + "\n").join(""));
  write(begun);
  const way = await brokenWay(site, 200);
  await until("the page loads between two breaks", () => page.goto(`${way.address}/runs/${run}`, { waitUntil: "domcontentloaded" }).then(() => page.$("#items")).catch(() => null));
  let words = "";
  let looked = 0;
  for (let part = 0; part < 50; part += 1) {
    const pieces = Array.from({ length: 100 }, (_, at) => ({ type: "model.delta", step: 1, text: `w${part * 100 + at} ` }));
    words += pieces.map(({ text }) => text).join("");
    write(pieces);
    const now = await page.evaluate(() => document.querySelector("pre.said[id]")?.textContent).catch(() => undefined);
    if (now !== undefined) { holds(words.startsWith(now), `something is missing or doubled near ${now.slice(-40)}`); looked += 1; }
  }
  await until("all pieces", async () => (await page.textContent("pre.said[id]")) === words);
  write([{ ...said, text: words, answer: undefined }, { ...events.at(-1), answer: "Read." }]);
  await answered(page);
  equal((await page.textContent(".step .said")).replaceAll(/\s+/g, " ").trim(), words.trim(), "the text");
  equal(await page.locator(".step").count(), 1, "steps");
  holds(way.cuts() > 5, `only ${way.cuts()} connections were broken`);
  way.end();
  console.log(`  ${seq} events, ${way.cuts()} broken connections, ${looked} looks at a growing text`);
});

await test("everything goes by the keyboard alone", async (page) => {
  const model = fix("keys");
  await page.goto(site.address);
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open]");
  await page.screenshot({ path: join(out, "keys.png") });
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  equal(await page.evaluate(() => document.activeElement.closest(".runs li") !== null), true, "j goes to a run");
  await page.keyboard.press("n");
  await page.waitForURL(/\/new$/);
  await page.waitForSelector("#choices small", { state: "attached" });
  await page.keyboard.type("By keys");
  for (const part of ["summary", "[name=model]"]) {
    await until(`Tab reaches ${part}`, async () => {
      await page.keyboard.press("Tab");
      return page.evaluate((part) => document.activeElement.matches(`.task ${part}`), part);
    });
    if (part === "summary") await page.keyboard.press("Enter");
  }
  await page.keyboard.type(model);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/runs\//);
  await asked(page);
  await page.keyboard.press("y");
  await answered(page);
  await page.keyboard.press("g");
  await page.waitForURL(`${site.address}/`);
  await page.keyboard.press("/");
  await page.keyboard.type("By keys");
  await until("the search", async () => (await page.locator(".runs li").count()) === 1);
  await looks(page, "list");
});

await test("sub-agents are a tree, and a run is shown again", async (page) => {
  const config = `[gate]\nenabled = false\n[agents.lead]\nagents = ["reader"]\ninstructions = "Lead."\n[agents.reader]\ndescription = "Reads."\ninstructions = "Read."\n`;
  writeFileSync(join(project.home, "config.toml"), config);
  const script = join(project.folder, "team.json");
  const conversation = [
    { match: "read calc", reply: [{ text: "It subtracts." }] },
    { match: "ask the reader", reply: [{ text: "I ask.", calls: [{ name: "reader", args: { task: "read calc" } }] }, { text: "The reader says that it subtracts." }] },
  ];
  writeFileSync(script, JSON.stringify({ order: "turns", conversation }));
  const { run } = await site.api("POST", "/runs", { task: "ask the reader", model: `scripted/${script}`, agent: "lead" });
  await open(page, run);
  await answered(page);
  await page.waitForSelector("#items .agent .items .step");
  await looks(page, "tree");
  await page.click("text=Replay");
  await page.waitForURL(/replay=true/);
  await page.waitForSelector(".agent .step");
  await answered(page);
});

await test("the other pages can be read by everybody", async (page) => {
  const suite = new URL("../../../eval/basic", import.meta.url).pathname;
  const model = project.model("graded", [{ text: "I do not know." }]);
  try {
    project.say("eval", suite, "--model", model, "--action", "tools", "--task", "explain-*");
  } catch {
    // Tasks that fail are the result that is drawn.
  }
  await page.goto(`${site.address}/evaluations`);
  await page.waitForSelector(".plot svg .bar", { state: "attached" });
  holds((await page.textContent(".plot")).includes("graded"), "the plot does not name the model");
  await page.click(".plot summary");
  await looks(page, "evaluations");
  await page.goto(`${site.address}/approvals`);
  await looks(page, "questions");
  for (const name of ["models", "agents", "servers", "memory", "settings", "doctor"]) {
    await page.goto(`${site.address}/about/${name}`);
    await page.waitForSelector("text=says in");
    await looks(page, name);
  }
});

await site.end();
await chromium.close();
console.log(`test result: ${failed.length ? "FAILED" : "ok"}. ${passed} passed; ${failed.length} failed;`);
process.exit(failed.length ? 1 : 0);
