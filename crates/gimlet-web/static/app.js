// Keys, the count of questions in the title, the two views of a diff, and files dropped into a task.
(() => {
  const root = document.documentElement;
  const split = (on) => { root.classList.toggle("split", on); localStorage.setItem("split", on ? "1" : ""); };
  split(localStorage.getItem("split") === "1");
  document.addEventListener("click", (event) => { if (event.target.id === "split") split(!root.classList.contains("split")); });
  const title = document.title;
  const bell = document.getElementById("bell");
  if (bell) new MutationObserver(() => {
    const waiting = bell.querySelector("[data-waiting]")?.dataset.waiting;
    document.title = waiting ? `(${waiting}) ${title}` : title;
  }).observe(bell, { childList: true, subtree: true });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = { g: "/", n: "/new", a: "/approvals" }[event.key];
    if (to) location.assign(to);
    else if (event.key === "d") split(!root.classList.contains("split"));
    else if (event.key === "?") document.getElementById("keys").showModal();
    else return;
    event.preventDefault();
  });
  const task = document.querySelector("form.task textarea");
  const attach = async (files) => {
    for (const file of files) if (file.size < 200000) task.value += `\n\n${file.name}:\n\`\`\`\n${await file.text()}\n\`\`\`\n`;
  };
  task?.addEventListener("drop", (event) => { if (event.dataTransfer.files.length) { event.preventDefault(); attach(event.dataTransfer.files); } });
  task?.addEventListener("paste", (event) => { if (event.clipboardData.files.length) { event.preventDefault(); attach(event.clipboardData.files); } });
})();
