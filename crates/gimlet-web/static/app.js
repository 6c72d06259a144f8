// What plain pages cannot do: keys, the count of questions in the title, notifications, both views of a diff, files that are
// dropped or pasted into a task, and keeping to the end of a run while it grows.
(() => {
  const root = document.documentElement;
  const find = (selector) => document.querySelector(selector);
  const on = (name, then) => document.addEventListener(name, then);

  const split = (wanted) => {
    root.classList.toggle("split", wanted);
    localStorage.setItem("split", wanted ? "1" : "");
  };
  split(localStorage.getItem("split") === "1");

  // Questions: the title, and a notification where the person wants one.
  const title = document.title;
  const bell = document.getElementById("bell");
  let waited = null;
  if (bell) new MutationObserver(() => {
    const waiting = Number(bell.querySelector("[data-waiting]")?.dataset.waiting ?? 0);
    document.title = waiting ? `(${waiting}) ${title}` : title;
    if (waited !== null && waiting > waited && document.hidden && window.Notification?.permission === "granted")
      new Notification("gimlet asks you something", { tag: "gimlet" });
    waited = waiting;
  }).observe(bell, { childList: true, subtree: true });
  const notify = document.getElementById("notify");
  if (notify && window.Notification && Notification.permission === "default") {
    notify.hidden = false;
    notify.addEventListener("click", async () => { await Notification.requestPermission(); notify.hidden = true; });
  }

  // Keys.
  const click = (selector) => find(selector)?.click();
  const step = (by) => {
    const places = [...document.querySelectorAll(".step, .question, .runs li")].filter((place) => place.offsetParent);
    const here = places.findIndex((place) => place.contains(document.activeElement));
    const next = places[here < 0 ? (by > 0 ? 0 : places.length - 1) : here + by];
    if (!next) return;
    const target = next.querySelector("a") ?? next;
    if (target === next) next.tabIndex = -1;
    target.focus({ preventScroll: true });
    next.scrollIntoView({ block: "center" });
  };
  const keys = {
    g: () => location.assign("/"),
    n: () => location.assign("/new"),
    q: () => location.assign("/approvals"),
    "/": () => find("[name=q], .composer textarea, .task textarea")?.focus(),
    j: () => step(1),
    k: () => step(-1),
    y: () => click(".question [value=approve]"),
    x: () => find(".question [name=feedback]")?.focus(),
    e: () => {
      const edit = find(".question .edit");
      if (edit) { edit.open = true; edit.querySelector("textarea").focus(); }
    },
    d: () => split(!root.classList.contains("split")),
    s: () => click("[data-do=cancel]"),
    r: () => click("[data-do=resume]"),
    "?": () => document.getElementById("keys").showModal(),
  };
  on("keydown", (event) => {
    const field = event.target.closest?.("input, textarea, select");
    if (event.key === "Enter" && field?.matches("textarea")) {
      const sends = field.matches(".composer textarea") ? !event.shiftKey : event.ctrlKey || event.metaKey;
      if (sends && !field.closest(".edit")) { event.preventDefault(); field.form.requestSubmit(); }
      return;
    }
    if (event.key === "Escape" && field) return field.blur();
    if (field && !field.matches("[type=checkbox]")) return;
    if (event.ctrlKey || event.metaKey || event.altKey || find("dialog[open]")) return;
    const does = keys[event.key];
    if (does) { event.preventDefault(); does(); }
  });
  on("click", (event) => {
    if (event.target.closest("#split")) split(!root.classList.contains("split"));
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });

  // A deny by Enter in its field, not the first button of the form.
  on("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches?.(".question [name=feedback]")) return;
    event.preventDefault();
    event.target.form.querySelector("[value=deny]").click();
  });

  // A run that grows is followed while its end is in sight, and left alone while somebody reads further up.
  let atEnd = true;
  on("scroll", () => { atEnd = innerHeight + scrollY > document.body.scrollHeight - 120; });
  on("htmx:sse:after:message", () => { if (atEnd) scrollTo(0, document.body.scrollHeight); });
  on("htmx:sse:after:connection", () => { const controls = document.getElementById("controls"); if (controls) htmx.trigger(controls, "refresh"); });
  on("htmx:after:request", (event) => {
    const form = event.target.closest?.(".composer");
    if (form && event.detail?.ctx?.response?.status < 300) form.reset();
  });

  // What was said to the person goes away by itself.
  const toast = document.getElementById("toast");
  let gone;
  if (toast) new MutationObserver(() => {
    clearTimeout(gone);
    if (toast.children.length) gone = setTimeout(() => toast.replaceChildren(), toast.querySelector("[role=alert]") ? 12000 : 4000);
  }).observe(toast, { childList: true });

  // Files of a new task.
  const form = find("form.task:has([name=files])");
  if (!form) return;
  const [task, field, list] = [form.querySelector("[name=task]"), form.querySelector("[name=files]"), form.querySelector("#files")];
  let files = [];
  const show = () => {
    field.value = files.length ? JSON.stringify(files) : "";
    list.replaceChildren(...files.map((file, at) => {
      const [entry, button] = [document.createElement("li"), document.createElement("button")];
      entry.textContent = `${file.name} · ${Math.ceil(file.text.length / 1024)} KB `;
      button.type = "button";
      button.textContent = "×";
      button.ariaLabel = `Remove ${file.name}`;
      button.addEventListener("click", () => { files.splice(at, 1); show(); });
      entry.append(button);
      return entry;
    }));
  };
  const tell = (text) => {
    const line = document.createElement("p");
    line.className = "bad";
    line.textContent = text;
    toast.replaceChildren(line);
  };
  const attach = async (given) => {
    for (const file of given) {
      if (file.size > 400000) { tell(`${file.name} is larger than 400 KB`); continue; }
      const text = await file.text();
      if (text.includes("\0") || text.includes("\ufffd")) { tell(`${file.name} is not a text file`); continue; }
      files.push({ name: file.name, text });
    }
    show();
  };
  const take = (event, given) => { if (given?.length) { event.preventDefault(); attach([...given]); } };
  form.addEventListener("dragover", (event) => { event.preventDefault(); task.classList.add("dropping"); });
  form.addEventListener("dragleave", () => task.classList.remove("dropping"));
  form.addEventListener("drop", (event) => { task.classList.remove("dropping"); take(event, event.dataTransfer.files); });
  form.addEventListener("paste", (event) => take(event, event.clipboardData.files));
  form.querySelector("#choose").addEventListener("change", (event) => { attach([...event.target.files]); event.target.value = ""; });
})();
