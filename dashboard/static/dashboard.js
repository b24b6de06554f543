// What makes pages pleasant, and none needs.
"use strict";

// On a phone the pages are one line to swipe through: begin at the present one.
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// What nobody sees isn't asked for.
document.addEventListener("htmx:beforeRequest", (event) => {
  const asks = event.detail.elt.getAttribute("hx-trigger") ?? "";
  if (document.hidden && asks.startsWith("every")) event.preventDefault();
});

const menu = document.querySelector(".account");
if (menu) {
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
