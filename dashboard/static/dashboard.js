// What makes pages pleasant, and none needs.
"use strict";

// On a phone the pages are one line to swipe through: begin at the present one.
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

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
