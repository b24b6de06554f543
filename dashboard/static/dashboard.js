// What makes pages pleasant, and none needs.
"use strict";

// On a phone what is long begins folded; without this script it is open.
const phone = matchMedia("(max-width: 40rem)");
const fold = () => document.querySelectorAll("details[data-folds]").forEach((one) => (one.open = !phone.matches));
if (phone.matches) fold();
phone.addEventListener("change", fold);

// What nobody sees isn't asked for.
document.addEventListener("htmx:beforeRequest", (event) => {
  const asks = event.detail.elt.getAttribute("hx-trigger") ?? "";
  if (document.hidden && asks.startsWith("every")) event.preventDefault();
});

// A flavor that does not fit can't be chosen. Its card is drawn again when the form changes, which
// takes this script: without it only what fits in no case is closed. The chosen one says why.
const close = () => document.querySelectorAll("#flavors .pick.dim input:not(:checked)").forEach((one) => (one.disabled = true));
close();

// What is drawn again has the same rows, and the same flavor, chosen.
const chosen = new Set();
let flavor = null;
document.addEventListener("htmx:beforeSwap", () => {
  chosen.clear();
  flavor = document.querySelector("#flavors :checked")?.id;
  document.querySelectorAll("#list [name='server']:checked").forEach((one) => chosen.add(one.value));
});
document.addEventListener("htmx:afterSettle", () => {
  const picked = flavor && document.getElementById(flavor);
  if (picked) picked.checked = true;
  close();
  document.querySelectorAll("#list [name='server']").forEach((one) => {
    if (chosen.has(one.value)) one.checked = true;
  });
});

// A search can be loaded again, and sent to somebody.
document.addEventListener("htmx:afterRequest", (event) => {
  const { elt, successful, pathInfo } = event.detail;
  if (successful && elt.matches("[role='search']")) history.replaceState(null, "", pathInfo.finalRequestPath);
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("#list [name='server']")) event.preventDefault();
});

// A menu is closed by a click elsewhere and by Escape.
const menus = "details:is(.account, .menu)[open]";
document.addEventListener("click", (event) => {
  document.querySelectorAll(menus).forEach((one) => (one.open = one.contains(event.target)));
});
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && event.target.closest(menus);
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// Only a script can copy: without this one there are no buttons for it.
document.documentElement.classList.add("scripted");
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.dataset.copy ?? "";
  // Without TLS browsers have no clipboard but that of a selection.
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else {
    const area = document.createElement("textarea");
    area.value = text;
    button.after(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
});

// A text file can be read into a field, which is what is sent.
document.addEventListener("change", async (event) => {
  const { into } = event.target.dataset ?? {};
  const file = into && event.target.files[0];
  if (file) document.getElementById(into).value = await file.text();
});

// Pages have UTC: people read times in the zone of their browser.
const inFull = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "long" });
const short = (options) => new Intl.DateTimeFormat(document.documentElement.lang, options);
// Labels of axes, by their class.
const ticks = Object.entries({
  clock: short({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
  day: short({ day: "2-digit", month: "short" }),
});
const localise = () => {
  document.querySelectorAll("time[datetime]").forEach((one) => {
    const at = new Date(/(Z|[+-]\d\d:?\d\d)$/.test(one.dateTime) ? one.dateTime : `${one.dateTime}Z`);
    if (isNaN(at)) return;
    const [, tick] = ticks.find(([kind]) => one.classList.contains(kind)) ?? [];
    if (tick) one.textContent = tick.format(at);
    else if (one.classList.contains("exact")) one.textContent = inFull.format(at);
    else one.title = inFull.format(at);
  });
  document.querySelectorAll("title[data-time]").forEach((one) => {
    const { time, said } = one.dataset;
    one.textContent = `until ${inFull.format(new Date(time))}, ${said}`;
  });
};
localise();
document.addEventListener("htmx:afterSettle", localise);

// A last day ends when it does where the reader is.
document.querySelectorAll("[data-ends]").forEach((day) => {
  const field = document.getElementById(day.dataset.ends);
  const set = () => {
    const end = new Date(`${day.value}T23:59:59`);
    field.value = isNaN(end) ? "" : end.toISOString();
  };
  day.addEventListener("input", set);
  set();
});
