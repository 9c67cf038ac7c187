"use strict";
// The stages of a graph: a list, the code of one with what it changed, and its picture. Data come from stages.py.
const { stages, unchanged } = JSON.parse(document.getElementById("data").textContent);
const at = (selector) => document.querySelector(selector);
let now = 0;

function made(tag, text, parent, className = "") {
  const one = document.createElement(tag);
  one.textContent = text;
  one.className = className;
  parent.append(one);
  return one;
}

const rows = stages.map((stage, index) => {
  const row = made("button", stage.name, made("li", "", at("#list ol")));
  const count = (mark) => stage.lines.filter(([one]) => one === mark).length;
  const changed = count("+") + count("-") ? `+${count("+")} −${count("-")} · ` : "";
  made("small", changed + stage.caption, row);
  row.onclick = () => show(index);
  return row;
});
at("#list p").textContent = unchanged.length ? `Changed nothing: ${unchanged.join(", ")}` : "";

function show(index) {
  now = Math.max(0, Math.min(stages.length - 1, index));
  const stage = stages[now];
  rows.forEach((row, number) => row.classList.toggle("now", number === now));
  rows[now].scrollIntoView({ block: "nearest" });
  at("#position").textContent = `${now + 1} of ${stages.length}`;
  at("#text h2").textContent = stage.name;
  at("#drawing h2").textContent = stage.caption;
  at("#text pre").replaceChildren();
  for (const [mark, line] of stage.lines) {
    const row = made("div", line || " ", at("#text pre"), mark === "+" ? "new" : mark === "-" ? "gone" : "");
    row.dataset.mark = mark;
  }
  at("#text pre").scrollTop = 0;
  at("#text pre .new")?.scrollIntoView({ block: "center" });
  at("#drawing div").innerHTML = stage.svg; // made by our own drawing, its text escaped
  at("#drawing svg").onclick = () => at("#drawing").classList.toggle("large");
  history.replaceState(null, "", `#${now + 1}`);
}

const only = () => {
  const pressed = at("#text pre").classList.toggle("only");
  at("#only").setAttribute("aria-pressed", pressed);
};
const theme = () => {
  const dark = document.documentElement.classList.toggle("dark");
  try { localStorage.setItem("redispatch-theme", dark ? "dark" : "light"); } catch { /* a page without storage */ }
};
at("#back").onclick = () => show(now - 1);
at("#forward").onclick = () => show(now + 1);
at("#only").onclick = only;
at("#theme").onclick = theme;
const keys = { ArrowLeft: () => show(now - 1), ArrowRight: () => show(now + 1), Home: () => show(0), End: () => show(stages.length - 1), c: only, d: theme };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  keys[event.key]();
  event.preventDefault();
});
{
  let wish = null;
  try { wish = localStorage.getItem("redispatch-theme"); } catch { /* as above */ }
  if (wish ? wish === "dark" : matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.classList.add("dark");
}
show((Number(location.hash.slice(1)) || 1) - 1);
